//! Converts PHP's response to HTTP. Headers that HTTP forbids are dropped. A complete body is sent in one piece with
//! its length; any other is streamed.

use crate::exchange::PhpRun;
use crate::refusal::Refusal;
use bytes::Bytes;
use howdah_pool::{RequestId, RequestStats, ResponseBody, WholeBody};
use howdah_protocol::informational::is_hop_by_hop;
use howdah_protocol::{Body, Chunk, ChunkStream, Head, HeldBytes, Reason, Response, Whole};
use howdah_transport::HeldPayload;
use http::header::{self, HeaderName, HeaderValue, MaxSizeReached};
use http::{HeaderMap, Method, StatusCode};
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

/// Maximum number of header lines in a script's response. Receivers have lower limits
/// (nginx 4 KB, browsers 256 KB), and `HeaderMap` holds no more than about 24,000 names.
pub(crate) const MAX_LINES: usize = 1000;
/// Maximum size of these lines in bytes, as sent.
const MAX_BYTES: usize = 256 << 10;

/// Returns the HTTP response and the worker that ran the request, or a refusal if the head exceeds the limits.
pub(super) fn respond(
    mut php: howdah_pool::Response,
    request: &Head,
    id: RequestId,
) -> Result<(Response, PhpRun), Refusal> {
    let status = match StatusCode::from_u16(php.status) {
        Ok(status) if php.status >= 200 => status,
        _ => {
            tracing::warn!(target: "howdah::php", request = %id, status = php.status, "script set an invalid HTTP status");
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let lines = std::mem::take(&mut php.headers);
    if let Err(why) = check_size(&lines) {
        log_refused(id, request, why);
        return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    }
    if let Some(reason) = lines.first().and_then(|(name, value)| reason(name, value)) {
        response.extensions_mut().insert(reason);
    }
    let Ok(announced) = copy_headers(lines, response.headers_mut(), id) else {
        log_refused(id, request, "too many header lines");
        return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    };
    if status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED {
        return Ok((response, PhpRun::Known(php.body.stats())));
    }
    if request.method == Method::HEAD {
        // HEAD has no body to compare with, so the script's `Content-Length` is kept.
        if let Some(length) = announced {
            response.headers_mut().insert(header::CONTENT_LENGTH, length);
        }
        return Ok((response, PhpRun::Known(php.body.stats())));
    }
    if let Some(whole) = php.body.take_complete() {
        // The connection sends the real length of the body, not the script's `Content-Length`.
        *response.body_mut() = Body::whole(whole_of(whole));
        return Ok((response, PhpRun::Known(php.body.stats())));
    }
    let stats = Arc::new(OnceLock::new());
    let remaining = php.body.complete_len();
    if let Some(length) = announced {
        // Keeps the script's `Content-Length`, as clients show progress with it. A longer body is cut; after a shorter
        // one the connection is closed. In HTTP/2 and 3 the stream ends with an error in both cases.
        response.headers_mut().insert(header::CONTENT_LENGTH, length);
    }
    let stream = PhpStream { body: php.body, remaining, stats: stats.clone(), id };
    *response.body_mut() = Body::stream(Box::new(stream));
    Ok((response, PhpRun::Later(stats)))
}

/// Returns the reason phrase of a status line set by the script. The PHP host sends it first: `Status: 418 I am …`.
fn reason(name: &Bytes, value: &Bytes) -> Option<Reason> {
    if !name.eq_ignore_ascii_case(b"status") {
        return None;
    }
    let words = value.trim_ascii_start().get(3..)?.trim_ascii();
    if words.is_empty() { None } else { Reason::new(words) }
}

/// Checks that the header is within `MAX_LINES` and `MAX_BYTES`.
fn check_size(lines: &[(Bytes, Bytes)]) -> Result<(), &'static str> {
    if lines.len() > MAX_LINES {
        return Err("more than 1000 header lines");
    }
    let bytes: usize = lines.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    if bytes > MAX_BYTES { Err("more than 256 KB of header lines") } else { Ok(()) }
}

fn log_refused(id: RequestId, request: &Head, why: &str) {
    let target = String::from_utf8_lossy(request.target.as_bytes());
    tracing::warn!(target: "howdah::php", request = %id, %target, "script's response replaced by 500: it has {why}");
}

/// Copies the headers that HTTP allows. `Content-Length` is returned instead of copied, because a complete body
/// determines its own length.
fn copy_headers(
    lines: Vec<(Bytes, Bytes)>,
    into: &mut HeaderMap,
    id: RequestId,
) -> Result<Option<HeaderValue>, MaxSizeReached> {
    let mut length = None;
    into.try_reserve(lines.len() + 2)?;
    for (name, value) in lines {
        let Ok(header) = HeaderName::from_bytes(&name) else {
            log_dropped(id, &name, "its name is invalid");
            continue;
        };
        let Ok(value) = HeaderValue::from_maybe_shared(value) else {
            log_dropped(id, &name, "its value has characters that HTTP forbids");
            continue;
        };
        if header == header::CONTENT_LENGTH {
            length = value.to_str().is_ok_and(is_number).then_some(value);
        } else if !is_hop_by_hop(&header) {
            into.try_append(header, value)?;
        }
    }
    Ok(length)
}

fn log_dropped(id: RequestId, name: &[u8], why: &str) {
    tracing::warn!(target: "howdah::php", request = %id, header = %name.escape_ascii(), "header dropped: {why}");
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() < 20 && text.bytes().all(|b| b.is_ascii_digit())
}

/// Converts a complete body of the pool to one for the connection.
fn whole_of(body: WholeBody) -> Whole {
    match body {
        WholeBody::Memory(bytes) => Whole::Memory(bytes),
        WholeBody::InRing(held) => Whole::Held(Box::new(InRing(held))),
    }
}

/// A body that is still in a worker's ring.
struct InRing(HeldPayload);

impl HeldBytes for InRing {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn copy_to(&self, from: usize, to: &mut [u8]) {
        self.0.copy_to(from, to);
    }

    fn copy_from(&self, from: usize) -> Vec<u8> {
        self.0.copy_from(from)
    }

    fn equals(&self, other: &[u8]) -> bool {
        self.0.equals(other)
    }

    fn send_after(&self, before: &[IoSlice<'_>], socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.0.send_after(before, socket)
    }
}

/// PHP's output as a stream. Dropping it before its end makes the pool treat the client as disconnected.
struct PhpStream {
    body: ResponseBody,
    remaining: Option<u64>,
    stats: Arc<OnceLock<RequestStats>>,
    id: RequestId,
}

impl ChunkStream for PhpStream {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        Pin::new(&mut self.body).poll_chunk(cx).map(|chunk| match chunk? {
            Ok(chunk) => {
                if let Some(remaining) = &mut self.remaining {
                    *remaining = remaining.saturating_sub(chunk.data.len() as u64);
                }
                Some(Ok(Chunk { data: chunk.data, flush: chunk.flush }))
            }
            Err(fault) => {
                tracing::warn!(target: "howdah::request", request = %self.id, %fault, "response ended early");
                Some(Err(io::Error::other(fault)))
            }
        })
    }

    fn remaining(&self) -> Option<u64> {
        self.remaining
    }
}

impl Drop for PhpStream {
    fn drop(&mut self) {
        // Not set anywhere else.
        let _ = self.stats.set(self.body.stats());
    }
}
