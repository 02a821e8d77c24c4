//! The metrics of a server: the cells behind the names of the table (`metrics/table.rs`), and the page that collectors read
//! (`metrics/render.rs` has its samples, `metrics/text.rs` writes them).

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
    /// There is no such pool any more.
    is_gone: AtomicBool,
    /// Requests that wait for a worker.
    pub queue_length: Gauge,
    /// Time that requests waited for a worker.
    pub queue_wait: Histogram,
    /// Wait of requests that found a pool on demand without a worker.
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
    /// Time that requests ran in PHP.
    pub php_time: Histogram,
    /// Processor time of its processes.
    pub processor_time: ProcessorTime,
    /// Snapshot mode: how long it took to put workers back.
    pub restores: Histogram,
    /// Responses that were compared with classic mode's, by what came of it.
    pub compared: Labelled,
    /// Routes that are run in classic mode instead.
    pub demoted_routes: Gauge,
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
    /// Processor time of this process.
    pub processor_time: ProcessorTime,
    /// By site and route.
    pub requests: Requests,
    /// Requests for hosts that no site is for.
    pub unknown_hosts: Counter,
    /// Requests refused before they were parsed, by reason.
    pub rejected: Labelled,
    pub connections_open: Gauge,
    pub connections_accepted: Counter,
    /// Connections closed for others.
    pub connections_displaced: Counter,
    /// Connections that have changed to another protocol.
    pub connections_upgraded: Gauge,
    /// Messages of WebSocket connections that the server holds itself.
    pub websocket_received: Counter,
    pub websocket_sent: Counter,
    /// Subscribers of Mercure hubs, and updates that were published there.
    pub mercure_subscribers: Gauge,
    pub mercure_updates: Counter,
    /// Handshakes of TLS that succeeded, those that resumed a session among them.
    pub tls_handshakes: Counter,
    pub tls_resumed: Counter,
    pub tls_handshakes_failed: Counter,
    budgets: OnceLock<Budgets>,
    error_log: OnceLock<LogHandle>,
    /// Bodies whose compressed form was taken from the cache.
    pub compression_cache_hits: Counter,
    /// Bodies that were not found in the cache.
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

/// State of the certificates that the server obtained or created.
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

    /// Budgets for everything that waits, once they are known.
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

    /// Durations of all requests.
    #[must_use]
    pub fn durations(&self) -> HistogramSnapshot {
        let mut all = HistogramSnapshot::default();
        self.requests.all().iter().for_each(|route| all.add(&route.durations()));
        all
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
