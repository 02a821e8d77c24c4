//! Parses a client's frames into messages, without I/O. No memory is kept between messages.

use crate::close::{Close, Violation};
use crate::deflate;
use bytes::Bytes;

/// Bytes of the longest frame head from a client.
const MAX_HEAD_LEN: usize = 14;
/// Longest payload of a control frame.
const MAX_CONTROL: usize = 125;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A complete message or control frame from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// A message, and `true` if it is binary. A text is UTF-8.
    Message(Bytes, bool),
    /// A ping, to be answered with this payload.
    Ping(Bytes),
    Pong,
    /// The client closes the connection; nothing follows.
    Close(Close),
}

/// The frames of one client.
#[derive(Debug)]
pub struct Receiver {
    /// Maximum size of a message, unpacked.
    limit: usize,
    /// The handshake negotiated permessage-deflate.
    deflate: bool,
    head: [u8; MAX_HEAD_LEN],
    head_len: u8,
    frame: Option<Frame>,
    message: Option<Box<PartialMessage>>,
    control: Vec<u8>,
}

/// A frame whose payload is arriving.
#[derive(Debug, Clone, Copy)]
struct Frame {
    opcode: u8,
    is_last: bool,
    mask: [u8; 4],
    left: usize,
    /// Bytes of the payload received so far: the position in the mask.
    at: usize,
}

/// A message that is not complete.
#[derive(Debug)]
struct PartialMessage {
    is_text: bool,
    packed: bool,
    data: Vec<u8>,
    /// Length of the prefix that is known to be valid UTF-8.
    checked: usize,
}

impl Receiver {
    /// A client with messages of up to `limit` bytes.
    pub fn new(limit: usize, deflate: bool) -> Self {
        Self { limit, deflate, head: [0; MAX_HEAD_LEN], head_len: 0, frame: None, message: None, control: Vec::new() }
    }

    /// Consumes `input` up to the next complete message or control frame; `None` once all of it is consumed.
    ///
    /// # Errors
    /// The client violated the protocol; the connection must be closed with this code.
    pub fn take(&mut self, input: &mut &[u8]) -> Result<Option<Incoming>, Violation> {
        loop {
            let Some(frame) = self.frame else {
                if !self.take_head(input)? {
                    return Ok(None);
                }
                continue;
            };
            if frame.left > 0 {
                if input.is_empty() {
                    return Ok(None);
                }
                self.take_payload(frame, input)?;
                continue;
            }
            self.frame = None;
            if let Some(complete) = self.end_frame(frame)? {
                return Ok(Some(complete));
            }
        }
    }

