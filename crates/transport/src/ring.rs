//! Frames in a byte ring: placement of the next frame, and reading and writing of its bytes.
//!
//! A frame is a 24-byte header and a payload. It starts at a multiple of 8 and never wraps: the rest of the ring before
//! its end is filled with a `Pad` frame, or skipped if it is shorter than a header. Cursors count bytes and never wrap;
//! their low bits are the offset. A producer that finds the ring empty, with at least a quarter of it used since offset
//! 0, restarts at offset 0 if the next frame fits before its position, so that short requests keep using the same few
//! cache lines and pages. It does not restart sooner: until the consumer has passed the padding, only the bytes before
//! it are free, and a response would be published in pieces for lack of room.
//!
//! This module knows neither the owners of the cursors nor the memory orders; the two ends do.

use crate::wire::FrameKind;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// A frame takes at most this fraction of its ring. With one half, a frame always fits on one side of the wrap once the
/// ring is empty.
const MAX_FRAME_DIVISOR: usize = 2;

/// Bytes of a frame header.
pub(crate) const HEADER_LEN: usize = 24;

/// The header before each payload.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameHeader {
    /// Payload length in bytes.
    pub(crate) len: u32,
    /// `FrameKind` as a number.
    pub(crate) kind: u16,
    /// `FLAG_*` bits.
    pub(crate) flags: u16,
    /// The request this frame belongs to.
    pub(crate) number: u64,
    /// See `request_state`; used in request frames only, and then only through `Ring::state`.
    pub(crate) state: u32,
    /// When the worker began the request, by `clock::monotonic_us`; 0 until then. Used in request frames only, and then
    /// only through `Ring::began`.
    pub(crate) began: u32,
}

const _: () = assert!(size_of::<FrameHeader>() == HEADER_LEN);

/// Offset of `FrameHeader::state`.
const STATE_OFFSET: usize = std::mem::offset_of!(FrameHeader, state);
/// Offset of `FrameHeader::began`.
const BEGAN_OFFSET: usize = std::mem::offset_of!(FrameHeader, began);

/// The bytes of one ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring {
    data: NonNull<u8>,
    cap: u32,
}

// SAFETY: a `Ring` is an address and a size; the ends that own it decide which of them may touch the memory, and when.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

