//! The waiting queue, the scheduler and the supervision of PHP workers. Knows no HTTP: fronts hand over a `Call` and get
//! a `Reply`.

pub mod call;
pub mod fault;
mod reply_sink;

pub use call::{Call, CallStats, Chunk, Reply, ReplyBody, RequestBody, RequestId};
pub use fault::{Fault, FaultKind, Side};
