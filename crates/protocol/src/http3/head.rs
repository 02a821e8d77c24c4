//! Converts header lines to a request's head, and a response's head to header lines (RFC 9114 4.2 and 4.3).

use super::frames::{kind, put_frame};
use super::qpack::{self, Line};
use crate::exchange::Head;
use crate::target::Target;
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST, TE, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};

/// Reason why a header is malformed.
pub(super) type Malformed = &'static str;

/// The pseudo-headers, which correspond to HTTP/1's request line.
#[derive(Default)]
struct RequestLine {
    method: Option<Bytes>,
    scheme: Option<Bytes>,
    authority: Option<Bytes>,
    path: Option<Bytes>,
    protocol: Option<Bytes>,
}

/// Makes a request's head from header lines. `extended`: clients may use extended CONNECT (RFC 9220), which becomes a
/// GET with `Upgrade`.
pub(super) fn request(lines: Vec<Line>, extended: bool) -> Result<Head, Malformed> {
    let mut first = RequestLine::default();
    let mut headers = HeaderMap::new();
    for Line { name, value } in lines {
        match name.first() {
            Some(b':') if !headers.is_empty() => return Err("a pseudo-header follows a header"),
            Some(b':') => {
                let part = match &name[..] {
                    b":method" => &mut first.method,
                    b":scheme" => &mut first.scheme,
                    b":authority" => &mut first.authority,
                    b":path" => &mut first.path,
                    b":protocol" if extended => &mut first.protocol,
                    _ => return Err("a pseudo-header is unknown"),
                };
                if part.replace(value).is_some() {
                    return Err("a pseudo-header is repeated");
                }
            }
            _ => {
                let name = HeaderName::from_lowercase(&name).map_err(|_| "a header name is invalid")?;
                let value = HeaderValue::from_maybe_shared(trimmed(value)).map_err(|_| "a header value is invalid")?;
                if !may_be_sent(&name, &value) {
                    return Err("a header is connection-specific");
                }
                headers.try_append(name, value).map_err(|_| "there are too many headers")?;
            }
        }
    }
    one_length(&mut headers)?;
    let method = first.method.ok_or(":method is missing")?;
    let mut method = Method::from_bytes(&method).map_err(|_| "the method is invalid")?;
    if let Some(protocol) = first.protocol {
        if method != Method::CONNECT {
            return Err(":protocol is only allowed with CONNECT");
        }
        let offer = HeaderValue::from_maybe_shared(protocol).map_err(|_| ":protocol is invalid")?;
        headers.remove(CONTENT_LENGTH);
        headers.try_insert(UPGRADE, offer).map_err(|_| "there are too many headers")?;
        method = Method::GET;
    }
    if first.authority.as_ref().is_some_and(|authority| !authority.iter().all(|&byte| byte > b' ' && byte != 0x7f)) {
        return Err(":authority has an invalid byte");
    }
    let target = match (&method, first.scheme, first.path) {
        (&Method::CONNECT, None, None) if first.authority.is_some() => {
            Target::of_parts(Bytes::new(), first.authority, true)
        }
        (&Method::CONNECT, ..) => return Err("a CONNECT has pseudo-headers besides :authority"),
        (_, Some(scheme), Some(path)) => {
            if first.authority.as_ref().is_none_or(Bytes::is_empty) && !headers.contains_key(HOST) {
                return Err(":authority and host are missing");
            }
            if path.is_empty() {
                return Err(":path is empty");
            }
            Target::of_parts(path, first.authority, scheme.eq_ignore_ascii_case(b"https"))
        }
        _ => return Err(":scheme or :path is missing"),
    };
    let target = target.map_err(|_| ":path is invalid")?;
    Ok(Head { method, target, version: Version::HTTP_3, headers })
}

/// Removes whitespace around a value (RFC 9110 5.5).
fn trimmed(value: Bytes) -> Bytes {
    let text = value.trim_ascii();
    match text.len() == value.len() {
        true => value,
        false => value.slice_ref(text),
    }
}

/// `true` if a header may be in a request (RFC 9114 4.2).
fn may_be_sent(name: &HeaderName, value: &HeaderValue) -> bool {
    match name.as_str() {
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" => false,
        _ => name != TE || value.as_bytes().eq_ignore_ascii_case(b"trailers"),
    }
}

/// Validates `Content-Length`: at most one value, which is a number. Repetitions are removed.
fn one_length(headers: &mut HeaderMap) -> Result<(), Malformed> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = lengths.next().cloned() else { return Ok(()) };
    let text = first.as_bytes();
    if text.is_empty()
        || text.len() > 19
        || !text.iter().all(u8::is_ascii_digit)
        || lengths.any(|other| *other != first)
    {
        return Err("content-length is invalid");
    }
    headers.insert(CONTENT_LENGTH, first);
    Ok(())
}

