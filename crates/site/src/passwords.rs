//! Verification of passwords. It takes up to seconds of CPU time, depending on the hash, so it runs on separate
//! threads, a few at a time, and the number of waiting requests is limited.

use crate::refusal::Refusal;
use howdah_config::client_number;
use howdah_observe::Metrics;
use howdah_pool::RequestId;
use howdah_rules::auth::Verification;
use http::StatusCode;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Maximum number of waiting requests; later ones get 503.
const MAX_WAITING: usize = 256;
/// Maximum number of requests of one client that wait or are being verified, so that a client that tries passwords
/// leaves room for others.
const MAX_PER_CLIENT: u32 = 16;

/// Password verification shared by all sites.
#[derive(Debug)]
pub struct Passwords {
    /// One permit per thread that may verify at the same time.
    permits: Arc<Semaphore>,
    /// One permit per request that may wait.
    places: Semaphore,
    clients: Arc<Clients>,
    metrics: Arc<Metrics>,
}

/// Number of requests by client that wait or are being verified.
#[derive(Debug, Default)]
struct Clients(Mutex<FxHashMap<u128, u32>>);

/// A counted request of one client; dropping it decrements the count.
struct ClientSlot(Arc<Clients>, u128);

impl Clients {
    fn enter(self: &Arc<Self>, client: Option<IpAddr>) -> Option<ClientSlot> {
        // All clients of a Unix socket count as one.
        let client = client.map_or(1, client_number);
        let mut clients = self.0.lock();
        let count = clients.entry(client).or_default();
        if *count >= MAX_PER_CLIENT {
            return None;
        }
        *count += 1;
        Some(ClientSlot(self.clone(), client))
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let mut clients = self.0.0.lock();
        if let Some(count) = clients.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                clients.remove(&self.1);
            }
        }
    }
}

impl Passwords {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        let cores = howdah_budget::machine::processors();
        let permits = Arc::new(Semaphore::new((cores / 2).max(1)));
        Self { permits, places: Semaphore::new(MAX_WAITING), clients: Arc::default(), metrics }
    }

    /// Verifies a password. Returns the user, or `None` for an unknown user or wrong password, which is logged.
    pub(crate) async fn verify(
        &self,
        id: RequestId,
        client: Option<IpAddr>,
        verification: Verification,
    ) -> Result<Option<Arc<str>>, Refusal> {
        let busy = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE).retry_after(1);
        self.metrics.password_checks.inc();
        let of_client = self.clients.enter(client).ok_or_else(busy)?;
        let permit = {
            let _place = self.places.try_acquire().map_err(|_| busy())?;
            let _shown = self.metrics.password_checks_waiting.hold();
            self.permits.clone().acquire_owned().await.map_err(|_| busy())?
        };
        let metrics = self.metrics.clone();
        // The thread holds the permit until it is done, because hashing continues if the client disconnects.
        let run = move || {
            let shown = metrics.password_checks_running.hold();
            let user = verification.run();
            drop(shown);
            drop(permit);
            drop(of_client);
            user
        };
        let user = tokio::task::spawn_blocking(run).await;
        let user = user.map_err(|_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR))?;
        if user.is_none() {
            let client = client.map(|ip| ip.to_string()).unwrap_or_default();
            tracing::warn!(target: "howdah::rules", request = %id, client, "wrong user or password");
        }
        Ok(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_checks_per_client_are_limited() {
        let clients = Arc::new(Clients::default());
        let address = |text: &str| Some(text.parse().unwrap());
        let held: Vec<_> = (0..100).filter_map(|_| clients.enter(address("2001:db8::1"))).collect();
        assert_eq!(held.len(), MAX_PER_CLIENT as usize);
        assert!(clients.enter(address("2001:db8::2")).is_none(), "it is of the same network");
        assert!(clients.enter(address("2001:db8:0:1::1")).is_some() && clients.enter(address("10.0.0.1")).is_some());
        assert!(clients.enter(None).is_some());
        drop(held);
        assert!(clients.enter(address("2001:db8::2")).is_some());
        assert!(clients.0.lock().is_empty(), "clients without requests are forgotten");
    }
}
