//! A revision: everything that serves requests and was made from one reading of the settings. A reload makes the next
//! one and swaps it in with one atomic store. Each request runs to its end on the revision on which it began.

use crate::server::backends::{self, Backends, RequestGuard};
use crate::server::pools::Pools;
use arc_swap::ArcSwap;
use howdah_budget::Budgets;
use howdah_config::Settings;
use howdah_observe::{AccessLogs, Metrics};
use howdah_pool::io_threads;
use howdah_protocol::{Handler, Rejected, Request, Response};
use howdah_proxy::Group;
use howdah_site::event_request::{EventRequest, Outcome, RequestMaker};
use howdah_site::{Service, Sites};
use hyper::http::{HeaderMap, StatusCode};
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use tokio::sync::mpsc;

/// Everything made by one reading of the settings.
pub(crate) struct Revision {
    pub(crate) settings: Arc<Settings>,
    pub(crate) pools: Arc<Pools>,
    pub(crate) sites: Arc<Sites>,
    pub(crate) proxies: Vec<Arc<Group>>,
    pub(crate) access_logs: AccessLogs,
    /// One service per I/O thread, because each thread has its own connections to other servers.
    services: Vec<Arc<Service<Backends>>>,
    in_use: RequestGuard,
}

/// Closes when a revision no longer serves any request.
pub(crate) type IdleSignal = mpsc::Receiver<Infallible>;

/// The parts of a revision other than its pools.
pub(crate) struct Front {
    pub(crate) sites: Arc<Sites>,
    pub(crate) proxies: Vec<Arc<Group>>,
    pub(crate) access_logs: AccessLogs,
}

impl Front {
    /// Builds the parts from these settings; unchanged proxies without TLS are taken from `before`.
    ///
    /// # Errors
    /// An invalid setting, with its name.
    pub(crate) fn new(
        settings: &Arc<Settings>,
        metrics: &Arc<Metrics>,
        access_logs: AccessLogs,
        budgets: Budgets,
        before: &[Arc<Group>],
    ) -> Result<Self, String> {
        let proxies = backends::proxies(settings, metrics, before)?;
        let sites = Sites::new(settings.clone(), metrics.clone(), &access_logs, budgets)?;
        Ok(Self { sites: Arc::new(sites), proxies, access_logs })
    }
}

impl Revision {
    /// Creates a revision for this number of I/O threads.
    pub(crate) fn new(
        settings: Arc<Settings>,
        front: Front,
        pools: Arc<Pools>,
        threads: usize,
    ) -> (Arc<Self>, IdleSignal) {
        let Front { sites, proxies, access_logs } = front;
        let (in_use, unused) = mpsc::channel(1);
        let service = |_| {
            let backends = Backends::new(pools.clone(), &proxies, in_use.clone());
            Arc::new(Service::new(sites.clone(), Arc::new(backends)))
        };
        let services = (0..threads.max(1)).map(service).collect();
        let revision = Self { settings, pools, sites, proxies, access_logs, services, in_use };
        (Arc::new(revision), unused)
    }

    /// Service for requests that the server makes itself, outside I/O threads.
    pub(crate) fn internal_service(&self) -> Service<Backends> {
        let backends = Backends::new(self.pools.clone(), &self.proxies, self.in_use.clone());
        Service::new(self.sites.clone(), Arc::new(backends))
    }
}

/// Makes event requests on the revision that is current at that time. Holds a weak reference, because revisions own it.
#[derive(Debug)]
pub(crate) struct EventRequests(Weak<ArcSwap<Revision>>);

impl EventRequests {
    pub(crate) fn new(current: &Arc<ArcSwap<Revision>>) -> Arc<Self> {
        Arc::new(Self(Arc::downgrade(current)))
    }
}

impl RequestMaker for EventRequests {
    fn make(&self, request: EventRequest) -> Pin<Box<dyn Future<Output = Outcome> + Send>> {
        let revision = self.0.upgrade().map(|current| current.load_full());
        let service =
            revision.map(|revision| revision.services[io_threads::current() % revision.services.len()].clone());
        Box::pin(async move {
            match service {
                Some(service) => service.event(request).await,
                None => (StatusCode::SERVICE_UNAVAILABLE, HeaderMap::new()),
            }
        })
    }
}

/// Handles the requests of one I/O thread on the revision that is current when a request arrives.
pub(crate) struct ThreadHandler {
    current: Arc<ArcSwap<Revision>>,
    number: usize,
}

impl ThreadHandler {
    pub(crate) fn new(current: &Arc<ArcSwap<Revision>>, number: usize) -> Self {
        Self { current: current.clone(), number }
    }
}

impl Handler for ThreadHandler {
    fn handle(&self, request: Request) -> impl Future<Output = Response> + Send {
        let service = self.current.load().services[self.number].clone();
        let (exchange, body) = service.begin(request);
        async move { service.complete(exchange, body).await }
    }

    fn trusts(&self, peer: Option<IpAddr>) -> bool {
        self.current.load().services[self.number].trusts(peer)
    }

    fn rejected(&self, rejected: &Rejected<'_>) {
        self.current.load().services[self.number].rejected(rejected);
    }
}
