//! Connections that change their protocol (RFC 9110 7.8): the upgrade that a response of status 101 carries instead of
//! a body, and its client.

use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite};

/// A client's connection after an upgrade. Reads first return the bytes that the client sent early.
pub trait Upgraded: AsyncRead + AsyncWrite + Send + Unpin {
    /// `true` if the server is shutting down, so the protocol should end. The task is woken when that changes.
    fn is_to_end(&self) -> bool;
}

/// An upgraded protocol: [`Body::upgrade`](crate::Body::upgrade). It may be dropped at any await point, for example if
/// the client does not read, or at the end of the server's grace time.
pub trait Upgrade: Send {
    /// Runs the protocol. The connection, or the stream in HTTP/2 and 3, ends when the future does.
    fn run(self: Box<Self>, client: Box<dyn Upgraded>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}
