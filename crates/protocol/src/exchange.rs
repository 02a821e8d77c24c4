//! The one interface between the two halves of the front.
//!
//! A connection makes a [`Request`] of what came in and gives it to its [`Handler`], which returns a [`Response`]. That
//! is all; all protocols look the same from here. Both sides keep to these rules:
//!
//! - **The request's body is pulled.** Nothing of it is read (and no `100 Continue` is sent) before the handler asks for a
//!   part. A handler that has read none or some of it may respond all the same: the connection reads what is there, or ends
//!   after the response if that is more than it likes to read. `Connection: close` in a response ends it in any case.
//! - **The handler's future is dropped when the client is gone**, at whatever point it waits. A client that has only closed its
//!   side for writing is not gone.
//! - **Informational responses (1xx) may be sent from any thread** while the future runs, through [`Request::informational`];
//!   what comes later is dropped, so none of them can get behind the response's head or into another response.
//! - **The response's body is pulled as well**, as fast as the client takes it. Each kind of body goes out the cheapest way that
//!   the connection has: files by `sendfile`, memory held elsewhere directly from there.
//! - **A response of status 101 carries an [`Upgrade`](crate::Upgrade)** instead of a body, which then talks over the
//!   connection, or in HTTP/2 over the request's stream; see [`Head::asks_to_upgrade`] for who may get one.
//! - **The response's end is reported** to the [`Ending`] that its body carries: how many bytes of body have been
//!   handed over, and whether these were all.
//! - **A panic in a part of the response's body cuts that response.** A panic in the handler's own future would end the
//!   connection, so a handler that may panic contains it (`panics`).
//!
//! The handler decides on status, fields and body. The connection adds `Date`, and decides on everything about itself:
//! `Content-Length` (of a body whose length is known), `Transfer-Encoding`, `Connection`. A stream with a
//! `Content-Length` is held to it: excess is not sent, and if something is missing the response does not look complete.

use crate::body::Body;
use crate::connection::Connection;
use crate::informational::Informational;
use crate::messages::Messages;
use crate::params::Params;
use crate::rejection::{Rejected, Rejection};
use crate::target::Target;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime};

pub use crate::body::Ending;

/// Responds to requests. One of them serves all connections of an I/O thread.
pub trait Handler: Send + Sync + 'static {
    /// Responds to a request.
    fn handle(&self, request: Request) -> impl Future<Output = Response> + Send;

    /// `true` if this peer's statements about others (a proxy's, about its clients) are trusted; asked once for each
    /// connection. `None`: a Unix socket.
    fn trusts(&self, peer: Option<IpAddr>) -> bool;

    /// Called for each request that the connection refuses because it is none.
    fn rejected(&self, _: &Rejected<'_>) {}
}

/// Maximum number of bytes of a request line that are reported.
const MAX_LINE: usize = 256;

/// Counts a request that is refused, and reports it to the handler. `input` is what has come in of it.
pub(crate) fn report_rejected(
    handler: &impl Handler,
    connection: &Connection,
    rejection: Rejection,
    status: StatusCode,
    input: &[u8],
) {
    connection.shared.metrics.rejected.inc(rejection.label());
    let line = input.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = &line[..line.len().min(MAX_LINE)];
    handler.rejected(&Rejected { connection, rejection, status, line });
}

/// A request, complete but for its body.
#[derive(Debug)]
pub struct Request {
    /// Its head.
    pub head: Head,
    /// Its body.
    pub body: RequestBody,
    /// The way back for informational responses; `None` in a protocol that has none (HTTP/1.0).
    pub informational: Option<Informational>,
    /// The variables that a web server has made of the request (FastCGI). Its head is made of these.
    pub variables: Option<Box<Params>>,
    /// Messages for the log of that web server.
    pub messages: Option<Arc<Messages>>,
    /// The connection it came over.
    pub connection: Arc<Connection>,
    /// When its head was complete.
    pub received: Instant,
    /// The arrival, as a time of day.
    pub time: SystemTime,
}

