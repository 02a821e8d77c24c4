//! The I/O threads and the shutdown: one `current_thread` runtime per I/O thread; the first one also accepts.
//!
//! A connection goes to the I/O thread with the fewest and stays there. Accepting on an I/O thread means that with one
//! thread nothing ever crosses threads, and with more only the hand-over of a new connection does.

use crate::connection::Shared;
use crate::exchange::Handler;
use crate::io_thread::{IoThreadHandle, Unstarted};
use crate::listener::{Accepted, Listener};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{Notify, mpsc, oneshot, watch};

/// For how long an endpoint of HTTP/3 whose socket another process reads now still lets in what it has read itself.
const READ_BEFORE: Duration = Duration::from_millis(250);

/// Whether connections are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accepting {
    Yes,
    /// Another process does.
    Elsewhere,
    No,
}

/// A running front.
#[derive(Debug)]
pub struct Front {
    handles: Vec<IoThreadHandle>,
    /// The first I/O thread's, which accepts.
    runtime: Handle,
    most: usize,
    stop_accepting: watch::Sender<Accepting>,
    /// Each listener's task has a copy, and `acceptors` is closed when nothing is accepted any more.
    accepts: Option<mpsc::Sender<()>>,
    acceptors: mpsc::Receiver<()>,
    ended: Vec<oneshot::Receiver<()>>,
    /// Threads keep their runtimes, on which lane readers run too, until this says true.
    release: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

/// How a shutdown ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every request was answered.
    All,
    /// The grace time ran out; this many connections were cut.
    Cut(usize),
}

impl Front {
    /// Starts one I/O thread on each runtime (`current_thread`, all drivers enabled); they serve what `listeners` accept.
    ///
    /// Each thread has a handler of its own from `handler`, and runs `enter` with its number first.
    pub fn start<H: Handler>(
        shared: &Arc<Shared>,
        mut handler: impl FnMut(usize) -> H,
        enter: fn(usize),
        listeners: Vec<Listener>,
        runtimes: Vec<Runtime>,
    ) -> io::Result<Self> {
        let closed = Arc::new(Notify::new());
        let unstarted: Vec<_> =
            (0..runtimes.len()).map(|number| Unstarted::new(shared.clone(), handler(number), closed.clone())).collect();
        let handles: Vec<IoThreadHandle> = unstarted.iter().map(Unstarted::handle).collect();
        let (stop_accepting, _) = watch::channel(Accepting::Yes);
        let (accepts, acceptors) = mpsc::channel(1);
        let (release, released) = watch::channel(false);
        let first = runtimes.first().ok_or_else(|| io::Error::other("a front needs a thread"))?.handle().clone();
        let mut front = Self {
            handles,
            runtime: first,
            most: shared.max_connections,
            stop_accepting,
            accepts: Some(accepts),
            acceptors,
            ended: Vec::new(),
            release,
            threads: Vec::new(),
        };
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
        front.open(listeners);
        Ok(front)
    }

    /// Accepts what comes to these as well.
    pub fn open(&self, listeners: Vec<Listener>) {
        for listener in listeners {
            let Some(accepts) = self.accepts.clone() else { return };
            let accepting = accept(listener, self.handles.clone(), self.most, self.stop_accepting.subscribe());
            self.runtime.spawn(async move {
                accepting.await;
                drop(accepts);
            });
        }
    }

    /// The number of open connections.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.handles.iter().map(IoThreadHandle::open_connections).sum()
    }

    /// Closes the listeners (and removes the files of Unix sockets); open connections go on.
    pub fn stop_accepting(&self) {
        self.stop_accepting.send_replace(Accepting::No);
    }

    /// Leaves further connections to another process. Those that there are go with their next response, or as they would
    /// anyway; none is closed before. True when all have gone, false when `longest` is over before.
    pub async fn leave(&mut self, longest: Duration) -> bool {
        self.stop_accepting.send_replace(Accepting::Elsewhere);
        self.accepts = None;
        let gone = async {
            // Whoever has been accepted is with its thread then.
            while self.acceptors.recv().await.is_some() {}
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

    /// Accepts nothing more, closes idle connections, lets running requests end, and cuts what is left after `grace`.
    /// The threads go on running what else lives on their runtimes until `end`.
    pub async fn drain(&mut self, grace: Duration) -> Drained {
        self.stop_accepting();
        for handle in &self.handles {
            handle.drain();
        }
        let ended = std::mem::take(&mut self.ended);
        let all = async {
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

    /// Ends the threads; what still lives on their runtimes is dropped, and with it the last log entries are written.
    pub fn end(self) {
        let _ = self.release.send(true);
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!(target: "howdah::front", "an I/O thread ended by a panic");
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

/// Accepts from one listener until told to stop.
async fn accept(listener: Listener, handles: Vec<IoThreadHandle>, most: usize, mut stop: watch::Receiver<Accepting>) {
    let (addr, over_udp) = (listener.local_addr(), listener.is_over_udp());
    let take = |accepted: Accepted| {
        let handles = &handles;
        let waiting = Waiting { accepted: Some(accepted), handles };
        async move {
            let _waiting = waiting;
            // At the limit connections that nobody uses make room. Where there are none, further ones wait in the kernel's
            // queue, as they would before a busy server.
            let mut turn = 0;
            while most != 0 && handles.iter().map(IoThreadHandle::open_connections).sum::<usize>() >= most {
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
            tracing::error!(target: "howdah::listener", %addr, %error, "the listener has failed");
        }
    };
    let stopping = async {
        let how = stop.wait_for(|how| *how != Accepting::Yes).await.map(|how| *how);
        if over_udp && matches!(how, Ok(Accepting::Elsewhere)) {
            let _ = tokio::time::timeout(READ_BEFORE, stop.wait_for(|how| *how == Accepting::No)).await;
        }
    };
    tokio::select! {
        () = accepting => {}
        () = stopping => {}
    }
}
