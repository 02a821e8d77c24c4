//! One I/O thread: its connections, its clock, and the look at them that replaces timers.

use crate::conn::Conn;
use crate::conn::drive::drive;
use crate::conn::interim::Interim;
use crate::conn::io::Socket;
use crate::conn::peer::Peer;
use crate::conn::request_line::Targets;
use crate::conn::state::{ConnState, Timeouts, Verdict};
use crate::conn::straight::Straight;
use crate::listener::Accepted;
use crate::phase::route::RouteCache;
use crate::site::Site;
use crate::upstream::Upstream;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// In a shutdown, how many milliseconds a connection that has asked nothing is still listened to: its request may be on
/// its way from the socket.
const UNUSED_GRACE: u64 = 100;

/// One of so many connections is closed when others wait for a place.
const SPARED: usize = 64;

/// What other threads ask of a shard.
#[derive(Debug)]
pub(crate) enum ShardMessage {
    /// Take over a connection.
    Accept(Accepted),
    /// Close connections that can be spared.
    MakeRoom,
    /// Finish what runs, take nothing new, end.
    Drain,
    /// End now.
    Abort,
}

/// The way to a shard from other threads.
#[derive(Debug, Clone)]
pub struct ShardHandle {
    sender: UnboundedSender<ShardMessage>,
    open: Arc<AtomicUsize>,
    closed: Arc<Notify>,
}

impl ShardHandle {
    /// Connections that are open or on their way to the shard.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Hands a connection over.
    pub(crate) fn accept(&self, accepted: Accepted) {
        self.open.fetch_add(1, Relaxed);
        if self.sender.send(ShardMessage::Accept(accepted)).is_err() {
            self.open.fetch_sub(1, Relaxed);
        }
    }

    /// Asks for connections to be closed for others.
    pub(crate) fn make_room(&self) {
        let _ = self.sender.send(ShardMessage::MakeRoom);
    }

    /// Ready when a connection of this or any other shard has ended since it was last asked.
    pub(crate) async fn closed(&self) {
        self.closed.notified().await;
    }

    pub(crate) fn drain(&self) {
        let _ = self.sender.send(ShardMessage::Drain);
    }

    pub(crate) fn abort(&self) {
        let _ = self.sender.send(ShardMessage::Abort);
    }
}

/// What the connections of one I/O thread share.
#[derive(Debug)]
pub struct Shard<U: Upstream> {
    /// What all requests share.
    pub site: Arc<Site>,
    /// The way to PHP.
    pub upstream: Arc<U>,
    /// Outcomes of the route phase.
    pub routes: Mutex<RouteCache>,
    timeouts: Timeouts,
    started: Instant,
    connections: Mutex<Connections>,
    open: Arc<AtomicUsize>,
    /// Told when a connection has ended.
    closed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Connections {
    next: u64,
    /// Since when the shard is being drained, by its clock.
    draining: Option<u64>,
    open: HashMap<u64, Arc<Conn>>,
}

/// Removes a connection from its shard's list when its task ends, however it ends.
struct Registration<U: Upstream> {
    shard: Arc<Shard<U>>,
    number: u64,
}

impl<U: Upstream> Drop for Registration<U> {
    fn drop(&mut self) {
        self.shard.lock().open.remove(&self.number);
        self.shard.open.fetch_sub(1, Relaxed);
        self.shard.closed.notify_one();
        self.shard.site.metrics.connections_open.dec();
    }
}

impl<U: Upstream> Shard<U> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the shard started, at least 1 (0 means "not waiting" in `ConnState`).
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    fn take(self: &Arc<Self>, accepted: Accepted) {
        let trusted = &self.site.settings.http.trusted_proxies;
        let (socket, peer) = match accepted {
            Accepted::Tcp { stream, remote, local } => {
                (TcpStream::from_std(stream).map(Socket::Tcp), Peer::tcp(remote, local, trusted))
            }
            Accepted::Unix { stream, path } => {
                (UnixStream::from_std(stream).map(Socket::Unix), Peer::unix(&path, trusted))
            }
        };
        let conn = Arc::new(Conn {
            site: self.site.clone(),
            peer,
            state: ConnState::new(self.now()),
            interim: Interim::default(),
            targets: Targets::default(),
            straight: Straight::default(),
            share: OnceLock::new(),
        });
        let registration = self.register(&conn);
        let socket = match socket {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(target: "howdah::conn", %error, "cannot take a connection over");
                return;
            }
        };
        let shard = self.clone();
        tokio::spawn(async move {
            let _registration = registration;
            drive(shard, conn, socket).await;
        });
    }

    fn register(self: &Arc<Self>, conn: &Arc<Conn>) -> Registration<U> {
        self.site.metrics.connections_accepted.inc();
        self.site.metrics.connections_open.inc();
        let mut connections = self.lock();
        connections.next += 1;
        let number = connections.next;
        if connections.draining.is_some() {
            conn.state.give(Verdict::Finish);
        }
        connections.open.insert(number, conn.clone());
        Registration { shard: self.clone(), number }
    }

    /// Looks at every connection; true if there is none.
    fn look(&self) -> bool {
        let now = self.now();
        let connections = self.lock();
        let unused_end = connections.draining.is_some_and(|since| now.saturating_sub(since) > UNUSED_GRACE);
        let timeouts = self.timeouts.under(self.site.budgets.pressure());
        for conn in connections.open.values() {
            conn.state.look(now, &timeouts);
            if unused_end && conn.state.is_unused() {
                conn.state.give(Verdict::Idle);
            }
        }
        connections.open.is_empty()
    }

    /// Closes some connections that wait for their next request, those that have waited longest; if there are none, some
    /// that are slow with a header. Several at once, so that it is not all looked through again for each new one.
    fn make_room(&self) {
        let now = self.now();
        let connections = self.lock();
        // Those that were told before and have not gone yet are room enough for as many.
        let is_leaving = |conn: &&Arc<Conn>| conn.state.verdict() > Verdict::Finish;
        let leaving = connections.open.values().filter(is_leaving).count();
        let some = (connections.open.len() / SPARED + 1).saturating_sub(leaving);
        // The clock is coarse: of two that are idle for equally long the one that was made first is the older one.
        type Found<'a> = Vec<(u64, u64, &'a ConnState)>;
        let close = |mut found: Found<'_>, verdict: fn(&ConnState) -> Verdict| {
            found.sort_unstable_by_key(|(since, number, _)| (*since, *number));
            for (_, _, state) in found.iter().take(some) {
                state.give(verdict(state));
                self.site.metrics.connections_displaced.inc();
            }
            !found.is_empty()
        };
        let all = || connections.open.iter().map(|(number, conn)| (*number, &conn.state));
        let idle = all().filter_map(|(number, state)| Some((state.idle_since(now)?, number, state))).collect();
        // A client of HTTP/2 would be asked first whether it agrees, and the answer may never come.
        if !close(idle, |state| if state.is_multiplexed() { Verdict::Drop } else { Verdict::Idle }) {
            let slow =
                all().filter_map(|(number, state)| Some((state.slow_header_since(now)?, number, state))).collect();
            close(slow, |_| Verdict::HeaderTimeout);
        }
    }

    fn cut(&self) {
        for conn in self.lock().open.values() {
            conn.state.give(Verdict::Drop);
        }
    }

    fn drain(&self) {
        let mut connections = self.lock();
        connections.draining = Some(self.now());
        for conn in connections.open.values() {
            conn.state.give(Verdict::Finish);
        }
    }
}

