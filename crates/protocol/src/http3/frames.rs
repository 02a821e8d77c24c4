//! Parses frames of HTTP/3 (RFC 9114 7.1) from the chunks that a stream delivers.
//!
//! Nothing is buffered here: a frame's payload is passed on as it arrives. The caller decides how much to keep, and a
//! frame that announces gigabytes costs nothing.

use super::code::{Code, Fault};
use bytes::{Buf, BufMut, Bytes};
use std::task::{Context, Poll, ready};

/// The kinds of frames (RFC 9114 7.2, 11.2.1).
pub(super) mod kind {
    pub(in super::super) const DATA: u64 = 0;
    pub(in super::super) const HEADERS: u64 = 1;
    pub(in super::super) const CANCEL_PUSH: u64 = 3;
    pub(in super::super) const SETTINGS: u64 = 4;
    pub(in super::super) const GOAWAY: u64 = 7;
    pub(in super::super) const MAX_PUSH_ID: u64 = 13;

    /// `true` for frame types that HTTP/3 defines or reserves because HTTP/2 used them. These are errors in the wrong
    /// place; other unknown frames are skipped.
    pub(in super::super) const fn is_reserved(kind: u64) -> bool {
        kind <= 9 || kind == MAX_PUSH_ID
    }
}

/// Source of bytes.
pub(super) trait Source {
    /// The next bytes, never empty; `None` at the end.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>>;
}

/// Reads frames.
#[derive(Debug)]
pub(super) struct Frames<S> {
    source: S,
    chunk: Bytes,
    number: Number,
    /// The kind of a frame whose length has not arrived yet.
    kind: Option<u64>,
    /// Rest of the present frame's payload.
    left: u64,
}

/// A variable-length integer (RFC 9000 16), possibly incomplete.
#[derive(Debug, Default)]
struct Number {
    value: u64,
    have: u8,
    need: u8,
}

impl Number {
    fn add(&mut self, byte: u8) -> Option<u64> {
        if self.have == 0 {
            self.need = 1 << (byte >> 6);
            self.value = u64::from(byte & 0x3f);
        } else {
            self.value = self.value << 8 | u64::from(byte);
        }
        self.have += 1;
        (self.have == self.need).then(|| std::mem::take(self).value)
    }
}

impl<S: Source> Frames<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source, chunk: Bytes::new(), number: Number::default(), kind: None, left: 0 }
    }

    pub(super) fn source(&mut self) -> &mut S {
        &mut self.source
    }

    /// The next number outside of a frame; `None` if the stream ends before it.
    pub(super) fn poll_number(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, Fault>> {
        loop {
            if !ready!(self.poll_fill(cx))? {
                return Poll::Ready(match self.number.have {
                    0 => Ok(None),
                    _ => Err(TRUNCATED),
                });
            }
            let byte = self.chunk.split_to(1)[0];
            if let Some(number) = self.number.add(byte) {
                return Poll::Ready(Ok(Some(number)));
            }
        }
    }

    /// The kind of the next frame, after skipping the rest of the present one. `None` at the end of the stream.
    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, Fault>> {
        while ready!(self.poll_payload(cx))?.is_some() {}
        if self.kind.is_none() {
            self.kind = ready!(self.poll_number(cx))?;
            if self.kind.is_none() {
                return Poll::Ready(Ok(None));
            }
        }
        match ready!(self.poll_number(cx))? {
            Some(length) => {
                self.left = length;
                Poll::Ready(Ok(self.kind.take()))
            }
            None => Poll::Ready(Err(TRUNCATED)),
        }
    }

    /// Length of the rest of the present frame's payload.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// The next bytes of the present frame's payload; `None` at its end.
    pub(super) fn poll_payload(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        if self.left == 0 {
            return Poll::Ready(Ok(None));
        }
        if !ready!(self.poll_fill(cx))? {
            return Poll::Ready(Err(TRUNCATED));
        }
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.chunk.len());
        self.left -= length as u64;
        Poll::Ready(Ok(Some(self.chunk.split_to(length))))
    }

    /// `true` if the stream ends here, between two frames. Pending if nothing more has arrived yet.
    pub(super) fn poll_at_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Fault>> {
        Poll::Ready(Ok(self.left == 0 && !ready!(self.poll_fill(cx))?))
    }

    /// Bytes outside of frames; `None` at the end.
    pub(super) fn poll_raw(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        let any = ready!(self.poll_fill(cx))?;
        Poll::Ready(Ok(any.then(|| std::mem::take(&mut self.chunk))))
    }

    /// Fetches bytes if `chunk` is empty. Returns `false` at the end of the stream.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Fault>> {
        while self.chunk.is_empty() {
            // Even an empty rest of a chunk keeps its memory.
            self.chunk = Bytes::new();
            match ready!(self.source.poll_bytes(cx))? {
                Some(bytes) => self.chunk = bytes,
                None => return Poll::Ready(Ok(false)),
            }
        }
        Poll::Ready(Ok(true))
    }
}

/// A stream may end between two frames only (RFC 9114 7.1).
const TRUNCATED: Fault = Fault::Connection(Code::FRAME_ERROR, "a frame is truncated");

/// Removes an integer from the front of the bytes and returns it.
pub(super) fn number(bytes: &mut Bytes) -> Option<u64> {
    let mut number = Number::default();
    loop {
        let &byte = bytes.first()?;
        bytes.advance(1);
        if let Some(number) = number.add(byte) {
            return Some(number);
        }
    }
}

/// Writes a number in its shortest form. It must be below 2^62.
pub(super) fn put_number(out: &mut impl BufMut, number: u64) {
    match number {
        0..0x40 => out.put_u8(number as u8),
        0x40..0x4000 => out.put_u16(0x4000 | number as u16),
        0x4000..0x4000_0000 => out.put_u32(0x8000_0000 | number as u32),
        _ => out.put_u64(0xc000_0000_0000_0000 | number),
    }
}

/// Writes the header of a frame.
pub(super) fn put_frame(out: &mut impl BufMut, kind: u64, length: usize) {
    put_number(out, kind);
    put_number(out, length as u64);
}

#[cfg(test)]
#[path = "frames_tests.rs"]
pub(super) mod tests;
