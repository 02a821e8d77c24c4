//! Messages to clients, as frames. A message is made once for all connections that get it, packed and unpacked.

use crate::close::Close;
use crate::deflate;
use bytes::{Bytes, BytesMut};
use std::sync::{Arc, OnceLock};

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
/// The message is packed.
const PACKED: u8 = 0x40;

/// A frame from a server, without a mask.
fn frame(first: u8, payload: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(payload.len() + 10);
    out.extend_from_slice(&[first]);
    match payload.len() {
        short @ 0..126 => out.extend_from_slice(&[short as u8]),
        long if u16::try_from(long).is_ok() => {
            out.extend_from_slice(&[126]);
            out.extend_from_slice(&(long as u16).to_be_bytes());
        }
        long => {
            out.extend_from_slice(&[127]);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
    out.freeze()
}

/// The answer to a ping.
pub(crate) fn pong(payload: &[u8]) -> Bytes {
    frame(PONG, payload)
}

/// A ping.
pub(crate) fn ping() -> Bytes {
    Bytes::from_static(&[PING, 0])
}

/// A close frame.
pub(crate) fn close(close: &Close) -> Bytes {
    frame(CLOSE, &close.payload())
}

/// A message for any number of connections.
#[derive(Debug, Clone)]
pub struct Message(Arc<Made>);

#[derive(Debug)]
struct Made {
    plain: Bytes,
    /// Where its data begins in the frame.
    data: usize,
    /// Packed by the first connection that wants it so; `None` if that is no shorter.
    packed: OnceLock<Option<Bytes>>,
}

impl Message {
    /// A message; a text that is not UTF-8 is sent as binary.
    #[must_use]
    pub fn new(data: &[u8], binary: bool) -> Self {
        let binary = binary || std::str::from_utf8(data).is_err();
        let plain = frame(if binary { BINARY } else { TEXT }, data);
        let head = plain.len() - data.len();
        Self(Arc::new(Made { plain, data: head, packed: OnceLock::new() }))
    }

    /// Its frame.
    #[must_use]
    pub fn frame(&self, packed: bool) -> Bytes {
        let made = &self.0;
        let data = &made.plain[made.data..];
        if !packed || data.len() < deflate::WORTH_PACKING {
            return made.plain.clone();
        }
        let pack = || deflate::pack(data).map(|packed| frame(made.plain[0] | PACKED, &packed));
        made.packed.get_or_init(pack).as_ref().unwrap_or(&made.plain).clone()
    }

    /// Bytes that it counts in a connection's queue.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.plain.len()
    }
}
