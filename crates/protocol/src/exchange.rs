//! The one interface between the two halves of the front.
//!
//! A connection parses a [`Request`] and passes it to its [`Handler`], which returns a [`Response`]. All protocols use
//! the same interface. Both sides keep to these rules:
//!
//! - **The request's body is pulled.** Until the handler asks for a part, no `100 Continue` is sent, and HTTP/2 and 3
//!   buffer at most a window. A handler may respond before it has read the whole body: the connection then drops what
//!   has arrived. If more is to come, it closes after the response; in HTTP/2 and 3 only the stream ends.
//!   `Connection: close` in a response closes HTTP/1 and FastCGI connections.
//! - **The handler's future is dropped when the connection notices that the client is gone**, at any await point. While
//!   a part of the body or a pipelined request is unread, HTTP/1 notices it only when the handler reads or the response
//!   is written. In HTTP/1, a client that has only closed its sending side is not gone.
//! - **Informational responses (1xx) may be sent from any thread** while the future runs, through
//!   [`Request::informational`]. Later ones are dropped.
//! - **The response's body is pulled as well**, as fast as the client reads it. Plain HTTP/1 sends files of more than
//!   16 KiB by `sendfile`, and as much held memory without a copy as the socket takes at once.
//! - **A response of status 101 carries an [`Upgrade`](crate::Upgrade)** instead of a body, which then uses the
//!   connection, or in HTTP/2 and 3 the request's stream. [`Head::asks_to_upgrade`] finds the requests that allow that.
//! - **The response's end is reported** to the [`EndObserver`] that its body carries: the number of body bytes handed
//!   over, and `true` if the body was complete.
//! - **A panic in a part of the response's body cuts that response.** A panic in the handler's own future would end the
//!   connection, or in HTTP/2 and 3 the stream, so a handler that may panic contains it (`panics`).
//!
//! The handler decides on status, fields and body. The connection controls the fields about itself: `Content-Length`
//! (of a body whose length is known), `Transfer-Encoding`, `Connection`. In HTTP it also adds `Date`, and enforces the
//! `Content-Length` of a stream: excess is not sent, and a body that is too short is cut off so that it does not look
//! complete.

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

pub use crate::body::EndObserver;

/// Responds to requests. Each I/O thread has one handler for all its connections.
pub trait Handler: Send + Sync + 'static {
    /// Responds to a request.
    fn handle(&self, request: Request) -> impl Future<Output = Response> + Send;

    /// `true` if the peer is a trusted proxy, whose headers about its clients are believed. Called once per connection,
    /// and again when an HTTP/3 client's address changes. `None`: a Unix socket.
    fn trusts(&self, peer: Option<IpAddr>) -> bool;

    /// Called for each invalid, too large, too slow or too early request: it does not reach `handle`. Not called if
    /// `http.memory` has no room for its header.
    fn rejected(&self, _: &Rejected<'_>) {}
}

/// Maximum number of bytes of a request line that are reported.
const MAX_LINE: usize = 256;

/// Counts a refused request and reports it to the handler. `input` holds the bytes received of it, if they are known;
/// for invalid FastCGI variables, the reason.
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
    /// Its head. Boxed, as it is long and passes from the parser through the connection to the handler.
    pub head: Box<Head>,
    /// Its body.
    pub body: RequestBody,
    /// Sender of informational responses; `None` in HTTP/1.0 and FastCGI, and for an extended CONNECT in HTTP/3.
    pub informational: Option<Informational>,
    /// The CGI variables from the web server (FastCGI), from which `head` was made.
    pub variables: Option<Box<Params>>,
    /// Messages for the log of that web server.
    pub messages: Option<Arc<Messages>>,
    /// The connection it came over.
    pub connection: Arc<Connection>,
    /// Time at which its head was complete.
    pub received: Instant,
    /// The same moment as wall-clock time.
    pub time: SystemTime,
}

