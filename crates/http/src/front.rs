//! The I/O threads and the shutdown: one `current_thread` runtime per shard; the first one also accepts.
//!
//! A connection goes to the shard with the fewest and stays there. Accepting on a shard's own thread means that with one
//! thread nothing ever crosses threads, and with more only the hand-over of a new connection does.

use crate::listener::{Accepted, Listener};
use crate::shard::{ShardHandle, Unstarted};
use crate::site::Site;
use crate::upstream::Upstream;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, oneshot, watch};

/// A running front.
#[derive(Debug)]
pub struct Front {
    shards: Vec<ShardHandle>,
    stop_accepting: watch::Sender<bool>,
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
    /// Thread number n is `howdah_pool::shard` number n.
    pub fn start<U: Upstream>(
        site: &Arc<Site>,
        upstream: &Arc<U>,
        listeners: Vec<Listener>,
        runtimes: Vec<Runtime>,
    ) -> io::Result<Self> {
        let closed = Arc::new(Notify::new());
        let unstarted: Vec<_> =
            runtimes.iter().map(|_| Unstarted::new(site.clone(), upstream.clone(), closed.clone())).collect();
        let shards: Vec<ShardHandle> = unstarted.iter().map(Unstarted::handle).collect();
        let (stop_accepting, stop) = watch::channel(false);
        let (release, released) = watch::channel(false);
        let mut front =
            Self { shards: shards.clone(), stop_accepting, ended: Vec::new(), release, threads: Vec::new() };
        let mut acceptor = Some((listeners, shards, site.settings.http.max_connections, stop));
        for (number, (shard, runtime)) in unstarted.into_iter().zip(runtimes).enumerate() {
            let (end, ended) = oneshot::channel();
            let acceptor = acceptor.take();
            let mut released = released.clone();
            let thread = std::thread::Builder::new().name(format!("howdah-io-{number}")).spawn(move || {
                howdah_pool::shard::enter(number);
                runtime.block_on(async move {
                    if let Some((listeners, shards, most, stop)) = acceptor {
                        for listener in listeners {
                            tokio::spawn(accept(listener, shards.clone(), most, stop.clone()));
                        }
                    }
                    shard.run().await;
                    let _ = end.send(());
                    // An error means that the front was dropped: nothing is left to wait for.
                    let _ = released.wait_for(|released| *released).await;
                });
            })?;
            front.ended.push(ended);
            front.threads.push(thread);
        }
        Ok(front)
    }

    /// The number of open connections.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.shards.iter().map(ShardHandle::open_connections).sum()
    }

    /// Closes the listeners (and removes the files of Unix sockets); open connections go on.
    pub fn stop_accepting(&self) {
        let _ = self.stop_accepting.send(true);
    }

    /// Accepts nothing more, closes idle connections, lets running requests end, and cuts what is left after `grace`.
    /// The threads go on running what else lives on their runtimes until `end`.
    pub async fn drain(&mut self, grace: Duration) -> Drained {
        self.stop_accepting();
        for shard in &self.shards {
            shard.drain();
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
                let left = self.shards.iter().map(ShardHandle::open_connections).sum();
                for shard in &self.shards {
                    shard.abort();
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

/// Accepts from one listener until told to stop.
async fn accept(listener: Listener, shards: Vec<ShardHandle>, most: usize, mut stop: watch::Receiver<bool>) {
    let addr = listener.local_addr();
    let take = |accepted: Accepted| {
        let shards = &shards;
        async move {
            // At the limit connections that nobody uses make room. Where there are none, further ones wait in the kernel's
            // queue, as they would before a busy server.
            let mut turn = 0;
            while most != 0 && shards.iter().map(ShardHandle::open_connections).sum::<usize>() >= most {
                let mut by_size: Vec<&ShardHandle> = shards.iter().collect();
                by_size.sort_unstable_by_key(|shard| std::cmp::Reverse(shard.open_connections()));
                let Some(shard) = by_size.get(turn % by_size.len().max(1)) else { return };
                shard.make_room();
                turn += 1;
                let _ = tokio::time::timeout(Duration::from_millis(10), shard.closed()).await;
            }
            if let Some(shard) = shards.iter().min_by_key(|shard| shard.open_connections()) {
                shard.accept(accepted);
            }
        }
    };
    let accepting = async {
        let make_room = || shards.iter().for_each(ShardHandle::make_room);
        if let Err(error) = listener.accept_loop(take, make_room).await {
            tracing::error!(target: "howdah::listener", %addr, %error, "the listener has failed");
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}
