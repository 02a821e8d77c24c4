//! The waiting queue, the scheduler and the supervision of PHP workers. Knows no HTTP: fronts hand over a `Call` and get
//! a `Reply`.
//!
//! `pool` is the door; `scheduler` decides which `lane` gets a call; `lane_reader` turns a lane's frames into answers that
//! wait in a `reply_sink`; `supervisor` starts and replaces processes through a `zygote`; `deadline` ends what runs too long;
//! `worker_state` says what a worker may become. They meet in `shared`, behind the one lock. docs/internals/pool.md has the
//! order in which to read them.

mod about;
#[cfg(test)]
mod answer_fuzz;
mod answer_head;
pub mod call;
mod calls;
mod clock;
pub mod config;
mod connection_pools;
mod deadline;
mod descriptor;
mod estimate;
mod event;
pub mod fault;
mod frame_order;
mod generation;
#[cfg(test)]
mod hostile_tests;
pub mod io_threads;
mod job;
mod lane;
mod lane_handle;
mod lane_reader;
pub mod launcher;
pub mod launcher_process;
mod launcher_protocol;
mod log_limit;
#[cfg(test)]
mod multiplexed_tests;
mod orphans;
mod panics;
mod pool;
#[cfg(test)]
mod pool_stage;
mod precedence;
mod process_end;
pub mod program;
mod quarantine;
mod queue;
mod reply_parts;
mod reply_sink;
#[cfg(feature = "stand-in")]
mod reply_stand_in;
mod rescue;
mod sandbox_report;
mod scheduler;
mod shared;
mod shares;
mod status;
mod supervisor;
mod warm_up;
mod waste;
mod watch;
mod whole_body;
mod worker_state;
mod zygote;

pub use call::{Call, CallStats, Chunk, Reply, RequestBody, RequestId, TakesInterim};
pub use config::{PoolConfig, RouteShare};
pub use fault::{Fault, FaultKind, Side};
pub use howdah_transport::zygote_protocol::{Need, SandboxSpec};
pub use io_threads::IoThreads;
pub use orphans::adopt_orphans;
pub use pool::{Pool, start_pool};
pub use reply_sink::ReplyBody;
#[cfg(feature = "stand-in")]
pub use reply_stand_in::ReplyWriter;
pub use sandbox_report::sandbox_report;
pub use status::{PoolStatus, WorkerStatus};
pub use whole_body::WholeBody;
