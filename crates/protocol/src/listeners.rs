//! Listening addresses of a running front, which can be opened, closed and switched to another protocol while it
//! serves.
//!
//! Each address has a task on the first I/O thread, which accepts connections and hands each to the thread with the
//! fewest. Closing an address does not affect its open connections. `leave` hands all addresses to another process.

use crate::connection::Shared;
use crate::io_thread::IoThreadHandle;
use crate::listener::{Accepted, Listener, ListenerHandle, ListenerProtocol, SharedProtocol};
use arc_swap::ArcSwap;
use howdah_config::ListenAddr;
use rustls::ServerConfig;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The listening addresses.
#[derive(Debug)]
pub struct Listeners {
    /// Runtime of the first I/O thread.
    runtime: Handle,
    io_threads: Vec<IoThreadHandle>,
    shared: Arc<ArcSwap<Shared>>,
    /// `None` once the front accepts nothing more.
    open: Mutex<Option<Vec<OpenListener>>>,
}

/// One address.
#[derive(Debug)]
struct OpenListener {
    asked: ListenAddr,
    protocol: Option<SharedProtocol>,
    /// For another process; `None` if there was no descriptor left.
    handle: Option<Arc<ListenerHandle>>,
    /// The address's task ends when this is dropped.
    stop: watch::Sender<AcceptState>,
    task: JoinHandle<()>,
}

/// The process that accepts at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AcceptState {
    Here,
    /// Another process accepts.
    Elsewhere,
    /// This process does not accept; another may keep the socket open for the next server.
    NotHere,
}

/// Time for which an HTTP/3 endpoint, after another process took over reading its socket, still admits clients whose
/// datagrams it has read.
const READ_BEFORE: Duration = Duration::from_millis(250);

impl Listeners {
    pub(crate) fn new(runtime: Handle, io_threads: Vec<IoThreadHandle>, shared: Arc<ArcSwap<Shared>>) -> Self {
        Self { runtime, io_threads, shared, open: Mutex::new(Some(Vec::new())) }
    }

    /// Starts accepting from this listener. Has no effect once the front has stopped accepting.
    pub fn open(&self, listener: Listener) {
        let mut all = self.lock();
        let Some(open) = all.as_mut() else { return };
        let (stop, stopped) = watch::channel(AcceptState::Here);
        let (asked, protocol) = (listener.configured().clone(), listener.protocol());
        let handle = listener.handle().ok().map(Arc::new);
        let task = self.runtime.spawn(accept(listener, self.io_threads.clone(), self.shared.clone(), stopped));
        open.push(OpenListener { asked, protocol, handle, stop, task });
    }

    /// Handles with which another process can continue all addresses. `None` if one lacks a descriptor.
    pub fn handles(&self) -> Option<Vec<Arc<ListenerHandle>>> {
        self.lock().iter().flatten().map(|listener| listener.handle.clone()).collect()
    }

    /// Leaves all addresses to another process, permanently.
    pub(crate) fn leave(&self) -> ClosingListeners {
        self.end(AcceptState::Elsewhere)
    }

    /// Closes all addresses permanently.
    pub(crate) fn close_all(&self) -> ClosingListeners {
        self.end(AcceptState::NotHere)
    }

    fn end(&self, now: AcceptState) -> ClosingListeners {
        let listeners = self.lock().take().unwrap_or_default();
        for listener in &listeners {
            listener.stop.send_replace(now);
        }
        ClosingListeners(listeners)
    }

    /// Closes these addresses, with their HTTP/3.
    pub fn close(&self, addresses: &[ListenAddr]) {
        if let Some(open) = self.lock().as_mut() {
            open.retain(|listener| !addresses.contains(&listener.asked));
        }
    }

    /// Changes the protocol of the address that was opened as `before`, from the next connection on.
    pub fn set_protocol(&self, before: &ListenAddr, now: &ListenAddr, tls: Option<&Arc<ServerConfig>>) {
        let mut open = self.lock();
        for listener in open.iter_mut().flatten().filter(|listener| listener.asked == *before) {
            if let Some(protocol) = &listener.protocol {
                protocol.set(ListenerProtocol::at(now, tls));
                listener.asked = now.clone();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<OpenListener>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Addresses that are being closed, until their tasks have stopped accepting. No I/O thread may end before that: it
/// would drop connections handed to it, and their clients would get no response.
pub(crate) struct ClosingListeners(Vec<OpenListener>);

impl ClosingListeners {
    pub(crate) async fn ended(&mut self) {
        for listener in &mut self.0 {
            // Errors of a listener's task are ignored.
            let _ = (&mut listener.task).await;
        }
        self.0.clear();
    }
}

/// An accepted connection that waits for the number of connections to fall below the limit. If accepting ends
/// meanwhile, it is handed over at once.
struct Waiting<'a> {
    accepted: Option<Accepted>,
    handles: &'a [IoThreadHandle],
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let fewest = self.handles.iter().min_by_key(|handle| handle.open_connections());
        if let (Some(handle), Some(accepted)) = (fewest, self.accepted.take()) {
            handle.accept(accepted);
        }
    }
}

/// Accepts from one listener until its address is closed or another process takes over.
async fn accept(
    listener: Listener,
    handles: Vec<IoThreadHandle>,
    shared: Arc<ArcSwap<Shared>>,
    mut stop: watch::Receiver<AcceptState>,
) {
    let (addr, over_udp) = (listener.local_addr(), listener.is_over_udp());
    let take = |accepted: Accepted| {
        let (handles, shared) = (&handles, &shared);
        let waiting = Waiting { accepted: Some(accepted), handles };
        async move {
            let _waiting = waiting;
            // At the limit, the threads close connections to make room; new ones wait in the kernel's backlog.
            let mut turn = 0;
            let is_full = || {
                let most = shared.load().max_connections;
                most != 0 && handles.iter().map(IoThreadHandle::open_connections).sum::<usize>() >= most
            };
            while is_full() {
                let mut by_size: Vec<&IoThreadHandle> = handles.iter().collect();
                by_size.sort_unstable_by_key(|handle| std::cmp::Reverse(handle.open_connections()));
                let Some(handle) = by_size.get(turn % by_size.len().max(1)) else { return };
                handle.make_room();
                turn += 1;
                let _ = tokio::time::timeout(Duration::from_millis(10), handle.closed()).await;
            }
        }
    };
    let accepting = async {
        let make_room = || handles.iter().for_each(IoThreadHandle::make_room);
        if let Err(error) = listener.accept_loop(take, make_room).await {
            tracing::error!(target: "howdah::listener", %addr, %error, "listener failed: its address accepts no more connections");
        }
    };
    let stopping = async {
        // An error means that the address was closed.
        let now = stop.wait_for(|state| *state != AcceptState::Here).await.map(|state| *state);
        if over_udp && now.is_ok_and(|state| state == AcceptState::Elsewhere) {
            let _ = tokio::time::timeout(READ_BEFORE, stop.changed()).await;
        }
    };
    tokio::select! {
        () = accepting => {}
        () = stopping => {}
    }
}
