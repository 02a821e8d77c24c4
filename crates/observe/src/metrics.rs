//! The metrics of a server: one table of names, the cells behind them, and the text that Prometheus reads.

use parking_lot::{Mutex, RwLock};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use howdah_budget::{Budget, Budgets};

use crate::cell::{BOUNDS_US, Counter, Gauge, Histogram, HistogramSnapshot, Labelled};
use crate::connection_pool::ConnectionPool;
use crate::escape;
use crate::log::LogHandle;
use crate::requests::{CLASSES, Front, Requests};
use crate::upstream::Upstreams;

/// What kind of number a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts of durations by bucket.
    Histogram,
}

impl MetricKind {
    /// The word for it in Prometheus' text format.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric: a row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Which one.
    id: Id,
    /// Its name.
    pub name: &'static str,
    pub kind: MetricKind,
    pub labels: &'static [&'static str],
    /// What it counts.
    pub help: &'static str,
}

/// The table of metrics, each name once.
macro_rules! metrics {
    ($($id:ident $name:literal $kind:ident [$($label:literal),*] $help:literal;)+) => {
        /// A metric of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Id { $($id),+ }

        /// Every metric, in the order in which they are rendered.
        pub const TABLE: &[Metric] = &[$(
            Metric { id: Id::$id, name: $name, kind: MetricKind::$kind, labels: &[$($label),*], help: $help }
        ),+];
    };
}

