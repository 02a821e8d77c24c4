//! The Pusher protocol (version 7), without I/O.
//!
//! Reading order: `app` (signatures), `channel` (names, kinds and topics), `message` (from and to clients), `api` (the
//! HTTP API for application servers).
#![forbid(unsafe_code)]

pub mod api;
mod app;
pub mod channel;
pub mod message;

pub use app::{App, AppError, AuthError};
