//! The waiting queue, the scheduler and the supervision of PHP workers. Knows no HTTP: fronts hand over a `Request` and get
//! a `Response`.
//!
//! `pool` is the door; `scheduler` decides which `lane` gets a request; `lane_reader` turns a lane's frames into
//! responses that wait in a `response_sink`; `supervisor` starts and replaces processes through a `zygote`; `deadline`
//! ends what runs too long; `worker_state` says what a worker may become. They meet in `shared`, behind the one lock.
//! docs/internals/pool.md has the order in which to read them.

mod about;
mod body_copy;
mod clock;
mod cold_starts;
pub mod config;
mod connection_pools;
mod deadline;
mod demotions;
mod descriptor;
mod door;
pub mod environment;
mod estimate;
mod event;
pub mod fault;
mod frame_order;
mod generation;
#[cfg(test)]
mod hostile_tests;
pub mod io_threads;
mod kept_file;
mod lane;
mod lane_handle;
mod lane_reader;
mod lane_requests;
mod last_request;
pub mod launcher;
pub mod launcher_process;
mod launcher_protocol;
mod learned;
mod log_limit;
#[cfg(test)]
mod multiplexed_tests;
mod orphans;
mod panics;
mod pending;
mod php_host;
mod php_trial;
mod pool;
#[cfg(test)]
mod pool_stage;
mod precedence;
mod process_end;
mod profile;
pub mod program;
mod quarantine;
mod query_text;
mod queue;
mod request;
mod rescue;
#[cfg(test)]
mod response_fuzz;
mod response_head;
mod response_parts;
mod response_sink;
#[cfg(feature = "stand-in")]
mod response_stand_in;
mod sandbox_report;
mod scheduler;
pub mod server_program;
mod shared;
mod shares;
mod slow_log;
mod status;
pub mod successor;
mod supervisor;
mod target;
mod time_limits;
mod warm_up;
mod waste;
mod watch;
mod worker_state;
mod zygote;

pub use body_copy::BodyCopy;
pub use config::{PoolConfig, RouteShare, SpareWorkers};
pub use demotions::{DemotedRoute, Demotions, SuspectedRoute, Verdict, Way};
pub use fault::{Fault, FaultKind, Side};
pub use howdah_transport::zygote_protocol::{Need, SandboxSpec};
pub use io_threads::IoThreads;
pub use last_request::RequestReport;
pub use orphans::adopt_orphans;
pub use php_host::php_host;
pub use php_trial::{Trial, try_php};
pub use pool::{Pool, prepare_pool, start_pool};
pub use profile::Profile;
pub use request::{Request, RequestBody, RequestId, RequestStats, TakesInterim};
pub use response_parts::{Chunk, WholeBody};
pub use response_sink::{Response, ResponseBody};
#[cfg(feature = "stand-in")]
pub use response_stand_in::ResponseWriter;
pub use sandbox_report::sandbox_report;
pub use status::{Durations, PoolStatus, WorkerStatus};
pub use target::may_be_asked_again;
pub use time_limits::{TimeLimits, processor_time};
pub use warm_up::EncodeWarmUp;
