//! A request's head in HTTP/1: from bytes to method, target, fields, and how its body is framed.
//!
//! Header lines are taken apart by `httparse`; the request line is read here, since targets are kept as clients spell
//! them. Where a lenient reading could make two servers see different requests (RFC 9112 11.2), the request is refused:
//! no folded lines, no space before a colon, no `Transfer-Encoding` with `Content-Length` or in HTTP/1.0, no two
//! different lengths.

use crate::exchange::Head;
use crate::hop_by_hop;
use crate::multiplexed::number;
use crate::target::Target;
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Version};

/// Maximum number of header lines of a request.
const MAX_HEADER_LINES: usize = 100;
/// Header lines that most requests do not exceed. Clearing an array for more costs more than parsing them.
const USUAL_LINES: usize = 24;

/// A complete, parsed head.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) head: Box<Head>,
    pub(crate) framing: Framing,
    /// The client allows another request on the connection.
    pub(crate) keep_alive: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub(crate) expects_continue: bool,
}

/// Framing of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    Length(u64),
    Chunked,
}

/// Reason why the head is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// 400.
    Bad,
    /// 431: more than `MAX_HEADER_LINES`.
    TooMany,
}

impl From<httparse::Error> for Refused {
    fn from(error: httparse::Error) -> Self {
        if error == httparse::Error::TooManyHeaders { Self::TooMany } else { Self::Bad }
    }
}

