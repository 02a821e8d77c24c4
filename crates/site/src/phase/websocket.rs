//! Responder "websocket": accepts upgrade requests for paths with a `websocket` rule. The server holds the connection.
//! The rule's script gets its events as requests, with the header fields of the handshake except those of the protocol
//! (`HANDSHAKE_HEADERS`), so it has the client's session. In async mode a script may take the connection (`held`).

mod held;

use crate::event_request::{EventRequest, Outcome, SocketEvent, StreamSlot};
use crate::exchange::{Exchange, Purpose};
use crate::explanation::ExplanationBuilder;
use crate::phase::rules::response::admits;
use crate::refusal::Refusal;
use crate::responder::{Context, Responder};
use crate::server::Server;
use crate::upstream::Upstream;
use bytes::Bytes;
use held::Held;
use howdah_observe::Front;
use howdah_protocol::{Body, Connection, Head, Offer, RequestBody, Response};
use howdah_telemetry::OpeningSpan;
use howdah_websocket::{
    Accepted, Event, Events, HandlerFuture, Link, Rejected, Session, negotiate, new_id, same_origin,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use std::sync::{Arc, Weak};

/// Opens WebSocket connections, and sends their events to the script.
pub(crate) struct WebSocket;

impl Responder for WebSocket {
    fn concerns(exchange: &Exchange) -> bool {
        exchange.ruled.as_ref().is_some_and(|ruled| ruled.outcome.websocket.is_some())
    }

    async fn respond<U: Upstream>(
        _: &Context<U>,
        exchange: &mut Exchange,
        _: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        let Some(ruled) = &mut exchange.ruled else { return Ok(None) };
        let Some(script) = &ruled.outcome.websocket else { return Ok(None) };
        if exchange.purpose.and_then(Purpose::socket_event).is_some() {
            ruled.outcome.path = Some(script.as_bytes().to_vec());
            return Ok(None);
        }
        let Some(offer) = exchange.head.asks_to_upgrade() else { return Ok(None) };
        let Some(negotiated) = negotiate(&exchange.head.method, &exchange.head.headers, &offer) else {
            return Ok(None);
        };
        exchange.count_by_rule();
        match negotiated {
            Ok(accepted) => {
                let response = Box::pin(open(exchange, accepted, &offer)).await?;
                exchange.front = Front::Php;
                Ok(Some(response))
            }
            Err(Rejected::Version) => Ok(Some(other_version())),
            Err(Rejected::Method) => Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED).allow("GET")),
            Err(Rejected::Key) => Err(Refusal::bad_request("no valid Sec-WebSocket-Key")),
        }
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        if let Some(script) = exchange.ruled.as_ref().and_then(|ruled| ruled.outcome.websocket.as_ref()) {
            explaining.notes.add("websocket", format!("the server holds the connection; {script} gets its events"));
        }
    }
}

/// Returns the response to an unsupported version, with the supported one.
fn other_version() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
    for (name, value) in [(header::SEC_WEBSOCKET_VERSION, "13"), (header::UPGRADE, "websocket")] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// `true` if the page's origin may open a connection.
fn may_connect(exchange: &Exchange) -> bool {
    let cors = exchange.ruled.as_ref().and_then(|ruled| ruled.outcome.cors.as_ref());
    let headers = &exchange.head.headers;
    same_origin(headers, exchange.host_text()) || cors.is_some_and(|cors| admits(cors, headers))
}

/// Sends the `open` event to the script, and opens the connection unless the script refuses.
async fn open(exchange: &Exchange, accepted: Accepted, offer: &Offer) -> Result<Response, Refusal> {
    if !may_connect(exchange) {
        return Err(Refusal::new(StatusCode::FORBIDDEN).because("an Origin that may not connect here"));
    }
    let (server, site) = (&exchange.site.server, &exchange.site);
    let id = new_id().ok_or(Refusal::new(StatusCode::SERVICE_UNAVAILABLE))?;
    let (name, hub) = (site.settings.name.as_str(), server.hubs().of(&site.settings.name));
    // The script may subscribe the connection to a channel from an earlier message on.
    server.hubs().ready(name).await;
    let opening = exchange.trace.as_ref().map(|trace| Box::new(trace.opening()));
    let script = Script { server: Arc::downgrade(server), origin: Origin::of(exchange), opening };
    let registered = server.websockets().open(id, name, &hub, exchange.connection.charge());
    let stream = StreamSlot::default();
    let (status, mut fields) =
        script.event(&registered.link, SocketEvent::Open, Bytes::new(), &[], Some(stream.clone())).await;
    if status.as_u16() >= 400 {
        return Err(Refusal::new(status));
    }
    let held = Held::of(&stream, exchange.connection.charge());
    let held = held.map_err(|_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE))?;
    let events: Box<dyn Events> = match held {
        Some(held) => Box::new(held),
        None => Box::new(script),
    };
    let session = Session::new(
        registered,
        events,
        accepted.deflate.is_some(),
        server.metrics.clone(),
        server.settings.grace,
        exchange.connection.charge(),
    );
    let chosen = fields.remove(header::SEC_WEBSOCKET_PROTOCOL).filter(|protocol| accepted.offers(protocol));
    let mut response = switched(accepted, offer, session);
    if let Some(chosen) = chosen {
        response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, chosen);
    }
    for cookie in fields.get_all(header::SET_COOKIE) {
        response.headers_mut().append(header::SET_COOKIE, cookie.clone());
    }
    Ok(response)
}

