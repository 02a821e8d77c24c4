//! Request lines as clients send them. nginx takes nearly any byte in a request's target; the URI type that hyper uses
//! takes neither `<`, `>` and `"` everywhere nor text that is no UTF-8. So the connection's reader puts a harmless byte in
//! the place of each of these before hyper sees them, keeps what the client wrote, and percent-encodes it when hyper has
//! made out the request. Scripts see the client's own spelling in `REQUEST_URI` and `QUERY_STRING`.
//!
//! **Nothing here can move a request's borders.** A byte is only ever replaced by one other byte, and none of the bytes
//! involved means anything in HTTP's framing: hyper finds heads and bodies where it would find them without this file.
//! A request whose target is not the one that was kept for it is refused.
//!
//! Bodies must stay as they are, so a byte is only replaced where a request is known to begin. It is known at a
//! connection's start, and after each request whose end is known: one without a body, or one with a `Content-Length`
//! whose bytes have all come in. Where a client sends ahead of an answer within one packet, or a chunked body, the place
//! is lost for the rest of the connection, and the target must be a proper one, as it must be over HTTP/2.

use crate::refusal::Refusal;
use bytes::Bytes;
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use http::{Request, StatusCode};
use hyper::body::Body;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Stands for a byte that hyper would refuse. It is allowed in paths and queries, and is neither a digit of a chunk's
/// length, nor allowed in a header's name, nor a separator of anything: it cannot complete what was not meant as HTTP.
const STAND_IN: u8 = b'@';
/// The `http` crate takes no longer URI, so of a longer target no more is kept than shows that it is too long.
const LONGEST: usize = u16::MAX as usize;
/// The length of a body that has none announced.
const UNKNOWN: u64 = u64::MAX;

/// The client's spelling of a request's target, as an extension of the request.
#[derive(Debug, Clone)]
struct Spelled(Bytes);

/// A target that cannot be handed on, as an extension of the request.
#[derive(Debug, Clone, Copy)]
struct Refused(StatusCode);

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
    let target = before_fragment(target(parts));
    let start = target.iter().position(|&b| b == b'?').map_or(target.len(), |at| at + 1);
    &target[start..]
}

/// Refuses a request whose target was not understood.
pub(crate) fn check(parts: &Parts) -> Result<(), Refusal> {
    match parts.extensions.get::<Refused>() {
        Some(&Refused(status)) => Err(Refusal::new(status)),
        None => Ok(()),
    }
}

fn before_fragment(target: &[u8]) -> &[u8] {
    &target[..target.iter().position(|&b| b == b'#').unwrap_or(target.len())]
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
    /// The next request's target as it was spelled.
    kept: Mutex<Option<Vec<u8>>>,
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
        let Some(spelled) = kept else { return };
        match encoded(request.uri(), &spelled) {
            Ok(uri) => {
                *request.uri_mut() = uri;
                request.extensions_mut().insert(Spelled(spelled.into()));
            }
            Err(status) => {
                request.extensions_mut().insert(Refused(status));
            }
        }
    }

    fn keep(&self, spelled: Vec<u8>) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(spelled);
        self.any.store(true, Relaxed);
    }
}

/// The URI that a client meant who wrote `spelled`, of which hyper saw `seen`.
fn encoded(seen: &Uri, spelled: &[u8]) -> Result<Uri, StatusCode> {
    let target = seen.path_and_query().map_or(&b""[..], |target| target.as_str().as_bytes());
    let same = target.len() == spelled.len() && target.iter().zip(spelled).all(|(&seen, &byte)| seen == shown(byte));
    if !same {
        return Err(if spelled.len() > LONGEST { StatusCode::URI_TOO_LONG } else { StatusCode::BAD_REQUEST });
    }
    let mut text = Vec::with_capacity(spelled.len() + 32);
    for &byte in before_fragment(spelled) {
        if is_special(byte) {
            text.extend_from_slice(&[b'%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
        } else {
            text.push(byte);
        }
    }
    // Three bytes for one may be too many.
    let fault = if text.len() >= LONGEST { StatusCode::URI_TOO_LONG } else { StatusCode::BAD_REQUEST };
    let mut parts = seen.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::from_maybe_shared(text).map_err(|_| fault)?);
    Uri::from_parts(parts).map_err(|_| fault)
}

fn hex_digit(value: u8) -> u8 {
    b"0123456789ABCDEF"[usize::from(value)]
}

/// Bytes that hyper refuses somewhere in a target, or does not hand on.
const fn is_special(byte: u8) -> bool {
    byte >= 0x80 || matches!(byte, b'<' | b'>' | b'"' | b'`' | b'#')
}

/// What hyper sees of a byte of a target.
const fn shown(byte: u8) -> u8 {
    if is_special(byte) { STAND_IN } else { byte }
}

/// Where the next byte of a connection stands.
#[derive(Debug)]
enum Place {
    /// In a request line, or before one.
    Line(Line),
    /// In a head whose request line is over, with the number of requests before it.
    Head { before: u32, line: HeadLine },
    /// Behind a head.
    Body {
        before: u32,
        /// How many bytes behind the head have come in.
        have: u64,
        /// Whether that was counted. Otherwise the bytes that came in ended with an empty line, which is the end of a
        /// request if that one has no body and is the last that hyper has made out of them.
        counted: bool,
    },
    /// Not known any more.
    Lost,
}

/// The part of a request line that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Nothing but line ends has come in.
    Nothing,
    Method,
    /// The target, before its path.
    Origin {
        fresh: bool,
        slashes: u8,
    },
    Path,
    /// Behind the path, or there will not be one.
    Rest,
}

