//! A response's head in HTTP/1: the status line, the handler's fields, and those that the connection adds.

use crate::exchange::Reason;
use crate::multiplexed::announced;
use http::response::Parts;
use http::{StatusCode, Version, header};
use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Framing of a response's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// No body, and no length.
    None,
    /// This many bytes, announced by `Content-Length`.
    Length(u64),
    /// HEAD: no body, but the handler's `Content-Length` is sent.
    FromHandler,
    Chunked,
    /// The body ends when the connection closes.
    UntilClose,
    /// No body: another protocol follows (101).
    Upgraded,
}

/// Properties of the request that the response's head depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResponseContext {
    pub(super) version: Version,
    pub(super) is_head: bool,
    /// Arrival of the request, for `Date`.
    pub(super) time: SystemTime,
}

impl ResponseContext {
    /// Framing of the body. `length` is its length, if known.
    pub(super) fn framing(&self, response: &Parts, length: Option<u64>) -> Framing {
        if response.status == StatusCode::SWITCHING_PROTOCOLS {
            return Framing::Upgraded;
        }
        if matches!(response.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            return Framing::None;
        }
        match length {
            _ if self.is_head && length.is_none_or(|length| length == 0) => Framing::FromHandler,
            Some(length) => Framing::Length(length),
            None => match announced(&response.headers) {
                Some(length) => Framing::Length(length),
                None if self.version == Version::HTTP_10 => Framing::UntilClose,
                None => Framing::Chunked,
            },
        }
    }

