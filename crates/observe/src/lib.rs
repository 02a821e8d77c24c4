//! What Howdah says about itself: the error log, the access log and the metrics, with every metric's name in one
//! table. Reading order: `log`, `access_log`, `access_logs`, `slow_log`, `metrics` with `connection_pool` and `upstream`; `queue`
//! (lines that wait for their thread), `sink` (a file that can be reopened), `clock`, `escape` and `cell` (counters) serve them.
#![forbid(unsafe_code)]

pub mod access_log;
mod access_logs;
pub mod cell;
mod clock;
mod connection_pool;
pub mod escape;
mod exemplar;
pub mod log;
pub mod log_file;
pub mod metrics;
mod queue;
mod requests;
mod sink;
pub mod slow_log;
mod upstream;

pub use access_log::{AccessEntry, AccessLog};
pub use access_logs::AccessLogs;
pub use clock::log_time;
pub use connection_pool::ConnectionPool;
pub use metrics::{Metrics, PoolMetrics};
pub use requests::{Front, RequestMetrics};
pub use slow_log::{SlowEntry, SlowFrame, SlowLog, SlowLogs, SlowStack};
pub use upstream::{UpstreamMetrics, Upstreams};
