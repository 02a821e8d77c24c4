//! Fuzz target: connections from untrusted clients, parsed by our HTTP/1 implementation and by hyper's, which is widely
//! used and was the server's before.
//!
//! **Intended differences from hyper:**
//! 1. Targets may contain bytes that hyper's URI type refuses (`<`, `>`, `"`, text that is not UTF-8, more than 65,534
//!    bytes), and need not be valid URIs; scripts see them unchanged, and `site` checks the paths they name. If a
//!    target in absolute form has no path, it is `/`.
//! 2. `Transfer-Encoding` with `Content-Length` is refused; hyper uses the former and ends the connection afterwards.
//! 3. `Expect` is only supported in HTTP/1.1.
//! 4. A `Content-Length` next to the largest possible number is a length; hyper reserves those values.
//! 5. CONNECT is a request like others (and refused by `site`); hyper gives up the connection after it.
//! 6. An invalid body ends the connection; hyper does so too, except for data that it had already read ahead.
//! 7. Lines of trailers all end with CR LF; hyper accepts LF within them as an end.
//! 8. Fields listed in `Connection` are dropped, together with their names; hyper leaves both to its user.

pub use crate::fastcgi::fuzz::fastcgi_connection;
pub use crate::http3::fuzz::http3_stream;

use crate::exchange::Head;
use crate::hop_by_hop;
use crate::http1::incoming::{Broken, Decoder};
use crate::http1::parse::{self, Framing};
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Result of parsing a request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    method: String,
    target: Vec<u8>,
    fields: usize,
    /// hyper's URI type accepts its target (1).
    is_uri: bool,
    /// `None`: the body was not read to its end.
    body: Option<Vec<u8>>,
}

/// Result of parsing a connection: its requests, and whether it ended because the next one is invalid.
struct ParsedConnection {
    seen: Vec<Seen>,
    refused: bool,
    /// Its last body ended with invalid trailers (7).
    odd_trailers: bool,
}

/// Fuzzes one connection whose bytes all arrive at once.
pub fn http1_requests(data: &[u8]) {
    // HTTP/2 is detected before.
    if data.starts_with(b"PRI * HTTP/2.0") {
        return;
    }
    let (ours, theirs) = (read_by_us(data), read_by_hyper(data));
    let show = || format!("{:?} {} / {:?}", ours.seen, ours.refused, theirs);
    for (at, (we, they)) in ours.seen.iter().zip(&theirs).enumerate() {
        let last = at + 1 == ours.seen.len() || at + 1 == theirs.len();
        // Our target is empty if it is not a URI.
        let same_target = we.target == they.target || we.target.is_empty();
        assert!(same_target && we.method == they.method, "request {at}: {}", show());
        assert!(we.fields == they.fields, "fields {at}: {}", show());
        assert!(we.body == they.body || (last && (ours.odd_trailers || is_odd_length(data))), "body {at}: {}", show());
    }
    if theirs.len() > ours.seen.len() {
        assert!((ours.refused && has_both(data)) || ours.odd_trailers, "hyper goes on: {}", show());
    }
    if let Some(more) = ours.seen.get(theirs.len()) {
        let before = theirs.len().checked_sub(1).and_then(|at| ours.seen.get(at));
        let odd =
            !more.is_uri || more.method == Method::CONNECT.as_str() || is_odd_length(data) || is_odd_authority(data);
        assert!(odd || before.is_some_and(|before| before.method == Method::CONNECT.as_str()), "we go on: {}", show());
    }
}

/// `true` if hyper's type accepts this target (1).
fn is_uri(target: &[u8]) -> bool {
    !target.is_empty() && Uri::from_maybe_shared(Bytes::copy_from_slice(target)).is_ok() && !target.contains(&b'#')
}

/// `true` if a target names a host, which hyper validates when it parses it (1).
fn is_odd_authority(data: &[u8]) -> bool {
    data.windows(3).any(|part| part == b"://")
}

/// `true` if both methods to frame a body appear (2).
fn has_both(data: &[u8]) -> bool {
    let names = |name: &[u8]| data.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name));
    names(b"content-length") && names(b"transfer-encoding")
}

