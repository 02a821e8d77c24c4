//! Request lines as clients send them. nginx takes nearly any byte in a request's target; the URI type that hyper uses
//! takes neither `<`, `>` and `"` everywhere nor text that is no UTF-8. So the connection's reader percent-encodes these
//! before hyper sees them, and keeps the client's own spelling for `REQUEST_URI` and `QUERY_STRING`.
//!
//! That may only be done where a request is known to begin: the same bytes in a body must stay. It is known at a
//! connection's start, and after each request whose end is known: one without a body, or one with a `Content-Length`
//! whose bytes have all come in. Where a client sends ahead of an answer within one packet, or a chunked body, the place
//! is lost for the rest of the connection, and the target must be a proper one, as it must be over HTTP/2.

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use hyper::body::Body;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A line longer than this is not waited for any more: hyper refuses it.
const LONGEST: usize = 72 * 1024;
/// The length of a body that has none announced.
const UNKNOWN: u64 = u64::MAX;

/// The client's spelling of a request's target, as an extension of the request.
#[derive(Debug, Clone)]
struct Spelled(Bytes);

/// The request's target without scheme and host, as the client spelled it.
pub(crate) fn target(parts: &Parts) -> &[u8] {
    match parts.extensions.get::<Spelled>() {
        Some(spelled) => &spelled.0,
        None => parts.uri.path_and_query().map_or(b"", |target| target.as_str().as_bytes()),
    }
}

/// The request's query, as the client spelled it; empty if there is none.
pub(crate) fn query(parts: &Parts) -> &[u8] {
    if parts.extensions.get::<Spelled>().is_none() {
        return parts.uri.query().unwrap_or_default().as_bytes();
    }
    let target = target(parts);
    let end = target.iter().position(|&b| b == b'#').unwrap_or(target.len());
    let start = target[..end].iter().position(|&b| b == b'?').map_or(end, |at| at + 1);
    &target[start..end]
}

/// What the requests of a connection and its reader tell each other.
#[derive(Debug, Default)]
pub struct Targets {
    /// How many requests hyper has made out.
    requests: AtomicU32,
    /// The length of the last one's body.
    body: AtomicU64,
    /// Looked at without the lock, as nearly always nothing is kept.
    any: AtomicBool,
    /// The next request's target: as hyper sees it, and as it was spelled.
    kept: Mutex<Option<(Vec<u8>, Bytes)>>,
}

impl Targets {
    /// hyper has made out a request; this must be told before it reads on.
    pub(crate) fn on_request<B: Body>(&self, request: &mut Request<B>) {
        self.requests.fetch_add(1, Relaxed);
        self.body.store(request.body().size_hint().exact().unwrap_or(UNKNOWN), Relaxed);
        if !self.any.load(Relaxed) {
            return;
        }
        self.any.store(false, Relaxed);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((seen, spelled)) = kept
            && request.uri().path_and_query().is_some_and(|target| target.as_str().as_bytes() == seen)
        {
            request.extensions_mut().insert(Spelled(spelled));
        }
    }

    fn keep(&self, seen: Vec<u8>, spelled: Bytes) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((seen, spelled));
        self.any.store(true, Relaxed);
    }
}

/// Where the next byte of a connection stands.
#[derive(Debug)]
enum Place {
    /// At the start of a request.
    Start,
    /// In a request line that has not come in completely: its bytes, which hyper has not seen.
    Line(Vec<u8>),
    /// Behind a request line, with the number of requests before it.
    Behind {
        before: u32,
        /// How many bytes behind the request's head have come in, as far as that is known.
        after: Option<u64>,
        /// The head was not searched for its end: `after` holds only if there is no body.
        bodiless: bool,
    },
    /// Not known any more.
    Lost,
}

/// What hyper is to see of bytes that came in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// The bytes as they are.
    AsIs,
    /// Nothing yet.
    Held,
    /// These bytes.
    Instead(Vec<u8>),
}

/// The reader's part: looks at each piece of what comes in.
#[derive(Debug)]
pub(super) struct RequestLines(Place);

impl RequestLines {
    pub(super) const fn new() -> Self {
        Self(Place::Start)
    }

    /// Looks no further: the connection speaks another protocol.
    pub(super) fn stop(&mut self) {
        self.0 = Place::Lost;
    }