/// A consumer found something that no honest producer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the lane's ring has invalid data: {0}")]
pub struct RingBroken(pub &'static str);

/// Size of a frame with this payload, in bytes.
pub(crate) const fn frame_len(payload: usize) -> usize {
    (HEADER_LEN + payload + 7) & !7
}

impl Ring {
    pub(crate) fn new(data: NonNull<u8>, cap: u32) -> Self {
        debug_assert!(cap.is_power_of_two());
        Self { data, cap }
    }

    pub(crate) fn cap(&self) -> usize {
        self.cap as usize
    }

    /// Maximum payload of a frame in bytes.
    pub(crate) fn max_payload(&self) -> usize {
        self.cap() / MAX_FRAME_DIVISOR - HEADER_LEN
    }

    fn offset(&self, cursor: u64) -> usize {
        (cursor & u64::from(self.cap - 1)) as usize
    }

    /// Bytes in use; an error if the two cursors cannot belong together.
    pub(crate) fn used(&self, head: u64, tail: u64) -> Result<usize, RingBroken> {
        let used = head.wrapping_sub(tail);
        if used > u64::from(self.cap) || !head.is_multiple_of(8) || !tail.is_multiple_of(8) {
            return Err(RingBroken("impossible cursor"));
        }
        Ok(used as usize)
    }

    /// Returns the start of a frame with `payload` bytes: the cursor after any padding, which this writes. `None`: no
    /// room now.
    pub(crate) fn place(&self, head: u64, tail: u64, payload: usize) -> Result<Option<u64>, RingBroken> {
        let used = self.used(head, tail)?;
        let need = frame_len(payload);
        let free = self.cap() - used;
        let offset = self.offset(head);
        let room = self.cap() - offset;
        let restart = used == 0 && offset >= self.cap() / 4 && need <= offset;
        if need <= room && !restart {
            return Ok((need <= free).then_some(head));
        }
        if room + need > free {
            return Ok(None);
        }
        if room >= HEADER_LEN {
            let pad = FrameHeader {
                len: (room - HEADER_LEN) as u32,
                kind: FrameKind::Pad as u16,
                flags: 0,
                number: 0,
                state: 0,
                began: 0,
            };
            self.write_header(head, pad);
        }
        Ok(Some(head + room as u64))
    }

    /// Number of payload bytes to which a frame at `cursor` can grow, given the consumer's cursor.
    pub(crate) fn growth(&self, cursor: u64, tail: u64) -> Result<usize, RingBroken> {
        let used = self.used(cursor, tail)?;
        Ok(self.room_at(cursor).min((self.cap() - used).saturating_sub(HEADER_LEN)))
    }

    /// Number of payload bytes that a frame at `cursor` could have if the rest of the ring were free.
    pub(crate) fn room_at(&self, cursor: u64) -> usize {
        (self.cap() - self.offset(cursor)).saturating_sub(HEADER_LEN)
    }

    /// Address of the payload byte `skip` of the frame at `cursor`.
    fn payload_ptr(&self, cursor: u64, skip: usize) -> *mut u8 {
        let at = self.offset(cursor) + HEADER_LEN + skip;
        assert!(at <= self.cap(), "payload outside its ring");
        // SAFETY: the assertion above keeps the address inside the ring or one past its end.
        unsafe { self.data.as_ptr().add(at) }
    }

    /// Writes a header. The frame must lie in the part of the ring that the caller, as the producer, owns.
    pub(crate) fn write_header(&self, cursor: u64, header: FrameHeader) {
        let at = self.offset(cursor);
        assert!(at + HEADER_LEN <= self.cap(), "header outside its ring");
        // SAFETY: inside the ring by the assertion, 8-aligned as cursors are multiples of 8, owned by the producer.
        unsafe { self.data.as_ptr().add(at).cast::<FrameHeader>().write(header) };
    }

    /// Copies bytes into a payload. The frame must lie in the part of the ring that the caller, as the producer, owns.
    pub(crate) fn write_payload(&self, cursor: u64, skip: usize, bytes: &[u8]) {
        assert!(self.offset(cursor) + HEADER_LEN + skip + bytes.len() <= self.cap(), "payload outside its ring");
        let to = self.payload_ptr(cursor, skip);
        // SAFETY: the target range is inside the ring (assertion), owned by the producer, and cannot overlap `bytes`,
        // which is ordinary memory of this process.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Reads the header of the frame at `cursor`, where `available` bytes are published, and checks its length.
    /// `Ok(None)`: fewer bytes than a header are left before the wrap; skip them.
    pub(crate) fn read_header(&self, cursor: u64, available: usize) -> Result<Option<FrameHeader>, RingBroken> {
        let at = self.offset(cursor);
        let room = self.cap() - at;
        if room < HEADER_LEN {
            return if available >= room { Ok(None) } else { Err(RingBroken("cursor inside the skipped end")) };
        }
        if available < HEADER_LEN {
            return Err(RingBroken("half a header"));
        }
        // SAFETY: inside the ring, 8-aligned. Volatile, so that the value is read once: the checks below apply to the
        // value that is used, even if the other side changes the memory meanwhile.
        let header = unsafe { self.data.as_ptr().add(at).cast::<FrameHeader>().read_volatile() };
        if header.len as usize > self.cap() || frame_len(header.len as usize) > available.min(room) {
            return Err(RingBroken("frame longer than the published data"));
        }
        Ok(Some(header))
    }

    /// Checks that padding fills the rest of the ring at its end, which happens once per round. Padding anywhere else
    /// could keep the consumer busy with nothing; memory that was never written reads as padding.
    pub(crate) fn check_padding(&self, cursor: u64, len: usize) -> Result<(), RingBroken> {
        let at = self.offset(cursor);
        if at < self.cap() / 4 || at + frame_len(len) != self.cap() {
            return Err(RingBroken("padding inside the ring"));
        }
        Ok(())
    }

    /// Byte range of the ring between two cursors. It does not wrap.
    pub(crate) fn place_of(&self, from: u64, to: u64) -> std::ops::Range<usize> {
        let at = self.offset(from);
        at..(at + to.wrapping_sub(from) as usize).min(self.cap())
    }

    /// Number of bytes to skip if `read_header` returned `None`.
    pub(crate) fn skipped_end(&self, cursor: u64) -> u64 {
        (self.cap() - self.offset(cursor)) as u64
    }

    /// Appends a payload to `to`. `len` comes from a checked header.
    pub(crate) fn copy_payload(&self, cursor: u64, len: usize, to: &mut Vec<u8>) {
        assert!(self.offset(cursor) + HEADER_LEN + len <= self.cap(), "payload outside its ring");
        to.reserve(len);
        let from = self.payload_ptr(cursor, 0);
        // SAFETY: source inside the ring (assertion), target has room (reserve). The other side may write to the source
        // at the same time only if it breaks the protocol; then the copy holds arbitrary bytes, which callers accept,
        // as they check content after copying.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to.as_mut_ptr().add(to.len()), len);
            to.set_len(to.len() + len);
        }
    }

    /// Replaces `words` with the payload as 8-byte words, so that it is aligned as in the ring. `len` comes from a
    /// checked header.
    pub(crate) fn copy_words(&self, cursor: u64, len: usize, words: &mut Vec<u64>) {
        assert!(self.offset(cursor) + HEADER_LEN + len <= self.cap(), "payload outside its ring");
        words.clear();
        words.reserve(len.div_ceil(8));
        let from = self.payload_ptr(cursor, 0);
        if let Some(last) = len.div_ceil(8).checked_sub(1) {
            let to = words.as_mut_ptr();
            // SAFETY: source inside the ring (assertion), target has room for the words and does not overlap the ring;
            // the last word is written first, as the payload may end inside it.
            unsafe {
                to.add(last).write(0);
                std::ptr::copy_nonoverlapping(from, to.cast(), len);
                words.set_len(last + 1);
            }
        }
    }

    /// Address of a payload that the server leaves in place. Its length comes from a checked header.
    pub(crate) fn payload_start(&self, cursor: u64) -> NonNull<u8> {
        // SAFETY: `payload_ptr` adds an offset inside the ring to an address that is not null.
        unsafe { NonNull::new_unchecked(self.payload_ptr(cursor, 0)) }
    }

    /// The payload's address, for the worker, which reads requests in place.
    pub(crate) fn payload(&self, cursor: u64) -> *const u8 {
        self.payload_ptr(cursor, 0)
    }

    /// The state word of the request frame at `cursor`.
    pub(crate) fn state(&self, cursor: u64) -> &AtomicU32 {
        self.header_word(cursor, STATE_OFFSET)
    }

    /// The start time of the request frame at `cursor`.
    pub(crate) fn began(&self, cursor: u64) -> &AtomicU32 {
        self.header_word(cursor, BEGAN_OFFSET)
    }

    fn header_word(&self, cursor: u64, offset: usize) -> &AtomicU32 {
        let at = self.offset(cursor) + offset;
        assert!(at + 4 <= self.cap(), "a header outside its ring");
        // SAFETY: inside the ring (assertion), 4-aligned; once the frame is published, both sides change this word only
        // atomically, and neither uses the copy that `read_header` makes of it. The reference's lifetime is that of
        // `&self`, whose owner keeps the segment mapped.
        unsafe { AtomicU32::from_ptr(self.data.as_ptr().add(at).cast()) }
    }
}