/// `true` if there is a length that hyper reserves (4).
fn is_odd_length(data: &[u8]) -> bool {
    data.windows(18).any(|part| part.starts_with(b"184467440737095516"))
}

fn read_by_us(data: &[u8]) -> ParsedConnection {
    let mut input = BytesMut::from(data);
    let mut seen = Vec::new();
    loop {
        let (parsed, length) = match parse::parse(&input) {
            Ok(Some(parsed)) => parsed,
            Ok(None) => return ParsedConnection { seen, refused: false, odd_trailers: false },
            Err(_) => return ParsedConnection { seen, refused: true, odd_trailers: false },
        };
        assert!(length <= input.len() && input[..length].ends_with(b"\n"));
        input.advance(length);
        let mut body = match parsed.framing {
            Framing::None => Decoder::DONE,
            Framing::Length(length) => Decoder::Length(length),
            Framing::Chunked => Decoder::chunked(),
        };
        let mut content = Vec::new();
        while let Ok(Some(data)) = body.take(&mut input) {
            assert!(!data.is_empty());
            content.extend_from_slice(&data);
        }
        let Head { method, target, headers, .. } = *parsed.head;
        let whole = body.is_done();
        let is_uri = is_uri(target.as_bytes());
        let target = target.as_bytes().split(|&b| b == b'#').next().unwrap_or_default().to_vec();
        seen.push(Seen {
            method: method.to_string(),
            target,
            fields: count(headers),
            is_uri,
            body: whole.then_some(content),
        });
        if !whole || !parsed.keep_alive {
            let odd_trailers = matches!(body, Decoder::Broken(Broken::Trailers));
            return ParsedConnection { seen, refused: false, odd_trailers };
        }
    }
}

/// A transport that yields bytes and accepts all output. Its end is delayed, because hyper drops a running request at
/// the end of the input.
struct Script {
    bytes: BytesMut,
    patience: u32,
}

impl Read for Script {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, mut buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let Self { bytes: data, patience } = self.get_mut();
        if data.is_empty() && *patience > 0 {
            *patience -= 1;
            return Poll::Pending;
        }
        let piece = data.split_to(data.len().min(buf.remaining()));
        buf.put_slice(&piece);
        Poll::Ready(Ok(()))
    }
}

impl Write for Script {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Counts fields without those listed in `Connection` (8).
fn count(mut headers: HeaderMap) -> usize {
    hop_by_hop::strip_listed(&mut headers);
    headers.len()
}

fn read_by_hyper(data: &[u8]) -> Vec<Seen> {
    let all = Arc::new(Mutex::new(Vec::<Seen>::new()));
    let noted = all.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let noted = noted.clone();
        async move {
            let (parts, body) = request.into_parts();
            let mut target = parts.uri.path_and_query().map_or_else(Vec::new, |all| all.as_str().as_bytes().to_vec());
            // `http://host?query` (1).
            if target.first() == Some(&b'?') {
                target.insert(0, b'/');
            }
            let seen = Seen {
                method: parts.method.to_string(),
                target,
                fields: count(parts.headers.clone()),
                is_uri: true,
                body: None,
            };
            let lock = || noted.lock().unwrap_or_else(PoisonError::into_inner);
            lock().push(seen);
            if let Ok(body) = body.collect().await
                && let Some(last) = lock().last_mut()
            {
                last.body = Some(body.to_bytes().to_vec());
            }
            Ok::<_, Infallible>(hyper::Response::new(Full::new(Bytes::from_static(b"ok"))))
        }
    });
    let script = Script { bytes: BytesMut::from(data), patience: 50 };
    let mut connection = std::pin::pin!(http1::Builder::new().serve_connection(script, service));
    // It wakes itself between two turns.
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1000 {
        if connection.as_mut().poll(&mut cx).is_ready() {
            break;
        }
    }
    all.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_fuzz_driver::Target;

    #[test]
    fn connections_are_parsed_as_hyper_parses_them() {
        let words: &[&[u8]] =
            &[b"\r\n", b"\r\n\r\n", b"GET ", b" HTTP/1.1\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Length: "];
        let target = Target { name: "http1_requests", corpus: "http1_requests", words, run: http1_requests };
        howdah_fuzz_driver::drive(&target, 20_000);
    }
}
