//! Lanes: shared memory between the server and one PHP worker each.
//!
//! A lane is one sealed memfd (`segment`) with a control page, a request ring (server → worker) and a response ring
//! (worker → server), both single producer, single consumer (`ring`). `wire` defines the data in them; `wake` wakes the
//! other side, with a system call only if it sleeps. `server_end` and `worker_end` are the two ends; `control_socket`
//! carries descriptors. One more page (`pool_page`) has the statistics of a worker's connection pools.
//!
//! Trust: the worker may be compromised and may die at any instruction. So the server keeps its own copy of every
//! cursor it owns, checks every cursor, length and kind that it reads from the segment, and copies data out before it
//! inspects it. Data that it does not inspect may stay in place (`held`). A lane shares nothing with another worker.
//!
//! **The server never does I/O that can block on a file description that it shares.** Flags such as `O_NONBLOCK` belong
//! to the open file description, so a process with a copy of the descriptor decides whether the server's next write
//! blocks. These are the descriptors that the server shares, and why none of them can block it:
//!
//! | descriptor | shared with | the server's use |
//! |---|---|---|
//! | control socket of a worker | none: each end is a separate description | `MSG_DONTWAIT` on every call |
//! | zygote's socket | none: likewise | `MSG_DONTWAIT` on every call |
//! | eventfd that wakes the server | zygote, worker | waits for edges in epoll; neither reads nor writes it |
//! | wake pipe of a worker in async mode | none: a pipe whose write end never leaves the server | writes, `O_NONBLOCK` |
//! | lane | zygote, worker | memory only; sealed, so that no page of it can vanish |
//! | pidfd | zygote | polls it in epoll, sends signals; neither can block |
//! | stream to a script that holds a WebSocket connection | none: each end is a separate description | reads and writes, `O_NONBLOCK` |
//! | a body's file | the worker that runs the request | nothing, once it was handed over |
//! | standard output and error of a zygote | none: the server has the read ends of pipes | reads, `O_NONBLOCK` |

pub mod awaited_bodies;
mod c_text;
mod clock;
pub mod connection_stream;
pub mod control_socket;
pub mod descendants;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod held;
pub mod listen_fds;
pub mod live_order;
#[cfg(test)]
mod model_tests;
pub mod php_stack;
mod pool_page;
pub mod privileges;
pub mod questions;
mod request_state;
mod ring;
mod segment;
pub mod server_end;
mod wake;
pub mod wire;
mod word;
pub mod worker_end;
pub mod worker_events;
pub mod worker_spec;
mod worker_texts;
pub mod zygote_protocol;

pub use awaited_bodies::Event;
pub use c_text::CText;
pub use clock::monotonic_us;
pub use held::HeldPayload;
pub use pool_page::PoolReport;
pub use segment::{Hole, LaneSizes};
pub use server_end::{BodyInLane, Broken, Frame, FrameReceiver, RequestSender, RequestSlot, SendError, create_lane};
pub use wake::new_wake_pipe;
pub use worker_end::WorkerEnd;
pub use worker_spec::{Mode, SandboxProfile, WorkerSpec};

/// State of open requests, by their number on the lane. The server chooses the numbers, so clients cannot cause hash
/// collisions.
pub type RequestMap<T> = rustc_hash::FxHashMap<u64, T>;

/// Creates a descriptor that a worker writes to in order to wake the server. The server only waits on it.
///
/// # Errors
/// The system's error when descriptors run out.
pub fn new_eventfd() -> std::io::Result<std::os::fd::OwnedFd> {
    use rustix::event::{EventfdFlags, eventfd};
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Requests a worker's PHP stack (`Message::Stack`). Linux never sends this signal and applications do not use it
/// (signal(7), SIGSTKFLT), so it does not collide with signal handlers of scripts.
pub const STACK_SIGNAL: rustix::process::Signal = rustix::process::Signal::STKFLT;
