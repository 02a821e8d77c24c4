//! Data that servers keep and share: values, locks and announcements, in a directory or a broker; rates and logs, in a
//! broker.
//!
//! Reading order: `storage` (the interface for certificates and accounts), `state_dir` (a directory), `address` and
//! `broker` (a server that several of ours use), `redis`, `nats`, `values` (what a broker stores) with `redis_values`
//! and `nats_values`, `lock` (a lock that expires), `log` (a log that all servers append to and deliver from) with
//! `outbox`, `redis_log` and `nats_log`.
#![forbid(unsafe_code)]

mod address;
mod backoff;
mod broker;
mod lock;
mod log;
mod log_shared;
mod nats;
mod nats_log;
mod nats_values;
mod outbox;
mod redis;
mod redis_log;
mod redis_values;
pub mod state_dir;
mod storage;
mod values;

pub use address::Address;
pub use broker::Broker;
pub use log::{Log, Received};
pub use state_dir::StateDir;
pub use storage::{Lock, Storage, Version};
