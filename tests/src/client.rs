//! A small blocking HTTP/1.1 client with control over every byte: pipelining, half-close, chunked bodies, responses
//! read in the pieces in which they arrive. It checks framing strictly, so a server that frames its responses wrongly
//! fails a test.

use crate::patience;
use crate::request::Request;
use crate::response::Response;
use crate::tls::{self, TlsStream};
use crate::versions::{Translated, Version};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Timeout of a read, after which the test fails. It is far above the needs of any scenario, since some request seconds
/// of work on two dozen connections, and the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// Address of a server.
#[derive(Debug, Clone)]
pub enum Target {
    Tcp(SocketAddr),
    /// A TCP address with TLS.
    Tls(SocketAddr),
    /// A TCP address, with this version of HTTP underneath.
    Version(SocketAddr, Version),
    Unix(PathBuf),
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream>),
    Unix(UnixStream),
    Translated(Translated),
}

/// Framing of the body that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
    Ended,
}

#[derive(Debug)]
pub struct Conn {
    stream: Stream,
    buffer: Vec<u8>,
    framing: Framing,
}

impl Conn {
    /// Connects; returns the error if that fails.
    pub fn try_open(target: &Target) -> io::Result<Self> {
        let Target::Version(address, version) = target else { return Self::try_open_for(target, "http/1.1") };
        let translated = Translated::open(*address, *version)?;
        translated.side.set_read_timeout(Some(patience(PATIENCE)))?;
        translated.side.set_write_timeout(Some(patience(PATIENCE)))?;
        Ok(Self { stream: Stream::Translated(translated), buffer: Vec::new(), framing: Framing::Ended })
    }

