//! The way back to a client for informational responses: whoever runs the script leaves them here, and the request's task,
//! which alone writes to the stream, takes them before it writes the response.

use super::head;
use crate::connection::Connection;
use crate::informational::{self, Allowance, Sink, Taken};
use bytes::{Bytes, BytesMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

/// See above.
pub(super) struct Respond {
    connection: Arc<Connection>,
    back: Mutex<Back>,
}

struct Back {
    /// The response has not begun: only before it there may be informational ones.
    open: bool,
    waiting: BytesMut,
    allowance: Allowance,
    task: Option<Waker>,
}

impl Respond {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        let back = Back { open: true, waiting: BytesMut::new(), allowance: Allowance::default(), task: None };
        Self { connection, back: Mutex::new(back) }
    }

    /// Puts what waits behind what is there, if that is written. `None` if there is nothing; the task is woken when there is.
    pub(super) fn take<'a>(&self, written: &'a mut Bytes, cx: &Context<'_>) -> Option<&'a mut Bytes> {
        if written.is_empty() {
            let mut back = self.lock();
            if back.waiting.is_empty() {
                if !back.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
                    back.task = Some(cx.waker().clone());
                }
                return None;
            }
            *written = back.waiting.split().freeze();
        }
        Some(written)
    }

    /// Takes no further ones; returns what still waits.
    pub(super) fn close(&self) -> Bytes {
        let mut back = self.lock();
        back.open = false;
        back.waiting.split().freeze()
    }

    fn lock(&self) -> MutexGuard<'_, Back> {
        self.back.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Respond {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Respond")
    }
}

impl Drop for Respond {
    fn drop(&mut self) {
        let back = self.back.get_mut().unwrap_or_else(PoisonError::into_inner);
        back.allowance.give_back(self.connection.informational.used());
    }
}

impl Sink for Respond {
    fn send(&self, _: u64, status: u16, headers: &[(Bytes, Bytes)]) -> Taken {
        let Some(status) = informational::sendable(status) else { return Taken::Done };
        let Some((headers, bytes)) = informational::fields(headers) else { return Taken::Done };
        let mut back = self.lock();
        if !back.open {
            return Taken::Done;
        }
        let taken = back.allowance.take(self.connection.informational.used(), bytes);
        if taken == Taken::Done {
            head::put_response(&mut back.waiting, status, &headers);
            if let Some(task) = &back.task {
                task.wake_by_ref();
            }
        }
        taken
    }
}