/// Parses the head at the beginning of `input`. Returns it with its length in bytes, or `None` if it is incomplete.
pub(crate) fn parse(input: &[u8]) -> Result<Option<(Parsed, usize)>, Refused> {
    let Some(line) = RequestLine::read(input)? else { return Ok(None) };
    let fields = &input[line.length..];
    let mut few = [httparse::EMPTY_HEADER; USUAL_LINES];
    match httparse::parse_headers(fields, &mut few) {
        Ok(httparse::Status::Complete((length, lines))) => line.complete(input, length, lines).map(Some),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            let mut many = [httparse::EMPTY_HEADER; MAX_HEADER_LINES];
            match httparse::parse_headers(fields, &mut many)? {
                httparse::Status::Complete((length, lines)) => line.complete(input, length, lines).map(Some),
                httparse::Status::Partial => Ok(None),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// `true` if a head that was incomplete at `before` bytes may be complete now, because an empty line has arrived. So a
/// head that arrives byte by byte is not parsed for each byte.
pub(crate) fn may_be_complete(input: &[u8], before: usize) -> bool {
    let new = &input[before.saturating_sub(3)..];
    let mut ends = new.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    ends.any(|at| matches!(new[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}

/// A request line, as ranges of the input.
struct RequestLine {
    method: std::ops::Range<usize>,
    target: std::ops::Range<usize>,
    is_1_1: bool,
    /// Bytes up to the first header line, including leading empty lines.
    length: usize,
}

impl RequestLine {
    /// Returns `None` if the line is incomplete and valid so far.
    fn read(input: &[u8]) -> Result<Option<Self>, Refused> {
        let mut start = 0;
        // RFC 9112 2.2: empty lines in front are skipped.
        loop {
            match input[start..] {
                [b'\n', ..] => start += 1,
                [b'\r', b'\n', ..] => start += 2,
                [b'\r'] | [] => return Ok(None),
                [b'\r', ..] => return Err(Refused::Bad),
                _ => break,
            }
        }
        let line = &input[start..];
        let Some(method) = line.iter().position(|&byte| !is_token(byte)) else { return Ok(None) };
        if method == 0 || line[method] != b' ' {
            return Err(Refused::Bad);
        }
        let rest = &line[method + 1..];
        let Some(target) = rest.iter().position(|&byte| byte <= b' ' || byte == 0x7f) else { return Ok(None) };
        if target == 0 || rest[target] != b' ' {
            return Err(Refused::Bad);
        }
        let rest = &rest[target + 1..];
        let (is_1_1, version) = match rest {
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1', b'\r', b'\n', ..] => (true, 10),
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0', b'\r', b'\n', ..] => (false, 10),
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1', b'\n', ..] => (true, 9),
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0', b'\n', ..] => (false, 9),
            begun if b"HTTP/1.1\r\n".starts_with(begun) || b"HTTP/1.0\r\n".starts_with(begun) => return Ok(None),
            _ => return Err(Refused::Bad),
        };
        let after = start + method + 1;
        Ok(Some(Self {
            method: start..start + method,
            target: after..after + target,
            is_1_1,
            length: after + target + 1 + version,
        }))
    }

    fn complete(self, input: &[u8], fields: usize, lines: &[httparse::Header<'_>]) -> Result<(Parsed, usize), Refused> {
        let length = self.length + fields;
        // One allocation for the target and all values.
        let bytes = Bytes::copy_from_slice(&input[..length]);
        let method = Method::from_bytes(&input[self.method]).map_err(|_| Refused::Bad)?;
        let target = Target::parse(bytes.slice(self.target)).map_err(|_| Refused::Bad)?;
        let mut meaning = HeaderInfo { keep_alive: self.is_1_1, ..HeaderInfo::default() };
        let mut headers = HeaderMap::with_capacity(lines.len());
        for line in lines {
            let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| Refused::Bad)?;
            let start = line.value.as_ptr().addr() - input.as_ptr().addr();
            let value = bytes.slice(start..start + line.value.len());
            let value = HeaderValue::from_maybe_shared(value).map_err(|_| Refused::Bad)?;
            if meaning.read(&name, &value)? {
                headers.append(name, value);
            }
        }
        if meaning.lists_fields {
            hop_by_hop::strip_listed(&mut headers);
        }
        let framing = meaning.framing(self.is_1_1)?;
        let version = if self.is_1_1 { Version::HTTP_11 } else { Version::HTTP_10 };
        let head = Box::new(Head { method, target, version, headers });
        let expects_continue = meaning.expects_continue && self.is_1_1;
        Ok((Parsed { head, framing, keep_alive: meaning.keep_alive, expects_continue }, length))
    }
}

/// Facts from the headers about the connection and the body.
#[derive(Default)]
struct HeaderInfo {
    length: Option<u64>,
    coded: bool,
    /// The last coding is `chunked`.
    chunked: bool,
    keep_alive: bool,
    closes: bool,
    /// `Connection` names fields.
    lists_fields: bool,
    expects_continue: bool,
}

impl HeaderInfo {
    /// Interprets a field. Returns `false` if it repeats an earlier one and must be dropped.
    fn read(&mut self, name: &HeaderName, value: &HeaderValue) -> Result<bool, Refused> {
        match *name {
            header::CONTENT_LENGTH => {
                let length = number(value.as_bytes()).ok_or(Refused::Bad)?;
                if self.length.is_some_and(|other| other != length) {
                    return Err(Refused::Bad);
                }
                return Ok(self.length.replace(length).is_none());
            }
            header::TRANSFER_ENCODING => {
                self.coded = true;
                let last = value.as_bytes().rsplit(|&byte| byte == b',').next().unwrap_or_default();
                self.chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
            }
            header::CONNECTION => {
                let words = || value.as_bytes().split(|&b| b == b',').map(<[u8]>::trim_ascii);
                let has = |word: &[u8]| words().any(|w| w.eq_ignore_ascii_case(word));
                self.lists_fields |= !words().all(hop_by_hop::is_option_of_the_connection);
                if self.closes || has(b"close") {
                    (self.closes, self.keep_alive) = (true, false);
                } else if !self.keep_alive {
                    self.keep_alive = has(b"keep-alive");
                }
            }
            header::EXPECT => self.expects_continue = value.as_bytes().eq_ignore_ascii_case(b"100-continue"),
            _ => {}
        }
        Ok(true)
    }

    fn framing(&self, is_1_1: bool) -> Result<Framing, Refused> {
        match (self.coded, self.length) {
            (true, Some(_)) => Err(Refused::Bad),
            (true, None) if !is_1_1 || !self.chunked => Err(Refused::Bad),
            (true, None) => Ok(Framing::Chunked),
            (false, Some(0) | None) => Ok(Framing::None),
            (false, Some(length)) => Ok(Framing::Length(length)),
        }
    }
}

/// The characters of a method (RFC 9110 5.6.2).
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