/// Writes the head of a response, or an informational response, as a frame.
pub(super) fn put_response(out: &mut BytesMut, status: StatusCode, headers: &HeaderMap) {
    let mut block = BytesMut::with_capacity(256);
    qpack::begin(&mut block);
    qpack::put_line(&mut block, ":status", status.as_str().as_bytes());
    for (name, value) in headers {
        qpack::put_line(&mut block, name.as_str(), value.as_bytes());
    }
    put_frame(out, kind::HEADERS, block.len());
    out.put_slice(&block);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(lines: &[(&'static str, &'static str)]) -> Result<Head, Malformed> {
        let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
        let lines = lines.iter().map(|(name, value)| Line { name: bytes(name), value: bytes(value) }).collect();
        request(lines, true)
    }

    #[test]
    fn an_extended_connect_is_a_get_that_asks_to_upgrade() {
        let connect = [(":method", "CONNECT"), (":protocol", "websocket"), GET[1], GET[2], GET[3]];
        let head = made(&connect).unwrap();
        assert_eq!((&head.method, head.target.as_bytes()), (&Method::GET, &b"/a?<b>"[..]));
        assert!(head.is_extended_connect() && head.asks_to_upgrade().unwrap().bare);
        for missing in 2..5 {
            let rest: Vec<_> = (0..5).filter(|&at| at != missing).map(|at| connect[at]).collect();
            assert!(made(&rest).is_err(), "without {}", connect[missing].0);
        }
        assert!(made(&[&connect[..], &[(":protocol", "other")]].concat()).is_err());
        let lines = connect.iter().map(|(name, value)| Line { name: (*name).into(), value: (*value).into() });
        assert!(request(lines.collect(), false).is_err(), "it was not allowed");
    }

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":authority", "h:1"), (":path", "/a?<b>")];

    fn get_with(more: &[(&'static str, &'static str)]) -> Result<Head, Malformed> {
        made(&[&GET[..], more].concat())
    }

    #[test]
    fn header_lines_become_a_head() {
        let head = get_with(&[("cookie", "a=1"), ("cookie", " b=2 "), ("te", "trailers")]).unwrap();
        assert_eq!((head.method, head.version), (Method::GET, Version::HTTP_3));
        assert_eq!((head.target.as_bytes(), head.target.authority()), (&b"/a?<b>"[..], Some(&b"h:1"[..])));
        assert!(head.target.is_https());
        let cookies: Vec<_> = head.headers.get_all("cookie").iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(cookies, ["a=1", "b=2"]);
        let connect = made(&[(":method", "CONNECT"), (":authority", "h:443")]).unwrap();
        assert_eq!(connect.target.as_bytes(), b"");
        let options =
            made(&[(":method", "OPTIONS"), (":scheme", "https"), (":authority", "h"), (":path", "*")]).unwrap();
        assert_eq!(options.target.path(), b"*");
        let by_host = made(&[GET[0], GET[1], GET[3], ("host", "h")]).unwrap();
        assert_eq!(by_host.target.authority(), None);
    }

    #[test]
    fn a_malformed_request_is_refused() {
        for (missing, line) in GET.iter().enumerate() {
            let rest: Vec<_> = (0..4).filter(|&at| at != missing).map(|at| GET[at]).collect();
            assert!(made(&rest).is_err(), "without {}", line.0);
        }
        for line in [
            GET[0],
            (":status", "200"),
            (":protocol", "websocket"),
            ("X-Upper", "1"),
            ("", "1"),
            ("a b", "1"),
            ("x", "a\nb"),
            ("x", "a\0b"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("te", "gzip"),
            ("content-length", "-1"),
            ("content-length", ""),
            ("content-length", "99999999999999999999"),
        ] {
            assert!(get_with(&[line]).is_err(), "{line:?}");
        }
        assert!(made(&[GET[0], GET[1], GET[2], ("x", "1"), GET[3]]).is_err());
        assert!(get_with(&[("content-length", "1"), ("content-length", "2")]).is_err());
        assert!(get_with(&[("content-length", "1"), ("content-length", "1")]).is_ok());
        for path in ["", "a", "http://h/", "/a b", "/a\r\nb", "/\x7f"] {
            assert!(made(&[GET[0], GET[1], GET[2], (":path", path)]).is_err(), "{path:?}");
        }
        assert!(made(&[GET[0], GET[1], GET[3], (":authority", "a b")]).is_err());
        assert!(made(&[("x", "1")].repeat(40_000)).is_err(), "no map has room for so many");
        assert!(made(&[(":method", "CONNECT"), (":authority", "h"), (":path", "/")]).is_err());
    }
}
