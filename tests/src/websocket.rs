//! A WebSocket client that writes and reads frames byte by byte, and shares no code with the server.

use crate::client::Conn;
use crate::request::Request;
use crate::response::Response;
use crate::site::Site;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The final bit, the reserved bits and the opcode.
    pub first: u8,
    pub payload: Vec<u8>,
}

pub const TEXT: u8 = 0x81;
pub const BINARY: u8 = 0x82;
pub const CLOSE: u8 = 0x88;
pub const PING: u8 = 0x89;
pub const PONG: u8 = 0x8a;

#[derive(Debug)]
pub struct WebSocket {
    pub conn: Conn,
    /// The response to the handshake.
    pub head: Response,
}

impl WebSocket {
    pub fn open(site: &Site, target: &str) -> Self {
        Self::ask(site, target, &[]).unwrap_or_else(|response| panic!("no connection: {response:?}"))
    }

    /// Requests a connection with additional header fields.
    ///
    /// # Errors
    /// The response, unless its status is 101.
    pub fn ask(site: &Site, target: &str, fields: &[(&str, &str)]) -> Result<Self, Box<Response>> {
        let mut conn = site.conn();
        let request = Request::get(target)
            .header("Connection", "keep-alive, Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        let request = fields.iter().fold(request, |request, (name, value)| request.header(name, value));
        conn.send(request.bytes());
        let head = conn.next_head();
        if head.status != 101 {
            return Err(Box::new(head));
        }
        assert_eq!(head.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        Ok(Self { conn, head })
    }

    /// Sends a frame, masked.
    pub fn send(&mut self, first: u8, payload: impl AsRef<[u8]>) {
        self.conn.send(frame(first, payload.as_ref()));
    }

    /// Reads the next frame; `None` if the server has closed the connection. Answers pings, which the server sends to
    /// silent clients, such as those on a slow machine.
    pub fn try_next(&mut self) -> Option<Frame> {
        loop {
            let frame = self.any_next()?;
            if frame.first != PING {
                return Some(frame);
            }
            let _ = self.conn.try_send(&self::frame(PONG, &frame.payload));
        }
    }

    fn any_next(&mut self) -> Option<Frame> {
        let first = self.conn.raw_byte()?;
        let mut bytes = |n| self.conn.raw_bytes(n);
        let short = bytes(1)[0];
        assert!(short & 0x80 == 0, "the server masked a frame");
        let number = |bytes: Vec<u8>| bytes.iter().fold(0, |number, &byte| number << 8 | usize::from(byte));
        let length = match short {
            126 => number(bytes(2)),
            127 => number(bytes(8)),
            short => usize::from(short),
        };
        Some(Frame { first, payload: bytes(length) })
    }

    fn some_next(&mut self) -> Frame {
        self.try_next().unwrap_or_else(|| panic!("the server closed the connection without a close frame"))
    }

    /// Reads the next frame, which must be of this kind, as text.
    #[must_use]
    pub fn next(&mut self, first: u8) -> String {
        let frame = self.some_next();
        let text = frame.payload.escape_ascii().to_string();
        assert_eq!(frame.first, first, "{}", &text[..text.len().min(200)]);
        String::from_utf8(frame.payload).unwrap_or(text)
    }

    /// Returns the server's close code, after frames of other kinds; confirms the close and awaits the connection's
    /// end.
    #[must_use]
    pub fn closed(&mut self) -> u16 {
        loop {
            let frame = self.some_next();
            if frame.first != CLOSE {
                continue;
            }
            let code = frame.payload.first_chunk().map_or(1005, |code| u16::from_be_bytes(*code));
            // The server may already be gone after a broken frame.
            let _ = self.conn.try_send(&self::frame(CLOSE, &frame.payload));
            assert_eq!(self.try_next(), None);
            return code;
        }
    }
}

/// A client's frame.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match payload.len() {
        short if short < 126 => out.push(0x80 | short as u8),
        long if long < 1 << 16 => {
            out.push(0x80 | 126);
            out.extend((long as u16).to_be_bytes());
        }
        long => {
            out.push(0x80 | 127);
            out.extend((long as u64).to_be_bytes());
        }
    }
    let mask = [1, 2, 3, 4];
    out.extend(mask);
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}
