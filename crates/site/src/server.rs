//! State shared by all sites of a server.

use crate::challenges::Challenges;
use crate::compress::Cache;
use crate::event_request::RequestMaker;
use crate::mercure::Hubs;
use crate::passwords::Passwords;
use crate::rejected;
use crate::withheld::PrivateFiles;
use howdah_budget::Budgets;
use howdah_config::{HttpSettings, Settings};
use howdah_live::{Hub, Update};
use howdah_observe::{AccessLog, LogThrottle, Metrics, RequestMetrics};
use howdah_protocol::{Rejected, Rejection};
use howdah_store::Broker;
use howdah_telemetry::Telemetry;
use howdah_websocket::Connections;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Minimum interval between log lines about unknown hosts, and about clients that speak another protocol.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);
/// Minimum interval between log lines about requests that did not get a worker in time. Under overload there are
/// thousands of them, and logging each would slow down the requests that can be served.
const OVERLOAD_QUIET: Duration = Duration::from_secs(1);

/// Kind of a health probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    /// Liveness: the process is running.
    Alive,
    /// Readiness: the server can serve requests.
    Ready,
}

/// State shared by all sites. Built once, read by all threads.
#[derive(Debug)]
pub struct Server {
    /// The settings as they were loaded.
    pub settings: Arc<Settings>,
    /// Budgets of memory and disk for waiting data.
    pub budgets: Budgets,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Metrics of requests that match no site.
    pub misdirected: Arc<RequestMetrics>,
    /// Access log of requests that match no site, if one is kept.
    pub access_log: Option<Arc<AccessLog>>,
    /// Directory for spooled request bodies.
    pub temp_dir: PathBuf,
    /// `SERVER_SOFTWARE`. WordPress, for one, looks for "nginx" in it to decide that URLs can be rewritten.
    pub software: String,
    /// Paths of probes; usually none.
    probes: Vec<(Box<str>, Probe)>,
    /// Files that no site sends under any name.
    pub private: Arc<PrivateFiles>,
    /// Cache of compressed bodies. It is keyed by content, so all sites can share it.
    pub compressed: Arc<Cache>,
    /// Responses to ACME challenges, if this server obtains certificates.
    challenges: OnceLock<Arc<dyn Challenges>>,
    /// The tracer, if tracing is enabled.
    telemetry: OnceLock<Arc<Telemetry>>,
    /// The hubs of all sites. A reload passes them on to the next `Server`.
    hubs: OnceLock<Arc<Hubs>>,
    /// The broker shared with other servers, if one is configured.
    broker: OnceLock<Broker>,
    /// Verification of passwords.
    pub passwords: Passwords,
    /// WebSocket connections of all sites. A reload passes them on to the next `Server`.
    websockets: OnceLock<Arc<Connections>>,
    /// Makes the script requests for events.
    events: OnceLock<Arc<dyn RequestMaker>>,
    /// Limits log lines about unknown hosts.
    unknown_hosts: LogThrottle,
    /// Limits log lines about clients that speak another protocol.
    other_protocols: LogThrottle,
    /// Limits log lines about requests that did not get a worker in time.
    pub(crate) queue_failures: LogThrottle,
}

fn probes(settings: &HttpSettings) -> Vec<(Box<str>, Probe)> {
    let all = [("/readyz", Probe::Ready), ("/livez", Probe::Alive)];
    all.into_iter().filter(|_| settings.probes).map(|(path, probe)| (path.into(), probe)).collect()
}

impl Server {
    pub(crate) fn new(
        settings: Arc<Settings>,
        metrics: Arc<Metrics>,
        access_log: Option<Arc<AccessLog>>,
        budgets: Budgets,
    ) -> Self {
        metrics.set_budgets(budgets);
        Self {
            budgets,
            misdirected: metrics.requests.of("", ""),
            passwords: Passwords::new(metrics.clone()),
            metrics,
            access_log,
            temp_dir: settings.http.temp_dir.clone().unwrap_or_else(std::env::temp_dir),
            software: concat!("Howdah/", env!("CARGO_PKG_VERSION"), " (like nginx)").to_owned(),
            probes: probes(&settings.http),
            private: Arc::new(PrivateFiles::new(&settings)),
            compressed: Arc::new(Cache::new(settings.compression.cache.as_usize())),
            challenges: OnceLock::new(),
            telemetry: OnceLock::new(),
            hubs: OnceLock::new(),
            broker: OnceLock::new(),
            websockets: OnceLock::new(),
            events: OnceLock::new(),
            unknown_hosts: LogThrottle::new(WARNING_INTERVAL),
            other_protocols: LogThrottle::new(WARNING_INTERVAL),
            queue_failures: LogThrottle::new(OVERLOAD_QUIET),
            settings,
        }
    }

