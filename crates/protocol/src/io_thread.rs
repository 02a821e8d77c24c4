//! One I/O thread: its connections, its clock, and the periodic check of all connections that replaces timers.

use crate::connection::{Connection, Shared};
use crate::connection_task::{drive, drive_fastcgi, drive_quic, drive_tls, drive_upgraded};
use crate::exchange::Handler;
use crate::http3::IncomingConnection;
use crate::listener::{Accepted, ListenerProtocol};
use crate::peer::Peer;
use crate::socket::Socket;
use crate::state::{State, Verdict};
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Interval at which a thread that has left its addresses to another process checks whether its connections have ended.
const LEAVING_TICK: Duration = Duration::from_millis(50);

/// Share of connections that are closed at once to make room for others: one in this many.
const CLOSE_ONE_IN: usize = 64;

/// Requests from other threads to an I/O thread.
#[derive(Debug)]
pub(crate) enum Message {
    /// Take over a connection.
    Accept(Accepted),
    /// Close connections that can be spared.
    MakeRoom,
    /// Close every connection after its next response, and end when the last one has closed.
    Leave,
    /// Finish running requests, wait at most this long for requests that may be on their way, and end.
    Drain(Duration),
    /// End now.
    Abort,
}

/// Handle with which other threads send messages to an I/O thread.
#[derive(Debug, Clone)]
pub struct IoThreadHandle {
    sender: UnboundedSender<Message>,
    open: Arc<AtomicUsize>,
    closed: Arc<Notify>,
}

impl IoThreadHandle {
    /// Connections that are open or on their way to the thread.
    pub fn open_connections(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Hands a connection over.
    pub(crate) fn accept(&self, accepted: Accepted) {
        self.open.fetch_add(1, Relaxed);
        if self.sender.send(Message::Accept(accepted)).is_err() {
            self.open.fetch_sub(1, Relaxed);
        }
    }

    /// Asks for connections to be closed for others.
    pub(crate) fn make_room(&self) {
        let _ = self.sender.send(Message::MakeRoom);
    }

    /// Ready when a connection of any I/O thread has ended since the last call.
    pub(crate) async fn closed(&self) {
        self.closed.notified().await;
    }

    pub(crate) fn leave(&self) {
        let _ = self.sender.send(Message::Leave);
    }

    pub(crate) fn drain(&self, patience: Duration) {
        let _ = self.sender.send(Message::Drain(patience));
    }

    pub(crate) fn abort(&self) {
        let _ = self.sender.send(Message::Abort);
    }
}

/// State shared by the connections of one I/O thread.
struct IoThread<H: Handler> {
    /// State that new connections share.
    shared: Arc<ArcSwap<Shared>>,
    handler: Arc<H>,
    started: Instant,
    connections: Mutex<Connections>,
    open: Arc<AtomicUsize>,
    /// Notified when a connection has ended.
    closed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Connections {
    next: u64,
    /// Further connections are closed after their first response.
    leaving: bool,
    /// While draining: the time, by the thread's clock, until which new requests are still awaited.
    draining: Option<u64>,
    open: HashMap<u64, Arc<Connection>>,
}

/// Removes a connection from its thread's list when its task ends, however it ends.
struct Registration<H: Handler> {
    thread: Arc<IoThread<H>>,
    number: u64,
}

impl<H: Handler> Drop for Registration<H> {
    fn drop(&mut self) {
        self.thread.lock().open.remove(&self.number);
        self.thread.open.fetch_sub(1, Relaxed);
        self.thread.closed.notify_one();
        self.thread.shared.load().metrics.connections_open.dec();
    }
}

impl<H: Handler> IoThread<H> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the thread started, at least 1 (0 means "not waiting" in `State`).
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    fn take(self: &Arc<Self>, accepted: Accepted) {
        let trusts = |peer| self.handler.trusts(peer);
        let (socket, peer, protocol) = match accepted {
            Accepted::Quic(guest) => return self.take_quic(*guest),
            Accepted::Tcp { stream, remote, local, protocol } => {
                let https = matches!(protocol.as_deref(), Some(ListenerProtocol::Tls(_)));
                let peer = Peer { https, ..Peer::tcp(remote, local, trusts) };
                (TcpStream::from_std(stream).map(Socket::Tcp), peer, protocol)
            }
            Accepted::Unix { stream, path, protocol } => {
                (UnixStream::from_std(stream).map(Socket::Unix), Peer::unix(&path, trusts), protocol)
            }
        };
        let conn = Arc::new(Connection::new(self.shared.load_full(), peer, self.now()));
        let registration = self.register(&conn);
        let socket = match socket {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(target: "howdah::conn", %error, "cannot register a new connection: closing it");
                return;
            }
        };
        let handler = self.handler.clone();
        tokio::spawn(async move {
            let own = conn.clone();
            let upgraded = match protocol.as_deref() {
                None => drive(handler, conn, socket).await,
                // Boxed, so that these larger futures do not enlarge the task of a plain connection.
                Some(ListenerProtocol::Tls(tls)) => Box::pin(drive_tls(handler, conn, socket, tls.clone())).await,
                Some(ListenerProtocol::FastCgi) => {
                    Box::pin(drive_fastcgi(handler, conn, socket)).await;
                    None
                }
            };
            if let Some(upgraded) = upgraded {
                // In a new task, because this one's memory is sized for the largest request.
                tokio::spawn(async move {
                    let _registration = registration;
                    drive_upgraded(own, upgraded).await;
                });
            }
        });
    }

