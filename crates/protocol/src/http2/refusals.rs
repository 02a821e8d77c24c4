//! Counts requests that h2 refuses itself. h2 does not report them, so they are detected in the outgoing frames.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Length of a frame's head, whose last four bytes are the stream's number.
const HEAD: usize = 9;
/// Maximum payload of frames that are inspected.
const MAX_PAYLOAD: usize = 16;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_STREAM: u8 = 1;
const PROTOCOL_ERROR: [u8; 4] = [0, 0, 0, 1];

/// Refusals that have not been reported.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Header lists above the announced size, which get a response: 431.
    pub(super) too_large: AtomicU32,
    /// Requests that break the protocol's rules. Their streams are reset.
    pub(super) malformed: AtomicU32,
}

/// Parser of outgoing frames: the frame being written, up to its payload.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    seen: [u8; HEAD + MAX_PAYLOAD],
    len: usize,
    /// Bytes left of a payload that is skipped.
    skip: usize,
    /// The stream of the last 431 response. h2 also resets it if the client keeps sending, which is not counted again.
    refused: [u8; 4],
}

impl Outgoing {
    /// Inspects written bytes.
    pub(super) fn note(&mut self, mut bytes: &[u8], refusals: &Refusals) {
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let wanted = if self.len < HEAD { HEAD } else { HEAD + self.payload() };
            let taken = (wanted - self.len).min(bytes.len());
            self.seen[self.len..self.len + taken].copy_from_slice(&bytes[..taken]);
            self.len += taken;
            bytes = &bytes[taken..];
            if self.len < wanted {
                return;
            }
            let is_head = wanted == HEAD && self.payload() > 0;
            if is_head && matches!(self.seen[3], HEADERS | RST_STREAM) && self.payload() <= MAX_PAYLOAD {
                continue;
            }
            if is_head {
                self.skip = self.payload();
            } else {
                self.judge(refusals);
            }
            self.len = 0;
        }
    }

    fn payload(&self) -> usize {
        let [high, middle, low, ..] = self.seen;
        usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)
    }

    fn judge(&mut self, refusals: &Refusals) {
        let (payload, stream) = (&self.seen[HEAD..self.len], [5, 6, 7, 8].map(|at| self.seen[at]));
        if self.seen[3] == HEADERS && self.seen[4] & END_STREAM != 0 && has_only_status(payload) {
            self.refused = stream;
            refusals.too_large.fetch_add(1, Relaxed);
        } else if self.seen[3] == RST_STREAM && payload == PROTOCOL_ERROR && stream != self.refused {
            refusals.malformed.fetch_add(1, Relaxed);
        }
    }
}

/// `true` for a header block that contains only a status, as h2's 431 does. The server's responses always have a
/// `Date`.
fn has_only_status(mut block: &[u8]) -> bool {
    // Updates of the table's size come first (RFC 7541 6.3).
    while let [first, rest @ ..] = block
        && first & 0xe0 == 0x20
    {
        let more = rest.iter().take_while(|byte| **byte & 0x80 != 0).count() + 1;
        block = if first & 0x1f == 0x1f { rest.get(more..).unwrap_or_default() } else { rest };
    }
    match block {
        [indexed] => indexed & 0x80 != 0,
        // The name is `:status`, by its number in the static table.
        [0x48 | 0x08 | 0x18, length, value @ ..] => usize::from(length & 0x7f) == value.len(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    #[test]
    fn refusals_are_found_among_other_frames_however_they_are_cut() {
        let written = [
            frame(4, 0, 0, &[0; 12]),
            // A response with a date, its body, one without a body, and one whose client is reset.
            frame(HEADERS, 4, 1, b"\x88\xbe"),
            frame(0, END_STREAM, 1, &[0x48; 100]),
            frame(HEADERS, 4 | END_STREAM, 3, b"\x89\xbe"),
            frame(RST_STREAM, 0, 5, &[0, 0, 0, 8]),
            // Refused, and reset when its client continues.
            frame(HEADERS, 4 | END_STREAM, 7, b"\x48\x83\x68\x26\x3f"),
            frame(RST_STREAM, 0, 7, &PROTOCOL_ERROR),
            frame(HEADERS, 4 | END_STREAM, 9, b"\x3f\xe1\x1f\xbe"),
            frame(RST_STREAM, 0, 11, &PROTOCOL_ERROR),
            frame(6, 0, 0, &[]),
            frame(RST_STREAM, 0, 13, &PROTOCOL_ERROR),
        ]
        .concat();
        for length in 1..written.len() {
            let (refusals, mut outgoing) = (Refusals::default(), Outgoing::default());
            written.chunks(length).for_each(|part| outgoing.note(part, &refusals));
            let found = (refusals.too_large.load(Relaxed), refusals.malformed.load(Relaxed));
            assert_eq!(found, (2, 2), "{length}");
        }
    }
}
