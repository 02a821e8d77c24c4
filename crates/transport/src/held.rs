//! Payloads that stay in the response ring until they have been used: a response's body on its way to the socket.
//!
//! Room is given back in the order of the frames, so a held payload also delays the frames after it: release it within
//! your turn, or copy it. The segment stays mapped until the last payload is dropped, even if the worker is dead and
//! the lane discarded by then.
//!
//! **The worker can write to the bytes at any time.** So there is never a `&[u8]` over them, whose content must not
//! change while it is borrowed. They are copied, compared by `memcmp`, or passed to the kernel, each through a raw
//! pointer. If they change, only the worker's own clients are affected, as if the worker had sent that content in the
//! first place. Encoders and parsers, which a byte that changes between two reads could confuse, get a copy.

use crate::segment::Segment;
use crate::wake;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of buffers before a payload in one `send_after`.
const MAX_BEFORE: usize = 7;

/// Tracks the part of a response ring that the worker may overwrite.
#[derive(Debug)]
pub(crate) struct Holds {
    segment: Arc<Segment>,
    cursors: Mutex<Cursors>,
}

#[derive(Debug, Default)]
struct Cursors {
    /// End of the bytes that the server has taken, including held payloads.
    taken: u64,
    /// Own copy of `Control::response_tail`.
    given_back: u64,
    /// Frames whose payload was held, in order, from the first that is still held.
    held: VecDeque<Hold>,
}

#[derive(Debug)]
struct Hold {
    frame: u64,
    released: bool,
}

