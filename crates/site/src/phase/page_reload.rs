//! Page reloads under `howdah dev`: a script is appended to HTML pages that browsers navigate to. It listens to the
//! server's events about changed files, and reloads the page or its style sheets.

use crate::exchange::Exchange;
use crate::explanation::ExplanationBuilder;
use crate::phase::mercure::events::Events;
use crate::refusal::Refusal;
use crate::responder::{Context, Responder};
use crate::upstream::Upstream;
use bytes::Bytes;
use howdah_live::{Interest, QueueLimits, Selector, SlowPolicy};
use howdah_protocol::{Body, Chunk, ChunkStream, RequestBody, Response, Stream};
use http::{HeaderValue, Method, StatusCode, header};
use std::io;
use std::task::{Context as Waking, Poll};
use std::time::Duration;

const EVENTS: &[u8] = b"/.howdah/reload";
const SCRIPT: &[u8] = b"/.howdah/reload.js";
const SOURCE: &str = include_str!("page_reload.js");
/// The tag that is appended to a page. The server serves the script itself, because many content security policies
/// allow only scripts of the same origin.
const TAG: &[u8] = b"<script src=\"/.howdah/reload.js\" defer></script>\n";
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Responds to the script's requests.
pub(crate) struct PageReload;

impl Responder for PageReload {
    fn concerns(exchange: &Exchange) -> bool {
        exchange.site.server.settings.development
    }

    async fn respond<U: Upstream>(
        _: &Context<U>,
        exchange: &mut Exchange,
        _: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        let (body, media_type) = match exchange.head.target.path() {
            EVENTS => (Body::stream(Box::new(events(exchange))), "text/event-stream"),
            SCRIPT => (Body::full(Bytes::from_static(SOURCE.as_bytes())), "text/javascript; charset=utf-8"),
            _ => return Ok(None),
        };
        let mut response = Response::new(body);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(Some(response))
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        if Self::concerns(exchange) && exchange.head.target.path() == EVENTS {
            explaining.respond(StatusCode::OK, "200: events about changed files, for pages that reload");
        }
    }
}

fn events(exchange: &Exchange) -> Events {
    let server = &exchange.site.server;
    let hub = server.page_reloads();
    let interest = Interest { selectors: vec![Selector::All], ..Interest::default() };
    let charge = exchange.connection.charge();
    let terms = QueueLimits { slow: SlowPolicy::DropOldest, max_updates: 1, max_bytes: usize::MAX, charge };
    let subscription = hub.subscribe(interest, None, terms).subscription;
    Events::new(hub, subscription, HEARTBEAT, None, server.metrics.clone())
}

/// Appends the script to an HTML page that a browser loads into a window or frame, if the page is not encoded already.
pub(crate) fn inject(exchange: &Exchange, response: &mut Response) {
    if !exchange.site.server.settings.development || !is_page(exchange, response) {
        return;
    }
    let body = std::mem::replace(response.body_mut(), Body::empty());
    let body = match body.into_whole() {
        Ok(whole) => Body::full([&*whole.into_bytes(), TAG].concat().into()),
        Err(body) => match body.into_stream() {
            Ok(stream) => Body::stream(Box::new(Tagged { stream, tag: Some(Bytes::from_static(TAG)) })),
            Err(body) => {
                *response.body_mut() = body;
                return;
            }
        },
    };
    *response.body_mut() = body;
    for name in [header::CONTENT_LENGTH, header::ACCEPT_RANGES, header::ETAG, header::LAST_MODIFIED] {
        response.headers_mut().remove(name);
    }
}

fn is_page(exchange: &Exchange, response: &Response) -> bool {
    let (asked, given) = (&exchange.head.headers, response.headers());
    let is_html = |value: &HeaderValue| value.as_bytes().to_ascii_lowercase().starts_with(b"text/html");
    exchange.head.method == Method::GET
        && asked.get("sec-fetch-dest").is_some_and(|dest| dest == "document" || dest == "iframe")
        && given.get(header::CONTENT_TYPE).is_some_and(is_html)
        && !given.contains_key(header::CONTENT_ENCODING)
        && !matches!(response.status(), StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED)
}

/// A body with the script after it.
struct Tagged {
    stream: Stream,
    tag: Option<Bytes>,
}

impl ChunkStream for Tagged {
    fn poll_chunk(&mut self, cx: &mut Waking<'_>) -> Poll<Option<io::Result<Chunk>>> {
        match self.stream.poll_chunk(cx) {
            Poll::Ready(None) => Poll::Ready(self.tag.take().map(|data| Ok(Chunk { data, flush: false }))),
            other => other,
        }
    }

    fn remaining(&self) -> Option<u64> {
        let tag = self.tag.as_ref().map_or(0, Bytes::len) as u64;
        Some(self.stream.remaining()? + tag)
    }
}
