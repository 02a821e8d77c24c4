//! A small blocking HTTP/1.1 client, with and without TLS: for checking responses, for testing whether a system is
//! ready, and for the constant-rate generator. It supports only what the measured servers send (length, chunks, or
//! until the end).

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use flate2::read::MultiGzDecoder;

use super::{Target, tls};
use crate::record::Response;

/// One reply, without its body.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Head {
    /// Status code.
    pub status: u16,
    /// Header names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// Size on the wire, with headers and chunk framing.
    pub wire_bytes: u64,
    /// `true` if the server closes the connection after this reply.
    pub closes: bool,
}

impl Head {
    /// Returns the first header with that name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A persistent connection.
#[derive(Debug)]
pub struct Connection {
    stream: Wire,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    wire: u64,
}

/// Transport of a connection.
#[derive(Debug)]
enum Wire {
    Plain(TcpStream),
    Tls(Box<tls::Checked>),
}

impl Wire {
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

const BUFFER: usize = 64 * 1024;
const MAX_HEAD_LEN: usize = 32 * 1024;

impl Connection {
    /// Opens a connection for requests to a target.
    pub fn to(target: &Target, timeout: Duration) -> std::io::Result<Self> {
        let stream = Self::tcp(target.address, timeout)?;
        Ok(Self::over(match &target.tls {
            None => Wire::Plain(stream),
            Some(tls) => Wire::Tls(Box::new(tls::checked(tls, stream)?)),
        }))
    }

    pub fn open(address: SocketAddr, timeout: Duration) -> std::io::Result<Self> {
        Self::tcp(address, timeout).map(|stream| Self::over(Wire::Plain(stream)))
    }

    fn tcp(address: SocketAddr, timeout: Duration) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(stream)
    }

    fn over(stream: Wire) -> Self {
        Self { stream, buffer: vec![0; BUFFER], start: 0, end: 0, wire: 0 }
    }

    /// Sends a request and reads its whole reply; the body goes to `sink` if there is one.
    pub fn exchange(&mut self, request: &[u8], mut sink: Option<&mut Vec<u8>>) -> std::io::Result<Head> {
        self.wire = 0;
        self.stream.send(request)?;
        let mut head = self.read_head()?;
        let no_body = matches!(head.status, 100..=199 | 204 | 304);
        let chunked = head.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        let length = head.header("content-length").and_then(|value| value.trim().parse::<u64>().ok());
        if no_body {
        } else if chunked {
            self.read_chunks(&mut sink)?;
        } else if let Some(length) = length {
            self.read_exactly(length, &mut sink)?;
        } else {
            loop {
                self.take(usize::MAX, &mut sink);
                if !self.fill()? {
                    break;
                }
            }
            head.closes = true;
        }
        head.wire_bytes = self.wire;
        Ok(head)
    }

    fn fill(&mut self) -> std::io::Result<bool> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let count = self.stream.read(&mut self.buffer[self.end..])?;
        self.end += count;
        Ok(count > 0)
    }

    fn need_more(&mut self) -> std::io::Result<()> {
        if self.fill()? { Ok(()) } else { Err(std::io::Error::new(ErrorKind::UnexpectedEof, "the reply ended early")) }
    }

    fn take(&mut self, most: usize, sink: &mut Option<&mut Vec<u8>>) -> usize {
        let count = most.min(self.end - self.start);
        if let Some(sink) = sink {
            sink.extend_from_slice(&self.buffer[self.start..self.start + count]);
        }
        self.start += count;
        self.wire += count as u64;
        count
    }

    fn read_exactly(&mut self, length: u64, sink: &mut Option<&mut Vec<u8>>) -> std::io::Result<()> {
        let mut left = length;
        while left > 0 {
            if self.start == self.end {
                self.need_more()?;
            }
            left -= self.take(usize::try_from(left).unwrap_or(usize::MAX), sink) as u64;
        }
        Ok(())
    }

