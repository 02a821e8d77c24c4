//! Requests that the server makes itself. They run through the same phases as all others, which check their
//! [`Purpose`] where they differ. To add a new kind, add a variant there.

pub use crate::event_request::Purpose;
use crate::event_request::{EventRequest, Outcome, SocketEvent, connection, host_of, peer};
use crate::exchange::{Changes, Exchange};
use crate::service::Service;
use crate::site::Site;
use crate::sites::{Found, Sites};
use crate::upstream::Upstream;
use bytes::Bytes;
use howdah_pool::RequestId;
use howdah_protocol::{BodyError, BodySource, Head, Peer, Request, RequestBody, Response, Target};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use std::task::{Context, Poll};

/// A GET like that of a client on this machine, to the first address that does not redirect to HTTPS.
#[derive(Debug, Clone, Copy)]
pub struct ServerRequest<'a> {
    pub purpose: Purpose,
    pub site: &'a Site,
    /// Value of `Host`; `None` for a host of the site.
    pub host: Option<&'a str>,
    /// Path and query, such as `/products?page=2`.
    pub target: &'a str,
}

impl<'a> ServerRequest<'a> {
    /// A request for `host/path`, or for `/path` of the first site.
    ///
    /// # Errors
    /// No site has the host.
    pub fn for_address(sites: &'a Sites, purpose: Purpose, address: &'a str) -> Result<Self, String> {
        let (host, target) = address.split_at(address.find('/').unwrap_or(0));
        if host.is_empty() {
            return Ok(Self { purpose, site: &sites.all()[0], host: None, target });
        }
        match sites.find(Some(host.as_bytes())) {
            Found::Site(site) => Ok(Self { purpose, site, host: Some(host), target }),
            Found::NoSite(_) => Err("no site has this host".to_owned()),
        }
    }

    /// The exchange of this request.
    ///
    /// # Errors
    /// The target or the host cannot be part of a request.
    pub(crate) fn begin(&self, sites: &Sites) -> Result<Box<Exchange>, String> {
        let target = Target::parse(Bytes::copy_from_slice(self.target.as_bytes()))
            .map_err(|_| "it is not a path: write %20 for a space".to_owned())?;
        let host = self.host.map_or_else(|| host_of(&self.site.settings), str::to_owned);
        let headers = HeaderMap::from_iter([
            (header::HOST, HeaderValue::from_str(&host).map_err(|error| error.to_string())?),
            (header::USER_AGENT, HeaderValue::from_static(self.purpose.agent())),
            (header::ACCEPT, HeaderValue::from_static("*/*")),
        ]);
        let head = Head { method: Method::GET, target, version: Version::HTTP_11, headers };
        Ok(begin(sites, self.purpose, head, peer(&sites.server.settings)))
    }
}

/// Begins an exchange for a request with this head, as if it had come from `peer`.
pub(crate) fn begin(sites: &Sites, purpose: Purpose, head: Head, peer: Peer) -> Box<Exchange> {
    let server = &sites.server;
    let connection = connection(&server.settings, server.budgets, &server.metrics, peer);
    let (mut exchange, _) =
        Exchange::begin(sites, Request::arrived(Box::new(head), RequestBody::none(), None, connection));
    exchange.purpose = Some(purpose);
    if purpose == Purpose::WarmUp {
        // The request is not logged. Id 0 keeps its traces in the application apart from visitors', and recipes
        // recognize such requests by it.
        exchange.id = RequestId(0);
    }
    exchange
}

/// A body in memory.
#[derive(Debug)]
struct Complete(Bytes);

impl BodySource for Complete {
    fn poll_part(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let rest = std::mem::take(&mut self.0);
        Poll::Ready((!rest.is_empty()).then_some(Ok(rest)))
    }
}

impl<U: Upstream> Service<U> {
    /// Makes a request for an event, and returns its outcome when the response is complete.
    pub async fn event(&self, request: EventRequest) -> Outcome {
        let EventRequest { head, body, connection, variables, purpose, stream, opening } = request;
        let length = body.len() as u64;
        let body = if body.is_empty() {
            RequestBody::none()
        } else {
            RequestBody::new(Box::new(Complete(body)), Some(length))
        };
        let request = Request::arrived(Box::new(head), body, None, connection);
        let (mut exchange, body) = Exchange::begin(&self.sites, request);
        exchange.purpose = Some(purpose);
        if let Some(telemetry) = self.sites.server.telemetry() {
            // Not the handshake's `traceparent`: it is the parent of the handshake, not of later events.
            let is_open = purpose == Purpose::WebSocket(SocketEvent::Open);
            exchange.trace = Some(telemetry.begin_event(opening.as_ref(), is_open));
        }
        exchange.changes = Some(Box::new(Changes { variables, stream, ..Changes::default() }));
        let (head, body) = self.complete(exchange, body).await.into_parts();
        match body.discard().await {
            Ok(()) => (head.status, head.headers),
            Err(_) => (StatusCode::BAD_GATEWAY, head.headers),
        }
    }

    /// Makes a request of the server and returns the response as a client would get it.
    ///
    /// # Errors
    /// The request could not be made.
    pub async fn request(&self, request: &ServerRequest<'_>) -> Result<Response, String> {
        let exchange = request.begin(&self.sites)?;
        Ok(self.complete(exchange, RequestBody::none()).await)
    }
}
