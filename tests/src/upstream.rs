//! A test's own server, to which requests are proxied: it sees each received byte, and sends whatever the test wants.

use crate::process::{PATIENCE, eventually};
use crate::site::Port;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A running server. Dropping it ends the server.
#[derive(Debug)]
pub struct Upstream {
    port: Port,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    ends: AtomicBool,
    accepted: AtomicUsize,
    requests: AtomicUsize,
    open: AtomicUsize,
    heads: Mutex<Vec<String>>,
    streams: Mutex<Vec<TcpStream>>,
}

/// A connection to the server, for its handler.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    buffer: Vec<u8>,
    shared: Arc<Shared>,
    /// Number of the connection, from 1.
    pub number: usize,
}

impl Upstream {
    /// Starts a server that calls `handle` for each connection, in a separate thread.
    #[must_use]
    pub fn start(handle: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        let mut upstream = Self { port: Port::hold(), shared: Arc::default(), listening: None };
        upstream.listen(handle);
        upstream
    }

    /// Starts a server that sends this response for every request with a complete head, and keeps its connections open.
    pub fn saying(response: &'static str) -> Self {
        Self::start(move |peer| {
            while peer.head().is_some() {
                peer.send(response);
            }
        })
    }

    /// A server with a reserved port that does not listen yet.
    pub fn absent() -> Self {
        Self { port: Port::hold(), shared: Arc::default(), listening: None }
    }

    pub fn listen(&mut self, handle: impl Fn(&mut Peer) + Send + Sync + 'static) {
        let listener = TcpListener::bind(("127.0.0.1", self.port.number)).unwrap_or_else(|e| panic!("listen: {e}"));
        let shared = self.shared.clone();
        shared.ends.store(false, SeqCst);
        self.listening = Some(std::thread::spawn(move || {
            let handle = Arc::new(handle);
            for stream in listener.incoming() {
                if shared.ends.load(SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let number = shared.accepted.fetch_add(1, SeqCst) + 1;
                shared.open.fetch_add(1, SeqCst);
                let copy = stream.try_clone().unwrap_or_else(|e| panic!("{e}"));
                shared.streams.lock().unwrap_or_else(PoisonError::into_inner).push(copy);
                stream.set_nodelay(true).unwrap_or_else(|e| panic!("{e}"));
                let mut peer = Peer { stream, buffer: Vec::new(), shared: shared.clone(), number };
                let handle = handle.clone();
                std::thread::spawn(move || {
                    handle(&mut peer);
                    let _ = peer.stream.shutdown(Shutdown::Both);
                    peer.shared.open.fetch_sub(1, SeqCst);
                });
            }
        }));
    }

    /// Stops listening and ends all connections.
    pub fn end(&mut self) {
        self.shared.ends.store(true, SeqCst);
        if let Some(listening) = self.listening.take() {
            let _ = TcpStream::connect(("127.0.0.1", self.port.number));
            let _ = listening.join();
        }
        self.cut();
    }

    /// Ends all connections: those that the server under test keeps would count as left behind.
    pub fn cut(&self) {
        for stream in self.shared.streams.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn port(&self) -> u16 {
        self.port.number
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port.number)
    }

    /// A `[[rule]]` that proxies everything below `/p/` to this server, for `Setup::setting`.
    pub fn route(&self) -> String {
        format!("[{{ path = \"/p/*\", proxy = \"{}\" }}]", self.url())
    }

    pub fn connections(&self) -> usize {
        self.shared.accepted.load(SeqCst)
    }

    pub fn requests(&self) -> usize {
        self.shared.requests.load(SeqCst)
    }

    pub fn last_head(&self) -> String {
        self.shared.heads.lock().unwrap_or_else(PoisonError::into_inner).last().cloned().unwrap_or_default()
    }

    /// Waits until the clients have closed the connections that this server has ended: a request sent on such a
    /// connection is lost.
    pub fn wait_until_left(&self) {
        assert!(
            eventually(PATIENCE, || !half_closed(self.port.number)),
            "a client keeps a connection that this server has ended"
        );
    }

    /// Waits until all connections have ended.
    pub fn wait_until_alone(&self) {
        assert!(eventually(PATIENCE, || self.shared.open.load(SeqCst) == 0), "connections stay open");
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.end();
    }
}

impl Peer {
    fn fill(&mut self) -> bool {
        let mut piece = [0; 65536];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(n) => {
                self.buffer.extend_from_slice(&piece[..n]);
                true
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(_) => false,
        }
    }

    /// Reads the next request's head, without the empty line; `None` if the connection has ended.
    pub fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.buffer.drain(..end + 4);
                self.shared.heads.lock().unwrap_or_else(PoisonError::into_inner).push(head.clone());
                self.shared.requests.fetch_add(1, SeqCst);
                return Some(head);
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Reads this many bytes; fewer if the connection ends.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length && self.fill() {}
        let length = length.min(self.buffer.len());
        self.buffer.drain(..length).collect()
    }

    /// Reads up to and including this text, or to the connection's end.
    pub fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|bytes| bytes == end.as_bytes()) {
                let all: Vec<u8> = self.buffer.drain(..at + end.len()).collect();
                return String::from_utf8_lossy(&all).into_owned();
            }
            if !self.fill() {
                return String::from_utf8_lossy(&self.buffer).into_owned();
            }
        }
    }

    /// Sends bytes; an ended connection is not an error here.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Waits until the peer has closed.
    pub fn wait_for_end(&mut self) {
        while self.fill() {
            self.buffer.clear();
        }
    }
}

/// True if a client on this machine keeps a connection to this port of 127.0.0.1 whose server side has ended or is
/// ending (proc(5), /proc/net/tcp; states as in the kernel's `net/tcp_states.h`).
fn half_closed(port: u16) -> bool {
    const ENDING: [&str; 2] = ["01", "08"]; // ESTABLISHED, CLOSE_WAIT
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap_or_else(|e| panic!("/proc/net/tcp: {e}"));
    let server = format!("0100007F:{port:04X}");
    sockets.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(2);
        fields.next() == Some(&server) && fields.next().is_some_and(|state| ENDING.contains(&state))
    })
}

/// The head of a response that switches to WebSocket, for the head of its request (RFC 6455 4.2.2).
pub fn switched(request: &str) -> String {
    let key = field(request, "sec-websocket-key").unwrap_or_else(|| panic!("no handshake: {request}"));
    let digest = Sha1::new().chain_update(key).chain_update("258EAFA5-E914-47DA-95CA-C5AB0DC85B11").finalize();
    let accept = STANDARD.encode(digest);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n\r\n"
    )
}

pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
