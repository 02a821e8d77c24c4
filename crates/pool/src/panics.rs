//! Contains panics in the pool's own tasks. A panic is a bug whose damage is limited: the task's requests get a
//! response, its worker is replaced, and no client waits forever.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Pause before a task that panicked is restarted, so that one that always panics costs little.
const RESTART_DELAY: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 500 });

/// Runs a future to its end. Returns `None` if it panicked; the panic message is on standard error.
pub(crate) async fn caught<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Some),
        // The future is never polled again, only dropped.
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// Runs a task that must not end early: restarts it after a panic.
pub(crate) async fn kept_running<F: Future<Output = ()>>(what: &str, begin: impl Fn() -> F) {
    while caught(begin()).await.is_none() {
        tracing::error!("{what} panicked: restarting it");
        tokio::time::sleep(RESTART_DELAY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn a_task_that_panics_is_restarted_until_it_ends() {
        let begun = Cell::new(0);
        kept_running("a test", || async {
            begun.set(begun.get() + 1);
            tokio::task::yield_now().await;
            assert!(begun.get() >= 3, "the panic that this test is about");
        })
        .await;
        assert_eq!(begun.get(), 3);
        assert_eq!(caught(async { 7 }).await, Some(7));
    }
}
