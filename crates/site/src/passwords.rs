//! Passwords that are verified: each keeps a processor busy for tens of milliseconds, so threads beside the I/O threads do
//! it, a few at a time, and only so many requests may wait for them.

use crate::refusal::Refusal;
use howdah_observe::Metrics;
use howdah_pool::RequestId;
use howdah_rules::auth::Verification;
use http::StatusCode;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Requests that wait; who comes later is told to come again.
const MOST_WAITING: usize = 256;

/// What all sites verify passwords with.
#[derive(Debug)]
pub struct Passwords {
    /// One for each thread that may do so at once.
    permits: Arc<Semaphore>,
    /// One for each request that may wait.
    places: Semaphore,
    metrics: Arc<Metrics>,
}

impl Passwords {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        let cores = howdah_budget::machine::processors();
        let permits = Arc::new(Semaphore::new((cores / 2).max(1)));
        Self { permits, places: Semaphore::new(MOST_WAITING), metrics }
    }

    /// The user who has said the right password; none for a wrong one, which the log tells.
    pub(crate) async fn verify(
        &self,
        id: RequestId,
        client: Option<IpAddr>,
        verification: Verification,
    ) -> Result<Option<Arc<str>>, Refusal> {
        let busy = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE).retry_after(1);
        self.metrics.password_checks.inc();
        let permit = {
            let _place = self.places.try_acquire().map_err(|_| busy())?;
            let _shown = self.metrics.password_checks_waiting.hold();
            self.permits.clone().acquire_owned().await.map_err(|_| busy())?
        };
        let metrics = self.metrics.clone();
        // The thread keeps the permit until it is done: a hash goes on when its client leaves.
        let run = move || {
            let shown = metrics.password_checks_running.hold();
            let user = verification.run();
            drop(shown);
            drop(permit);
            user
        };
        let user = tokio::task::spawn_blocking(run).await;
        let user = user.map_err(|_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR))?;
        if user.is_none() {
            let client = client.map(|ip| ip.to_string()).unwrap_or_default();
            tracing::warn!(target: "howdah::rules", %id, client, "a wrong user or password");
        }
        Ok(user)
    }
}
