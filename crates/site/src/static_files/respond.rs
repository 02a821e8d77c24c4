//! Makes the response to a request for a file.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use howdah_protocol::FileBody;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    LAST_MODIFIED, RANGE, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use super::cache::Opened;
use super::coding::Weights;
use super::conditional::{Validators, Verdict, evaluate};
use super::content::Content;
use super::range::{RangeSelection, Span, parse};

pub(super) fn respond(
    opened: &Opened,
    method: &Method,
    headers: &HeaderMap,
    media_type: Option<&HeaderValue>,
) -> Response<FileBody> {
    let get = method == Method::GET;
    if !get && method != Method::HEAD {
        let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        return response;
    }
    let content = choose(opened, headers);
    let media_type = media_type.unwrap_or(&content.media_type);
    let validators = Validators { etag: &content.tag, modified: content.modified };
    let now = SystemTime::now();
    let mut response = match evaluate(headers, validators, now) {
        Verdict::Failed => {
            let mut response = empty(StatusCode::PRECONDITION_FAILED);
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            return response;
        }
        Verdict::NotModified => empty(StatusCode::NOT_MODIFIED),
        Verdict::Proceed { ranges } => {
            // `Range` is not a list field (RFC 9110 5.3), so two of them are invalid, and the whole file is sent.
            let is_one = || headers.get_all(RANGE).iter().nth(1).is_none();
            let field = headers.get(RANGE).filter(|_| ranges && get && is_one());
            match field.map_or(RangeSelection::All, |field| parse(field, content.stamp.size)) {
                RangeSelection::All => whole(content, media_type, get, now),
                RangeSelection::Nothing => unsatisfiable(content),
                RangeSelection::Parts(parts) => match parts[..] {
                    [part] => single(content, media_type, part),
                    _ => multiple(content, media_type, &parts),
                },
            }
        }
    };
    let fields = response.headers_mut();
    fields.insert(ETAG, content.etag.clone());
    fields.insert(LAST_MODIFIED, content.last_modified(now));
    if !opened.twins.is_empty() {
        fields.insert(VARY, HeaderValue::from_name(ACCEPT_ENCODING));
    }
    response
}

/// Returns the twin with the highest weight, the smallest one if weights are equal, or else the file itself.
fn choose<'a>(opened: &'a Opened, headers: &HeaderMap) -> &'a Arc<Content> {
    if opened.twins.is_empty() || !headers.contains_key(ACCEPT_ENCODING) {
        return &opened.plain;
    }
    let weights = Weights::of(headers);
    let weighed = opened.twins.iter().filter_map(|twin| Some((twin, weights.coded(twin.coding?))));
    // Reversed, because `max_by_key` returns the last of equal elements and the smallest twin is first.
    match weighed.rev().max_by_key(|(_, weight)| *weight) {
        Some((twin, weight)) if weight > 0 && weight >= weights.identity() => twin,
        _ => &opened.plain,
    }
}

fn empty(status: StatusCode) -> Response<FileBody> {
    let mut response = Response::new(FileBody::empty());
    *response.status_mut() = status;
    response.headers_mut().reserve(8);
    response
}

/// A response with the fields that 200 and 206 share.
fn with_content(status: StatusCode, content: &Content, media_type: &HeaderValue) -> Response<FileBody> {
    let mut response = empty(status);
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, media_type.clone());
    fields.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(coding) = content.coding {
        fields.insert(CONTENT_ENCODING, coding.value());
    }
    response
}

fn whole(content: &Arc<Content>, media_type: &HeaderValue, get: bool, now: SystemTime) -> Response<FileBody> {
    let mut response = with_content(StatusCode::OK, content, media_type);
    response.headers_mut().insert(CONTENT_LENGTH, content.length.clone());
    if get {
        let span = Span { start: 0, end: content.stamp.size };
        content.push_to(response.body_mut(), span);
        if let Some(identity) = content.identity(now) {
            response.body_mut().identify(identity);
        }
    }
    response
}

fn single(content: &Arc<Content>, media_type: &HeaderValue, part: Span) -> Response<FileBody> {
    let mut response = with_content(StatusCode::PARTIAL_CONTENT, content, media_type);
    response.headers_mut().insert(CONTENT_RANGE, value(content_range(part, content)));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(part.len()));
    content.push_to(response.body_mut(), part);
    response
}

fn multiple(content: &Arc<Content>, media_type: &HeaderValue, parts: &[Span]) -> Response<FileBody> {
    let boundary = boundary();
    let mut response = with_content(StatusCode::PARTIAL_CONTENT, content, media_type);
    let body = response.body_mut();
    let media_type = media_type.to_str().unwrap_or("application/octet-stream");
    for (at, part) in parts.iter().enumerate() {
        let line_end = if at == 0 { "" } else { "\r\n" };
        let range = content_range(*part, content);
        let head = format!("{line_end}--{boundary}\r\nContent-Type: {media_type}\r\nContent-Range: {range}\r\n\r\n");
        body.push(Bytes::from(head));
        content.push_to(body, *part);
    }
    body.push(Bytes::from(format!("\r\n--{boundary}--\r\n")));
    let length = body.remaining();
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, value(format!("multipart/byteranges; boundary={boundary}")));
    fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

fn unsatisfiable(content: &Content) -> Response<FileBody> {
    let mut response = empty(StatusCode::RANGE_NOT_SATISFIABLE);
    response.headers_mut().insert(CONTENT_RANGE, value(format!("bytes */{}", content.stamp.size)));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    response
}

fn content_range(part: Span, content: &Content) -> String {
    format!("bytes {}-{}/{}", part.start, part.end - 1, content.stamp.size)
}

/// Converts text that consists of printable ASCII only.
fn value(text: String) -> HeaderValue {
    HeaderValue::from_maybe_shared(Bytes::from(text)).unwrap_or(HeaderValue::from_static(""))
}

/// Returns a boundary that a file contains only with a probability of 1 in 2^128.
fn boundary() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let (one, two) = (RandomState::new(), RandomState::new());
    format!("{:016x}{:016x}", one.hash_one(number), two.hash_one(number))
}
