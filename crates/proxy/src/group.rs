//! A proxy's servers: the choice of a server for each request, and the health of each. Shared by all I/O threads, so
//! counts are for the whole server process.
//!
//! **A failing server gets no requests for a while.** After `MAX_FAILS` consecutive failures it is out for
//! `fail_timeout`, unless it is the only one. Then one request probes it while the others still go elsewhere. If all
//! servers are out, they are tried anyway, the one that is due first before the others: a failed attempt costs the
//! client no more than a refusal.

use crate::addresses::Addresses;
use crate::fault::FaultKind;
use crate::tls;
use howdah_config::{Balance, ProxySettings, UpstreamAddr, UpstreamPlace};
use howdah_observe::{Metrics, UpstreamMetrics};
use http::HeaderValue;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Number of consecutive failures after which a server gets no requests for a while.
const MAX_FAILS: u32 = 3;

/// A proxy's servers.
#[derive(Debug)]
pub struct Group {
    pub(crate) settings: ProxySettings,
    pub(crate) servers: Vec<Arc<Server>>,
    /// For `https` servers.
    pub(crate) tls: Option<Arc<ClientConfig>>,
    started: Instant,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: UpstreamAddr,
    /// Resolved addresses; empty for a Unix socket.
    pub(crate) addresses: Addresses,
    /// As it is written in settings and logs.
    pub(crate) label: String,
    /// Its own name, for `Host`.
    pub(crate) authority: HeaderValue,
    /// The name in its certificate.
    pub(crate) name: Option<ServerName<'static>>,
    pub(crate) metrics: Arc<UpstreamMetrics>,
    active: AtomicUsize,
    /// Consecutive failures.
    failures: AtomicU32,
    /// Time of the next probe, in milliseconds since `Group::started`; 0 if the server is not out.
    out_until: AtomicU64,
    /// A request is probing the server.
    on_trial: AtomicBool,
    /// The last health check failed.
    unhealthy: AtomicBool,
    places: Option<Arc<Semaphore>>,
}

/// The rotation state of one I/O thread: each server's current weight.
#[derive(Debug, Default)]
pub(crate) struct Rotation(Vec<i64>);

impl Group {
    /// The servers of these settings.
    ///
    /// # Errors
    /// Certificates cannot be read, or a server's name cannot be in a certificate.
    pub fn new(settings: &ProxySettings, metrics: &Metrics) -> Result<Self, String> {
        let fail = |why: String| format!("proxy {}: {why}", settings.name);
        let has_tls = settings.to.iter().any(|address| address.tls);
        let tls = if has_tls { Some(tls::config(settings).map_err(fail)?) } else { None };
        let servers = settings.to.iter().map(|address| Server::new(settings, address, metrics).map(Arc::new));
        let servers = servers.collect::<Result<_, _>>().map_err(fail)?;
        Ok(Self { settings: settings.clone(), servers, tls, started: Instant::now() })
    }