/// Returns the response that upgrades the connection to this session.
pub(crate) fn switched(accepted: Accepted, offer: &Offer, session: Session) -> Response {
    let mut response = Response::new(Body::upgrade(Box::new(session)));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    if !offer.bare {
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    }
    for (name, value) in [
        (header::SEC_WEBSOCKET_ACCEPT, accepted.accept),
        (
            header::SEC_WEBSOCKET_EXTENSIONS,
            accepted.deflate.map(|deflate| HeaderValue::from_static(deflate.response())),
        ),
    ] {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    response
}

/// Parts of the request that opened a connection, from which the requests for its events are made.
#[derive(Debug)]
struct Origin {
    version: Version,
    target: howdah_protocol::Target,
    /// A plain list, not a `HeaderMap`: connections are idle most of the time, and the map's index would waste memory.
    fields: Box<[(HeaderName, HeaderValue)]>,
    connection: Arc<Connection>,
}

/// Fields that belong to the handshake or to the client's HTTP connection.
const HANDSHAKE_HEADERS: &[HeaderName] = &[
    header::CONNECTION,
    header::UPGRADE,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::EXPECT,
    header::ACCEPT_ENCODING,
    header::SEC_WEBSOCKET_ACCEPT,
    header::SEC_WEBSOCKET_EXTENSIONS,
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_VERSION,
];

impl Origin {
    fn of(exchange: &Exchange) -> Self {
        let all = exchange.head.headers.iter().filter(|(name, _)| !HANDSHAKE_HEADERS.contains(name));
        Self {
            version: exchange.head.version,
            target: exchange.head.target.clone(),
            fields: all.map(|(name, value)| (name.clone(), value.clone())).collect(),
            connection: exchange.connection.clone(),
        }
    }

    /// Returns the head of a request for an event.
    fn head(&self) -> Head {
        let mut headers = HeaderMap::with_capacity(self.fields.len());
        for (name, value) in &self.fields {
            headers.append(name, value.clone());
        }
        Head { method: Method::POST, target: self.target.clone(), version: self.version, headers }
    }
}

/// Handles events by making requests for the script.
#[derive(Debug)]
struct Script {
    /// The `Server` on which the connection began. Its `RequestMaker` uses the sites that are current after a reload.
    server: Weak<Server>,
    origin: Origin,
    /// The span of the handshake, for the traces of its events.
    opening: Option<Box<OpeningSpan>>,
}

impl Script {
    fn event(
        &self,
        link: &Link,
        event: SocketEvent,
        body: Bytes,
        more: &[(&str, &[u8])],
        stream: Option<StreamSlot>,
    ) -> impl Future<Output = Outcome> + Send + 'static {
        let mut variables: Vec<(Arc<str>, Arc<[u8]>)> = vec![
            ("HOWDAH_WEBSOCKET_EVENT".into(), event.name().as_bytes().into()),
            ("HOWDAH_WEBSOCKET_ID".into(), link.id().as_bytes().into()),
        ];
        let state = link.state();
        if !state.is_empty() {
            variables.push(("HOWDAH_WEBSOCKET_STATE".into(), (&*state).into()));
        }
        variables.extend(more.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        let (head, connection) = (self.origin.head(), self.origin.connection.clone());
        let (purpose, opening) = (Purpose::WebSocket(event), self.opening.as_deref().cloned());
        let request = EventRequest { head, body, connection, variables, purpose, stream, opening };
        let events = self.server.upgrade().and_then(|server| server.events().cloned());
        async move {
            match events {
                Some(events) => events.make(request).await,
                None => (StatusCode::SERVICE_UNAVAILABLE, HeaderMap::new()),
            }
        }
    }
}

impl Events for Script {
    fn handle(&self, link: &Link, event: Event) -> HandlerFuture {
        const BINARY: &[(&str, &[u8])] = &[("HOWDAH_WEBSOCKET_BINARY", b"1")];
        match event {
            Event::Message(data, binary) => {
                let done = self.event(link, SocketEvent::Message, data, if binary { BINARY } else { &[] }, None);
                Box::pin(async move { done.await.0.as_u16() })
            }
            Event::Close(code, reason) => {
                let code = code.to_string();
                let done =
                    self.event(link, SocketEvent::Close, reason, &[("HOWDAH_WEBSOCKET_CODE", code.as_bytes())], None);
                Box::pin(async move { done.await.0.as_u16() })
            }
        }
    }
}
