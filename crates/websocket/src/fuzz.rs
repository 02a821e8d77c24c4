//! Fuzz target: bytes of a client. The first byte selects the size of the pieces in which they arrive, and compression.

use crate::frames::{Incoming, Receiver};

/// Maximum size of a message.
const LIMIT: usize = 4096;

/// The result does not depend on the size of the pieces; no message is larger than allowed, and no text is invalid
/// UTF-8.
pub fn frames(data: &[u8]) {
    let Some((&first, bytes)) = data.split_first() else { return };
    let whole = read(bytes, bytes.len(), first & 1 != 0);
    let parts = read(bytes, usize::from(first >> 1).max(1), first & 1 != 0);
    assert_eq!(whole, parts);
}

fn read(bytes: &[u8], piece: usize, deflate: bool) -> Vec<Result<Incoming, u16>> {
    let mut receiver = Receiver::new(LIMIT, deflate);
    let mut seen = Vec::new();
    for mut input in bytes.chunks(piece.max(1)) {
        loop {
            match receiver.take(&mut input) {
                Ok(None) => break,
                Ok(Some(incoming)) => {
                    if let Incoming::Message(data, binary) = &incoming {
                        assert!(data.len() <= LIMIT && (*binary || std::str::from_utf8(data).is_ok()));
                    }
                    let is_close = matches!(incoming, Incoming::Close(_));
                    seen.push(Ok(incoming));
                    if is_close {
                        return seen;
                    }
                }
                Err((code, _)) => {
                    seen.push(Err(code));
                    return seen;
                }
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_fuzz_driver::{Target, drive};

    /// Parts of frames, for mutations.
    const WORDS: &[&[u8]] = &[
        b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58",
        b"\x01\x80\x00\x00\x00\x00",
        b"\x80\x80\x00\x00\x00\x00",
        b"\xc1\x87\x00\x00\x00\x00\xf2\x48\xcd\xc9\xc9\x07\x00",
        b"\x89\x80\x00\x00\x00\x00",
        b"\x88\x82\x00\x00\x00\x00\x03\xe8",
        b"\x82\xfe",
        b"\x82\xff\x00\x00\x00\x00",
        b"\xc3\xa4",
        b"\x00\x00\xff\xff",
    ];

    #[test]
    fn frames_are_read_the_same_however_they_are_split() {
        drive(&Target { name: "frames", corpus: "websocket_frames", words: WORDS, run: frames }, 20_000);
    }
}