/// A shard that has not started: the handle goes to those who accept, `run` to its thread.
#[derive(Debug)]
pub struct Unstarted<U: Upstream> {
    shard: Arc<Shard<U>>,
    receiver: UnboundedReceiver<ShardMessage>,
    handle: ShardHandle,
}

impl<U: Upstream> Unstarted<U> {
    /// A shard for a site.
    ///
    /// `closed` is told of each connection that ends; all shards have the same.
    pub fn new(site: Arc<Site>, upstream: Arc<U>, closed: Arc<Notify>) -> Self {
        let (sender, receiver) = unbounded_channel();
        let open = Arc::new(AtomicUsize::new(0));
        let timeouts = Timeouts::new(&site.settings.http);
        let shard = Shard {
            site,
            upstream,
            routes: Mutex::default(),
            timeouts,
            started: Instant::now(),
            connections: Mutex::default(),
            open: open.clone(),
            closed: closed.clone(),
        };
        Self { shard: Arc::new(shard), receiver, handle: ShardHandle { sender, open, closed } }
    }

    /// The way to the shard.
    #[must_use]
    pub fn handle(&self) -> ShardHandle {
        self.handle.clone()
    }

    /// Runs the shard on the current thread's runtime until it is drained or aborted.
    pub async fn run(self) {
        let Self { shard, mut receiver, handle } = self;
        drop(handle);
        let mut tick = tokio::time::interval(shard.timeouts.tick());
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut draining, mut closed) = (false, false);
        loop {
            let message = tokio::select! {
                message = receiver.recv(), if !closed => message,
                _ = tick.tick() => {
                    if shard.look() && draining && receiver.is_empty() {
                        return;
                    }
                    continue;
                }
            };
            closed = message.is_none();
            match message {
                Some(ShardMessage::Accept(accepted)) => shard.take(accepted),
                Some(ShardMessage::MakeRoom) => shard.make_room(),
                // Without anyone who could send more, a shard ends as if it had been asked to.
                Some(ShardMessage::Drain) | None => {
                    if !draining {
                        draining = true;
                        shard.drain();
                        // From here on the ticks also find out when the last connection has gone.
                        tick = tokio::time::interval(Duration::from_millis(10));
                    }
                }
                Some(ShardMessage::Abort) => {
                    shard.cut();
                    return;
                }
            }
        }
    }
}