    /// Its name in settings and logs.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// `true` if a reload with these settings may keep the group. Groups with TLS are rebuilt, so that certificate
    /// files are read again.
    pub fn is_for(&self, settings: &ProxySettings) -> bool {
        self.settings == *settings && self.tls.is_none()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    /// Chooses a server that is not in `tried`; `None` if all have been tried.
    pub(crate) fn choose(&self, turn: &mut Rotation, tried: &[usize]) -> Option<usize> {
        if self.servers.len() == 1 {
            return tried.is_empty().then_some(0);
        }
        let now = self.now();
        let fresh = |at: &usize| !tried.contains(at);
        let due = (0..self.servers.len()).filter(fresh).find(|&at| self.servers[at].takes_trial(now));
        if due.is_some() {
            return due;
        }
        let usable = |at: &usize| fresh(at) && self.servers[*at].is_in();
        match self.settings.balance {
            Balance::RoundRobin => turn.next(&self.servers, usable),
            Balance::LeastConnections => turn.least(&self.servers, usable),
        }
        .or_else(|| (0..self.servers.len()).filter(fresh).min_by_key(|&at| self.servers[at].out_until.load(Relaxed)))
    }

    pub(crate) fn failed(&self, server: &Server, kind: FaultKind, why: &str) {
        server.metrics.failures.inc(kind.label());
        let failures = server.failures.fetch_add(1, Relaxed).saturating_add(1);
        if failures >= MAX_FAILS && self.servers.len() > 1 {
            let until = self.now().saturating_add(ms(self.settings.fail_timeout));
            if server.out_until.swap(until, Relaxed) == 0 {
                server.metrics.up.set(0);
                let (name, out) = (self.name(), self.settings.fail_timeout);
                tracing::warn!(
                    target: "howdah::proxy",
                    "proxy {name}: {} is out for {out:?} after {failures} failures: {why}", server.label
                );
            }
        }
        server.on_trial.store(false, Relaxed);
    }

    /// Records a server's response, which ends its series of failures.
    pub(crate) fn worked(&self, server: &Server) {
        if server.failures.load(Relaxed) != 0 {
            server.failures.store(0, Relaxed);
        }
        if server.out_until.load(Relaxed) != 0 && server.out_until.swap(0, Relaxed) != 0 {
            server.on_trial.store(false, Relaxed);
            self.note_up(server);
            tracing::info!(target: "howdah::proxy", "proxy {}: {} is back", self.name(), server.label);
        }
    }

    pub(crate) fn set_healthy(&self, server: &Server, verdict: Result<(), String>) {
        let name = self.name();
        match verdict {
            Ok(()) => {
                if server.unhealthy.swap(false, Relaxed) {
                    tracing::info!(target: "howdah::proxy", "proxy {name}: {} is healthy again", server.label);
                }
                self.note_up(server);
            }
            Err(why) => {
                if !server.unhealthy.swap(true, Relaxed) {
                    tracing::warn!(target: "howdah::proxy", "proxy {name}: {} is unhealthy: {why}", server.label);
                }
                server.metrics.up.set(0);
            }
        }
    }

    fn note_up(&self, server: &Server) {
        server.metrics.up.set(i64::from(server.is_in()));
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Server {
    fn new(settings: &ProxySettings, address: &UpstreamAddr, metrics: &Metrics) -> Result<Self, String> {
        let label = UpstreamAddr { weight: 1, ..address.clone() }.to_string();
        let name = match (&address.place, address.tls) {
            (UpstreamPlace::Tcp { host, .. }, true) => {
                Some(tls::name(settings.server_name.as_deref().unwrap_or(host))?)
            }
            _ => None,
        };
        let authority = HeaderValue::try_from(address.authority()).map_err(|error| error.to_string())?;
        let most = settings.max_connections;
        let (host, port) = match &address.place {
            UpstreamPlace::Tcp { host, port } => (host.as_str(), *port),
            UpstreamPlace::Unix(_) => ("", 0),
        };
        Ok(Self {
            addresses: Addresses::new(host, port),
            metrics: metrics.upstreams.of(&settings.name, &label),
            address: address.clone(),
            label,
            authority,
            name,
            active: AtomicUsize::new(0),
            failures: AtomicU32::new(0),
            out_until: AtomicU64::new(0),
            on_trial: AtomicBool::new(false),
            unhealthy: AtomicBool::new(false),
            places: (most > 0).then(|| Arc::new(Semaphore::new(most))),
        })
    }

    /// `true` if the server is in the normal rotation.
    fn is_in(&self) -> bool {
        self.out_until.load(Relaxed) == 0 && !self.unhealthy.load(Relaxed)
    }

    /// Claims the probe of a server whose `fail_timeout` is over; `false` if another request has claimed it.
    fn takes_trial(&self, now: u64) -> bool {
        let until = self.out_until.load(Relaxed);
        until != 0 && until <= now && !self.unhealthy.load(Relaxed) && !self.on_trial.swap(true, Relaxed)
    }

    /// Waits for one of the server's request slots; `None` if none became free within `timeout`.
    pub(crate) async fn place(self: &Arc<Self>, timeout: Duration) -> Option<ServerSlot> {
        let trial = ProbeGuard(self);
        let permit = match &self.places {
            None => None,
            Some(places) => match places.clone().try_acquire_owned() {
                Ok(permit) => Some(permit),
                Err(_) => tokio::time::timeout(timeout, places.clone().acquire_owned()).await.ok()?.ok(),
            },
        };
        self.active.fetch_add(1, Relaxed);
        self.metrics.active.inc();
        // Dropping the `ServerSlot` ends the trial from here on.
        std::mem::forget(trial);
        Some(ServerSlot { server: self.clone(), _permit: permit })
    }
}

/// Guard of a possible probe while its request waits for a slot: ends the trial if the request gives up.
struct ProbeGuard<'a>(&'a Server);

impl Drop for ProbeGuard<'_> {
    fn drop(&mut self) {
        self.0.on_trial.store(false, Relaxed);
    }
}

/// A request under way at a server.
#[derive(Debug)]
pub(crate) struct ServerSlot {
    pub(crate) server: Arc<Server>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Drop for ServerSlot {
    fn drop(&mut self) {
        self.server.active.fetch_sub(1, Relaxed);
        self.server.metrics.active.dec();
        // Ends a probe without an outcome (for example, the client has left), so that another request may probe.
        self.server.on_trial.store(false, Relaxed);
    }
}

impl Rotation {
    /// Smooth weighted round robin: each server gains its weight, and the one with the highest total is chosen and pays
    /// the sum of all weights. Shares are exact over a round and evenly spread.
    fn next(&mut self, servers: &[Arc<Server>], usable: impl Fn(&usize) -> bool) -> Option<usize> {
        self.0.resize(servers.len(), 0);
        let mut all = 0;
        let mut best: Option<usize> = None;
        for at in (0..servers.len()).filter(usable) {
            let weight = i64::from(servers[at].address.weight);
            self.0[at] += weight;
            all += weight;
            if best.is_none_or(|best| self.0[at] > self.0[best]) {
                best = Some(at);
            }
        }
        let best = best?;
        self.0[best] -= all;
        Some(best)
    }

