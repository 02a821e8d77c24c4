//! An edition: all that requests are served with and that one reading of the settings has made. A reload makes the next one
//! and puts it in the place of the one before with one store; each request runs to its end on the edition that it has begun
//! with.

use crate::pools::Pools;
use crate::ways::{self, Ways};
use arc_swap::ArcSwap;
use howdah_budget::Budgets;
use howdah_config::Settings;
use howdah_observe::{AccessLogs, Metrics};
use howdah_protocol::{Handler, Request, Response};
use howdah_proxy::Group;
use howdah_site::{Service, Sites};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::mpsc;

/// See above.
pub(crate) struct Edition {
    pub(crate) settings: Arc<Settings>,
    pub(crate) pools: Arc<Pools>,
    pub(crate) sites: Arc<Sites>,
    pub(crate) proxies: Vec<Arc<Group>>,
    pub(crate) access_logs: AccessLogs,
    /// One for each I/O thread, which has connections to other servers of its own.
    services: Vec<Arc<Service<Ways>>>,
}

/// Ready with nothing when no request is served by an edition any more.
pub(crate) type Unused = mpsc::Receiver<Infallible>;

/// What an edition serves with beside its pools.
pub(crate) struct Front {
    pub(crate) sites: Arc<Sites>,
    pub(crate) proxies: Vec<Arc<Group>>,
    pub(crate) access_logs: AccessLogs,
}

impl Front {
    /// Made of these settings; what `before` has and stays is taken from there.
    ///
    /// # Errors
    /// What is wrong, with the setting.
    pub(crate) fn new(
        settings: &Arc<Settings>,
        metrics: &Arc<Metrics>,
        access_logs: AccessLogs,
        budgets: Budgets,
        before: &[Arc<Group>],
    ) -> Result<Self, String> {
        let proxies = ways::proxies(settings, metrics, before)?;
        let sites = Sites::new(settings.clone(), metrics.clone(), &access_logs, budgets)?;
        Ok(Self { sites: Arc::new(sites), proxies, access_logs })
    }
}

impl Edition {
    /// An edition for so many I/O threads.
    pub(crate) fn new(settings: Arc<Settings>, front: Front, pools: Arc<Pools>, threads: usize) -> (Arc<Self>, Unused) {
        let Front { sites, proxies, access_logs } = front;
        let (in_use, unused) = mpsc::channel(1);
        let service = |_| {
            let ways = Ways::new(pools.clone(), &proxies, in_use.clone());
            Arc::new(Service::new(sites.clone(), Arc::new(ways)))
        };
        let services = (0..threads.max(1)).map(service).collect();
        (Arc::new(Self { settings, pools, sites, proxies, access_logs, services }), unused)
    }
}

/// What responds to the requests of one I/O thread: the edition that is the current one when a request comes.
pub(crate) struct OnThread {
    current: Arc<ArcSwap<Edition>>,
    number: usize,
}

impl OnThread {
    pub(crate) fn new(current: &Arc<ArcSwap<Edition>>, number: usize) -> Self {
        Self { current: current.clone(), number }
    }

    /// The count that this changes is this thread's own.
    fn service(&self) -> Arc<Service<Ways>> {
        self.current.load().services[self.number].clone()
    }
}

impl Handler for OnThread {
    async fn handle(&self, request: Request) -> Response {
        let service = self.service();
        service.handle(request).await
    }

    fn trusts(&self, peer: Option<IpAddr>) -> bool {
        self.service().trusts(peer)
    }
}