    fn read_line(&mut self) -> std::io::Result<Vec<u8>> {
        let mut seen = 0;
        loop {
            if let Some(at) = self.buffer[self.start + seen..self.end].iter().position(|byte| *byte == b'\n') {
                let mut line = Vec::new();
                self.take(seen + at + 1, &mut Some(&mut line));
                while line.last().is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
                    line.pop();
                }
                return Ok(line);
            }
            seen = self.end - self.start;
            if seen > MAX_HEAD_LEN {
                return Err(std::io::Error::new(ErrorKind::InvalidData, "a header line is too long"));
            }
            self.need_more()?;
        }
    }

    fn read_chunks(&mut self, sink: &mut Option<&mut Vec<u8>>) -> std::io::Result<()> {
        let broken = || std::io::Error::new(ErrorKind::InvalidData, "a chunk has no length");
        loop {
            let line = self.read_line()?;
            let text = std::str::from_utf8(&line).map_err(|_| broken())?;
            let size = u64::from_str_radix(text.split(';').next().unwrap_or("").trim(), 16).map_err(|_| broken())?;
            if size == 0 {
                while !self.read_line()?.is_empty() {}
                return Ok(());
            }
            self.read_exactly(size, sink)?;
            self.read_line()?;
        }
    }

    fn read_head(&mut self) -> std::io::Result<Head> {
        let status_line = self.read_line()?;
        let status = std::str::from_utf8(&status_line)
            .ok()
            .filter(|line| line.starts_with("HTTP/1."))
            .and_then(|line| line.split(' ').nth(1))
            .and_then(|code| code.parse().ok())
            .ok_or_else(|| std::io::Error::new(ErrorKind::InvalidData, "this is not HTTP/1.1"))?;
        let mut head = Head { status, closes: status_line.starts_with(b"HTTP/1.0"), ..Head::default() };
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                break;
            }
            let text = String::from_utf8_lossy(&line);
            if let Some((name, value)) = text.split_once(':') {
                head.headers.push((name.trim().to_lowercase(), value.trim().to_owned()));
            }
        }
        if let Some(value) = head.header("connection") {
            head.closes = value.eq_ignore_ascii_case("close");
        }
        Ok(head)
    }
}

/// Sends one request. Returns the facts about its response and its decoded body.
pub fn ask(target: &Target, timeout: Duration) -> Result<(Response, Vec<u8>)> {
    let mut connection =
        Connection::to(target, timeout).with_context(|| format!("cannot connect to {}", target.address))?;
    let mut raw = Vec::new();
    let request = target.request();
    let head = connection
        .exchange(&request, Some(&mut raw))
        .with_context(|| format!("no complete reply to GET {}", target.url()))?;
    let encoding = head.header("content-encoding").unwrap_or("identity").to_lowercase();
    let body = match encoding.as_str() {
        "identity" => raw,
        "gzip" | "x-gzip" => {
            let mut body = Vec::new();
            MultiGzDecoder::new(raw.as_slice()).read_to_end(&mut body).context("the gzip body is damaged")?;
            body
        }
        other => bail!("the response is encoded as {other}, which was not requested"),
    };
    let response = Response {
        status: head.status,
        content_type: head.header("content-type").unwrap_or("").to_owned(),
        encoding,
        body_bytes: body.len() as u64,
        wire_bytes: head.wire_bytes,
        hash: format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&body)),
    };
    Ok((response, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn serve(reply: &'static [u8], close: bool) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            // In two pieces, so that the reader has to continue.
            while stream.read(&mut request).unwrap_or(0) > 0 {
                let (first, second) = reply.split_at(reply.len() / 2);
                stream.write_all(first).unwrap();
                stream.flush().unwrap();
                stream.write_all(second).unwrap();
                if close {
                    break;
                }
            }
        });
        address
    }

    fn target(address: SocketAddr) -> Target {
        Target { address, path: "/x".into(), accept_encoding: "gzip".into(), tls: None }
    }

    #[test]
    fn chunks_and_trailers_are_joined() {
        let reply =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nX: y\r\n\r\n";
        let (response, body) = ask(&target(serve(reply, false)), Duration::from_secs(5)).unwrap();
        assert_eq!(body, b"hello world");
        assert_eq!(response.wire_bytes, reply.len() as u64);
    }

    #[test]
    fn connection_is_used_again() {
        let address = serve(b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc", false);
        let mut connection = Connection::open(address, Duration::from_secs(5)).unwrap();
        for _ in 0..3 {
            let mut body = Vec::new();
            let head = connection.exchange(&target(address).request(), Some(&mut body)).unwrap();
            assert_eq!((head.status, body.as_slice(), head.closes), (404, b"abc".as_slice(), false));
        }
    }

    #[test]
    fn body_until_the_end_of_the_connection() {
        let (response, body) =
            ask(&target(serve(b"HTTP/1.0 200 OK\r\n\r\nrest", true)), Duration::from_secs(5)).unwrap();
        assert_eq!((response.status, body.as_slice()), (200, b"rest".as_slice()));
    }

    #[test]
    fn broken_reply_is_an_error() {
        let address = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", true);
        let error = ask(&target(address), Duration::from_secs(5)).unwrap_err();
        assert!(format!("{error:#}").contains("ended early"), "{error:#}");
        let address = serve(b"SSH-2.0-OpenSSH\r\n", true);
        assert!(ask(&target(address), Duration::from_secs(5)).is_err());
    }

    #[test]
    fn gzip_is_decoded_and_both_sizes_are_kept() {
        let (response, body) = {
            use flate2::{Compression, write::GzEncoder};
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&[b'x'; 5000]).unwrap();
            let packed = encoder.finish().unwrap();
            let mut reply =
                format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", packed.len())
                    .into_bytes();
            reply.extend(packed);
            ask(&target(serve(reply.leak(), false)), Duration::from_secs(5)).unwrap()
        };
        assert_eq!(body, [b'x'; 5000]);
        assert_eq!((response.encoding.as_str(), response.body_bytes), ("gzip", 5000));
        assert!(response.wire_bytes < 500);
    }
}