    /// Least load; equally loaded servers take turns.
    fn least(&mut self, servers: &[Arc<Server>], usable: impl Fn(&usize) -> bool) -> Option<usize> {
        // Millionths of a request per unit of weight: integers, so that equal loads compare equal.
        let load = |at: usize| {
            let active = servers[at].active.load(Relaxed) as u64 + 1;
            active.saturating_mul(1_000_000) / u64::from(servers[at].address.weight)
        };
        let least = (0..servers.len()).filter(&usable).map(load).min()?;
        self.next(servers, |at| usable(at) && load(*at) == least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(to: &[&str], change: impl FnOnce(&mut ProxySettings)) -> Group {
        let mut settings = ProxySettings { name: "x".to_owned(), ..ProxySettings::default() };
        settings.to = to.iter().map(|text| text.parse().unwrap()).collect();
        change(&mut settings);
        Group::new(&settings, &Metrics::new()).unwrap()
    }

    fn chosen(group: &Group, turn: &mut Rotation, times: usize) -> String {
        (0..times).map(|_| group.choose(turn, &[]).unwrap().to_string()).collect()
    }

    #[test]
    fn traffic_is_distributed_by_weight_without_bursts() {
        let group = group(&["http://a", "http://b weight=3"], |_| ());
        assert_eq!(chosen(&group, &mut Rotation::default(), 8), "10111011".chars().cycle().take(8).collect::<String>());
    }

    #[test]
    fn the_server_with_the_fewest_requests_is_next() {
        let group = group(&["http://a", "http://b", "http://c weight=4"], |s| s.balance = Balance::LeastConnections);
        let mut turn = Rotation::default();
        group.servers[0].active.store(1, Relaxed);
        group.servers[2].active.store(2, Relaxed);
        assert_eq!(chosen(&group, &mut turn, 1), "2");
        group.servers[2].active.store(7, Relaxed);
        assert_eq!(chosen(&group, &mut turn, 1), "1");
    }

    #[test]
    fn a_failing_server_gets_no_requests_and_is_then_probed_by_one() {
        let group = group(&["http://a", "http://b"], |s| s.fail_timeout = Duration::from_secs(3600));
        let mut turn = Rotation::default();
        let first = &group.servers[0];
        group.failed(first, FaultKind::Connect, "test");
        group.failed(first, FaultKind::Connect, "test");
        assert!(chosen(&group, &mut turn, 4).contains('0'), "fewer failures have no effect");
        group.failed(first, FaultKind::Connect, "test");
        assert_eq!(chosen(&group, &mut turn, 4), "1111");
        assert_eq!(group.choose(&mut turn, &[1]), Some(0), "better than nothing");
        assert_eq!(group.choose(&mut turn, &[0, 1]), None);
        // Its `fail_timeout` is over.
        first.out_until.store(1, Relaxed);
        assert_eq!(chosen(&group, &mut turn, 3), "011");
        group.failed(first, FaultKind::Timeout, "test");
        assert_eq!(chosen(&group, &mut turn, 3), "111");
        first.out_until.store(1, Relaxed);
        assert_eq!(chosen(&group, &mut turn, 1), "0");
        group.worked(first);
        assert!(chosen(&group, &mut turn, 4).contains('0'));
    }

    #[test]
    fn a_single_server_is_never_out() {
        let group = group(&["http://a"], |_| ());
        for _ in 0..MAX_FAILS {
            group.failed(&group.servers[0], FaultKind::Connect, "test");
        }
        assert_eq!(chosen(&group, &mut Rotation::default(), 2), "00");
    }
}