impl Request {
    /// A request that has just arrived, not through a web server.
    pub fn arrived(
        head: Box<Head>,
        body: RequestBody,
        informational: Option<Informational>,
        connection: Arc<Connection>,
    ) -> Self {
        let (received, time) = (Instant::now(), SystemTime::now());
        Self { head, body, informational, variables: None, messages: None, connection, received, time }
    }
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
    /// The fields. `Content-Length`, if present, is one valid number; in HTTP/2, several fields may repeat it.
    pub headers: HeaderMap,
}

impl Head {
    /// The protocols that the client offers to switch to. Requires HTTP/1.1 with `Upgrade` and `Connection: upgrade`
    /// (RFC 9110 7.8), or an extended CONNECT.
    pub fn asks_to_upgrade(&self) -> Option<Offer> {
        if self.is_extended_connect() {
            return self.headers.get(header::UPGRADE).map(|protocol| Offer { protocol: protocol.clone(), bare: true });
        }
        if self.version != Version::HTTP_11 {
            return None;
        }
        let mut words =
            self.headers.get_all(header::CONNECTION).iter().flat_map(|line| line.as_bytes().split(|&b| b == b','));
        let names_upgrade = words.any(|word| word.trim_ascii().eq_ignore_ascii_case(b"upgrade"));
        let mut offers = self.headers.get_all(header::UPGRADE).iter();
        match (offers.next(), offers.next()) {
            (Some(offer), None) if names_upgrade => Some(Offer { protocol: offer.clone(), bare: false }),
            _ => None,
        }
    }

    /// `true` for a CONNECT with `:protocol` (RFC 8441, RFC 9220). Handlers see a `GET` with the protocol in `Upgrade`,
    /// as in HTTP/1.1; clients cannot send that field over HTTP/2 and 3. A 2xx response to such a request means that
    /// the stream has switched protocols.
    pub fn is_extended_connect(&self) -> bool {
        self.version >= Version::HTTP_2 && self.headers.contains_key(header::UPGRADE)
    }
}

/// A client's offer to upgrade.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The protocols, as `Upgrade` has them.
    pub protocol: HeaderValue,
    /// The request has no further handshake fields: the upgraded protocol's implementation supplies the HTTP/1.1
    /// handshake.
    pub bare: bool,
}

/// A response. Its head may have a [`Reason`] among its extensions.
pub type Response = http::Response<Body>;

/// A reason phrase for HTTP/1 and FastCGI other than the usual one. Its only control characters are tabs.
#[derive(Debug, Clone)]
pub struct Reason(Bytes);

impl Reason {
    /// Checks a reason phrase; `None` if it contains invalid characters.
    pub fn new(words: &[u8]) -> Option<Self> {
        let fit = words.iter().all(|&b| b == b'\t' || b == b' ' || (b > b' ' && b != 0x7f));
        fit.then(|| Self(Bytes::copy_from_slice(words)))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Response extension: a message for the log of the web server in front. Sent if the protocol supports it (FastCGI).
#[derive(Debug, Clone)]
pub struct StandardError(pub Bytes);

/// Reason why a body could not be read to its end: the client disconnected or violated the protocol, or the response
/// has begun.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Source of a [`RequestBody`], implemented by each protocol.
pub trait BodySource: Send + std::fmt::Debug {
    /// The next part, which is never empty; `None` at the end. Trailers are read and dropped.
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>>;
}

/// A request's body, which is read in parts.
#[derive(Debug)]
pub struct RequestBody {
    source: Option<Box<dyn BodySource>>,
    announced: Option<u64>,
}

impl RequestBody {
    /// No body.
    pub const fn none() -> Self {
        Self { source: None, announced: Some(0) }
    }

    /// A body, and its length if that was announced.
    pub fn new(source: Box<dyn BodySource>, announced: Option<u64>) -> Self {
        Self { source: Some(source), announced }
    }

    /// Takes the body out, and leaves none.
    #[must_use]
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::none())
    }

    /// `true` if the request has no body. A body that turns out to be empty still counts as one.
    pub fn is_none(&self) -> bool {
        self.source.is_none()
    }

    /// The length that the head announced.
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
