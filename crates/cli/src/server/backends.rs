//! The backends of an I/O thread: pools, which all threads share, and proxies, to which each thread has its own
//! connections.

use crate::server::pools::{Pools, SelectedPool};
use howdah_config::Settings;
use howdah_observe::Metrics;
use howdah_pool::{Fault, Request};
use howdah_protocol::{Outbound, Response};
use howdah_proxy::{Client, Group};
use howdah_site::upstream::{PoolPageText, Target, Unreachable, Upstream};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Creates the state of the settings' proxies that all threads share.
///
/// # Errors
/// Invalid proxies, such as certificates that cannot be read.
///
/// Unchanged proxies without TLS keep their state from `before`.
pub(crate) fn proxies(
    settings: &Settings,
    metrics: &Metrics,
    before: &[Arc<Group>],
) -> Result<Vec<Arc<Group>>, String> {
    let group = |proxy| match before.iter().find(|group| group.is_for(proxy)) {
        Some(group) => Ok(group.clone()),
        None => Group::new(proxy, metrics).map(Arc::new),
    };
    settings.proxies.iter().map(group).collect()
}

/// Held while a revision serves a request.
pub(crate) type RequestGuard = mpsc::Sender<Infallible>;

/// Backends of a site: PHP's pools and proxies.
#[derive(Debug)]
pub(crate) struct Backends {
    pools: Arc<Pools>,
    names: Vec<String>,
    servers: Client,
    _in_use: RequestGuard,
}

impl Backends {
    pub(crate) fn new(pools: Arc<Pools>, proxies: &[Arc<Group>], in_use: RequestGuard) -> Self {
        let names = proxies.iter().map(|proxy| proxy.name().to_owned()).collect();
        Self { pools, names, servers: Client::new(proxies), _in_use: in_use }
    }
}

impl Upstream for Backends {
    async fn run(&self, target: Target, request: Box<Request>) -> Result<howdah_pool::Response, Fault> {
        match self.pools.at(target)? {
            SelectedPool { pool, comparison: None } => pool.run(request).await,
            // Boxed to keep the future small, because most pools have no comparison.
            SelectedPool { comparison: Some(comparison), .. } => Box::pin(comparison.run(request)).await,
        }
    }

    async fn room(&self, target: Target) -> Duration {
        self.pools.room(target).await
    }

    fn form_limit(&self, pool: usize) -> Option<u64> {
        self.pools.form_limit(pool)
    }

    fn ready(&self) -> Result<(), String> {
        self.pools.ready()
    }

    fn pool_page(&self, pool: usize, query: &[u8]) -> Option<PoolPageText> {
        self.pools.page(pool, query)
    }

    async fn forward(&self, proxy: usize, outbound: Outbound) -> Result<Response, Unreachable> {
        self.servers.send(proxy, outbound).await.map_err(|fault| Unreachable {
            status: fault.kind.status(),
            proxy: self.names.get(proxy).cloned().unwrap_or_default(),
            why: fault.to_string(),
        })
    }
}
