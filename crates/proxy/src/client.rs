//! One I/O thread's client for the servers of all proxies: sends a request, retries on another server if the first one
//! fails, and converts the response.

use crate::connect::connect;
use crate::fault::{Fault, FaultKind, in_words};
use crate::group::{Group, Rotation, Server, ServerSlot};
use crate::handshake::Handshake;
use crate::idle::Idle;
use crate::link::Link;
use crate::request::{self, Outgoing};
use crate::response::{self, ProgressTimeout, ResponseGuard, Streamed};
use crate::tunnel::Tunnel;
use bytes::Bytes;
use howdah_budget::Charge;
use howdah_config::{ProxyHost, may_switch_to};
use howdah_protocol::{Body, Informational, Offer, Outbound, RequestBody, Response, hop_by_hop};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode, Uri, Version};
use hyper::body::{Body as _, Incoming};
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Maximum number of retries of a request on other servers.
const RETRIES: usize = 2;

/// A client for the servers of all proxies.
#[derive(Debug)]
pub struct Client {
    proxies: Vec<ProxyState>,
}

/// State for one proxy's servers.
#[derive(Debug)]
struct ProxyState {
    group: Arc<Group>,
    turn: Mutex<Rotation>,
    idle: Vec<Arc<Idle>>,
}

impl Client {
    /// Creates the client of one I/O thread; `groups` in the order of the settings.
    pub fn new(groups: &[Arc<Group>]) -> Self {
        let proxy = |group: &Arc<Group>| ProxyState {
            group: group.clone(),
            turn: Mutex::default(),
            idle: group.servers.iter().map(|_| Arc::default()).collect(),
        };
        Self { proxies: groups.iter().map(proxy).collect() }
    }

    /// Sends a request to a server of the proxy with this position in the settings.
    ///
    /// # Errors
    /// No server responded; the fault has the reason and the last server tried.
    pub async fn send(&self, proxy: usize, outbound: Outbound) -> Result<Response, Fault> {
        let Some(proxy) = self.proxies.get(proxy) else {
            let why = format!("there is no proxy number {proxy}");
            return Err(Fault { kind: FaultKind::Connect, server: String::new(), why });
        };
        Exchange::new(proxy, outbound)?.run().await
    }
}

/// A request and the progress of its attempts.
struct Exchange<'a> {
    proxy: &'a ProxyState,
    uri: Uri,
    method: Method,
    headers: HeaderMap,
    upgrade: Option<HeaderValue>,
    /// The WebSocket handshake of this server, for a client whose protocol has none (HTTP/2 and 3).
    handshake: Option<Handshake>,
    full_duplex: bool,
    informational: Option<Informational>,
    charge: Charge,
    /// The body; `None` once it was passed to a connection.
    body: Option<Outgoing>,
    /// The request may be sent again even if a server may have processed it.
    repeatable: bool,
}

struct FailedAttempt {
    kind: FaultKind,
    why: String,
    /// The body, if nothing of the request was sent.
    unsent: Option<Outgoing>,
}

impl<'a> Exchange<'a> {
    fn new(proxy: &'a ProxyState, outbound: Outbound) -> Result<Self, Fault> {
        let Outbound { method, target, mut headers, body, upgrade, full_duplex, informational, charge } = outbound;
        let fault =
            |why: &str| Fault { kind: FaultKind::Body, server: proxy.group.name().to_owned(), why: why.to_owned() };
        headers.remove(header::EXPECT);
        request::frame(&mut headers, &body);
        let may_change = body.is_none() && method == Method::GET;
        let upgrade = upgrade.filter(|offer| may_change && may_switch_to(offer.protocol.as_bytes()));
        let mut handshake = None;
        if let Some(Offer { protocol, bare }) = &upgrade {
            headers.insert(header::UPGRADE, protocol.clone());
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            if *bare && protocol.as_bytes().eq_ignore_ascii_case(b"websocket") {
                let made = Handshake::new().inspect(|made| made.ask(&mut headers));
                handshake = Some(made.ok_or_else(|| fault("the system has no random bytes for its handshake"))?);
            }
        }
        let upgrade = upgrade.map(|offer| offer.protocol);
        // Methods that may be repeated (RFC 9110 9.2.2).
        let idempotent = matches!(method, Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE);
        let repeatable = idempotent && body.is_none();
        let uri = request::uri(&target).ok_or_else(|| fault("the request's target cannot be forwarded"))?;
        let body = Some(Outgoing::new(body));
        Ok(Self {
            proxy,
            uri,
            method,
            headers,
            upgrade,
            handshake,
            full_duplex,
            informational,
            charge,
            body,
            repeatable,
        })
    }