    /// What was held back and will not be completed.
    pub(super) fn give_up(&mut self) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.0, Place::Lost) {
            Place::Line(held) => Some(held),
            _ => None,
        }
    }

    /// Looks at bytes that came in.
    pub(super) fn pass(&mut self, chunk: &[u8], targets: &Targets) -> Pass {
        match &mut self.0 {
            Place::Lost => Pass::AsIs,
            Place::Start => self.begin(chunk, targets),
            Place::Line(held) => {
                held.extend_from_slice(chunk);
                if held.len() <= LONGEST && !chunk.contains(&b'\n') {
                    return Pass::Held;
                }
                let all = std::mem::take(held);
                match self.begin(&all, targets) {
                    Pass::AsIs => Pass::Instead(all),
                    other => other,
                }
            }
            Place::Behind { .. } => {
                self.go_on(chunk.len(), ends_head(chunk), targets);
                if matches!(self.0, Place::Start) { self.begin(chunk, targets) } else { Pass::AsIs }
            }
        }
    }

    /// Bytes that begin a request.
    fn begin(&mut self, chunk: &[u8], targets: &Targets) -> Pass {
        let Some(start) = chunk.iter().position(|b| !matches!(b, b'\r' | b'\n')) else {
            self.0 = Place::Start;
            return Pass::AsIs;
        };
        let Some(length) = chunk[start..].iter().position(|&b| b == b'\n') else {
            if chunk.len() > LONGEST {
                self.0 = Place::Lost;
                return Pass::AsIs;
            }
            self.0 = Place::Line(chunk.to_vec());
            return Pass::Held;
        };
        let (line, rest) = chunk[start..].split_at(length);
        // Requests that usually have no body need no search for the head's end.
        let bodiless = line.starts_with(b"GET ") || line.starts_with(b"HEAD ");
        let after = if bodiless { ends_head(rest).then_some(0) } else { behind_head(rest) };
        self.0 = Place::Behind { before: targets.requests.load(Relaxed), after, bodiless };
        match encode(line) {
            None => Pass::AsIs,
            Some(Encoded { line, seen, spelled }) => {
                targets.keep(seen, Bytes::from(spelled));
                Pass::Instead([&chunk[..start], &line, rest].concat())
            }
        }
    }

    /// Bytes behind a request line: finds out whether they begin the next request.
    fn go_on(&mut self, length: usize, ends_head: bool, targets: &Targets) {
        let Place::Behind { before, after, bodiless } = &mut self.0 else { return };
        let body = targets.body.load(Relaxed);
        // Wherever this says that a request begins, hyper has taken all bytes before: it reads on only when what it has
        // is no whole request.
        let next = match (targets.requests.load(Relaxed).wrapping_sub(*before), *after) {
            (0, None) if *bodiless => {
                *after = ends_head.then_some(0);
                return;
            }
            (1, Some(have)) if have == body => Place::Start,
            (1, Some(have)) if !*bodiless && body != UNKNOWN && have + length as u64 <= body => {
                *after = Some(have + length as u64);
                return;
            }
            _ => Place::Lost,
        };
        self.0 = next;
    }
}

/// Whether these bytes end with an empty line, which ends a head.
fn ends_head(bytes: &[u8]) -> bool {
    bytes.ends_with(b"\n\r\n") || bytes.ends_with(b"\n\n")
}

/// How many bytes follow the first empty line, if there is one.
fn behind_head(bytes: &[u8]) -> Option<u64> {
    let mut lines = bytes.split_inclusive(|&b| b == b'\n').scan(0, |at, line| {
        *at += line.len();
        Some((*at, line))
    });
    // The first piece is the end of the request line.
    lines.next();
    let end = lines.find(|(_, line)| matches!(line, [b'\n'] | [b'\r', b'\n'])).map(|(end, _)| end)?;
    Some((bytes.len() - end) as u64)
}

/// Bytes that hyper refuses somewhere in a target, or does not hand on.
fn is_special(byte: u8) -> bool {
    byte >= 0x80 || matches!(byte, b'<' | b'>' | b'"' | b'`' | b'#')
}

struct Encoded {
    /// The line that hyper is to see.
    line: Vec<u8>,
    /// The target in it, without scheme and host.
    seen: Vec<u8>,
    /// The same as the client spelled it.
    spelled: Vec<u8>,
}

/// Percent-encodes what needs it in a request line's target; `None` if nothing does.
fn encode(line: &[u8]) -> Option<Encoded> {
    let start = line.iter().position(|&b| b == b' ')? + 1;
    let length = line[start..].iter().position(|&b| b == b' ')?;
    let target = &line[start..start + length];
    if !target.iter().any(|&b| is_special(b)) {
        return None;
    }
    let path = start + path_of(target)?;
    let spelled = &line[path..start + length];
    let end = spelled.iter().position(|&b| b == b'#').unwrap_or(spelled.len());
    let mut seen = Vec::with_capacity(spelled.len() + 32);
    for &byte in &spelled[..end] {
        if is_special(byte) {
            seen.extend_from_slice(&[b'%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
        } else {
            seen.push(byte);
        }
    }
    Some(Encoded { line: [&line[..path], &seen, &line[start + length..]].concat(), seen, spelled: spelled.to_vec() })
}

fn hex_digit(value: u8) -> u8 {
    b"0123456789ABCDEF"[usize::from(value)]
}

/// Where the path begins in a target, which may have scheme and host before it.
fn path_of(target: &[u8]) -> Option<usize> {
    if target.first() == Some(&b'/') {
        return Some(0);
    }
    let host = target.windows(3).position(|part| part == b"://")? + 3;
    target[host..].iter().position(|&b| b == b'/').map(|at| host + at)
}

#[cfg(test)]
#[path = "request_line_tests.rs"]
mod tests;
