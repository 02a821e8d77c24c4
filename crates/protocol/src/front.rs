//! Start and shutdown of the I/O threads. Each has a `current_thread` runtime.
//!
//! A connection goes to the I/O thread with the fewest connections and stays there. The first I/O thread also accepts
//! and reads UDP sockets, so only new connections and QUIC's received datagrams cross threads.

use crate::connection::Shared;
use crate::exchange::Handler;
use crate::io_thread::{IoThreadHandle, Unstarted};
use crate::listener::Listener;
use crate::listeners::Listeners;
use arc_swap::ArcSwap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, oneshot, watch};

/// A running front.
#[derive(Debug)]
pub struct Front {
    handles: Vec<IoThreadHandle>,
    listeners: Arc<Listeners>,
    shared: Arc<ArcSwap<Shared>>,
    ended: Vec<oneshot::Receiver<()>>,
    /// Set to `true` when threads may drop their runtimes, on which lane readers run too.
    release: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

/// Result of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// All connections have ended within the grace time.
    All,
    /// The grace time ran out; this many connections were cut.
    Cut(usize),
}

impl Front {
    /// Starts one I/O thread on each runtime (`current_thread`, all drivers enabled) to serve connections from
    /// `listeners`.
    ///
    /// `handler` makes each thread's handler. Each thread first calls `enter` with its number.
    pub fn start<H: Handler>(
        shared: &Arc<Shared>,
        mut handler: impl FnMut(usize) -> H,
        enter: fn(usize),
        listeners: Vec<Listener>,
        runtimes: Vec<Runtime>,
    ) -> io::Result<Self> {
        let closed = Arc::new(Notify::new());
        let shared = Arc::new(ArcSwap::new(shared.clone()));
        let unstarted: Vec<_> =
            (0..runtimes.len()).map(|number| Unstarted::new(shared.clone(), handler(number), closed.clone())).collect();
        let handles: Vec<IoThreadHandle> = unstarted.iter().map(Unstarted::handle).collect();
        let (release, released) = watch::channel(false);
        let first = runtimes.first().ok_or_else(|| io::Error::other("a front needs a thread"))?.handle().clone();
        let open = Arc::new(Listeners::new(first, handles.clone(), shared.clone()));
        let mut front = Self { handles, listeners: open, shared, ended: Vec::new(), release, threads: Vec::new() };
        for (number, (io_thread, runtime)) in unstarted.into_iter().zip(runtimes).enumerate() {
            let (end, ended) = oneshot::channel();
            let mut released = released.clone();
            let thread = std::thread::Builder::new().name(format!("howdah-io-{number}")).spawn(move || {
                enter(number);
                runtime.block_on(async move {
                    io_thread.run().await;
                    let _ = end.send(());
                    // An error means that the front was dropped: nothing is left to wait for.
                    let _ = released.wait_for(|released| *released).await;
                });
            })?;
            front.ended.push(ended);
            front.threads.push(thread);
        }
        listeners.into_iter().for_each(|listener| front.listeners.open(listener));
        Ok(front)
    }

    /// The number of open connections.
    pub fn open_connections(&self) -> usize {
        self.handles.iter().map(IoThreadHandle::open_connections).sum()
    }

    /// Its listening addresses.
    pub const fn listeners(&self) -> &Arc<Listeners> {
        &self.listeners
    }

    /// State for new connections; open ones keep theirs.
    pub const fn shared(&self) -> &Arc<ArcSwap<Shared>> {
        &self.shared
    }

    /// Leaves new connections to another process. Existing ones close after their next response or for the usual
    /// reasons; in HTTP/2 and 3, once no request is running. Returns `true` once all have closed, `false` after
    /// `longest`.
    pub async fn leave(&mut self, longest: Duration) -> bool {
        let mut leaving = self.listeners.leave();
        let gone = async {
            // From here on, all accepted connections have reached their threads.
            leaving.ended().await;
            for handle in &self.handles {
                handle.leave();
            }
            while let Some(end) = self.ended.last_mut() {
                let _ = end.await;
                self.ended.pop();
            }
        };
        tokio::time::timeout(longest, gone).await.is_ok()
    }

    /// Stops accepting (and removes the Unix sockets that it has created), lets running requests end, closes idle
    /// connections once no request is likely to be on its way, and drops what is left after `grace`. The threads keep
    /// running the other tasks on their runtimes until `end`.
    pub async fn drain(&mut self, grace: Duration) -> Drained {
        let mut closing = self.listeners.close_all();
        let ended = std::mem::take(&mut self.ended);
        let handles = &self.handles;
        let all = async {
            // From here on, all accepted connections have reached their threads; later ones are left to the next owner
            // of the sockets.
            closing.ended().await;
            for handle in handles {
                handle.drain(grace / 2);
            }
            for end in ended {
                let _ = end.await;
            }
        };
        match tokio::time::timeout(grace, all).await {
            Ok(()) => Drained::All,
            Err(_) => {
                let left = self.handles.iter().map(IoThreadHandle::open_connections).sum();
                for handle in &self.handles {
                    handle.abort();
                }
                Drained::Cut(left)
            }
        }
    }

    /// Ends the threads. Remaining tasks are dropped, which writes the last access log entries.
    pub fn end(self) {
        let _ = self.release.send(true);
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!(target: "howdah::front", "I/O thread panicked: its connections were cut");
            }
        }
    }

    /// `drain`, then `end`.
    pub async fn shutdown(mut self, grace: Duration) -> Drained {
        let drained = self.drain(grace).await;
        self.end();
        drained
    }
}

/// One runtime per I/O thread.
pub fn runtimes(threads: usize) -> io::Result<Vec<Runtime>> {
    (0..threads.max(1)).map(|_| tokio::runtime::Builder::new_current_thread().enable_all().build()).collect()
}
