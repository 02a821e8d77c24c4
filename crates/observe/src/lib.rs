//! Observability: the error log, the access log and the metrics, with every metric's name in one table.
//!
//! Reading order: `log`, `access_log`, `access_logs`, `slow_log`, `metrics` with `connection_pool` and `upstream`. They
//! use `queue` (lines waiting for the writer thread), `log_throttle`, `record` (entries for log services),
//! `sink` (destinations), `clock`, `escape`, `cell` (counters) and `histogram` with `buckets`.
#![forbid(unsafe_code)]

pub mod access_log;
mod access_logs;
mod buckets;
pub mod cell;
mod clock;
mod connection_pool;
pub mod escape;
mod exemplar;
pub mod histogram;
pub mod log;
pub mod log_file;
mod log_throttle;
pub mod metrics;
mod queue;
mod record;
mod requests;
mod sink;
#[cfg(test)]
mod sink_tests;
mod slow_entry;
pub mod slow_log;
mod slow_log_fpm;
mod upstream;

pub use access_log::{AccessEntry, AccessLog, FpmEntry};
pub use access_logs::AccessLogs;
pub use buckets::BOUNDS_US;
pub use clock::{dashed_time, log_time};
pub use connection_pool::ConnectionPool;
pub use log_throttle::LogThrottle;
pub use metrics::{Metrics, PoolMetrics};
pub use requests::{Front, RequestMetrics};
pub use slow_log::{SlowEntry, SlowFrame, SlowLog, SlowLogs, SlowStack};
pub use upstream::{UpstreamMetrics, Upstreams};
