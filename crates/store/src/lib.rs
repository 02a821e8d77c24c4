//! Data that servers keep and share: values, locks and announcements, in a directory or a broker.
//!
//! Reading order: `storage` (the interface for certificates and accounts), `state_dir` (a directory), `address` and
//! `broker` (a server that several of ours use), `redis`, `lock` (a lock that expires).
#![forbid(unsafe_code)]

mod address;
mod broker;
mod lock;
mod redis;
pub mod state_dir;
mod storage;

pub use address::Address;
pub use broker::Broker;
pub use state_dir::StateDir;
pub use storage::{Lock, Storage, Version};