    async fn run(mut self) -> Result<Response, Fault> {
        let (proxy, settings) = (self.proxy, &self.proxy.group.settings);
        let (mut tried, mut last) = (Vec::new(), None);
        while tried.len() <= RETRIES {
            let Some(at) = proxy.group.choose(&mut proxy.turn.lock(), &tried) else { break };
            tried.push(at);
            let server = &proxy.group.servers[at];
            let fault = |kind, why| Fault { kind, server: server.label.clone(), why };
            let Some(place) = server.place(settings.connect_timeout).await else {
                last = Some(fault(FaultKind::Busy, "it has `max_connections` requests already".to_owned()));
                continue;
            };
            match self.attempt(server, &proxy.idle[at], place).await {
                Ok(response) => return Ok(response),
                Err(failed) => {
                    if failed.kind != FaultKind::Body {
                        proxy.group.failed(server, failed.kind, &failed.why);
                    }
                    let again = self.may_repeat(&failed);
                    last = Some(fault(failed.kind, failed.why));
                    if !again {
                        break;
                    }
                }
            }
        }
        Err(last.unwrap_or_else(|| Fault {
            kind: FaultKind::Connect,
            server: proxy.group.name().to_owned(),
            why: "it has no servers".to_owned(),
        }))
    }

    /// `true` if the request may be sent again after this failure.
    fn may_repeat(&mut self, failed: &FailedAttempt) -> bool {
        if self.body.is_some() {
            return true;
        }
        if self.repeatable && failed.kind == FaultKind::Broken {
            self.body = Some(Outgoing::new(RequestBody::none()));
            return true;
        }
        false
    }

    /// Tries one server: over an idle connection if there is one, and over a new one if the idle one turns out to be
    /// closed.
    async fn attempt(
        &mut self,
        server: &Arc<Server>,
        idle: &Arc<Idle>,
        place: ServerSlot,
    ) -> Result<Response, FailedAttempt> {
        let group = &self.proxy.group;
        let mut place = Some(place);
        loop {
            let (link, fresh) = match idle.take(!self.repeatable) {
                Some(link) => (link, false),
                None => match connect(group, server).await {
                    Ok(link) => (link, true),
                    Err(why) => return Err(FailedAttempt { kind: FaultKind::Connect, why, unsent: None }),
                },
            };
            let Some(body) = self.body.take() else {
                return Err(FailedAttempt {
                    kind: FaultKind::Broken,
                    why: "its body was already sent".to_owned(),
                    unsent: None,
                });
            };
            let request = self.message(server, body);
            server.metrics.requests.inc();
            match exchange(link, request, group.settings.response_timeout, self.full_duplex).await {
                Ok((link, response)) => {
                    group.worked(server);
                    let Some(place) = place.take() else {
                        return Err(FailedAttempt {
                            kind: FaultKind::Broken,
                            why: "its request slot is gone".to_owned(),
                            unsent: None,
                        });
                    };
                    let held = ResponseGuard { link, place, group: group.clone(), idle: idle.clone() };
                    return self.respond(response, held);
                }
                Err(failed) => {
                    self.body = failed.unsent;
                    let failed = FailedAttempt { unsent: None, ..failed };
                    // The server closed the idle connection meanwhile, which is not a failure.
                    let stale = !fresh && failed.kind == FaultKind::Broken && self.may_repeat(&failed);
                    if !stale {
                        return Err(failed);
                    }
                }
            }
        }
    }

    fn message(&mut self, server: &Server, body: Outgoing) -> http::Request<Outgoing> {
        let mut request = http::Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = Version::HTTP_11;
        // A request may go out several times.
        *request.headers_mut() = self.headers.clone();
        let own = self.proxy.group.settings.host == ProxyHost::Upstream;
        if own || !request.headers().contains_key(header::HOST) {
            request.headers_mut().insert(header::HOST, server.authority.clone());
        }
        if let Some(way_back) = &self.informational {
            let way_back = way_back.clone();
            hyper::ext::on_informational(&mut request, move |response| {
                let field = |(name, value): (&http::HeaderName, &HeaderValue)| {
                    (Bytes::copy_from_slice(name.as_str().as_bytes()), Bytes::copy_from_slice(value.as_bytes()))
                };
                // `100 Continue` concerns only this hop.
                if response.status() != StatusCode::CONTINUE {
                    let fields: Vec<_> = response.headers().iter().map(field).collect();
                    let _ = way_back.send(response.status().as_u16(), &fields);
                }
            });
        }
        request
    }

