//! What a running front listens on: addresses are opened, closed and told another TLS while it serves.
//!
//! Each has a task on the first I/O thread that accepts and hands connections to the thread with the fewest. Closing one
//! leaves the connections alone that came through it.

use crate::connection::Shared;
use crate::io_thread::IoThreadHandle;
use crate::listener::{Accepted, Listener, TlsOfListener};
use arc_swap::ArcSwap;
use howdah_config::ListenAddr;
use rustls::ServerConfig;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// See above.
#[derive(Debug)]
pub struct Doors {
    /// The first I/O thread's.
    runtime: Handle,
    io_threads: Vec<IoThreadHandle>,
    shared: Arc<ArcSwap<Shared>>,
    /// None once the front accepts nothing more.
    open: Mutex<Option<Vec<Door>>>,
}

/// One address.
#[derive(Debug)]
struct Door {
    asked: ListenAddr,
    tls: Option<TlsOfListener>,
    /// Its task ends when this goes.
    _stop: watch::Sender<()>,
}

impl Doors {
    pub(crate) fn new(runtime: Handle, io_threads: Vec<IoThreadHandle>, shared: Arc<ArcSwap<Shared>>) -> Self {
        Self { runtime, io_threads, shared, open: Mutex::new(Some(Vec::new())) }
    }

    /// Accepts what comes to this listener. Nothing happens once the front has stopped to accept.
    pub fn open(&self, listener: Listener) {
        let mut all = self.lock();
        let Some(open) = all.as_mut() else { return };
        let (stop, stopped) = watch::channel(());
        open.push(Door { asked: listener.asked().clone(), tls: listener.tls(), _stop: stop });
        self.runtime.spawn(accept(listener, self.io_threads.clone(), self.shared.clone(), stopped));
    }

    /// Closes what was opened for these addresses, HTTP/3 beside them too.
    pub fn close(&self, addresses: &[ListenAddr]) {
        if let Some(open) = self.lock().as_mut() {
            open.retain(|door| !addresses.contains(&door.asked));
        }
    }

    /// Says how TLS is spoken at this address, which was opened as `before`, from the next connection on.
    pub fn set_tls(&self, before: &ListenAddr, now: &ListenAddr, config: Option<Arc<ServerConfig>>) {
        let mut open = self.lock();
        for door in open.iter_mut().flatten().filter(|door| door.asked == *before) {
            if let Some(tls) = &door.tls {
                tls.set(config.clone());
                door.asked = now.clone();
            }
        }
    }

    /// Closes all for good.
    pub(crate) fn close_all(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Door>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts from one listener until its door goes.
async fn accept(
    listener: Listener,
    handles: Vec<IoThreadHandle>,
    shared: Arc<ArcSwap<Shared>>,
    mut stop: watch::Receiver<()>,
) {
    let addr = listener.local_addr();
    let take = |accepted: Accepted| {
        let (handles, shared) = (&handles, &shared);
        async move {
            // At the limit connections that nobody uses make room. Where there are none, further ones wait in the kernel's
            // queue, as they would before a busy server.
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
            if let Some(handle) = handles.iter().min_by_key(|handle| handle.open_connections()) {
                handle.accept(accepted);
            }
        }
    };
    let accepting = async {
        let make_room = || handles.iter().for_each(IoThreadHandle::make_room);
        if let Err(error) = listener.accept_loop(take, make_room).await {
            tracing::error!(target: "howdah::listener", %addr, %error, "the listener has failed");
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = stop.changed() => {}
    }
}