    fn take_quic(self: &Arc<Self>, guest: IncomingConnection) {
        let peer = Peer::quic(guest.remote(), guest.local(), |peer| self.handler.trusts(peer));
        let conn = Arc::new(Connection::new(self.shared.load_full(), peer, self.now()));
        let registration = self.register(&conn);
        let handler = self.handler.clone();
        tokio::spawn(async move {
            let _registration = registration;
            drive_quic(handler, conn, guest).await;
        });
    }

    fn register(self: &Arc<Self>, conn: &Arc<Connection>) -> Registration<H> {
        conn.shared.metrics.connections_accepted.inc();
        conn.shared.metrics.connections_open.inc();
        let mut connections = self.lock();
        connections.next += 1;
        let number = connections.next;
        if connections.draining.is_some() {
            conn.state.give(Verdict::Finish);
        } else if connections.leaving {
            conn.state.give(Verdict::LastResponse);
        }
        connections.open.insert(number, conn.clone());
        Registration { thread: self.clone(), number }
    }

    /// Checks every connection's timeouts. Returns `true` if there are no connections.
    fn check(&self) -> bool {
        let now = self.now();
        let connections = self.lock();
        for conn in connections.open.values() {
            conn.state.check(now, &conn.timeouts());
            if connections.draining.is_some_and(|until| conn.state.waited_too_long(now, until)) {
                conn.state.give(Verdict::Idle);
            }
        }
        connections.open.is_empty()
    }

    /// Closes connections to make room: those that have waited longest for their next request, or, if there are none,
    /// those that are slow with a header. Closes several at once, so that the list is not searched for each new
    /// connection.
    ///
    /// An active client may send its next request at any moment, and a close would cross it. So if all connections are
    /// in use, some are only marked to close after their next response.
    fn make_room(&self) {
        let now = self.now();
        let connections = self.lock();
        let some = connections.open.len() / CLOSE_ONE_IN + 1;
        // Connections that have been marked to close and have not ended yet count as room.
        let marked = |least| connections.open.values().filter(|conn| conn.state.verdict() >= least).count();
        let all = || connections.open.iter().map(|(number, conn)| (*number, &conn.state));
        // The clock is coarse; the connection's number breaks ties.
        let give = |mut found: Vec<(u64, u64, &State)>, most: usize, verdict: fn(&State) -> Verdict| {
            found.sort_unstable_by_key(|(since, number, _)| (*since, *number));
            for (_, _, state) in found.iter().take(most) {
                if state.verdict() == Verdict::None {
                    self.shared.load().metrics.connections_displaced.inc();
                }
                state.give(verdict(state));
            }
            !found.is_empty()
        };
        let closed = some.saturating_sub(marked(Verdict::Idle));
        let idle = all().filter_map(|(number, state)| Some((state.unused_since(now)?, number, state))).collect();
        // In HTTP/2 and 3 the client gets a GOAWAY first, which names the requests that were not processed.
        if give(idle, closed, |state| match (state.is_multiplexed(), state.verdict()) {
            (true, Verdict::None) => Verdict::LastResponse,
            (true, _) => Verdict::Drop,
            (false, _) => Verdict::Idle,
        }) {
            return;
        }
        let slow = all().filter_map(|(number, state)| Some((state.slow_header_since(now)?, number, state))).collect();
        if !give(slow, closed, |_| Verdict::HeaderTimeout) {
            let used = all().filter_map(|(number, state)| Some((state.used_since()?, number, state))).collect();
            give(used, some.saturating_sub(marked(Verdict::LastResponse)), |_| Verdict::LastResponse);
        }
    }

