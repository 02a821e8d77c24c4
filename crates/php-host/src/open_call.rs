//! What the bridge keeps of a call that is not done: its body, how far its answer is, and in async mode its memory.

use howdah_transport::wire::WireCall;
use howdah_transport::worker_end::{body_kind, call_parts};
use howdah_transport::worker_events::TakenCall;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// How a call's body is read.
enum Body {
    Empty,
    Inline { data: *const u8, len: usize, read: usize },
    File { fd: OwnedFd, read: u64 },
}

/// A call that is not done.
pub(crate) struct OpenCall {
    body: Body,
    pub(crate) began: Instant,
    pub(crate) head_sent: bool,
    pub(crate) ended: bool,
    /// Nobody wants the answer any more.
    pub(crate) cancelled: bool,
    /// The call itself, where it does not lie in the ring.
    memory: Option<TakenCall>,
}

impl OpenCall {
    /// No call: what a worker that runs one at a time has before the first.
    pub(crate) fn none() -> Self {
        Self {
            body: Body::Empty,
            began: Instant::now(),
            head_sent: false,
            ended: false,
            cancelled: false,
            memory: None,
        }
    }

    /// Begins a call whose body, if it travels as a descriptor, is given.
    ///
    /// # Safety
    /// `call` came from the lane and stays valid until this value is given another call or dropped.
    pub(crate) unsafe fn begin(&mut self, call: *const WireCall, body: Option<OwnedFd>) {
        // SAFETY: the caller's promise.
        let parts = unsafe { call_parts(call) };
        self.began = Instant::now();
        self.head_sent = false;
        self.ended = false;
        self.body = match (body, body_kind(parts.head.flags)) {
            (Some(fd), _) => Body::File { fd, read: 0 },
            (None, (true, _)) => Body::Inline { data: parts.body, len: parts.head.body_len as usize, read: 0 },
            (None, _) => Body::Empty,
        };
    }

    /// A call in memory of its own.
    pub(crate) fn taken(mut call: TakenCall) -> Self {
        let mut open = Self::none();
        let body = call.body.take();
        // SAFETY: the call's memory does not move with `call`, and lives as long as the value that holds it.
        unsafe { open.begin(call.call(), body) };
        open.memory = Some(call);
        open
    }

    /// Lets go of the body.
    pub(crate) fn finish(&mut self) {
        self.body = Body::Empty;
    }

    /// The call's memory, if it does not lie in the ring.
    pub(crate) fn call(&self) -> Option<*const WireCall> {
        self.memory.as_ref().map(TakenCall::call)
    }

    /// Reads on in the body; 0 at its end.
    pub(crate) fn read_body(&mut self, buffer: &mut [u8]) -> usize {
        match &mut self.body {
            Body::Empty => 0,
            Body::Inline { data, len, read } => {
                let n = buffer.len().min(*len - *read);
                // SAFETY: the call, in whose memory the body lies, is open; it does not overlap C's buffer.
                unsafe { std::ptr::copy_nonoverlapping(data.add(*read), buffer.as_mut_ptr(), n) };
                *read += n;
                n
            }
            Body::File { fd, read } => loop {
                match rustix::io::pread(&*fd, &mut *buffer, *read) {
                    Ok(n) => {
                        *read += n as u64;
                        return n;
                    }
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return 0,
                }
            },
        }
    }
}