/// A request line that has not come in completely.
#[derive(Debug)]
struct Line {
    part: Part,
    /// The path and query so far.
    path: Vec<u8>,
    /// Something in it was replaced.
    replaced: bool,
}

/// The part of a line in a head's fields that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadLine {
    Start,
    /// Behind a carriage return at the start.
    Return,
    Within,
}

/// The reader's part: looks at each piece of what comes in.
#[derive(Debug)]
pub(super) struct RequestLines(Place);

impl RequestLines {
    pub(super) const fn new() -> Self {
        Self(Place::Line(Line::NEW))
    }

    /// Looks no further: the connection speaks another protocol.
    pub(super) fn stop(&mut self) {
        self.0 = Place::Lost;
    }

    /// Looks at bytes that came in, before hyper sees them.
    pub(super) fn look(&mut self, bytes: &mut [u8], targets: &Targets) {
        match &mut self.0 {
            Place::Lost => {}
            Place::Line(_) => self.in_line(bytes, targets),
            // hyper reads on only when what it has is no whole request, so a request more than expected means that
            // several were in the bytes of before.
            Place::Head { before, line } => {
                let (before, line) = (*before, *line);
                self.0 = Place::Lost;
                if targets.requests.load(Relaxed) == before {
                    self.in_head(before, line, bytes);
                }
            }
            Place::Body { before, have, counted } => {
                let body = targets.body.load(Relaxed);
                let after = *have + bytes.len() as u64;
                if targets.requests.load(Relaxed) != before.wrapping_add(1) || body == UNKNOWN {
                    self.0 = Place::Lost;
                } else if *have == body {
                    self.0 = Place::Line(Line::NEW);
                    self.in_line(bytes, targets);
                } else if *counted && after <= body {
                    *have = after;
                } else {
                    self.0 = Place::Lost;
                }
            }
        }
    }

    fn in_line(&mut self, bytes: &mut [u8], targets: &Targets) {
        let Place::Line(line) = &mut self.0 else { return };
        let whole = line.part == Part::Nothing;
        let Some(length) = line.look(bytes) else {
            if line.path.len() > LONGEST {
                targets.keep(std::mem::take(&mut line.path));
                self.0 = Place::Lost;
            }
            return;
        };
        if line.replaced {
            targets.keep(std::mem::take(&mut line.path));
        }
        let before = targets.requests.load(Relaxed);
        let ends_head = bytes.ends_with(b"\n\r\n") || bytes.ends_with(b"\n\n");
        let (line, rest) = bytes.split_at(length);
        // Requests that usually have no body need no search for the head's end.
        let bodiless = whole && (line.starts_with(b"GET ") || line.starts_with(b"HEAD "));
        if bodiless && ends_head {
            self.0 = Place::Body { before, have: 0, counted: false };
        } else {
            self.in_head(before, HeadLine::Start, rest);
        }
    }

    /// Looks for the empty line that ends a head.
    fn in_head(&mut self, before: u32, mut line: HeadLine, bytes: &[u8]) {
        for (at, &byte) in bytes.iter().enumerate() {
            line = match (byte, line) {
                (b'\n', HeadLine::Start | HeadLine::Return) => {
                    self.0 = Place::Body { before, have: (bytes.len() - at - 1) as u64, counted: true };
                    return;
                }
                (b'\n', HeadLine::Within) => HeadLine::Start,
                (b'\r', HeadLine::Start) => HeadLine::Return,
                _ => HeadLine::Within,
            };
        }
        self.0 = Place::Head { before, line };
    }
}

impl Line {
    const NEW: Self = Self { part: Part::Nothing, path: Vec::new(), replaced: false };

    /// Replaces what hyper would refuse. Returns the number of bytes up to the line's end, if that is among them.
    fn look(&mut self, bytes: &mut [u8]) -> Option<usize> {
        let mut start = 0;
        if self.part == Part::Nothing {
            start = bytes.iter().position(|b| !matches!(b, b'\r' | b'\n'))?;
            self.part = Part::Method;
        }
        let length = bytes[start..].iter().position(|&b| b == b'\n');
        let end = length.map_or(bytes.len(), |length| start + length);
        self.go_on(&mut bytes[start..end]);
        length.map(|_| end + 1)
    }

    /// Takes a piece of the line.
    fn go_on(&mut self, mut piece: &mut [u8]) {
        if self.part == Part::Method {
            let Some(length) = piece.iter().position(|&b| b == b' ') else { return };
            self.part = Part::Origin { fresh: true, slashes: 0 };
            piece = &mut piece[length + 1..];
        }
        let mut at = 0;
        while let (Part::Origin { fresh, slashes }, Some(&byte)) = (self.part, piece.get(at)) {
            self.part = match byte {
                // The path's own slash, which is not stepped over: the first byte, or the third slash of `http://host/`.
                b'/' if fresh || slashes == 2 => Part::Path,
                b' ' | b'?' | b'#' => Part::Rest,
                _ => Part::Origin { fresh: false, slashes: slashes + u8::from(byte == b'/') },
            };
            at += usize::from(self.part != Part::Path);
        }
        if self.part == Part::Path {
            let piece = &mut piece[at..];
            let length = piece.iter().position(|&b| b == b' ').unwrap_or(piece.len());
            let is_over = length < piece.len();
            let path = &mut piece[..length];
            let replace = path.iter().any(|&b| is_special(b));
            if replace || !is_over || !self.path.is_empty() {
                self.path.extend_from_slice(path);
            }
            if replace {
                self.replaced = true;
                path.iter_mut().for_each(|b| *b = shown(*b));
            }
            if is_over {
                self.part = Part::Rest;
            }
        }
    }
}

#[cfg(test)]
#[path = "request_line_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "request_line_fuzz.rs"]
mod fuzz;