/// A request's head.
#[derive(Debug, Clone)]
pub struct Head {
    /// The method.
    pub method: Method,
    /// The requested target, as the client spelled it.
    pub target: Target,
    /// The protocol's version.
    pub version: Version,
    /// The fields. `Content-Length` is one valid number, if it is there.
    pub headers: HeaderMap,
}

impl Head {
    /// The protocols that the client offers to change to, if it may: HTTP/1.1 with both fields that say so (RFC 9110 7.8), or
    /// an extended CONNECT.
    #[must_use]
    pub fn asks_to_upgrade(&self) -> Option<Offer> {
        if self.is_extended_connect() {
            return self.headers.get(header::UPGRADE).map(|protocol| Offer { protocol: protocol.clone(), bare: true });
        }
        if self.version != Version::HTTP_11 {
            return None;
        }
        let mut words =
            self.headers.get_all(header::CONNECTION).iter().flat_map(|line| line.as_bytes().split(|&b| b == b','));
        let said = words.any(|word| word.trim_ascii().eq_ignore_ascii_case(b"upgrade"));
        let mut offers = self.headers.get_all(header::UPGRADE).iter();
        match (offers.next(), offers.next()) {
            (Some(offer), None) if said => Some(Offer { protocol: offer.clone(), bare: false }),
            _ => None,
        }
    }

    /// `true` if it came as CONNECT with `:protocol` (RFC 8441). Handlers see the `GET` that it would be over HTTP/1.1,
    /// with its protocol in `Upgrade`: no client can send that field over HTTP/2, where it makes a request malformed.
    /// But a response with a status of 2xx would mean that the stream speaks that protocol now.
    #[must_use]
    pub fn is_extended_connect(&self) -> bool {
        self.version == Version::HTTP_2 && self.headers.contains_key(header::UPGRADE)
    }
}

/// A client's offer to upgrade.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The protocols, as `Upgrade` has them.
    pub protocol: HeaderValue,
    /// The client has said no more than that: HTTP/1.1's part of the protocol's handshake is up to its implementation.
    pub bare: bool,
}

/// A response. Its head may have a [`Reason`] among its extensions.
pub type Response = http::Response<Body>;

/// The words behind a status in HTTP/1, where they are others than the usual ones. Has no control characters.
#[derive(Debug, Clone)]
pub struct Reason(Bytes);

impl Reason {
    /// These words, if they can stand there.
    #[must_use]
    pub fn new(words: &[u8]) -> Option<Self> {
        let fit = words.iter().all(|&b| b == b'\t' || b == b' ' || (b > b' ' && b != 0x7f));
        fit.then(|| Self(Bytes::copy_from_slice(words)))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A message for the log of the web server in front, among the extensions of a response; sent where the protocol has a
/// place for it (FastCGI).
#[derive(Debug, Clone)]
pub struct StandardError(pub Bytes);

/// Why a body could not be read to its end: the client broke off, or broke the protocol's rules.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Where a request's body comes from: what a protocol's driver puts behind a [`RequestBody`].
pub trait BodySource: Send + std::fmt::Debug {
    /// The next part, which is never empty; `None` at the end. Trailers are read and dropped.
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>>;
}

/// A request's body on its way in.
#[derive(Debug)]
pub struct RequestBody {
    source: Option<Box<dyn BodySource>>,
    announced: Option<u64>,
}

impl RequestBody {
    /// No body.
    #[must_use]
    pub const fn none() -> Self {
        Self { source: None, announced: Some(0) }
    }

    /// A body, and its length if that was announced.
    #[must_use]
    pub fn new(source: Box<dyn BodySource>, announced: Option<u64>) -> Self {
        Self { source: Some(source), announced }
    }

    /// Takes the body out, and leaves none.
    #[must_use]
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::none())
    }

    /// True if there is no body at all. One that turns out to have no byte is a body.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.source.is_none()
    }

    /// The length that the head announced.
    #[must_use]
    pub fn announced(&self) -> Option<u64> {
        self.announced
    }

    /// The next part, which is never empty; `None` at the end.
    pub fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        match &mut self.source {
            Some(source) => source.poll_part(cx),
            None => Poll::Ready(None),
        }
    }
}