metrics! {
    Requests "howdah_requests_total" Counter ["front", "status"]
        "Requests answered, by what answered (php, static, proxy, error) and class of status.";
    RequestDuration "howdah_request_duration_seconds" Histogram []
        "Time from the end of a request's header to the end of its response.";
    SiteRequests "howdah_site_requests_total" Counter ["site", "route", "front", "status"]
        "The same by site and route: the `name` of a `[[route]]`, or its pattern; empty where none took the request.";
    SiteDuration "howdah_site_request_duration_seconds" Histogram ["site", "route"]
        "The same time by site and route.";
    SiteBytes "howdah_site_sent_bytes_total" Counter ["site", "route"] "The same bytes by site and route.";
    UnknownHosts "howdah_unknown_host_requests_total" Counter []
        "Requests refused because no site is for their host.";
    BytesSent "howdah_sent_bytes_total" Counter [] "Bytes of response bodies sent.";
    ConnectionsOpen "howdah_connections_open" Gauge [] "Connections that are open.";
    ConnectionsAccepted "howdah_connections_accepted_total" Counter [] "Connections accepted.";
    ConnectionsDisplaced "howdah_connections_displaced_total" Counter []
        "Connections closed for others because there were `http.max_connections`: idle ones, or slow with a header.";
    ConnectionsUpgraded "howdah_connections_upgraded" Gauge []
        "Connections that have changed to another protocol (WebSocket) and are open.";
    TlsHandshakes "howdah_tls_handshakes_total" Counter ["session"]
        "Handshakes of TLS that succeeded, by session: new or resumed.";
    TlsHandshakesFailed "howdah_tls_handshakes_failed_total" Counter []
        "Handshakes of TLS that failed: no common version, cipher or certificate, or no TLS at all.";
    BudgetUsed "howdah_budget_used_bytes" Gauge ["budget"]
        "Bytes that what waits takes of `http.memory` and `http.spool`.";
    BudgetLimit "howdah_budget_limit_bytes" Gauge ["budget"] "How many bytes it may take.";
    BudgetRefused "howdah_budget_refused_total" Counter ["budget"]
        "How often there was no room for something: a request got 503, a response went to a file, a worker had to wait.";
    MemoryPressure "howdah_memory_pressure_percent" Gauge []
        "Percent of the last ten seconds in which a process waited for memory; 0 where the kernel does not say, or `memory_pressure` is 0.";
    CompressionIn "howdah_compression_in_bytes_total" Counter [] "Bytes of whole bodies that were compressed or found compressed in the cache.";
    CompressionOut "howdah_compression_out_bytes_total" Counter [] "Bytes that were sent in their place.";
    CompressionCacheHits "howdah_compression_cache_hits_total" Counter []
        "Bodies whose compressed form was taken from the cache.";
    CompressionCacheMisses "howdah_compression_cache_misses_total" Counter []
        "Bodies that had to be compressed.";
    AccessLogDropped "howdah_access_log_dropped_total" Counter []
        "Lines of the access log lost because the log could not be written, or not fast enough.";
    SlowLogDropped "howdah_slow_log_dropped_total" Counter []
        "Entries of the slow log lost because the log could not be written, or not fast enough.";
    Spans "howdah_telemetry_spans_total" Counter ["result"]
        "Spans of traces by what became of them: sent to the collector, failed (it did not take them), dropped (no room while they waited).";
    ErrorLogDropped "howdah_error_log_dropped_total" Counter []
        "Lines of the error log lost because the log could not be written, or not fast enough.";
    CertificateExpiry "howdah_certificate_expiry_timestamp_seconds" Gauge ["name"]
        "When the certificate of a name ends that the server got or made itself, since the epoch; 0 if there is none.";
    AcmeOrders "howdah_acme_certificates_total" Counter [] "Certificates obtained by ACME.";
    AcmeFailures "howdah_acme_failures_total" Counter [] "Attempts to obtain a certificate that failed.";
    PasswordChecks "howdah_password_checks_total" Counter [] "Passwords that had to be verified.";
    PasswordChecksOpen "howdah_password_checks_open" Gauge ["state"]
        "Passwords that are being verified, a few at once, and requests that wait for that, by state: running or waiting.";
    Panics "howdah_request_panics_total" Counter []
        "Requests that ended in a fault of the server's own code. The log has each; please report it.";
    UpstreamUp "howdah_upstream_up" Gauge ["proxy", "server"]
        "1 while a server that requests are handed on to gets any, 0 while it has failed too often.";
    UpstreamActive "howdah_upstream_active" Gauge ["proxy", "server"]
        "Requests that it has, upgraded connections included.";
    UpstreamRequests "howdah_upstream_requests_total" Counter ["proxy", "server"] "Requests sent to it.";
    UpstreamConnections "howdah_upstream_connections_total" Counter ["proxy", "server"] "Connections opened to it.";
    UpstreamFailures "howdah_upstream_failures_total" Counter ["proxy", "server", "kind"]
        "What it failed in, by kind: connect, timeout, broken (before its response), cut (within it).";
    QueueLength "howdah_pool_queue_length" Gauge ["pool"] "Requests that wait for a worker.";
    QueueWait "howdah_pool_queue_wait_seconds" Histogram ["pool"] "How long requests waited for a worker.";
    ColdStarts "howdah_pool_cold_start_wait_seconds" Histogram ["pool"]
        "How long requests waited that found a pool on demand without a worker.";
    Workers "howdah_pool_workers" Gauge ["pool"] "Workers that run.";
    WorkersBusy "howdah_pool_workers_busy" Gauge ["pool"] "Workers that run a request.";
    InFlight "howdah_pool_in_flight" Gauge ["pool"] "Requests that workers have, running or about to.";
    PoolMemory "howdah_pool_memory_bytes" Gauge ["pool"]
        "Bytes of memory that workers have together, shared ones in parts (PSS); only with `max_pool_memory`.";
    WorkersRelieved "howdah_pool_workers_relieved_total" Counter ["pool"]
        "Idle workers that ended because memory was short (`memory_pressure`).";
    Restarts "howdah_pool_worker_restarts_total" Counter ["pool", "reason"] "Workers replaced, by reason.";
    Faults "howdah_pool_faults_total" Counter ["pool", "kind"] "Requests that could not be answered, by kind of fault.";
    Replays "howdah_pool_replays_total" Counter ["pool"] "Requests run again because their worker died.";
    Resubmitted "howdah_pool_resubmitted_total" Counter ["pool", "reason"]
        "Requests given to another worker, by reason: their own died (worker_died: in their code, bystander: in that of another request, not_begun: before it began them), or gave them back.";
    SessionsReset "howdah_pool_snapshot_sessions_reset_total" Counter ["pool"]
        "Snapshot mode: sessions of connections opened at boot that were reset after a request.";
    WorkersUnfit "howdah_pool_snapshot_workers_replaced_total" Counter ["pool"]
        "Snapshot mode: workers replaced because a request has done what cannot be undone.";
    PhpDuration "howdah_pool_php_duration_seconds" Histogram ["pool"] "How long requests ran in PHP.";
    Restores "howdah_pool_snapshot_restore_seconds" Histogram ["pool"]
        "Snapshot mode: how long it took to put a worker back after a request.";
    PhpTime "howdah_pool_php_seconds_total" Counter ["pool"] "Time that requests ran in PHP.";
    PooledLimit "howdah_connection_pool_limit" Gauge ["pool", "name"]
        "Connections that a connection pool may have open, over all workers.";
    PooledOpen "howdah_connection_pool_open" Gauge ["pool", "name"]
        "Connections that a connection pool has open.";
    PooledIdle "howdah_connection_pool_idle" Gauge ["pool", "name"]
        "Open connections that nobody uses.";
    PooledInUse "howdah_connection_pool_in_use" Gauge ["pool", "name"]
        "Open connections that are in use.";
    PooledWaiting "howdah_connection_pool_waiting" Gauge ["pool", "name"]
        "Coroutines that wait for a connection.";
    PooledWaitMax "howdah_connection_pool_wait_max_seconds" Gauge ["pool", "name"]
        "The longest wait for a connection in a worker that runs.";
    PooledAcquired "howdah_connection_pool_acquired_total" Counter ["pool", "name"]
        "Connections asked for.";
    PooledWaits "howdah_connection_pool_waits_total" Counter ["pool", "name"]
        "Times that a connection had to be waited for.";
    PooledWaitTime "howdah_connection_pool_wait_seconds_total" Counter ["pool", "name"]
        "Time that connections were waited for.";
    PooledTimeouts "howdah_connection_pool_timeouts_total" Counter ["pool", "name"]
        "Waits for a connection that were in vain.";
    PooledOpened "howdah_connection_pool_opened_total" Counter ["pool", "name"]
        "Connections opened.";
    PooledClosed "howdah_connection_pool_closed_total" Counter ["pool", "name"]
        "Connections closed.";
    PooledOpenFailures "howdah_connection_pool_open_failures_total" Counter ["pool", "name"]
        "Connections that could not be opened.";
    PooledCheckFailures "howdah_connection_pool_check_failures_total" Counter ["pool", "name"]
        "Connections that failed a check or a reset.";
    PooledForgotten "howdah_connection_pool_forgotten_total" Counter ["pool", "name"]
        "Connections that came back only when their coroutine ended.";
    PooledTransactions "howdah_connection_pool_open_transactions_total" Counter ["pool", "name"]
        "Connections that came back with an open transaction.";
}

