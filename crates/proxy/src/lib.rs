//! Requests to other HTTP servers: the result is a response, or an upgraded connection.
//!
//! Reading order: `client` (one request, with its attempts), `group` (choice of the server), `addresses`, `connect` and
//! `transport` (the connection, `tls`), `link` (one connection, with hyper), `idle` (idle connections), `request` and
//! `response` (bodies and fields, both ways), `tunnel` (upgraded connections, `handshake`), `health` (health checks).
//!
//! **No separate task is between a client and its server.** A request's connection to the server is polled by the
//! client's task: what the client does not take is not read, what the server does not take is not asked for, and when
//! the client is gone the connection to the server goes with it. hyper is built for that too: its connection is a
//! future like any other.
#![forbid(unsafe_code)]

mod addresses;
mod client;
mod connect;
mod fault;
mod group;
mod handshake;
pub mod health;
mod idle;
mod link;
mod request;
mod response;
mod tls;
mod transport;
mod tunnel;

pub use client::Client;
pub use fault::{Fault, FaultKind};
pub use group::Group;
