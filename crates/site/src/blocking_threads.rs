//! Expensive work for a site's requests, on separate threads, because it would block all connections of an I/O thread.
//! The number of threads per site is limited to half the processors (at least one).

use crate::refusal::Refusal;
use http::StatusCode;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Limits the threads that work for one site at the same time.
#[derive(Debug)]
pub(crate) struct BlockingThreads(Arc<Semaphore>);

impl Default for BlockingThreads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new((howdah_budget::machine::processors() / 2).max(1))))
    }
}

impl BlockingThreads {
    /// Runs `work` on a separate thread. `work` should check its cache again, as an earlier caller may have done the
    /// same.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
        let failed = || Refusal::new(StatusCode::INTERNAL_SERVER_ERROR);
        let permit = self.0.clone().acquire_owned().await.map_err(|_| failed())?;
        // The thread holds the permit until it is done, because the work continues if the client disconnects.
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        });
        done.await.map_err(|_| failed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn work_runs_on_other_threads_with_a_limit() {
        let aside = BlockingThreads(Arc::new(Semaphore::new(1)));
        let here = std::thread::current().id();
        assert_ne!(aside.run(|| std::thread::current().id()).await.ok(), Some(here));
        let (go_on, waits) = mpsc::channel::<()>();
        let first = aside.run(move || waits.recv());
        let second = aside.run(|| ());
        tokio::pin!(first, second);
        tokio::select! {
            biased;
            _ = &mut first => panic!("it waits to go on"),
            _ = &mut second => panic!("it waits for the first"),
            () = std::future::ready(()) => {}
        }
        go_on.send(()).unwrap();
        assert!(first.await.is_ok() && second.await.is_ok());
        assert!(aside.run(|| -> () { panic!("on purpose") }).await.is_err());
        assert!(aside.run(|| ()).await.is_ok(), "failed work releases its permit");
    }
}
