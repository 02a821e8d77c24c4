//! Both halves of a QUIC stream. If dropped early, the sending half is reset, so that the client sees an incomplete
//! response: quinn itself would finish a dropped stream as if it were complete.

use super::code::{Code, Fault};
use super::frames::Source;
use bytes::Bytes;
use quinn::{ReadError, RecvStream, SendStream, WriteError};
use std::pin::pin;
use std::task::{Context, Poll, ready};

/// Maximum amount taken out of a stream at once.
const CHUNK_LEN: usize = 64 << 10;

/// Data from a client. Dropping it asks the client to stop sending.
#[derive(Debug)]
pub(super) struct Incoming {
    stream: RecvStream,
    ended: bool,
}

impl Incoming {
    pub(super) fn new(stream: RecvStream) -> Self {
        Self { stream, ended: false }
    }

    /// Asks the client to stop sending.
    pub(super) fn stop(&mut self, code: Code) {
        if !self.ended {
            self.ended = true;
            // An error means that everything has arrived.
            let _ = self.stream.stop(code.into());
        }
    }

    /// `true` if the stream was opened before the handshake was complete, so it may be a replay by an attacker.
    pub(super) fn is_early(&self) -> bool {
        self.stream.is_0rtt()
    }
}

impl Source for Incoming {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        if self.ended {
            return Poll::Ready(Ok(None));
        }
        let read = ready!(pin!(self.stream.read_chunk(CHUNK_LEN, true)).poll(cx));
        if !matches!(read, Ok(Some(_))) {
            self.ended = true;
        }
        Poll::Ready(match read {
            Ok(chunk) => Ok(chunk.map(|chunk| chunk.bytes)),
            Err(ReadError::Reset(_)) => Err(Fault::Stream(Code::REQUEST_CANCELLED, "the client has reset the stream")),
            Err(_) => Err(Fault::Gone),
        })
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.stop(Code::NO_ERROR);
    }
}

/// Data to a client. Dropping it before the end resets the stream.
#[derive(Debug)]
pub(super) struct Outgoing {
    stream: SendStream,
    ended: bool,
}

impl Outgoing {
    pub(super) fn new(stream: SendStream) -> Self {
        Self { stream, ended: false }
    }

    /// Passes as much to quinn as fits. Ready with 0 only if `parts` are empty.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, parts: &mut [Bytes]) -> Poll<Result<usize, Fault>> {
        if parts.iter().all(Bytes::is_empty) {
            return Poll::Ready(Ok(0));
        }
        let written = ready!(pin!(self.stream.write_chunks(parts)).poll(cx));
        Poll::Ready(written.map(|written| written.bytes).map_err(|error| self.failed(&error)))
    }

    fn failed(&mut self, error: &WriteError) -> Fault {
        match error {
            WriteError::Stopped(_) => Fault::Stream(Code::REQUEST_CANCELLED, "the client has stopped reading"),
            _ => {
                self.ended = true;
                Fault::Gone
            }
        }
    }

    /// Finishes the stream.
    pub(super) fn finish(&mut self) {
        self.ended = true;
        // An error means that the client has stopped it.
        let _ = self.stream.finish();
    }

    /// Resets the stream.
    pub(super) fn reset(&mut self, code: Code) {
        if !self.ended {
            self.ended = true;
            let _ = self.stream.reset(code.into());
        }
    }

    /// Ready when the client has stopped reading, has everything, or is gone.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let stopped = self.stream.stopped();
        async move {
            let _ = stopped.await;
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.reset(Code::INTERNAL_ERROR);
    }
}

/// Writes all bytes to a critical stream.
pub(super) async fn write_all(stream: &mut SendStream, bytes: Bytes) -> Result<(), Fault> {
    stream.write_all_chunks(&mut [bytes]).await.map_err(|error| match error {
        WriteError::Stopped(_) => Fault::Connection(Code::CLOSED_CRITICAL_STREAM, "a critical stream was stopped"),
        _ => Fault::Gone,
    })
}