    fn respond(&self, response: http::Response<Incoming>, held: ResponseGuard) -> Result<Response, FailedAttempt> {
        let (mut parts, incoming) = response.into_parts();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            return self.change(parts.headers, held);
        }
        response::fields(&mut parts.headers).map_err(broken)?;
        let reason = response::reason(&parts.extensions);
        let mut response = Response::new(Body::empty());
        *response.status_mut() = parts.status;
        *response.headers_mut() = parts.headers;
        if let Some(reason) = reason {
            response.extensions_mut().insert(reason);
        }
        if incoming.is_end_stream() {
            drop(incoming);
            held.give_back();
        } else {
            let charge = self.charge.beside(self.charge.budget());
            *response.body_mut() = Body::stream(Box::new(Streamed::new(incoming, held, charge)));
        }
        Ok(response)
    }

    /// Upgrades the connection after a 101.
    fn change(&self, mut headers: HeaderMap, held: ResponseGuard) -> Result<Response, FailedAttempt> {
        let named = headers.get(header::UPGRADE).cloned();
        let Some(named) = named.filter(|named| {
            let asked = self.upgrade.as_ref().map(|asked| asked.as_bytes().trim_ascii());
            asked.is_some_and(|asked| asked.eq_ignore_ascii_case(named.as_bytes().trim_ascii()))
        }) else {
            return Err(broken("it switches to a protocol that was not requested"));
        };
        if self.handshake.as_ref().is_some_and(|handshake| !handshake.is_accepted(&mut headers)) {
            return Err(broken("its response does not match the WebSocket handshake"));
        }
        hop_by_hop::strip(&mut headers);
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(header::UPGRADE, named);
        let charge = self.charge.beside(self.charge.budget());
        let mut response = Response::new(Body::upgrade(Box::new(Tunnel::new(held, charge))));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

fn broken(why: &str) -> FailedAttempt {
    FailedAttempt { kind: FaultKind::Broken, why: why.to_owned(), unsent: None }
}

/// Sends a request over a connection and waits up to `most` for the response's head.
async fn exchange(
    mut link: Link,
    request: http::Request<Outgoing>,
    most: Duration,
    full_duplex: bool,
) -> Result<(Link, http::Response<Incoming>), FailedAttempt> {
    let progress = request.body().progress();
    let mut timeout = ProgressTimeout::new(most);
    let mut parts = 0;
    let mut responding = pin!(link.send.try_send_request(request));
    let outcome = std::future::poll_fn(|cx| {
        if let Poll::Ready(outcome) = responding.as_mut().poll(cx) {
            return Poll::Ready(Some(outcome));
        }
        let ended = link.work(cx);
        if let Poll::Ready(outcome) = responding.as_mut().poll(cx) {
            return Poll::Ready(Some(outcome));
        }
        if ended {
            return Poll::Ready(None);
        }
        // The timeout restarts while the client is slow or the body makes progress.
        if progress.is_starved() || progress.parts() != parts {
            parts = progress.parts();
            timeout.moved();
        }
        timeout.poll_over(cx).map(|()| None)
    })
    .await;
    let failed = |kind, why: String, unsent| Err(FailedAttempt { kind, why, unsent });
    match outcome {
        Some(Ok(response)) => {
            if !full_duplex && !progress.is_complete() {
                progress.set_over();
            }
            Ok((link, response))
        }
        Some(Err(_)) if progress.is_broken() => {
            failed(FaultKind::Body, "the client's body ended early".to_owned(), None)
        }
        Some(Err(mut error)) => {
            let unsent = error.take_message().map(http::Request::into_body);
            failed(FaultKind::Broken, format!("no response: {}", in_words(&error.into_error())), unsent)
        }
        None if timeout.is_over() => {
            failed(FaultKind::Timeout, format!("no response within {most:?} (`response_timeout`)"), None)
        }
        None => failed(FaultKind::Broken, "no response: the connection ended".to_owned(), None),
    }
}