/// The cells of one pool.
#[derive(Debug, Default)]
pub struct PoolMetrics {
    name: Box<str>,
    /// There is no such pool any more.
    is_gone: AtomicBool,
    /// Requests that wait for a worker.
    pub queue_length: Gauge,
    /// How long requests waited for a worker.
    pub queue_wait: Histogram,
    /// How long those waited that found a pool on demand without a worker.
    pub cold_starts: Histogram,
    /// Workers that run.
    pub workers: Gauge,
    /// Workers that run a request.
    pub workers_busy: Gauge,
    /// Requests that workers have.
    pub in_flight: Gauge,
    /// Bytes of memory that workers have together.
    pub memory: Gauge,
    /// Idle workers that ended because memory was short.
    pub workers_relieved: Counter,
    /// Workers replaced, by reason.
    pub restarts: Labelled,
    /// Requests that could not be answered, by `FaultKind::label`.
    pub faults: Labelled,
    /// Requests run again because their worker died.
    pub replays: Counter,
    /// Requests given to another worker, by reason.
    pub resubmitted: Labelled,
    /// Snapshot mode: sessions of connections opened at boot that were reset after a request.
    pub sessions_reset: Counter,
    /// Snapshot mode: workers that could not be put back after a request.
    pub workers_unfit: Counter,
    /// How long requests ran in PHP.
    pub php_time: Histogram,
    /// Snapshot mode: how long it took to put workers back.
    pub restores: Histogram,
    /// The connection pools of its workers, by name.
    connection_pools: Mutex<Vec<ConnectionPool>>,
}

