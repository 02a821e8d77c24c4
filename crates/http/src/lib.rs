//! The HTTP front: sockets in, answers out.
//!
//! Reading order, which is the path of a request: `listener` (bind), `front` (threads), `shard` (one I/O thread),
//! `conn` (one connection: transport, protocol, timeouts), `service` (the phases in order), `phase/*` (one file per
//! phase). What leaves for PHP goes through `upstream`.
#![deny(unsafe_code)]

pub mod body;
pub mod compress;
pub mod conn;
mod contain;
mod entity_tags;
pub mod exchange;
pub mod forwarded;
pub mod front;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod listener;
pub mod phase;
pub mod received;
pub mod refusal;
pub mod request_id;
mod sendfile;
pub mod service;
pub mod shard;
pub mod site;
pub mod unix_socket;
pub mod upstream;
