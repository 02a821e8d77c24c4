//! Converts an ended request to spans: one for the request, by the semantic conventions for HTTP, and a child span for
//! each phase.

use crate::context::Trace;
use opentelemetry::trace::{Link, SpanContext, SpanId, SpanKind, Status, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SpanData, SpanEvents, SpanLinks};
use std::borrow::Cow;
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};

/// Maximum length of an attribute's text in bytes, because many spans may wait in memory.
const MAX_TEXT_LEN: usize = 2048;

/// The well-known methods (RFC 9110 and RFC 5789).
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// Status that the log shows for a request whose client left before the response.
const CLIENT_GONE: u16 = 499;

/// Facts about an ended request.
#[derive(Debug)]
pub struct EndedRequest<'a> {
    pub method: &'a str,
    pub path: &'a [u8],
    pub https: bool,
    /// The HTTP version: `1.1`, `2`.
    pub version: &'static str,
    pub status: u16,
    /// The requested host, without its port.
    pub host: Option<&'a str>,
    pub port: Option<u16>,
    /// The client's address, and that of the peer.
    pub client: Option<IpAddr>,
    pub peer: Option<IpAddr>,
    pub user_agent: Option<&'a [u8]>,
    pub request_id: &'a str,
    /// The route's pattern.
    pub route: Option<&'a str>,
    pub site: Option<&'a str>,
    /// The responder: `php`, `static`, `proxy`, `error`.
    pub front: &'static str,
    /// When the request's head was complete, by both clocks.
    pub time: SystemTime,
    pub started: Instant,
    pub took: Duration,
    /// Bytes of the response's body.
    pub bytes: u64,
    /// The worker, if one ran the request.
    pub inner: Option<WorkerSpan<'a>>,
    /// The event of a WebSocket connection for which the server made the request.
    pub event: Option<SocketSpan<'a>>,
}

/// An event of a WebSocket connection.
#[derive(Debug, Clone, Copy)]
pub struct SocketSpan<'a> {
    /// `open`, `message` or `close`.
    pub event: &'static str,
    /// The connection's id.
    pub connection: &'a str,
}

/// The worker that ran a request, and the timings there.
#[derive(Debug, Clone, Copy)]
pub struct WorkerSpan<'a> {
    pub pool: &'a str,
    pub worker: u32,
    /// Time from the end of the request's head until a worker took the request.
    pub queue: Duration,
    pub php: Duration,
    pub replays: u32,
}

impl EndedRequest<'_> {
    /// Converts a moment of the request to a time of day.
    fn at(&self, moment: Instant) -> SystemTime {
        self.time + moment.saturating_duration_since(self.started).min(self.took)
    }

    fn end(&self) -> SystemTime {
        self.time + self.took
    }
}

/// The spans of a request, the request's own first.
pub(crate) fn spans(trace: &Trace, ended: &EndedRequest<'_>) -> Vec<SpanData> {
    let mut spans = Vec::with_capacity(5);
    spans.push(own(trace, ended));
    let mut phase = |id: Option<SpanId>, name: &'static str, kind, from, until: SystemTime, attributes| {
        let id = id.unwrap_or_else(|| RandomIdGenerator::default().new_span_id());
        let mut data = data(trace, id, name.into(), kind, (from, until.max(from)));
        data.parent_span_id = trace.context.span_id();
        data.attributes = attributes;
        spans.push(data);
    };
    let body = trace.body_complete.map(|at| ended.at(at));
    if let Some(complete) = body {
        phase(None, "receive", SpanKind::Internal, ended.time, complete, Vec::new());
    }
    if let Some(inner) = &ended.inner {
        let taken = ended.time + inner.queue.min(ended.took);
        let pool = || vec![KeyValue::new("howdah.pool", inner.pool.to_owned())];
        phase(None, "queue", SpanKind::Internal, body.unwrap_or(ended.time).min(taken), taken, pool());
        let mut attributes = pool();
        attributes.push(KeyValue::new("howdah.worker", i64::from(inner.worker)));
        if inner.replays > 0 {
            attributes.push(KeyValue::new("howdah.replays", i64::from(inner.replays)));
        }
        let until = (taken + inner.php).min(ended.end());
        phase(Some(trace.inner), "php", SpanKind::Internal, taken, until, attributes);
    } else if let Some(from) = trace.handed_on {
        let until = trace.responded.map_or_else(|| ended.end(), |at| ended.at(at));
        let (name, kind) =
            if ended.front == "proxy" { ("proxy", SpanKind::Client) } else { ("php", SpanKind::Internal) };
        phase(Some(trace.inner), name, kind, ended.at(from), until, Vec::new());
    }
    if let Some(responded) = trace.responded {
        phase(None, "send", SpanKind::Internal, ended.at(responded), ended.end(), Vec::new());
    }
    spans
}

