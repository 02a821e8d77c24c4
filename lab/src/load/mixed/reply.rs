//! Parses a reply from the bytes received so far.

use std::borrow::Cow;

/// Maximum number of headers of a reply.
const MAX_HEADERS: usize = 64;

#[derive(Debug, PartialEq)]
pub struct Reply<'a> {
    /// Status code.
    pub status: u16,
    /// The body without chunk framing.
    pub body: Cow<'a, [u8]>,
    /// `true` if the connection closes after it.
    pub closes: bool,
    /// Its length in bytes.
    pub length: usize,
}

/// The bytes are not a reply.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken;

/// Content of a reply's head.
struct Head {
    status: u16,
    /// Length of the head in bytes.
    start: usize,
    length: Option<usize>,
    chunked: bool,
    closes: bool,
}

/// A reply whose head contains its whole length.
#[derive(Debug, PartialEq, Eq)]
pub struct SizedHead {
    pub status: u16,
    pub closes: bool,
    /// Bytes of the reply, head and body.
    pub length: usize,
}

fn head(bytes: &[u8]) -> Result<Option<Head>, Broken> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let start = match head.parse(bytes) {
        Ok(httparse::Status::Complete(start)) => start,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Broken),
    };
    let status = head.code.ok_or(Broken)?;
    let (mut length, mut chunked, mut closes) = (None, false, head.version == Some(0));
    for header in head.headers.iter() {
        let value = header.value.trim_ascii();
        if header.name.eq_ignore_ascii_case("content-length") {
            let text = std::str::from_utf8(value).map_err(|_| Broken)?;
            length = Some(text.parse::<usize>().map_err(|_| Broken)?);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = value.eq_ignore_ascii_case(b"chunked");
        } else if header.name.eq_ignore_ascii_case("connection") {
            closes = value.eq_ignore_ascii_case(b"close");
        }
    }
    if matches!(status, 204 | 304) {
        (length, chunked) = (Some(0), false);
    }
    Ok(Some(Head { status, start, length, chunked, closes }))
}

/// Returns the head at the start of `bytes`, if it is complete and contains the length.
pub fn sized_head(bytes: &[u8]) -> Result<Option<SizedHead>, Broken> {
    let Some(Head { status, start, length: Some(length), chunked: false, closes }) = head(bytes)? else {
        return Ok(None);
    };
    Ok(Some(SizedHead { status, closes, length: start + length }))
}

/// Returns the reply at the start of `bytes`, if it is complete. `ended` means that no more data follows.
pub fn parse(bytes: &[u8], ended: bool) -> Result<Option<Reply<'_>>, Broken> {
    let Some(Head { status, start, length, chunked, mut closes }) = head(bytes)? else {
        return if ended { Err(Broken) } else { Ok(None) };
    };
    let rest = &bytes[start..];
    let (body, used) = if chunked {
        match chunks(rest)? {
            Some(found) => found,
            None if ended => return Err(Broken),
            None => return Ok(None),
        }
    } else if let Some(length) = length {
        match rest.get(..length) {
            Some(body) => (Cow::Borrowed(body), length),
            None if ended => return Err(Broken),
            None => return Ok(None),
        }
    } else if ended {
        closes = true;
        (Cow::Borrowed(rest), rest.len())
    } else {
        return Ok(None);
    };
    Ok(Some(Reply { status, body, closes, length: start + used }))
}

/// A body, and its length with chunk framing.
type Chunked<'a> = (Cow<'a, [u8]>, usize);

/// Decodes a chunked body; borrows it if there is only one chunk.
fn chunks(bytes: &[u8]) -> Result<Option<Chunked<'_>>, Broken> {
    let mut body = Cow::Borrowed(&[][..]);
    let mut at = 0;
    loop {
        let (mark, size) = match httparse::parse_chunk_size(&bytes[at..]) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(Broken),
        };
        at += mark;
        if size == 0 {
            return Ok(trailers(&bytes[at..]).map(|used| (body, at + used)));
        }
        let size = usize::try_from(size).map_err(|_| Broken)?;
        let Some(chunk) = bytes[at..].get(..size) else { return Ok(None) };
        let Some(end) = bytes[at + size..].get(..2) else { return Ok(None) };
        if end != b"\r\n" {
            return Err(Broken);
        }
        if body.is_empty() {
            body = Cow::Borrowed(chunk);
        } else {
            body.to_mut().extend_from_slice(chunk);
        }
        at += size + 2;
    }
}

/// Returns the length of the trailers with the empty line that ends them.
fn trailers(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(b"\r\n") {
        return Some(2);
    }
    bytes.windows(4).position(|part| part == b"\r\n\r\n").map(|at| at + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every shorter prefix is incomplete, and the whole is the reply, also with more data after it.
    fn assert_whole(text: &[u8], status: u16, body: &[u8], closes: bool) {
        for cut in 0..text.len() {
            assert_eq!(parse(&text[..cut], false), Ok(None), "cut at {cut}");
            assert!(parse(&text[..cut], true).is_err(), "ended at {cut}");
        }
        let mut more = text.to_vec();
        more.extend_from_slice(b"HTTP/1.1");
        for bytes in [text, &more] {
            let reply = parse(bytes, false).unwrap().unwrap();
            assert_eq!((reply.status, reply.body.as_ref(), reply.closes), (status, body, closes));
            assert_eq!(reply.length, text.len());
        }
    }

    #[test]
    fn bodies_of_known_length() {
        assert_whole(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello", false);
        assert_whole(b"HTTP/1.1 503 X\r\nconnection: Close\r\ncontent-length: 2\r\n\r\nno", 503, b"no", true);
        assert_whole(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, b"", false);
        assert_whole(b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", false);
        assert_whole(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, b"x", true);
    }

    #[test]
    fn a_length_is_known_from_the_head() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nConnection: close\r\n\r\nhel";
        let head = sized_head(text).unwrap();
        assert_eq!(head, Some(SizedHead { status: 200, closes: true, length: text.len() - 3 + 500 }));
        assert_eq!(sized_head(&text[..30]), Ok(None));
        assert_eq!(sized_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), Ok(None));
        assert_eq!(sized_head(b"SSH-2.0-OpenSSH\r\n"), Err(Broken));
    }

    #[test]
    fn bodies_in_chunks() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_whole(format!("{head}5\r\nslept\r\n0\r\n\r\n").as_bytes(), 200, b"slept", false);
        assert_whole(format!("{head}2;x=y\r\nsl\r\n3\r\nept\r\n0\r\n\r\n").as_bytes(), 200, b"slept", false);
        assert_whole(format!("{head}1\r\nx\r\n0\r\nA: b\r\n\r\n").as_bytes(), 200, b"x", false);
        assert_whole(format!("{head}0\r\n\r\n").as_bytes(), 200, b"", false);
    }

    #[test]
    fn bodies_until_the_end() {
        let text = b"HTTP/1.1 200 OK\r\n\r\nrest";
        assert_eq!(parse(text, false), Ok(None));
        let reply = parse(text, true).unwrap().unwrap();
        assert_eq!((reply.body.as_ref(), reply.closes), (b"rest".as_slice(), true));
    }

    #[test]
    fn an_invalid_reply_is_broken() {
        for text in [
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz",
        ] {
            assert_eq!(parse(text.as_bytes(), false), Err(Broken), "{text}");
        }
    }
}