impl PoolMetrics {
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets what is known of the connection pools of its workers.
    pub fn set_connection_pools(&self, pools: Vec<ConnectionPool>) {
        *self.connection_pools.lock() = pools;
    }
}

/// The cells of a server.
#[derive(Debug, Default)]
pub struct Metrics {
    /// By site and route.
    pub requests: Requests,
    /// Requests for hosts that no site is for.
    pub unknown_hosts: Counter,
    pub connections_open: Gauge,
    pub connections_accepted: Counter,
    /// Connections closed for others.
    pub connections_displaced: Counter,
    /// Connections that have changed to another protocol.
    pub connections_upgraded: Gauge,
    /// Handshakes of TLS that succeeded, those that resumed a session among them.
    pub tls_handshakes: Counter,
    pub tls_resumed: Counter,
    pub tls_handshakes_failed: Counter,
    budgets: OnceLock<Budgets>,
    error_log: OnceLock<LogHandle>,
    /// Bytes given to compression.
    pub compression_in: Counter,
    /// Bytes that compression made of them.
    pub compression_out: Counter,
    /// Bodies whose compressed form was taken from the cache.
    pub compression_cache_hits: Counter,
    /// Bodies that were looked up in the cache in vain.
    pub compression_cache_misses: Counter,
    /// Lines of the access log lost.
    pub access_log_dropped: Counter,
    /// Percent of the last ten seconds in which a process waited for memory.
    pub memory_pressure: Gauge,
    pub slow_log_dropped: Counter,
    /// Spans that were sent, that a collector has not taken, and that had no room.
    pub spans_sent: Counter,
    pub spans_failed: Counter,
    pub spans_dropped: Counter,
    /// Requests that a panic ended.
    pub request_panics: Counter,
    /// Passwords that had to be verified, those that threads verify, and requests that wait for that.
    pub password_checks: Counter,
    pub password_checks_running: Gauge,
    pub password_checks_waiting: Gauge,
    certificates: Mutex<CertificateNumbers>,
    pools: RwLock<Vec<Arc<PoolMetrics>>>,
    /// Servers that requests are handed on to.
    pub upstreams: Upstreams,
}

/// What is known of the certificates that the server got or made itself.
#[derive(Debug, Default)]
pub struct CertificateNumbers {
    /// Names, and when their certificates end.
    pub expiry: Vec<(String, u64)>,
    /// Certificates obtained by ACME.
    pub orders: u64,
    /// Attempts that failed.
    pub failures: u64,
}

impl Metrics {
    /// Metrics that are all zero.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Says what everything that waits is charged to.
    pub fn set_budgets(&self, budgets: Budgets) {
        // A second time, in a test, the first ones stay.
        let _ = self.budgets.set(budgets);
    }

    /// What everything that waits is charged to, once it is known.
    #[must_use]
    pub fn budgets(&self) -> Option<Budgets> {
        self.budgets.get().copied()
    }

    /// Says which error log it is whose losses are to be shown.
    pub fn set_error_log(&self, log: LogHandle) {
        let _ = self.error_log.set(log);
    }

    /// Sets what is known of certificates.
    pub fn set_certificates(&self, numbers: CertificateNumbers) {
        *self.certificates.lock() = numbers;
    }

    /// Lines of the error log lost.
    #[must_use]
    pub fn error_log_dropped(&self) -> u64 {
        self.error_log.get().map_or(0, LogHandle::dropped)
    }

    /// The cells of the pool with this name; to be kept by the pool, not looked up for each request.
    #[must_use]
    pub fn pool(&self, name: &str) -> Arc<PoolMetrics> {
        let mut pools = self.pools.write();
        if let Some(pool) = pools.iter().find(|pool| &*pool.name == name) {
            pool.is_gone.store(false, Relaxed);
            return Arc::clone(pool);
        }
        let pool = Arc::new(PoolMetrics { name: name.into(), ..PoolMetrics::default() });
        pools.push(Arc::clone(&pool));
        pool
    }