    /// Bytes of memory of a message that is not complete.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.message.as_ref().map_or(0, |message| size_of::<PartialMessage>() + message.data.capacity())
            + self.control.capacity()
    }

    /// Collects a frame's head; `false` if it is not complete.
    fn take_head(&mut self, input: &mut &[u8]) -> Result<bool, Violation> {
        loop {
            let head_len = usize::from(self.head_len);
            let wanted = match head_len {
                0 | 1 => 2,
                _ => 6 + extended(self.head[1]),
            };
            if head_len >= 2 && head_len == wanted {
                break;
            }
            let bytes = (wanted - head_len).min(input.len());
            if bytes == 0 {
                return Ok(false);
            }
            self.head[head_len..head_len + bytes].copy_from_slice(&input[..bytes]);
            *input = &input[bytes..];
            self.head_len += bytes as u8;
            // Checked as early as possible.
            if head_len < 2 && self.head_len >= 2 {
                self.check_start()?;
            }
        }
        self.head_len = 0;
        let length = self.length()?;
        let at = 2 + extended(self.head[1]);
        let mask = [self.head[at], self.head[at + 1], self.head[at + 2], self.head[at + 3]];
        let (opcode, is_last) = (self.head[0] & 0xf, self.head[0] & 0x80 != 0);
        if opcode < CLOSE {
            self.open_message(opcode, length)?;
        }
        self.frame = Some(Frame { opcode, is_last, mask, left: length, at: 0 });
        Ok(true)
    }

    /// Validates the first two bytes of a frame.
    fn check_start(&self) -> Result<(), Violation> {
        let (first, second) = (self.head[0], self.head[1]);
        let (opcode, is_last) = (first & 0xf, first & 0x80 != 0);
        let broken = |reason| Err((Close::PROTOCOL_ERROR, reason));
        if second & 0x80 == 0 {
            return broken("a frame is not masked");
        }
        let may_be_packed = self.deflate && matches!(opcode, TEXT | BINARY);
        if first & 0x30 != 0 || (first & 0x40 != 0 && !may_be_packed) {
            return broken("a reserved bit is set");
        }
        match opcode {
            CLOSE | PING | PONG if !is_last => broken("a control frame is fragmented"),
            CLOSE | PING | PONG if usize::from(second & 0x7f) > MAX_CONTROL => broken("a control frame is too long"),
            CLOSE | PING | PONG => Ok(()),
            CONTINUATION if self.message.is_none() => broken("a continuation follows no message"),
            TEXT | BINARY if self.message.is_some() => broken("a message begins within another"),
            CONTINUATION | TEXT | BINARY => Ok(()),
            _ => broken("a frame has an unknown opcode"),
        }
    }

    /// The payload's length.
    fn length(&self) -> Result<usize, Violation> {
        let head = &self.head;
        let (length, least) = match head[1] & 0x7f {
            126 => (u64::from(u16::from_be_bytes([head[2], head[3]])), 126),
            127 => {
                (u64::from_be_bytes([head[2], head[3], head[4], head[5], head[6], head[7], head[8], head[9]]), 65536)
            }
            short => (u64::from(short), 0),
        };
        if length < least || length > u64::MAX >> 1 {
            return Err((Close::PROTOCOL_ERROR, "a length is not in its shortest form"));
        }
        usize::try_from(length).map_err(|_| TOO_LARGE)
    }

    /// Begins a data frame, of a new message or of the incomplete one.
    fn open_message(&mut self, opcode: u8, length: usize) -> Result<(), Violation> {
        let packed = self.head[0] & 0x40 != 0;
        let new = || Box::new(PartialMessage { is_text: opcode == TEXT, packed, data: Vec::new(), checked: 0 });
        let message = self.message.get_or_insert_with(new);
        if length > self.limit - message.data.len().min(self.limit) {
            return Err(TOO_LARGE);
        }
        Ok(())
    }

    fn take_payload(&mut self, mut frame: Frame, input: &mut &[u8]) -> Result<(), Violation> {
        let bytes = frame.left.min(input.len());
        let is_control = frame.opcode >= CLOSE;
        let target = match &mut self.message {
            Some(message) if !is_control => &mut message.data,
            _ => &mut self.control,
        };
        let from = target.len();
        // Memory grows with the data: an announced length alone reserves nothing.
        target.extend_from_slice(&input[..bytes]);
        unmask(&mut target[from..], frame.mask, frame.at);
        *input = &input[bytes..];
        frame.left -= bytes;
        frame.at = (frame.at + bytes) % 4;
        self.frame = Some(frame);
        match &mut self.message {
            Some(message) if !is_control && message.is_text && !message.packed => message.check_text(false),
            _ => Ok(()),
        }
    }

    fn end_frame(&mut self, frame: Frame) -> Result<Option<Incoming>, Violation> {
        if frame.opcode >= CLOSE {
            let payload = std::mem::take(&mut self.control);
            return Ok(Some(match frame.opcode {
                CLOSE => Incoming::Close(Close::parse(&payload)?),
                PING => Incoming::Ping(payload.into()),
                _ => Incoming::Pong,
            }));
        }
        if !frame.is_last {
            return Ok(None);
        }
        let Some(mut message) = self.message.take() else { return Ok(None) };
        if message.packed {
            message.data = deflate::unpack(&message.data, self.limit)?;
        }
        if message.is_text {
            message.check_text(true)?;
        }
        Ok(Some(Incoming::Message(message.data.into(), !message.is_text)))
    }
}

const TOO_LARGE: Violation = (Close::MESSAGE_TOO_BIG, "the message is too large");

impl PartialMessage {
    /// Checks the received part of a text; at its `end`, the last character must be complete.
    fn check_text(&mut self, end: bool) -> Result<(), Violation> {
        match std::str::from_utf8(&self.data[self.checked..]) {
            Ok(_) => self.checked = self.data.len(),
            Err(error) if error.error_len().is_none() && !end => self.checked += error.valid_up_to(),
            Err(_) => return Err((Close::INVALID_PAYLOAD, "a text is not UTF-8")),
        }
        Ok(())
    }
}

/// Length of the extended payload length, which follows the first two bytes.
const fn extended(second: u8) -> usize {
    match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    }
}

/// Removes the mask; `at`: position of the first byte in the payload.
fn unmask(data: &mut [u8], mut mask: [u8; 4], at: usize) {
    mask.rotate_left(at % 4);
    let wide = u64::from_ne_bytes([mask[0], mask[1], mask[2], mask[3], mask[0], mask[1], mask[2], mask[3]]);
    let (words, rest) = data.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}