    /// As `try_open`, offering this protocol (ALPN) if the target uses TLS.
    pub fn try_open_for(target: &Target, protocol: &str) -> io::Result<Self> {
        let stream = match target {
            Target::Tcp(address) => Stream::Tcp(connect(address)?),
            // A scenario that names a protocol writes that protocol's bytes itself.
            Target::Tls(address) | Target::Version(address, _) => {
                Stream::Tls(Box::new(tls::begin(connect(address)?, protocol.as_bytes())?))
            }
            Target::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(patience(PATIENCE)))?;
                stream.set_write_timeout(Some(patience(PATIENCE)))?;
                Stream::Unix(stream)
            }
        };
        Ok(Self { stream, buffer: Vec::new(), framing: Framing::Ended })
    }

    pub fn open(target: &Target) -> Self {
        Self::try_open(target).unwrap_or_else(|e| panic!("cannot connect to {target:?}: {e}"))
    }

    pub fn open_for(target: &Target, protocol: &str) -> Self {
        Self::try_open_for(target, protocol).unwrap_or_else(|e| panic!("cannot connect to {target:?}: {e}"))
    }

    /// The TCP connection that carries HTTP/1; `None` for a Unix socket.
    fn tcp(&self) -> Option<&TcpStream> {
        match &self.stream {
            Stream::Tcp(stream) => Some(stream),
            Stream::Tls(stream) => Some(&stream.sock),
            Stream::Unix(_) | Stream::Translated(_) => None,
        }
    }

    /// The client's port, for comparison with `REMOTE_PORT`.
    pub fn local_port(&self) -> u16 {
        if let Stream::Translated(translated) = &self.stream {
            return translated.local_port;
        }
        self.tcp().and_then(|stream| stream.local_addr().ok()).map_or(0, |address| address.port())
    }

    /// Writes bytes as they are; returns the system's error.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Translated(translated) => translated.side.write_all(bytes),
        }
    }

    /// Writes bytes to the TCP connection, unencrypted also under TLS.
    pub fn send_past_tls(&self, bytes: &[u8]) {
        let Some(mut stream) = self.tcp() else { panic!("not a TCP connection") };
        stream.write_all(bytes).unwrap_or_else(|e| panic!("cannot write to the server: {e}"));
    }

    /// Writes bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes.as_ref()).unwrap_or_else(|e| panic!("cannot write to the server: {e}"));
    }

    /// Sends a request and reads the whole response. The connection stays open if the server keeps it.
    pub fn exchange(&mut self, request: &Request) -> Response {
        self.send(request.bytes());
        self.response(request.method())
    }

    /// Shuts down the sending side.
    pub fn half_close(&mut self) {
        let done = match &mut self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Tls(stream) => {
                stream.conn.send_close_notify();
                stream.flush().and_then(|()| stream.sock.shutdown(Shutdown::Write))
            }
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
            Stream::Translated(translated) => translated.side.shutdown(Shutdown::Write),
        };
        done.unwrap_or_else(|e| panic!("cannot half-close: {e}"));
    }

    /// Resets the connection instead of closing it in order. The reset is sent before this returns; closing the socket
    /// would send it only once no process has a copy (see `Drop`).
    pub fn reset(self) {
        if let Some(stream) = self.tcp() {
            rustix::net::connect_unspec(stream).unwrap_or_else(|e| panic!("cannot reset the connection: {e}"));
        }
    }

    /// Shrinks the kernel's receive buffer, so that a slow reader is slow for the server too.
    pub fn shrink_receive_buffer(&self) {
        if let Some(stream) = self.tcp() {
            rustix::net::sockopt::set_socket_recv_buffer_size(stream, 4096)
                .unwrap_or_else(|e| panic!("cannot set SO_RCVBUF: {e}"));
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut piece = [0u8; 65536];
        let n = loop {
            let read = match &mut self.stream {
                Stream::Tcp(stream) => stream.read(&mut piece),
                Stream::Tls(stream) => stream.read(&mut piece),
                Stream::Unix(stream) => stream.read(&mut piece),
                Stream::Translated(translated) => translated.side.read(&mut piece),
            };
            match read {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    return Err(io::Error::new(ErrorKind::TimedOut, "the server sent nothing in time"));
                }
                other => break other?,
            }
        };
        if n == 0
            && let Stream::Translated(translated) = &self.stream
        {
            translated.check();
        }
        self.buffer.extend_from_slice(&piece[..n]);
        Ok(n)
    }

    /// Reads up to and including the next CRLF and returns the line without it; `None` if the server closed first.
    fn line(&mut self) -> Option<String> {
        let mut from = 0;
        loop {
            if let Some(i) = self.buffer[from..].windows(2).position(|w| w == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..from + i + 2).collect();
                return Some(String::from_utf8_lossy(&line[..line.len() - 2]).into_owned());
            }
            from = self.buffer.len().saturating_sub(1);
            match self.fill() {
                Ok(0) => {
                    assert!(
                        self.buffer.is_empty(),
                        "connection ended inside a line: {:?}",
                        self.buffer.escape_ascii().to_string()
                    );
                    return None;
                }
                Ok(_) => {}
                Err(e) if is_end(&e) => return None,
                Err(e) => panic!("waiting for a line: {e}"),
            }
        }
    }

    /// Reads one head, interim or final; `None` if the server closed instead.
    fn one_head(&mut self) -> Option<Response> {
        let line = self.line()?;
        let mut parts = line.splitn(3, ' ');
        let version = parts.next().unwrap_or("").to_owned();
        assert!(version.starts_with("HTTP/1."), "not a status line: {line:?}");
        let status = parts.next().and_then(|s| s.parse().ok()).unwrap_or_else(|| panic!("bad status line {line:?}"));
        let reason = parts.next().unwrap_or("").to_owned();
        let mut headers = Vec::new();
        loop {
            let line = self.line().unwrap_or_else(|| panic!("connection ended inside a head"));
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("bad header line {line:?}"));
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        Some(Response { version, status, reason, headers, ..Response::default() })
    }

    /// Reads the next head, interim or final.
    #[must_use]
    pub fn next_head(&mut self) -> Response {
        self.one_head().unwrap_or_else(|| panic!("the server closed the connection instead of answering"))
    }

    /// Reads heads up to the final one; its body follows with `read_some`. `None` if the server closed instead.
    pub fn try_head(&mut self, method: &str) -> Option<Response> {
        assert_eq!(self.framing, Framing::Ended, "the previous answer has not been read to its end");
        let mut interim = Vec::new();
        let mut head = loop {
            let head = self.one_head()?;
            if head.status >= 200 {
                break head;
            }
            interim.push(head);
        };
        head.interim = interim;
        let lengths = head.all("content-length");
        let chunked = head.header("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked"));
        assert!(!chunked || lengths.is_empty(), "both Content-Length and chunked: {head:?}");
        assert!(lengths.len() <= 1, "Content-Length more than once: {head:?}");
        self.framing = if method == "HEAD" || head.status == 204 || head.status == 304 {
            Framing::Ended
        } else if chunked {
            Framing::Chunked
        } else if let Some(length) = lengths.first() {
            match length.parse().unwrap_or_else(|_| panic!("bad Content-Length {length:?}")) {
                0 => Framing::Ended,
                n => Framing::Length(n),
            }
        } else {
            Framing::UntilClose
        };
        Some(head)
    }

    /// Reads heads up to the final one; its body follows with `read_some`.
    pub fn head(&mut self, method: &str) -> Response {
        self.try_head(method).unwrap_or_else(|| panic!("the server closed the connection instead of answering"))
    }

    /// Reads the next part of the body as it arrives; `None` at its end, an error if it ends early.
    pub fn try_read_some(&mut self) -> io::Result<Option<Vec<u8>>> {
        let broken = || io::Error::new(ErrorKind::UnexpectedEof, "the body ended early");
        match self.framing {
            Framing::Ended => Ok(None),
            Framing::Length(left) => {
                if self.buffer.is_empty() && self.fill()? == 0 {
                    return Err(broken());
                }
                let n = usize::try_from(left).unwrap_or(usize::MAX).min(self.buffer.len());
                let piece = self.buffer.drain(..n).collect();
                let left = left - n as u64;
                self.framing = if left == 0 { Framing::Ended } else { Framing::Length(left) };
                Ok(Some(piece))
            }
            Framing::UntilClose => {
                if self.buffer.is_empty() && self.fill()? == 0 {
                    self.framing = Framing::Ended;
                    return Ok(None);
                }
                Ok(Some(std::mem::take(&mut self.buffer)))
            }
            Framing::Chunked => {
                let size = self.line().ok_or_else(broken)?;
                let digits = size.split(';').next().unwrap_or("").trim();
                let size = usize::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("bad chunk size {size:?}"));
                if size == 0 {
                    while !self.line().ok_or_else(broken)?.is_empty() {}
                    self.framing = Framing::Ended;
                    return Ok(None);
                }
                while self.buffer.len() < size + 2 {
                    if self.fill()? == 0 {
                        return Err(broken());
                    }
                }
                let mut piece: Vec<u8> = self.buffer.drain(..size + 2).collect();
                assert_eq!(&piece[size..], b"\r\n", "a chunk must end with CRLF");
                piece.truncate(size);
                Ok(Some(piece))
            }
        }
    }

    /// Reads the next part of the body as it arrives; `None` at its end.
    pub fn read_some(&mut self) -> Option<Vec<u8>> {
        self.try_read_some().unwrap_or_else(|e| panic!("reading the body: {e}"))
    }

    /// Reads the body until it contains `needle`, and returns everything read.
    pub fn read_until(&mut self, needle: &str) -> String {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(needle) {
            match self.read_some() {
                Some(piece) => seen.extend(piece),
                None => panic!("the body ended before {needle:?}: {:?}", String::from_utf8_lossy(&seen)),
            }
        }
        String::from_utf8_lossy(&seen).into_owned()
    }

    pub fn read_rest(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        while let Some(piece) = self.read_some() {
            body.extend(piece);
        }
        body
    }

    /// Reads a whole response, or returns `None` if the server closed instead of responding.
    pub fn try_response(&mut self, method: &str) -> Option<Response> {
        let mut response = self.try_head(method)?;
        response.body = self.read_rest();
        Some(response)
    }

    pub fn response(&mut self, method: &str) -> Response {
        let mut response = self.head(method);
        response.body = self.read_rest();
        response
    }

    /// Reads the next byte from the wire, outside of any response.
    pub fn raw_byte(&mut self) -> Option<u8> {
        if self.buffer.is_empty() && self.fill().unwrap_or_else(|e| panic!("waiting for a byte: {e}")) == 0 {
            return None;
        }
        Some(self.buffer.remove(0))
    }

    /// Reads this many bytes from the wire, outside of any response.
    pub fn raw_bytes(&mut self, n: usize) -> Vec<u8> {
        while self.buffer.len() < n {
            let more = self.fill().unwrap_or_else(|e| panic!("waiting for {n} bytes: {e}"));
            assert!(more > 0, "the server closed the connection in the middle");
        }
        self.buffer.drain(..n).collect()
    }

    /// Waits until the server closes the connection; true if no bytes were left to read.
    pub fn closed_by_server(&mut self) -> bool {
        assert!(self.buffer.is_empty(), "unread bytes: {:?}", self.buffer.escape_ascii().to_string());
        match self.fill() {
            Ok(n) => n == 0,
            Err(e) => is_end(&e),
        }
    }
}

fn connect(address: &SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(address, patience(PATIENCE))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience(PATIENCE)))?;
    stream.set_write_timeout(Some(patience(PATIENCE)))?;
    Ok(stream)
}

/// True if the error means that the server has ended the connection: by a reset or, under TLS, by an alert or without
/// one.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof | ErrorKind::InvalidData)
}

impl Drop for Conn {
    /// Closing alone may take effect late: a process that another test is starting has copies of all descriptors until
    /// it executes its program, and they keep the connection alive.
    fn drop(&mut self) {
        // The server may have ended the connection already.
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tls(stream) => stream.sock.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Translated(translated) => translated.side.shutdown(Shutdown::Both),
        };
    }
}
