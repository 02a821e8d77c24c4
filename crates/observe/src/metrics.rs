//! The metrics of a server: the cells behind the names in the table (`metrics/table.rs`), and the page for collectors
//! (`metrics/render.rs` collects the samples, `metrics/text.rs` writes them).

mod format;
mod render;
mod table;
mod text;

pub use format::Format;
pub use table::{Metric, MetricKind, TABLE, reference};

use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use howdah_budget::Budgets;

use crate::cell::{Counter, Gauge, Labelled, ProcessorTime};
use crate::connection_pool::ConnectionPool;
use crate::histogram::{Histogram, HistogramSnapshot};
use crate::log::LogHandle;
use crate::requests::Requests;
use crate::upstream::Upstreams;

/// The cells of one pool.
#[derive(Debug, Default)]
pub struct PoolMetrics {
    name: Box<str>,
    /// The pool was removed by a reload.
    is_gone: AtomicBool,
    /// Requests that wait for a worker.
    pub queue_length: Gauge,
    /// Time from the end of requests' headers until a worker took them.
    pub queue_wait: Histogram,
    /// Queue wait of requests that found an on-demand pool without a worker.
    pub cold_starts: Histogram,
    /// Running workers.
    pub workers: Gauge,
    /// Workers that are running a request.
    pub workers_busy: Gauge,
    /// Requests assigned to workers.
    pub in_flight: Gauge,
    /// Total memory of the workers and a snapshot's template, in bytes.
    pub memory: Gauge,
    /// Idle workers stopped because memory was short.
    pub workers_relieved: Counter,
    /// Workers that ended, by reason.
    pub restarts: Labelled,
    /// Requests that could not be answered, by `FaultKind::label`.
    pub faults: Labelled,
    /// Requests run again because their worker died.
    pub replays: Counter,
    /// Requests given to another worker, by reason.
    pub resubmitted: Labelled,
    /// Snapshot mode: sessions on boot-time connections that were reset after a request.
    pub sessions_reset: Counter,
    /// Snapshot mode: workers that could not be restored after a request.
    pub workers_unfit: Counter,
    /// Time that requests ran in PHP.
    pub php_time: Histogram,
    /// Processor time of the pool's processes.
    pub processor_time: ProcessorTime,
    /// Snapshot mode: time to restore a worker.
    pub restores: Histogram,
    /// Responses compared with classic mode's, by result.
    pub compared: Labelled,
    /// Routes demoted to classic mode.
    pub demoted_routes: Gauge,
    /// The connection pools of the workers, by name.
    connection_pools: Mutex<Vec<ConnectionPool>>,
}

impl PoolMetrics {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Replaces the statistics of the workers' connection pools.
    pub fn set_connection_pools(&self, pools: Vec<ConnectionPool>) {
        *self.connection_pools.lock() = pools;
    }
}

/// The cells of a server.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Processor time of this process.
    pub processor_time: ProcessorTime,
    /// Request cells by site and route.
    pub requests: Requests,
    /// Requests for hosts that no site serves.
    pub unknown_hosts: Counter,
    /// Malformed or premature requests that were refused, by reason.
    pub rejected: Labelled,
    pub connections_open: Gauge,
    pub connections_accepted: Counter,
    /// Connections closed to make room for others, some after their next response.
    pub connections_displaced: Counter,
    /// Connections that have changed to another protocol.
    pub connections_upgraded: Gauge,
    /// Messages on WebSocket connections that the server itself holds.
    pub websocket_received: Counter,
    pub websocket_sent: Counter,
    /// Subscribers of Mercure hubs, and updates published to the hubs.
    pub mercure_subscribers: Gauge,
    pub mercure_updates: Counter,
    /// Successful TLS handshakes, including resumed sessions.
    pub tls_handshakes: Counter,
    pub tls_resumed: Counter,
    pub tls_handshakes_failed: Counter,
    budgets: OnceLock<Budgets>,
    error_log: OnceLock<LogHandle>,
    /// Bodies whose compressed form was taken from the cache.
    pub compression_cache_hits: Counter,
    /// Bodies that were not found in the cache.
    pub compression_cache_misses: Counter,
    /// Lost lines of the access log.
    pub access_log_dropped: Counter,
    /// Percentage of the last ten seconds in which processes stalled on memory.
    pub memory_pressure: Gauge,
    pub slow_log_dropped: Counter,
    /// Spans that were sent, that could not be sent or were rejected, and that the queue had no room for.
    pub spans_sent: Counter,
    pub spans_failed: Counter,
    pub spans_dropped: Counter,
    /// Requests that a panic ended.
    pub request_panics: Counter,
    /// Passwords to verify, verifications running in threads, and requests waiting for a verification.
    pub password_checks: Counter,
    pub password_checks_running: Gauge,
    pub password_checks_waiting: Gauge,
    certificates: Mutex<CertificateNumbers>,
    pools: RwLock<Vec<Arc<PoolMetrics>>>,
    /// Upstream servers.
    pub upstreams: Upstreams,
}

/// State of the certificates that the server obtained or created.
#[derive(Debug, Default)]
pub struct CertificateNumbers {
    /// Names with the expiry of their certificates.
    pub expiry: Vec<(String, u64)>,
    /// Certificates obtained by ACME.
    pub orders: u64,
    /// Attempts that failed.
    pub failures: u64,
}

impl Metrics {
    /// Creates metrics that are all zero.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Sets the budgets that waiting data is charged to.
    pub fn set_budgets(&self, budgets: Budgets) {
        // Ignored if already set, which only tests do: the first budgets stay.
        let _ = self.budgets.set(budgets);
    }

    /// The budgets for waiting data, once they are set.
    pub fn budgets(&self) -> Option<Budgets> {
        self.budgets.get().copied()
    }

    /// Sets the error log whose lost lines the metrics show.
    pub fn set_error_log(&self, log: LogHandle) {
        let _ = self.error_log.set(log);
    }

    /// Replaces the statistics of certificates.
    pub fn set_certificates(&self, numbers: CertificateNumbers) {
        *self.certificates.lock() = numbers;
    }

    /// Lost lines of the error log.
    pub fn error_log_dropped(&self) -> u64 {
        self.error_log.get().map_or(0, LogHandle::dropped)
    }

    /// The cells of the named pool. Pools keep them, so that requests need no lookup.
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

    /// Hides all other pools from now on. Their counts are kept in case they return.
    pub fn keep_pools(&self, is_there: impl Fn(&str) -> bool) {
        for pool in self.pools.read().iter() {
            pool.is_gone.store(!is_there(&pool.name), Relaxed);
        }
    }

    /// Durations of all requests.
    pub fn durations(&self) -> HistogramSnapshot {
        let mut all = HistogramSnapshot::default();
        self.requests.all().iter().for_each(|route| all.add(&route.durations()));
        all
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
