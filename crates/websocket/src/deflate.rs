//! permessage-deflate (RFC 7692) without context takeover: an idle connection needs no memory for it, and one
//! compressed message serves any number of connections. Each thread has one compressor and one decompressor.

use crate::close::{Close, Violation};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::cell::RefCell;

/// Bytes that end each compressed message and are not sent (RFC 7692 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
/// Minimum size of a message that is compressed.
pub(crate) const MIN_COMPRESSED: usize = 1024;
/// Bytes by which the buffer of a decompressed message grows.
const STEP: usize = 16 * 1024;

thread_local! {
    static PACKER: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), false));
    static UNPACKER: RefCell<Decompress> = RefCell::new(Decompress::new(false));
}

/// Negotiated compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deflate {
    /// The client's offer names the server's window, so the response must, too (RFC 7692 section 7.1.2.1).
    names_window: bool,
}

impl Deflate {
    /// The `Sec-WebSocket-Extensions` of the response.
    pub fn response(self) -> &'static str {
        match self.names_window {
            false => "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
            true => {
                "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=15"
            }
        }
    }

    /// Accepts the first of the client's offers that this server supports. Offers that limit the server's window are
    /// declined.
    pub fn accept(offers: &str) -> Option<Self> {
        let offer = offers.split(',').find(|offer| is_acceptable(offer))?;
        Some(Self { names_window: offer.contains("server_max_window_bits") })
    }
}

fn is_acceptable(offer: &str) -> bool {
    let mut parts = offer.split(';').map(str::trim);
    if parts.next() != Some("permessage-deflate") {
        return false;
    }
    let mut seen = Vec::new();
    parts.all(|part| {
        let (name, value) = part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value)));
        let (name, value) = (name.trim_end(), value.map(|value| value.trim().trim_matches('"')));
        let is_first = !seen.contains(&name);
        seen.push(name);
        is_first
            && match name {
                "server_no_context_takeover" | "client_no_context_takeover" => value.is_none(),
                "client_max_window_bits" => value.is_none_or(|bits| window(bits).is_some()),
                "server_max_window_bits" => value.and_then(window) == Some(15),
                _ => false,
            }
    })
}

fn window(bits: &str) -> Option<u8> {
    let number = bits.parse().ok().filter(|bits| (8..=15).contains(bits))?;
    (!bits.starts_with(['0', '+'])).then_some(number)
}

/// Compresses a message; `None` if the result is not shorter.
pub(crate) fn pack(data: &[u8]) -> Option<Vec<u8>> {
    PACKER.with_borrow_mut(|packer| {
        packer.reset();
        let mut out = Vec::with_capacity(data.len());
        let mut taken = 0;
        // A result that exceeds the capacity is not shorter.
        while taken < data.len() {
            packer.compress_vec(&data[taken..], &mut out, FlushCompress::Sync).ok()?;
            taken = usize::try_from(packer.total_in()).ok()?;
            if out.len() == out.capacity() {
                return None;
            }
        }
        out.ends_with(&TAIL).then(|| out.truncate(out.len() - TAIL.len()))?;
        out.shrink_to_fit();
        Some(out)
    })
}

/// Decompresses a message of up to `limit` bytes.
pub(crate) fn unpack(data: &[u8], limit: usize) -> Result<Vec<u8>, Violation> {
    let broken = (Close::PROTOCOL_ERROR, "the message cannot be decompressed");
    UNPACKER.with_borrow_mut(|unpacker| {
        unpacker.reset(false);
        let mut out = Vec::new();
        for part in [data, &TAIL] {
            let mut rest = part;
            loop {
                if out.len() == out.capacity() {
                    out.reserve(STEP.min(limit + 1 - out.len().min(limit)));
                }
                let (had, before) = (unpacker.total_in(), out.len());
                let status = unpacker.decompress_vec(rest, &mut out, FlushDecompress::Sync).map_err(|_| broken)?;
                let taken = (unpacker.total_in() - had) as usize;
                rest = &rest[taken..];
                if out.len() > limit {
                    return Err((Close::MESSAGE_TOO_BIG, "the message is too large when decompressed"));
                }
                if status == Status::StreamEnd {
                    // After a final block, the rest of the message is a new deflate stream.
                    unpacker.reset(false);
                }
                let is_stuck = taken == 0 && out.len() == before;
                if (rest.is_empty() || is_stuck) && out.len() < out.capacity() {
                    break;
                }
            }
            if !rest.is_empty() {
                return Err(broken);
            }
        }
        Ok(out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_that_limit_the_servers_window_are_declined() {
        let name = "permessage-deflate";
        for (offer, expected) in [
            (name.to_owned(), true),
            (format!("{name}; client_max_window_bits"), true),
            (format!("{name}; client_max_window_bits=10; server_no_context_takeover"), true),
            (format!("{name};server_max_window_bits=\"15\""), true),
            (format!("{name}; server_max_window_bits=10"), false),
            (format!("{name}; server_max_window_bits=10, {name}"), true),
            (format!("{name}; server_max_window_bits=8"), false),
            (format!("{name}; client_max_window_bits=16"), false),
            (format!("{name}; client_max_window_bits=08"), false),
            (format!("{name}; client_max_window_bits; client_max_window_bits"), false),
            (format!("{name}; server_no_context_takeover=1"), false),
            (format!("{name}; server_max_window_bits"), false),
            (format!("{name}; unknown"), false),
            ("x-webkit-deflate-frame".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(Deflate::accept(&offer).is_some(), expected, "{offer}");
        }
        let response = |offer: &str| Deflate::accept(offer).unwrap().response();
        assert!(response("permessage-deflate; server_max_window_bits=15").ends_with("; server_max_window_bits=15"));
        let second = "permessage-deflate; server_max_window_bits=10, permessage-deflate; client_max_window_bits";
        assert!(!response(second).contains("window_bits"));
    }

    #[test]
    fn messages_round_trip_and_bombs_are_refused() {
        for size in [1, 100, 1024, 40_000, 1 << 20] {
            let text = b"some text that repeats itself; ".iter().copied().cycle().take(size).collect::<Vec<_>>();
            let Some(packed) = pack(&text) else {
                assert!(size <= 100, "{size}");
                continue;
            };
            assert!(packed.len() < text.len());
            assert!(unpack(&packed, size).unwrap() == text);
            assert_eq!(unpack(&packed, size - 1).unwrap_err().0, Close::MESSAGE_TOO_BIG);
        }
        let bomb = pack(&vec![0; 8 << 20]).unwrap();
        assert!(bomb.len() < 1 << 20);
        assert_eq!(unpack(&bomb, 1 << 20).unwrap_err().0, Close::MESSAGE_TOO_BIG);
    }

    #[test]
    fn invalid_deflate_data_is_refused_and_does_not_delay_the_next_message() {
        for broken in [&[0xff; 20][..], &[0x06, 0xff, 0x00], b"\x00\x10"] {
            let _ = unpack(broken, 1000);
            assert_eq!(unpack(&[0xff; 20], 1000).unwrap_err().0, Close::PROTOCOL_ERROR);
            // "Hello", RFC 7692 7.2.3.1.
            assert_eq!(unpack(&[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00], 1000).unwrap(), b"Hello");
        }
        // In two blocks, not compressed, and with a final block (7.2.3.2 to 7.2.3.5).
        for packed in [
            &[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00][..],
            &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00],
            &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
        ] {
            assert_eq!(unpack(packed, 5).unwrap(), b"Hello", "{packed:x?}");
        }
    }
}