    /// Shows only these pools from now on. What the others have counted stays, should they come back.
    pub fn keep_pools(&self, is_there: impl Fn(&str) -> bool) {
        for pool in self.pools.read().iter() {
            pool.is_gone.store(!is_there(&pool.name), Relaxed);
        }
    }

    /// The number of requests answered so far.
    #[must_use]
    pub fn requests_total(&self) -> u64 {
        self.durations().count
    }

    /// Bytes of bodies that were sent.
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.requests.all().iter().map(|route| route.bytes()).sum()
    }

    /// How long all requests took.
    #[must_use]
    pub fn durations(&self) -> HistogramSnapshot {
        let mut all = HistogramSnapshot::default();
        self.requests.all().iter().for_each(|route| all.add(&route.durations()));
        all
    }

    /// All metrics in Prometheus' text format (`text/plain; version=0.0.4`).
    #[must_use]
    pub fn render(&self) -> String {
        let mut pools = self.pools.read().clone();
        pools.retain(|pool| !pool.is_gone.load(Relaxed));
        let mut page = Page { text: String::with_capacity(8192 + pools.len() * 8192), metric: &TABLE[0] };
        for metric in TABLE {
            page.open(metric);
            self.render_one(metric.id, &pools, &mut page);
        }
        page.text
    }

    /// The samples of one metric.
    fn render_one(&self, id: Id, pools: &[Arc<PoolMetrics>], page: &mut Page<'_>) {
        match id {
            Id::Requests | Id::SiteRequests | Id::SiteDuration | Id::SiteBytes => self.of_routes(id, page),
            Id::RequestDuration => page.durations(&[], &self.durations()),
            Id::UnknownHosts => page.sample(&[], self.unknown_hosts.get()),
            Id::BytesSent => page.sample(&[], self.bytes_sent()),
            Id::ConnectionsOpen => page.sample(&[], self.connections_open.get()),
            Id::ConnectionsAccepted => page.sample(&[], self.connections_accepted.get()),
            Id::ConnectionsDisplaced => page.sample(&[], self.connections_displaced.get()),
            Id::ConnectionsUpgraded => page.sample(&[], self.connections_upgraded.get()),
            Id::UpstreamUp
            | Id::UpstreamActive
            | Id::UpstreamRequests
            | Id::UpstreamConnections
            | Id::UpstreamFailures => self.upstream_samples(id, page),
            Id::TlsHandshakes => {
                let resumed = self.tls_resumed.get();
                page.sample(&["new"], self.tls_handshakes.get().saturating_sub(resumed));
                page.sample(&["resumed"], resumed);
            }
            Id::TlsHandshakesFailed => page.sample(&[], self.tls_handshakes_failed.get()),
            Id::BudgetUsed => self.budget(page, Budget::used),
            Id::BudgetLimit => self.budget(page, Budget::limit),
            Id::BudgetRefused => self.budget(page, Budget::refused),
            Id::Spans => {
                page.sample(&["sent"], self.spans_sent.get());
                page.sample(&["failed"], self.spans_failed.get());
                page.sample(&["dropped"], self.spans_dropped.get());
            }
            Id::ErrorLogDropped => page.sample(&[], self.error_log_dropped()),
            Id::CompressionIn => page.sample(&[], self.compression_in.get()),
            Id::CompressionOut => page.sample(&[], self.compression_out.get()),
            Id::CompressionCacheHits => page.sample(&[], self.compression_cache_hits.get()),
            Id::CompressionCacheMisses => page.sample(&[], self.compression_cache_misses.get()),
            Id::MemoryPressure => page.sample(&[], self.memory_pressure.get()),
            Id::AccessLogDropped => page.sample(&[], self.access_log_dropped.get()),
            Id::SlowLogDropped => page.sample(&[], self.slow_log_dropped.get()),
            Id::CertificateExpiry => {
                for (name, until) in &self.certificates.lock().expiry {
                    page.sample(&[name], until);
                }
            }
            Id::AcmeOrders => page.sample(&[], self.certificates.lock().orders),
            Id::AcmeFailures => page.sample(&[], self.certificates.lock().failures),
            Id::PasswordChecks => page.sample(&[], self.password_checks.get()),
            Id::PasswordChecksOpen => {
                page.sample(&["running"], self.password_checks_running.get());
                page.sample(&["waiting"], self.password_checks_waiting.get());
            }
            Id::Panics => page.sample(&[], self.request_panics.get()),
            Id::QueueLength => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.queue_length.get())),
            Id::QueueWait => pools.iter().for_each(|pool| page.histogram(&[&pool.name], &pool.queue_wait)),
            Id::ColdStarts => pools.iter().for_each(|pool| page.histogram(&[&pool.name], &pool.cold_starts)),
            Id::Workers => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.workers.get())),
            Id::WorkersBusy => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.workers_busy.get())),
            Id::InFlight => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.in_flight.get())),
            Id::Restarts => pools.iter().for_each(|pool| page.labelled(&pool.name, &pool.restarts)),
            Id::Faults => pools.iter().for_each(|pool| page.labelled(&pool.name, &pool.faults)),
            Id::Replays => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.replays.get())),
            Id::Resubmitted => pools.iter().for_each(|pool| page.labelled(&pool.name, &pool.resubmitted)),
            Id::SessionsReset => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.sessions_reset.get())),
            Id::PoolMemory => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.memory.get())),
            Id::WorkersRelieved => {
                pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.workers_relieved.get()))
            }
            Id::WorkersUnfit => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.workers_unfit.get())),
            Id::PhpDuration => pools.iter().for_each(|pool| page.histogram(&[&pool.name], &pool.php_time)),
            Id::Restores => pools.iter().for_each(|pool| page.histogram(&[&pool.name], &pool.restores)),
            Id::PhpTime => {
                for pool in pools {
                    page.sample(&[&pool.name], Seconds(pool.php_time.snapshot().sum_us));
                }
            }
            Id::PooledLimit => page.connections(pools, |numbers| numbers.limit),
            Id::PooledOpen => page.connections(pools, |numbers| numbers.open),
            Id::PooledIdle => page.connections(pools, |numbers| numbers.idle),
            Id::PooledInUse => page.connections(pools, |numbers| numbers.in_use),
            Id::PooledWaiting => page.connections(pools, |numbers| numbers.waiting),
            Id::PooledWaitMax => page.connections(pools, |numbers| Seconds(numbers.wait_max_us)),
            Id::PooledAcquired => page.connections(pools, |numbers| numbers.acquired),
            Id::PooledWaits => page.connections(pools, |numbers| numbers.waits),
            Id::PooledWaitTime => page.connections(pools, |numbers| Seconds(numbers.wait_us)),
            Id::PooledTimeouts => page.connections(pools, |numbers| numbers.timeouts),
            Id::PooledOpened => page.connections(pools, |numbers| numbers.opened),
            Id::PooledClosed => page.connections(pools, |numbers| numbers.closed),
            Id::PooledOpenFailures => page.connections(pools, |numbers| numbers.open_failures),
            Id::PooledCheckFailures => page.connections(pools, |numbers| numbers.check_failures),
            Id::PooledForgotten => page.connections(pools, |numbers| numbers.forgotten),
            Id::PooledTransactions => page.connections(pools, |numbers| numbers.open_transactions),
        }
    }
}

