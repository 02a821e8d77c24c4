//! Messages to clients, as frames. A message is encoded once for all its recipients, compressed and uncompressed.

use crate::close::Close;
use crate::deflate;
use bytes::{Bytes, BytesMut};
use howdah_live::{Form, Update};

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
/// RSV1: the message is compressed.
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

pub(crate) fn ping() -> Bytes {
    Bytes::from_static(&[PING, 0])
}

/// A close frame.
pub(crate) fn close(close: &Close) -> Bytes {
    frame(CLOSE, &close.payload())
}

/// A message for any number of connections, without topics and id. A text that is not UTF-8 is sent as binary.
pub fn message(data: &[u8], binary: bool) -> Update {
    let binary = binary || std::str::from_utf8(data).is_err();
    let plain = frame(if binary { BINARY } else { TEXT }, data);
    let data = plain.slice(plain.len() - data.len()..);
    Update { data, binary, ..Update::default() }.with_form(Form::Frame, plain)
}

/// An update as a frame; compressed if `packed`, it is long enough, and that is shorter.
pub(crate) fn encoded(update: &Update, packed: bool) -> Bytes {
    let first = if update.binary { BINARY } else { TEXT };
    let plain = update.form(Form::Frame, || frame(first, &update.data));
    if !packed || update.data.len() < deflate::MIN_COMPRESSED {
        return plain.clone();
    }
    let pack = || deflate::pack(&update.data).map_or_else(|| plain.clone(), |packed| frame(first | PACKED, &packed));
    update.form(Form::Packed, pack).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_encoded_once_for_all_clients() {
        let update = message("a message that repeats ".repeat(80).as_bytes(), false);
        for (packed, first) in [(false, TEXT), (true, TEXT | PACKED)] {
            let frames = [(); 3].map(|()| encoded(&update, packed));
            assert_eq!(frames[0][0], first);
            assert!(frames.iter().all(|frame| frame.as_ptr() == frames[0].as_ptr()), "{packed}");
        }
        assert!(encoded(&update, true).len() < encoded(&update, false).len() / 4);
        // A message that does not become shorter has one frame for both.
        let short = message(b"short", false);
        assert_eq!(encoded(&short, true).as_ptr(), encoded(&short, false).as_ptr());
    }
}
