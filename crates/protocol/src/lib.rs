//! The outer half of the front: bytes from sockets become requests, responses become bytes.
//!
//! `exchange` is the interface to the other half: a [`Handler`] gets a [`Request`] and returns a [`Response`]. The
//! handler sees no socket, and this crate knows nothing of PHP or sites, and of files only descriptors to send.
//!
//! Reading order, which is the path of a request: `listener` (bind, accept), `front` (threads), `io_thread` (one of
//! them: its connections and its clock), `connection_task` (detects a connection's protocol), `http1`, `http2`, `http3`
//! or `fastcgi`. These use `connection` (with `peer`, `state` and `informational`), `socket`, `out`, `body` with
//! `files` and `stream`, `messages`, `multiplexed`, `panics` and `rejection`.
//!
//! TLS is another kind of `socket` (`tls_socket`), after its `handshake`.
#![forbid(unsafe_code)]

pub mod body;
mod certificate_wanted;
pub mod connection;
mod connection_task;
pub mod exchange;
pub mod fastcgi;
pub mod files;
pub mod front;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod handshake;
pub mod hop_by_hop;
mod http1;
mod http2;
pub mod http3;
pub mod informational;
pub mod inherited;
pub mod io_thread;
pub mod listener;
pub mod listeners;
pub mod messages;
mod multiplexed;
mod out;
pub mod outbound;
pub mod panics;
pub mod params;
pub mod peer;
mod reads;
mod rejection;
mod serial_body;
mod socket;
pub mod state;
pub mod stream;
mod stream_sink;
pub mod target;
mod tls_socket;
pub mod unix_socket;
pub mod upgrade;
mod upgraded_connection;

pub use body::{Body, EndObserver, HeldBytes, Whole};
pub use connection::{Connection, Shared};
pub use exchange::{
    BodyError, BodySource, Handler, Head, Offer, Reason, Request, RequestBody, Response, StandardError,
};
pub use files::{FileBody, FileIdentity};
pub use howdah_tls::Session;
pub use informational::{Informational, SendResult};
pub use messages::Messages;
pub use outbound::Outbound;
pub use params::Params;
pub use peer::Peer;
pub use rejection::{Rejected, Rejection};
pub use stream::{Chunk, ChunkStream, Stream};
pub use target::Target;
pub use upgrade::{Upgrade, Upgraded};
