//! Answers that go from a worker's ring to the socket without a copy in between.
//!
//! hyper takes byte buffers only, and the bytes of a ring must not be made one: the worker can write to them (see
//! `howdah_transport::held`). So hyper gets a *stand-in*, a slice of memory that nobody looks at, as long as the body, and
//! the body itself is laid beside it, in the connection. The connection's writer recognises the stand-in by its address and
//! sends the body in its place. (`sendfile` does the same for files.)
//!
//! A body may be in the ring for the current turn only, as it takes room from the worker. hyper writes what it is given
//! before its turn ends. What the socket does not take at once is copied into the connection's *backlog*, hyper is told
//! that all is written, and the ring is free again, however slow the client reads. Until the backlog is written, nothing
//! else is: flushes wait, and the next answer's body is copied as it comes.

use crate::sendfile::{stand_in, stand_in_offset};
use bytes::Bytes;
use howdah_budget::Charge;
use howdah_transport::HeldPayload;
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

/// The body that goes from a ring to this connection next. All of it is used by the connection's own task only.
#[derive(Debug, Default)]
pub struct Straight {
    laid: Mutex<Option<HeldPayload>>,
    /// Something is laid or waits in the backlog.
    busy: AtomicBool,
}

impl Straight {
    /// What to give hyper for this body: a stand-in that the connection's writer understands, or a copy.
    pub fn lay(&self, held: HeldPayload) -> Bytes {
        match stand_in(held.len()) {
            Some(stand_in) if !self.busy.load(Relaxed) => {
                self.set(Some(held));
                Bytes::from_static(stand_in)
            }
            _ => held.copy_from(0).into(),
        }
    }

    /// Takes back what is laid.
    pub fn take(&self) -> Option<HeldPayload> {
        self.lock().take()
    }

    /// True if something is laid or waits.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.busy.load(Relaxed)
    }

    fn set(&self, held: Option<HeldPayload>) {
        *self.lock() = held;
        self.busy.store(true, Relaxed);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<HeldPayload>> {
        self.laid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What hyper takes for written and the socket has not taken.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    bytes: Vec<u8>,
    written: usize,
    charge: Option<Charge>,
}

impl Backlog {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes `bufs` if a body is laid for one of them, and keeps what cannot be written now: all of them count as written
    /// then. `None`: there is no such body among them, and nothing was done.
    ///
    /// `send` makes one attempt to write without waiting; it says how many bytes the socket took.
    pub(super) fn write(
        &mut self,
        straight: &Straight,
        bufs: &[IoSlice<'_>],
        charge: impl FnOnce() -> Charge,
        send: impl FnOnce(&HeldPayload, &[IoSlice<'_>]) -> io::Result<usize>,
    ) -> Option<io::Result<usize>> {
        let at = bufs.iter().position(|buf| stand_in_offset(buf).is_some())?;
        let Some(held) = straight.take() else { return Some(Err(io::ErrorKind::InvalidData.into())) };
        // hyper gets it whole and gives it back whole.
        if bufs[at].len() != held.len() || bufs[at + 1..].iter().any(|buf| stand_in_offset(buf).is_some()) {
            return Some(Err(io::ErrorKind::InvalidData.into()));
        }
        let before = &bufs[..at];
        let mut taken = 0;
        if self.is_empty() {
            match send(&held, before) {
                Ok(n) => taken = n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Some(Err(error)),
            }
        }
        let mut skip = taken;
        for buf in before {
            let part = skip.min(buf.len());
            self.bytes.extend_from_slice(&buf[part..]);
            skip -= part;
        }
        if skip < held.len() {
            if !self.charge.get_or_insert_with(charge).grow((held.len() - skip) as u64) {
                return Some(Err(io::Error::other("there is no room for the answer in `http.memory`")));
            }
            self.bytes.extend_from_slice(&held.copy_from(skip));
        }
        let mut all = before.iter().map(|buf| buf.len()).sum::<usize>() + held.len();
        drop(held);
        if self.is_empty() {
            straight.busy.store(false, Relaxed);
        } else {
            // What stands behind it has to stay behind it.
            for buf in &bufs[at + 1..] {
                self.bytes.extend_from_slice(buf);
                all += buf.len();
            }
        }
        Some(Ok(all))
    }

    /// Writes what waits, with `write`. Ready when nothing does.
    pub(super) fn poll_written(
        &mut self,
        straight: &Straight,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&mut Context<'_>, &[u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<()>> {
        if self.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while self.written < self.bytes.len() {
            match ready!(write(cx, &self.bytes[self.written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => self.written += n,
            }
        }
        *self = Self::default();
        straight.busy.store(false, Relaxed);
        Poll::Ready(Ok(()))
    }
}