impl Holds {
    pub(crate) fn new(segment: Arc<Segment>) -> Self {
        Self { segment, cursors: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Cursors> {
        // No code panics between two changes that belong together.
        self.cursors.lock()
    }

    /// Records that the server has taken everything up to this cursor, and gives back the room up to the first held
    /// payload.
    pub(crate) fn take_up_to(&self, cursor: u64) {
        let mut cursors = self.lock();
        cursors.taken = cursor;
        self.give_back(&mut cursors);
    }

    /// Leaves the payload of the frame at this cursor in the ring: `len` bytes at `data`.
    pub(crate) fn hold(self: &Arc<Self>, frame: u64, data: NonNull<u8>, len: usize) -> HeldPayload {
        self.lock().held.push_back(Hold { frame, released: false });
        HeldPayload { holds: self.clone(), frame, data, len }
    }

    fn release(&self, frame: u64) {
        let mut cursors = self.lock();
        if let Some(hold) = cursors.held.iter_mut().find(|hold| hold.frame == frame) {
            hold.released = true;
        }
        while cursors.held.front().is_some_and(|hold| hold.released) {
            cursors.held.pop_front();
        }
        self.give_back(&mut cursors);
    }

    /// Publishes the free room to the worker and wakes it if it waits for room. Called with the lock held, so that the
    /// cursor never moves back.
    fn give_back(&self, cursors: &mut Cursors) {
        let to = cursors.held.front().map_or(cursors.taken, |hold| hold.frame);
        // Never move back: more may have been given back, up to a held frame, than was declared as taken.
        if to > cursors.given_back {
            cursors.given_back = to;
            let control = self.segment.control();
            // Release: all reads of the bytes happen before the worker's next write to them.
            control.response_tail.0.store(to, Ordering::Release);
            wake::wake_worker(&control.worker_word.0, wake::WORKER_WAITS_ROOM);
        }
    }
}

/// The payload of a frame, left in the ring. Dropping it gives its room back to the worker.
#[derive(Debug)]
pub struct HeldPayload {
    holds: Arc<Holds>,
    frame: u64,
    /// Points into the segment that `holds` keeps mapped.
    data: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory stays mapped in the whole process for as long as `holds` lives, and is only read through raw
// pointers.
unsafe impl Send for HeldPayload {}
// SAFETY: as above; no method writes to the memory.
unsafe impl Sync for HeldPayload {}

impl HeldPayload {
    /// Length in bytes, which the worker cannot change.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the payload has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies bytes from position `from` into `to`.
    ///
    /// # Panics
    /// If fewer bytes are left.
    pub fn copy_to(&self, from: usize, to: &mut [u8]) {
        assert!(from <= self.len && to.len() <= self.len - from, "outside the payload");
        // SAFETY: the source is inside the mapped payload (assertion); the target is this process's own memory and so
        // does not overlap it. If the worker breaks the protocol and writes meanwhile, the copy holds arbitrary bytes.
        unsafe { std::ptr::copy_nonoverlapping(self.data.as_ptr().add(from), to.as_mut_ptr(), to.len()) };
    }

    /// Returns a copy of the bytes from position `from` to the end.
    ///
    /// # Panics
    /// If `from` is beyond the end.
    pub fn copy_from(&self, from: usize) -> Vec<u8> {
        assert!(from <= self.len, "outside the payload");
        let len = self.len - from;
        let mut copy = Vec::with_capacity(len);
        // SAFETY: as in `copy_to`; the target has room for `len` bytes, all of which are initialised by the copy.
        unsafe {
            std::ptr::copy_nonoverlapping(self.data.as_ptr().add(from), copy.as_mut_ptr(), len);
            copy.set_len(len);
        }
        copy
    }

    /// `true` if the payload equals these bytes.
    pub fn equals(&self, other: &[u8]) -> bool {
        if self.len != other.len() {
            return false;
        }
        // SAFETY: both ranges are readable for `len` bytes. `memcmp` takes pointers, so nothing assumes that the ring's
        // bytes stay unchanged; if they change, either result is acceptable.
        let order = unsafe { libc::memcmp(self.data.as_ptr().cast(), other.as_ptr().cast(), self.len) };
        order == 0
    }

    /// Writes `before`, then the payload to a socket, without blocking. Returns the number of bytes that the socket
    /// took.
    ///
    /// # Errors
    /// The system's error (`WouldBlock` if the socket's buffer is full), or more than seven buffers in `before`;
    /// nothing was written then.
    pub fn send_after(&self, before: &[IoSlice<'_>], socket: BorrowedFd<'_>) -> io::Result<usize> {
        let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MAX_BEFORE + 1];
        if before.len() > MAX_BEFORE {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (part, slice) in parts.iter_mut().zip(before) {
            *part = libc::iovec { iov_base: slice.as_ptr().cast_mut().cast(), iov_len: slice.len() };
        }
        parts[before.len()] = libc::iovec { iov_base: self.data.as_ptr().cast(), iov_len: self.len };
        // SAFETY: all zeros is a valid `msghdr`: no address, no control data.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = before.len() + 1;
        loop {
            // Not rustix: its vectored calls take `IoSlice`, that is `&[u8]`.
            // SAFETY: the message and its parts live until the call returns; the kernel only reads what they point to,
            // which is `before`, borrowed here, and the payload, mapped for as long as `self` lives.
            let sent = unsafe {
                libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            };
            if let Ok(sent) = usize::try_from(sent) {
                return Ok(sent);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

impl Drop for HeldPayload {
    fn drop(&mut self) {
        self.holds.release(self.frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::LaneSizes;

    #[test]
    fn space_stays_returned_when_a_frame_is_released_early() {
        let (segment, _) = Segment::create(LaneSizes::TINY).unwrap();
        let segment = Arc::new(segment);
        let holds = Arc::new(Holds::new(segment.clone()));
        let tail = || segment.control().response_tail.0.load(Ordering::Relaxed);
        let data = NonNull::<u8>::dangling();
        let (first, second) = (holds.hold(0, data, 0), holds.hold(800, data, 0));
        assert_eq!(tail(), 0);
        drop(first);
        assert_eq!(tail(), 800);
        drop(second);
        assert_eq!(tail(), 800);
        holds.take_up_to(1600);
        assert_eq!(tail(), 1600);
    }
}