impl Metrics {
    /// The samples of one metric of requests.
    fn of_routes(&self, id: Id, page: &mut Page<'_>) {
        let routes = self.requests.all();
        let classes = || Front::ALL.into_iter().flat_map(|front| (0..CLASSES.len()).map(move |class| (front, class)));
        if id == Id::Requests {
            for (front, class) in classes() {
                let all: u64 = routes.iter().map(|route| route.answered(front, class)).sum();
                page.sample(&[front.label(), CLASSES[class]], all);
            }
            return;
        }
        for route in &routes {
            let of = [&*route.site, &*route.route];
            match id {
                Id::SiteDuration => page.durations(&of, &route.durations()),
                Id::SiteBytes => page.sample(&of, route.bytes()),
                _ => {
                    // What has never happened needs no line for each site.
                    let seen = classes().map(|(front, class)| (front, class, route.answered(front, class)));
                    for (front, class, count) in seen.filter(|(.., count)| *count > 0) {
                        page.sample(&[of[0], of[1], front.label(), CLASSES[class]], count);
                    }
                }
            }
        }
    }

    /// The samples of one metric of servers that requests are handed on to.
    fn upstream_samples(&self, id: Id, page: &mut Page<'_>) {
        for upstream in self.upstreams.all() {
            let of = [&*upstream.proxy, &*upstream.server];
            match id {
                Id::UpstreamUp => page.sample(&of, upstream.up.get()),
                Id::UpstreamActive => page.sample(&of, upstream.active.get()),
                Id::UpstreamRequests => page.sample(&of, upstream.requests.get()),
                Id::UpstreamConnections => page.sample(&of, upstream.connections.get()),
                _ => {
                    for (kind, count) in upstream.failures.all() {
                        page.sample(&[of[0], of[1], kind], count);
                    }
                }
            }
        }
    }

