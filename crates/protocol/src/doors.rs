//! Addresses of a running front: they are opened, closed and change their protocol while it serves.
//!
//! Each has a task on the first I/O thread that accepts and hands connections to the thread with the fewest. Closing one
//! leaves the connections alone that came through it. All of them may be left to another process (`leave`).

use crate::connection::Shared;
use crate::io_thread::IoThreadHandle;
use crate::listener::{Accepted, Listener, ListenerHandle, Spoken, SpokenAtListener};
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
    spoken: Option<SpokenAtListener>,
    /// For another process; none if there was no descriptor left.
    handle: Option<Arc<ListenerHandle>>,
    /// Its task ends when this goes.
    stop: watch::Sender<Accepting>,
    task: JoinHandle<()>,
}

/// The acceptor of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accepting {
    Here,
    /// Another process does.
    Elsewhere,
    /// None, or the holder of the socket for the next process.
    NotHere,
}

/// For how long an endpoint of HTTP/3 whose socket another process reads now still lets in what it has read itself.
const READ_BEFORE: Duration = Duration::from_millis(250);

impl Doors {
    pub(crate) fn new(runtime: Handle, io_threads: Vec<IoThreadHandle>, shared: Arc<ArcSwap<Shared>>) -> Self {
        Self { runtime, io_threads, shared, open: Mutex::new(Some(Vec::new())) }
    }

    /// Accepts what comes to this listener. Nothing happens once the front has stopped to accept.
    pub fn open(&self, listener: Listener) {
        let mut all = self.lock();
        let Some(open) = all.as_mut() else { return };
        let (stop, stopped) = watch::channel(Accepting::Here);
        let (asked, spoken) = (listener.asked().clone(), listener.spoken());
        let handle = listener.handle().ok().map(Arc::new);
        let task = self.runtime.spawn(accept(listener, self.io_threads.clone(), self.shared.clone(), stopped));
        open.push(Door { asked, spoken, handle, stop, task });
    }

    /// Handles with which another process can continue all of them. `None` if one lacks a descriptor.
    #[must_use]
    pub fn handles(&self) -> Option<Vec<Arc<ListenerHandle>>> {
        self.lock().iter().flatten().map(|door| door.handle.clone()).collect()
    }

    /// Leaves all of them to another process, for good.
    pub(crate) fn leave(&self) -> Leaving {
        self.end(Accepting::Elsewhere)
    }

    /// Closes all for good.
    pub(crate) fn close_all(&self) -> Leaving {
        self.end(Accepting::NotHere)
    }

    fn end(&self, now: Accepting) -> Leaving {
        let doors = self.lock().take().unwrap_or_default();
        for door in &doors {
            door.stop.send_replace(now);
        }
        Leaving(doors)
    }

    /// Closes these addresses, with their HTTP/3.
    pub fn close(&self, addresses: &[ListenAddr]) {
        if let Some(open) = self.lock().as_mut() {
            open.retain(|door| !addresses.contains(&door.asked));
        }
    }

    /// Changes what is spoken at this address, which was opened as `before`, from the next connection on.
    pub fn set_spoken(&self, before: &ListenAddr, now: &ListenAddr, tls: Option<&Arc<ServerConfig>>) {
        let mut open = self.lock();
        for door in open.iter_mut().flatten().filter(|door| door.asked == *before) {
            if let Some(spoken) = &door.spoken {
                spoken.set(Spoken::at(now, tls));
                door.asked = now.clone();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Door>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Doors that are given up, until nothing is accepted at them any more. Before that no thread may end: it would drop what it
/// is given, and a client that was accepted would get no answer.
pub(crate) struct Leaving(Vec<Door>);

impl Leaving {
    pub(crate) async fn ended(&mut self) {
        for door in &mut self.0 {
            // A listener that has failed is no reason to wait.
            let _ = (&mut door.task).await;
        }
        self.0.clear();
    }
}

/// A connection that waits for a place. It gets one in any case: when accepting ends meanwhile, without waiting any longer.
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

/// Accepts from one listener until its door goes, or another process has it.
async fn accept(
    listener: Listener,
    handles: Vec<IoThreadHandle>,
    shared: Arc<ArcSwap<Shared>>,
    mut stop: watch::Receiver<Accepting>,
) {
    let (addr, over_udp) = (listener.local_addr(), listener.is_over_udp());
    let take = |accepted: Accepted| {
        let (handles, shared) = (&handles, &shared);
        let waiting = Waiting { accepted: Some(accepted), handles };
        async move {
            let _waiting = waiting;
            // At the limit idle connections make room. If there are none, further ones wait in the kernel's queue, as
            // they would before a busy server.
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
            tracing::error!(target: "howdah::listener", %addr, %error, "listener failed");
        }
    };
    let stopping = async {
        // An error means that the door has gone.
        let who = stop.wait_for(|accepting| *accepting != Accepting::Here).await.map(|who| *who);
        if over_udp && who.is_ok_and(|who| who == Accepting::Elsewhere) {
            let _ = tokio::time::timeout(READ_BEFORE, stop.changed()).await;
        }
    };
    tokio::select! {
        () = accepting => {}
        () = stopping => {}
    }
}