    /// Writes the head. Returns `false` if the connection closes after the response: without `keep_alive`, or at the
    /// handler's request.
    pub(super) fn write(&self, out: &mut Vec<u8>, response: &Parts, framing: Framing, mut keep_alive: bool) -> bool {
        out.reserve(128 + response.headers.len() * 40);
        let reason = response.extensions.get::<Reason>();
        if self.version == Version::HTTP_11 && response.status == StatusCode::OK && reason.is_none() {
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        } else {
            out.extend_from_slice(if self.version == Version::HTTP_10 { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
            out.extend_from_slice(response.status.as_str().as_bytes());
            out.push(b' ');
            let usual = response.status.canonical_reason().unwrap_or("<none>").as_bytes();
            out.extend_from_slice(reason.map_or(usual, Reason::as_bytes));
            out.extend_from_slice(b"\r\n");
        }
        let mut has_date = false;
        for (name, value) in &response.headers {
            match *name {
                header::CONTENT_LENGTH if framing != Framing::FromHandler => continue,
                header::TRANSFER_ENCODING => continue,
                header::CONNECTION => {
                    keep_alive &= !value.as_bytes().eq_ignore_ascii_case(b"close");
                    continue;
                }
                header::DATE => has_date = true,
                _ => {}
            }
            out.extend_from_slice(name.as_str().as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        match framing {
            Framing::Length(length) => {
                out.extend_from_slice(b"content-length: ");
                write_number(out, length);
                out.extend_from_slice(b"\r\n");
            }
            Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            Framing::Upgraded => {
                out.extend_from_slice(b"connection: upgrade\r\n\r\n");
                return false;
            }
            Framing::None | Framing::FromHandler | Framing::UntilClose => {}
        }
        match (keep_alive, self.version == Version::HTTP_10) {
            (false, _) => out.extend_from_slice(b"connection: close\r\n"),
            (true, true) => out.extend_from_slice(b"connection: keep-alive\r\n"),
            (true, false) => {}
        }
        if has_date {
            out.extend_from_slice(b"\r\n");
        } else {
            write_date(out, self.time);
        }
        keep_alive
    }
}

/// Writes the response to input that is not a valid request.
pub(super) fn write_refusal(out: &mut Vec<u8>, status: StatusCode) {
    let reason = status.canonical_reason().unwrap_or("<none>");
    out.extend_from_slice(
        format!("HTTP/1.1 {} {reason}\r\nconnection: close\r\ncontent-length: 0\r\n", status.as_str()).as_bytes(),
    );
    write_date(out, SystemTime::now());
}

/// Writes a number in decimal digits.
pub(super) fn write_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut from = digits.len();
    loop {
        from -= 1;
        digits[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[from..]);
}

/// Writes a chunk's length line.
pub(super) fn write_chunk_length(out: &mut Vec<u8>, length: usize) {
    let digits = (usize::BITS - length.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(length >> (4 * digit)) & 15]);
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes `Date` and the head's end, which are formatted once a second.
fn write_date(out: &mut Vec<u8>, time: SystemTime) {
    thread_local! {
        static WRITTEN: RefCell<(u64, Vec<u8>)> = const { RefCell::new((0, Vec::new())) };
    }
    let second = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    WRITTEN.with_borrow_mut(|(of, text)| {
        if *of != second || text.is_empty() {
            let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
            (*of, *text) = (second, format!("date: {date}\r\n\r\n").into_bytes());
        }
        out.extend_from_slice(text);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, Response};

    const ASKED: ResponseContext = ResponseContext { version: Version::HTTP_11, is_head: false, time: UNIX_EPOCH };

    fn parts(status: u16, headers: &[(&'static str, &'static str)]) -> Parts {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        for (name, value) in headers {
            response.headers_mut().append(*name, HeaderValue::from_static(value));
        }
        response.into_parts().0
    }

    fn written(context: ResponseContext, parts: &Parts, framing: Framing, keep_alive: bool) -> String {
        let mut out = Vec::new();
        context.write(&mut out, parts, framing, keep_alive);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_handler_can_close_the_connection() {
        for (said, goes_on) in [("close", false), ("Close", false), ("keep-alive", true)] {
            let mut out = Vec::new();
            let kept = ASKED.write(&mut out, &parts(200, &[("connection", said)]), Framing::Length(0), true);
            let closes = String::from_utf8(out).unwrap().contains("connection: close\r\n");
            assert_eq!((kept, closes), (goes_on, !goes_on), "{said}");
        }
        assert!(!ASKED.write(&mut Vec::new(), &parts(200, &[]), Framing::Length(0), false));
    }

    #[test]
    fn the_connection_replaces_fields_about_itself() {
        let fields = [("x", "1"), ("content-length", "7"), ("transfer-encoding", "gzip"), ("connection", "keep-alive")];
        let end = "date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";
        let text = written(ASKED, &parts(200, &fields), Framing::Length(12), true);
        assert_eq!(text, format!("HTTP/1.1 200 OK\r\nx: 1\r\ncontent-length: 12\r\n{end}"));
        let text = written(ASKED, &parts(404, &fields), Framing::Chunked, false);
        let expected = "HTTP/1.1 404 Not Found\r\nx: 1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n";
        assert_eq!(text, format!("{expected}{end}"));
        let old = ResponseContext { version: Version::HTTP_10, ..ASKED };
        let text = written(old, &parts(200, &[("date", "today")]), Framing::UntilClose, true);
        assert_eq!(text, "HTTP/1.0 200 OK\r\ndate: today\r\nconnection: keep-alive\r\n\r\n");
    }

    #[test]
    fn framing_depends_on_method_status_version_and_length() {
        let plain = parts(200, &[]);
        let told = parts(200, &[("content-length", "7")]);
        let head = ResponseContext { is_head: true, ..ASKED };
        let old = ResponseContext { version: Version::HTTP_10, ..ASKED };
        assert_eq!(ASKED.framing(&plain, Some(0)), Framing::Length(0));
        assert_eq!(ASKED.framing(&told, Some(3)), Framing::Length(3));
        assert_eq!(ASKED.framing(&told, None), Framing::Length(7));
        assert_eq!(ASKED.framing(&plain, None), Framing::Chunked);
        assert_eq!(old.framing(&plain, None), Framing::UntilClose);
        assert_eq!(head.framing(&told, Some(0)), Framing::FromHandler);
        assert_eq!(head.framing(&plain, Some(9)), Framing::Length(9));
        assert_eq!(ASKED.framing(&parts(304, &[]), Some(9)), Framing::None);
        assert_eq!(ASKED.framing(&parts(204, &[]), None), Framing::None);
    }

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 1, 9, 10, 255, 4096, u64::MAX] {
            let mut out = Vec::new();
            write_number(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
        for length in [1, 15, 16, 255, 256, 65_536, usize::MAX] {
            let mut out = Vec::new();
            write_chunk_length(&mut out, length);
            assert_eq!(out, format!("{length:x}\r\n").as_bytes());
        }
    }
}