    /// One number of each budget.
    fn budget(&self, page: &mut Page<'_>, number: impl Fn(&Budget) -> u64) {
        for budget in self.budgets().iter().flat_map(|budgets| [budgets.memory, budgets.spool]) {
            page.sample(&[budget.kind().name()], number(budget));
        }
    }
}

/// Microseconds, written as seconds.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, micros) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if micros == 0 {
            return write!(f, "{seconds}");
        }
        let fraction = format!("{micros:06}");
        write!(f, "{seconds}.{}", fraction.trim_end_matches('0'))
    }
}

/// The text while it is written.
struct Page<'a> {
    text: String,
    metric: &'a Metric,
}

impl<'a> Page<'a> {
    fn open(&mut self, metric: &'a Metric) {
        self.metric = metric;
        let _ = writeln!(self.text, "# HELP {} {}", metric.name, metric.help);
        let _ = writeln!(self.text, "# TYPE {} {}", metric.name, metric.kind.word());
    }

    fn sample(&mut self, values: &[&str], value: impl std::fmt::Display) {
        self.line("", values, None, value);
    }

    fn labelled(&mut self, pool: &str, counters: &Labelled) {
        for (label, count) in counters.all() {
            self.sample(&[pool, label], count);
        }
    }

    /// One number of each connection pool.
    fn connections<V: std::fmt::Display>(&mut self, pools: &[Arc<PoolMetrics>], number: impl Fn(&ConnectionPool) -> V) {
        for pool in pools {
            for connections in &*pool.connection_pools.lock() {
                self.sample(&[&pool.name, &connections.name], number(connections));
            }
        }
    }

    fn histogram(&mut self, values: &[&str], histogram: &Histogram) {
        self.durations(values, &histogram.snapshot());
    }

    fn durations(&mut self, values: &[&str], snapshot: &HistogramSnapshot) {
        for (bound, count) in BOUNDS_US.iter().zip(snapshot.cumulative) {
            self.line("_bucket", values, Some(&Seconds(*bound).to_string()), count);
        }
        self.line("_bucket", values, Some("+Inf"), snapshot.count);
        self.line("_sum", values, None, Seconds(snapshot.sum_us));
        self.line("_count", values, None, snapshot.count);
    }

    fn line(&mut self, suffix: &str, values: &[&str], bound: Option<&str>, value: impl std::fmt::Display) {
        self.text.push_str(self.metric.name);
        self.text.push_str(suffix);
        let labels =
            self.metric.labels.iter().copied().zip(values.iter().copied()).chain(bound.map(|bound| ("le", bound)));
        let mut separator = '{';
        for (label, value) in labels {
            let _ = write!(self.text, "{separator}{label}=\"");
            escape::prometheus(&mut self.text, value);
            self.text.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// The page of documentation about all metrics.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(
        "# Metrics\n\n<!-- Generated from the table in crates/observe/src/metrics.rs; run `make generate` to write it anew. -->\n\n\
         In Prometheus' text format: name, kind, labels, meaning. Times are in seconds.\n\n",
    );
    for metric in TABLE {
        let labels: String = metric.labels.iter().map(|label| format!(", `{label}`")).collect();
        let _ = writeln!(page, "- `{}` ({}{labels}): {}", metric.name, metric.kind.word(), metric.help);
    }
    howdah_config::reference::wrapped(&page)
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
