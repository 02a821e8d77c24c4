//! Contains panics: one while a request runs does not affect other requests. But one in a response's body cuts the
//! response off, which in HTTP/1 and FastCGI ends the connection.
//!
//! State that a panic leaves inconsistent belongs to its request and is dropped with it. Poisoned shared locks are used
//! as they are (`PoisonError::into_inner`): the guarded state is consistent between any two statements.

use howdah_observe::Metrics;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// The future's outcome; `None` if it panicked, which is counted and logged.
///
/// It stays where the caller has pinned it: futures of requests are large, and each move copies them.
pub async fn future<T>(metrics: &Metrics, mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    std::future::poll_fn(|cx| match call(|| future.as_mut().poll(cx)) {
        Ok(poll) => poll.map(Some),
        Err(panic) => {
            panic.note(metrics);
            Poll::Ready(None)
        }
    })
    .await
}

/// The function's result, unless it panics.
pub fn call<T>(function: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(function)).map_err(Panic)
}

/// A panic that was caught.
#[must_use]
pub struct Panic(Box<dyn Any + Send>);

impl std::fmt::Debug for Panic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Panic")
    }
}

impl Panic {
    /// Counts and logs it.
    pub fn note(&self, metrics: &Metrics) {
        let text = self.0.downcast_ref::<&str>().copied();
        let text = text.or_else(|| self.0.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        metrics.request_panics.inc();
        tracing::error!(target: "howdah::request", "internal error ended a request: {text}");
    }
}
