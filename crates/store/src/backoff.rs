//! Time limits of steps, and pauses between attempts.

use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit of a step, such as connecting or a write.
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_secs(2);
/// The first and the longest pause before connecting again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Growing pauses between attempts, randomized so that servers that have lost the same broker do not all reconnect at
/// once.
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self(PAUSES.0)
    }

    pub(crate) fn reset(&mut self) {
        self.0 = PAUSES.0;
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(varied(self.0)).await;
        self.0 = (self.0 * 2).min(PAUSES.1);
    }

    /// The pause after this many attempts.
    pub(crate) fn after(attempts: usize) -> Duration {
        let doublings = u32::try_from(attempts).unwrap_or(u32::MAX).min(10);
        varied((PAUSES.0 * 2_u32.pow(doublings)).min(PAUSES.1))
    }
}

fn varied(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64() / 2.0)
}

/// Limits the time of a step.
pub(crate) async fn within<T>(time: Duration, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let why = || io::Error::new(io::ErrorKind::TimedOut, format!("no response within {} s", time.as_secs()));
    timeout(time, step).await.unwrap_or_else(|_| Err(why()))
}
