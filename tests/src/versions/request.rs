//! Parses requests as scenarios write them: the head, then the body in the pieces in which it arrives.

use super::End;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use tokio::io::AsyncReadExt;
use tokio::net::unix::ReadHalf;

/// State of a body that is not complete yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Bytes(u64),
    /// The next chunk's size follows.
    Chunk,
    Ended,
}

/// Bytes that a scenario writes.
pub(super) struct Input<'a> {
    from: ReadHalf<'a>,
    buffer: Vec<u8>,
    left: Left,
}

pub(super) struct Head {
    pub(super) request: Request<()>,
    pub(super) has_body: bool,
    /// The client wants no further request on this connection.
    pub(super) closes: bool,
}

fn complaint(what: impl Into<String>) -> End {
    End::Complaint(what.into())
}

impl<'a> Input<'a> {
    pub(super) fn new(from: ReadHalf<'a>) -> Self {
        Self { from, buffer: Vec::new(), left: Left::Ended }
    }

    /// Reads more; false at the end.
    async fn fill(&mut self) -> Result<bool, End> {
        self.buffer.reserve(65536);
        Ok(self.from.read_buf(&mut self.buffer).await.map_err(|_| End::Gone)? > 0)
    }

    /// Reads the next request's head; `None` if there is none.
    pub(super) async fn head(&mut self) -> Result<Option<Head>, End> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.fill().await? {
                return if self.buffer.is_empty() { Ok(None) } else { Err(complaint("the head ends early")) };
            }
        };
        let bytes: Vec<u8> = self.buffer.drain(..end).collect();
        self.take_apart(&bytes).map(Some)
    }

    fn take_apart(&mut self, bytes: &[u8]) -> Result<Head, End> {
        let mut lines = vec![httparse::EMPTY_HEADER; 4096];
        let mut parsed = httparse::Request::new(&mut lines);
        let done = parsed.parse(bytes);
        if !done.as_ref().is_ok_and(httparse::Status::is_complete) || parsed.version != Some(1) {
            return Err(complaint("not an HTTP/1.1 request"));
        }
        let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| complaint("an invalid method"))?;
        let mut headers = HeaderMap::new();
        let (mut hosts, mut closes, mut chunked) = (Vec::new(), false, false);
        for line in parsed.headers.iter() {
            let value = HeaderValue::from_bytes(line.value).map_err(|_| complaint("an invalid header value"))?;
            let text = String::from_utf8_lossy(line.value).to_ascii_lowercase();
            match line.name.to_ascii_lowercase().as_str() {
                "host" => hosts.push(String::from_utf8_lossy(line.value).into_owned()),
                "connection" => closes |= text.split(',').any(|word| word.trim() == "close"),
                "transfer-encoding" if text == "chunked" => chunked = true,
                name @ ("upgrade" | "transfer-encoding" | "keep-alive" | "te") => return Err(complaint(name)),
                name => {
                    let name =
                        HeaderName::from_bytes(name.as_bytes()).map_err(|_| complaint("an invalid header name"))?;
                    headers.append(name, value);
                }
            }
        }
        let [host] = hosts.as_slice() else { return Err(complaint("not exactly one Host line")) };
        if !target.starts_with('/') {
            return Err(complaint("a target that is not a path"));
        }
        let uri = Uri::builder().scheme("https").authority(host.as_str()).path_and_query(target).build();
        let uri = uri.map_err(|_| complaint(format!("the target {target:?} or the host {host:?}")))?;
        if uri.path_and_query().is_none_or(|parsed| parsed.as_str() != target) {
            return Err(complaint(format!("the target {target:?}")));
        }
        let length = headers.get_all("content-length").iter().map(|length| length.to_str().ok()?.parse().ok());
        self.left = match (chunked, length.collect::<Vec<Option<u64>>>().as_slice()) {
            (true, []) => Left::Chunk,
            (false, [] | [Some(0)]) => Left::Ended,
            (false, [Some(length)]) => Left::Bytes(*length),
            _ => return Err(complaint("a body with several lengths")),
        };
        let mut request = Request::new(());
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
        Ok(Head { request, has_body: self.left != Left::Ended, closes })
    }

    /// Reads the next piece of the body; `None` at its end.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, End> {
        loop {
            match self.left {
                Left::Ended => return Ok(None),
                Left::Bytes(left) => {
                    if self.buffer.is_empty() && !self.fill().await? {
                        return Err(End::Gone);
                    }
                    let n = usize::try_from(left).unwrap_or(usize::MAX).min(self.buffer.len());
                    let left = left - n as u64;
                    self.left = if left == 0 { Left::Ended } else { Left::Bytes(left) };
                    return Ok(Some(self.buffer.drain(..n).collect()));
                }
                Left::Chunk => {
                    let line = self.line().await?;
                    let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16);
                    let size = size.map_err(|_| complaint("a chunk without a size"))?;
                    if size == 0 {
                        if !self.line().await?.is_empty() {
                            return Err(complaint("trailers"));
                        }
                        self.left = Left::Ended;
                        continue;
                    }
                    while self.buffer.len() < size + 2 {
                        if !self.fill().await? {
                            return Err(End::Gone);
                        }
                    }
                    let mut piece: Vec<u8> = self.buffer.drain(..size + 2).collect();
                    if piece.split_off(size) != b"\r\n" {
                        return Err(complaint("a chunk without an end"));
                    }
                    return Ok(Some(piece.into()));
                }
            }
        }
    }

    async fn line(&mut self) -> Result<String, End> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            if !self.fill().await? {
                return Err(End::Gone);
            }
        }
    }
}