    fn cut(&self) {
        for conn in self.lock().open.values() {
            conn.state.give(Verdict::Drop);
        }
    }

    fn leave(&self) {
        let mut connections = self.lock();
        connections.leaving = true;
        for conn in connections.open.values() {
            conn.state.give(Verdict::LastResponse);
        }
    }

    fn drain(&self, patience: Duration) {
        let mut connections = self.lock();
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        connections.draining = Some(self.now().saturating_add(patience));
        for conn in connections.open.values() {
            conn.state.give(Verdict::Finish);
        }
    }
}

/// An I/O thread that has not started. Acceptors get `handle`; the new thread calls `run`.
pub struct Unstarted<H: Handler> {
    thread: Arc<IoThread<H>>,
    receiver: UnboundedReceiver<Message>,
    handle: IoThreadHandle,
}

impl<H: Handler> Unstarted<H> {
    /// An I/O thread with its handler.
    ///
    /// `closed` is notified whenever a connection ends. All threads share it.
    pub fn new(shared: Arc<ArcSwap<Shared>>, handler: H, closed: Arc<Notify>) -> Self {
        let (sender, receiver) = unbounded_channel();
        let open = Arc::new(AtomicUsize::new(0));
        let thread = IoThread {
            shared,
            handler: Arc::new(handler),
            started: Instant::now(),
            connections: Mutex::default(),
            open: open.clone(),
            closed: closed.clone(),
        };
        Self { thread: Arc::new(thread), receiver, handle: IoThreadHandle { sender, open, closed } }
    }

    /// A handle for other threads.
    pub fn handle(&self) -> IoThreadHandle {
        self.handle.clone()
    }

    /// Runs the I/O thread on the current thread's runtime until it has left, is drained or is aborted.
    pub async fn run(self) {
        let Self { thread, mut receiver, handle } = self;
        drop(handle);
        let mut tick = tokio::time::interval(thread.shared.load().timeouts.tick());
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut leaving, mut draining, mut closed) = (false, false, false);
        loop {
            let message = tokio::select! {
                message = receiver.recv(), if !closed => message,
                // Without a connection nothing times out: an idle thread sleeps.
                _ = tick.tick(), if leaving || draining || thread.open.load(Relaxed) > 0 => {
                    if thread.check() && (leaving || draining) && receiver.is_empty() {
                        return;
                    }
                    continue;
                }
            };
            closed = message.is_none();
            match message {
                Some(Message::Accept(accepted)) => thread.take(accepted),
                Some(Message::MakeRoom) => thread.make_room(),
                Some(Message::Leave) => {
                    leaving = true;
                    thread.leave();
                    tick = tokio::time::interval(LEAVING_TICK);
                }
                // When all handles are dropped, the thread drains as if asked to.
                Some(Message::Drain(_)) | None => {
                    let patience = match message {
                        Some(Message::Drain(patience)) => patience,
                        _ => Duration::MAX,
                    };
                    if !draining {
                        draining = true;
                        thread.drain(patience);
                        // From now on the tick also detects that the last connection has ended.
                        tick = tokio::time::interval(Duration::from_millis(10));
                    }
                }
                Some(Message::Abort) => {
                    thread.cut();
                    return;
                }
            }
        }
    }
}
