//! The waiting queue, the scheduler and the supervision of PHP workers. Knows no HTTP: fronts submit a `Request` and
//! get a `Response`.
//!
//! `pool` is the interface; `queue` decides which `lane` gets a request; `lane_reader` turns a lane's frames into
//! responses that wait in a sink of `response`; `supervisor` starts and replaces processes (`process`), ends requests
//! that run too long, and passes on what a pool has learned (`learning`) to its next generation. They share their state
//! in `shared`, under one lock. docs/internals/pool.md has a reading order.

pub mod config;
mod descriptor;
pub mod fault;
mod generation_status;
pub mod io_threads;
mod lane;
mod lane_reader;
mod learning;
mod panics;
mod pool;
pub mod process;
mod queue;
mod request;
mod response;
mod shared;
mod status;
mod supervisor;
#[cfg(test)]
mod tests;
mod watch;

pub use config::PoolConfig;
pub use fault::{Fault, FaultKind, Level};
pub use howdah_transport::live_order::{LiveField, LiveKind, LiveOrder, put_connection};
pub use howdah_transport::zygote_protocol::{Need, SandboxSpec};
pub use io_threads::IoThreads;
pub use learning::demotions::{DemotedRoute, Demotions, Placement, SuspectedRoute, Verdict};
pub use learning::target::may_be_asked_again;
pub use learning::warm_up::EncodeWarmUp;
pub use pool::{Pool, PoolParts, prepare_pool, start_pool};
pub use process::orphans::adopt_orphans;
pub use process::php_check::{PhpCheck, try_php};
pub use process::php_host::{php_host, print_php, sandbox_report};
pub use process::profile::Profile;
pub use request::last_request::RequestReport;
pub use request::time_limits::{TimeLimits, processor_time};
pub use request::{InterimSink, LiveSink, LogSink, Request, RequestBody, RequestId};
pub use response::body_copy::BodyCopy;
pub use response::parts::{Chunk, WholeBody};
#[cfg(feature = "stand-in")]
pub use response::prepared::ResponseWriter;
pub use response::sink::{Response, ResponseBody};
pub use response::stats::RequestStats;
pub use status::{Durations, PoolStatus, WorkerStatus};
