//! Requests to other HTTP servers: the result is a response, or an upgraded connection.
//!
//! Reading order: `client` (one request, with its attempts), `group` (choice of the server), `addresses`, `connect` and
//! `transport` (the connection, `tls`), `link` (one connection, with hyper), `idle` (idle connections), `request` and
//! `response` (bodies and fields, both ways), `tunnel` (upgraded connections, `handshake`), `health` (health checks).
//!
//! **There is no separate task between a client and its server.** The client's task polls the connection to the server.
//! So data that the client does not read is not read from the server, the client's body is read only as fast as the
//! server takes it, and the server connection is dropped with the client. hyper supports this: its connection is a
//! plain future.
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