/// The span of the request itself.
fn own(trace: &Trace, ended: &EndedRequest<'_>) -> SpanData {
    let known = METHODS.iter().find(|known| **known == ended.method);
    let method = known.copied();
    let first = ended.event.map_or_else(|| method.unwrap_or("HTTP"), |event| event.event);
    let name = match (first, ended.route) {
        (first, Some(route)) => Cow::Owned(format!("{first} {}", shortened(route))),
        (first, None) => Cow::Borrowed(first),
    };
    let mut span = data(trace, trace.context.span_id(), name, SpanKind::Server, (ended.time, ended.end()));
    span.parent_span_id = trace.parent.unwrap_or(SpanId::INVALID);
    span.parent_span_is_remote = trace.parent.is_some() && !trace.has_own_parent;
    span.links.links.extend(trace.link.clone().map(Link::with_context));
    let failed = ended.status >= 500;
    if failed {
        span.status = Status::error("");
    }
    let mut put = |key: &'static str, value: Value| span.attributes.push(KeyValue::new(key, value));
    put("http.request.method", method.unwrap_or("_OTHER").into());
    if method.is_none() {
        put("http.request.method_original", text(ended.method.as_bytes()));
    }
    put("url.scheme", if ended.https { "https" } else { "http" }.into());
    put("url.path", text(ended.path));
    if ended.status == CLIENT_GONE {
        put("error.type", "client_gone".into());
    } else {
        put("http.response.status_code", i64::from(ended.status).into());
        if failed {
            put("error.type", ended.status.to_string().into());
        } else if trace.cut_off {
            put("error.type", "cut_off".into());
        }
    }
    let texts = [("server.address", ended.host), ("http.route", ended.route), ("howdah.site", ended.site)];
    for (key, value) in texts {
        if let Some(value) = value {
            put(key, text(value.as_bytes()));
        }
    }
    if let Some(port) = ended.port {
        put("server.port", i64::from(port).into());
    }
    for (key, address) in [("client.address", ended.client), ("network.peer.address", ended.peer)] {
        if let Some(address) = address {
            put(key, address.to_canonical().to_string().into());
        }
    }
    put("network.protocol.version", ended.version.into());
    if let Some(agent) = ended.user_agent {
        put("user_agent.original", text(agent));
    }
    put("http.response.body.size", i64::try_from(ended.bytes).unwrap_or(i64::MAX).into());
    put("howdah.request_id", ended.request_id.to_owned().into());
    put("howdah.front", ended.front.into());
    if let Some(event) = ended.event {
        put("howdah.websocket.event", event.event.into());
        put("howdah.websocket.connection", text(event.connection.as_bytes()));
    }
    span
}

fn data(
    trace: &Trace,
    id: SpanId,
    name: Cow<'static, str>,
    kind: SpanKind,
    (from, until): (SystemTime, SystemTime),
) -> SpanData {
    let context = &trace.context;
    SpanData {
        span_context: SpanContext::new(context.trace_id(), id, context.trace_flags(), false, state(context)),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: kind,
        name,
        start_time: from,
        end_time: until,
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder("howdah").with_version(env!("CARGO_PKG_VERSION")).build(),
    }
}

fn state(context: &SpanContext) -> TraceState {
    context.trace_state().clone()
}

fn text(bytes: &[u8]) -> Value {
    Value::from(shortened(&String::from_utf8_lossy(bytes)).to_owned())
}

fn shortened(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT_LEN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
#[path = "span_tests.rs"]
mod tests;