    /// Returns the probe with this path, if there is one.
    pub(crate) fn probe(&self, path: &[u8]) -> Option<Probe> {
        self.probes.iter().find(|(own, _)| own.as_bytes() == path).map(|(_, probe)| *probe)
    }

    /// Starts responding to ACME challenges.
    pub fn respond_to_challenges(&self, challenges: Arc<dyn Challenges>) {
        // A second call has no effect: only one component obtains certificates.
        let _ = self.challenges.set(challenges);
    }

    pub(crate) fn challenges(&self) -> Option<&Arc<dyn Challenges>> {
        self.challenges.get()
    }

    /// Starts tracing requests.
    pub fn make_traces(&self, telemetry: Arc<Telemetry>) {
        let _ = self.telemetry.set(telemetry);
    }

    /// Sets the component that makes script requests for events. It uses the sites current at the time of each event.
    pub fn make_events_by(&self, events: Arc<dyn RequestMaker>) {
        let _ = self.events.set(events);
    }

    pub(crate) fn events(&self) -> Option<&Arc<dyn RequestMaker>> {
        self.events.get()
    }

    /// The open WebSocket connections.
    pub fn websockets(&self) -> &Arc<Connections> {
        self.websockets.get_or_init(Arc::default)
    }

    /// Starts sharing hubs and rate limits with the other servers of this broker.
    pub fn share(&self, broker: Broker) {
        let _ = self.broker.set(broker);
        self.hubs().open(&self.settings.all_sites(), self.settings.presence_interval);
    }

    pub(crate) fn broker(&self) -> Option<&Broker> {
        self.broker.get()
    }

    /// Takes over tracing, WebSocket connections, hubs and the broker from the previous `Server` in a reload. Called
    /// before requests arrive.
    pub fn inherit_from(&self, before: &Self) {
        let _ = self.websockets.set(before.websockets().clone());
        if let Some(telemetry) = before.telemetry.get() {
            self.make_traces(telemetry.clone());
        }
        // Cannot fail: hubs are created by requests and by `share`, and neither has happened yet.
        let _ = self.hubs.set(before.hubs().clone());
        if let Some(broker) = before.broker() {
            self.share(broker.clone());
        }
    }

    /// The hubs of its sites.
    pub fn hubs(&self) -> &Arc<Hubs> {
        let shared = || self.broker().cloned().map_or_else(Hubs::default, Hubs::shared);
        self.hubs.get_or_init(|| Arc::new(shared()))
    }

    /// The hub of pages that reload when a file changes, for `howdah dev`.
    pub(crate) fn page_reloads(&self) -> Hub {
        // No site has this name.
        self.hubs().of("")
    }

    /// Tells open pages that this file has changed, so that they reload.
    pub fn reload_pages(&self, changed: &Path) {
        let data = changed.to_string_lossy().into_owned().into();
        self.page_reloads().notify(Update { topics: Box::new(["changed".into()]), data, ..Update::default() });
    }

    pub(crate) fn telemetry(&self) -> Option<&Arc<Telemetry>> {
        self.telemetry.get()
    }

    /// Logs a request that was refused before it was parsed. Signs of a misconfiguration also go to the error log, at a
    /// limited rate.
    pub(crate) fn note_rejected(&self, request: &Rejected<'_>) {
        if let Some(log) = &self.access_log {
            rejected::record(log, request);
        }
        let hint = match request.rejection {
            Rejection::ProxyProtocol => {
                "the load balancer sends the PROXY protocol, which is not supported: turn it off there"
            }
            Rejection::Tls => {
                "TLS on a port that speaks plain HTTP: the address of a listener with TLS begins with https://"
            }
            Rejection::HttpToTls => "plain HTTP on a port that speaks TLS",
            _ => return,
        };
        let Some(others) = self.other_protocols.permit() else { return };
        let (client, status) = (&*request.connection.peer.addr_text, request.status.as_u16());
        match request.rejection {
            // Any client can connect to the wrong port, but a load balancer is the operator's own, so it deserves a
            // warning.
            Rejection::ProxyProtocol => {
                tracing::warn!(target: "howdah::request", client, status, others, "request refused: {hint}");
            }
            _ => tracing::info!(target: "howdah::request", client, status, others, "request refused: {hint}"),
        }
    }

    /// Counts a request for an unknown host, and logs it at a limited rate.
    pub(crate) fn note_unknown_host(&self, host: &str) {
        self.metrics.unknown_hosts.inc();
        let Some(others) = self.unknown_hosts.permit() else { return };
        let hint = if self.settings.development { "; add it to `hosts` of a site if it is yours" } else { "" };
        tracing::warn!(target: "howdah::request", host, others, "no site has this host: 421{hint}");
    }
}
