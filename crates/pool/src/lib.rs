//! The waiting queue, the scheduler and the supervision of PHP workers. Knows no HTTP: fronts hand over a `Call` and get
//! a `Reply`.
//!
//! `pool` is the door; `scheduler` decides which `lane` gets a call; `lane_reader` turns a lane's frames into answers that
//! wait in a `reply_sink`; `supervisor` starts and replaces processes through a `zygote`; `deadline` ends what runs too long.

#[cfg(test)]
mod answer_fuzz;
mod answer_head;
pub mod call;
mod calls;
mod clock;
pub mod config;
mod connection_pools;
mod control;
mod deadline;
mod descriptor;
mod estimate;
pub mod fault;
mod frame_order;
mod generation;
#[cfg(test)]
mod hostile_tests;
mod lane;
mod lane_reader;
pub mod launcher;
pub mod launcher_process;
mod launcher_protocol;
mod log_limit;
mod orphans;
mod panics;
mod pool;
mod precedence;
mod process_end;
pub mod program;
mod quarantine;
mod queue;
mod reply_parts;
mod reply_sink;
mod rescue;
mod sandbox_report;
mod scheduler;
#[cfg(test)]
mod several_stage;
#[cfg(test)]
mod several_tests;
pub mod shard;
mod shares;
mod status;
mod supervisor;
mod warm_up;
mod waste;
mod watch;
mod whole_body;
mod zygote;

pub use call::{Call, CallStats, Chunk, Reply, ReplyBody, RequestBody, RequestId, TakesInterim};
pub use config::{PoolConfig, RouteShare};
pub use fault::{Fault, FaultKind, Side};
pub use howdah_transport::zygote_protocol::{Need, SandboxSpec};
pub use orphans::adopt_orphans;
pub use pool::Pool;
pub use sandbox_report::sandbox_report;
pub use shard::Shards;
pub use status::{PoolStatus, WorkerStatus};
pub use supervisor::start_pool;
pub use whole_body::WholeBody;
