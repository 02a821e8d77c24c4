//! The way to other HTTP servers: a request goes in, the response comes out, or a connection that speaks another protocol.
//!
//! Reading order: `client` (one request, with its attempts), `group` (which server gets it), `addresses`, `connect` and `transport`
//! (how it is reached, `tls`), `link` (one connection, with hyper), `idle` (those that wait for their next request), `request` and
//! `response` (bodies and fields, both ways), `tunnel` (upgraded connections, `handshake`), `health` (servers that are asked how they are).
//!
//! **No task of its own stands between a client and its server.** A request's connection to the server is polled by the client's
//! task: what the client does not take is not read, what the server does not take is not asked for, and when the client is gone
//! the connection to the server goes with it. hyper is built for that too: its connection is a future like any other.
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
