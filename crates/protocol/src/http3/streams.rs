//! Both halves of a QUIC stream, such that the client sees a correct end even if their owner is dropped: quinn ends
//! what is dropped as if it were complete.

use super::code::{Code, Fault};
use super::frames::Source;
use bytes::Bytes;
use quinn::{ReadError, RecvStream, SendStream, WriteError};
use std::pin::pin;
use std::task::{Context, Poll, ready};

/// Maximum amount taken out of a stream at once.
const CHUNK_LEN: usize = 64 << 10;

/// Data from a client. Unsent data is refused when this is dropped.
#[derive(Debug)]
pub(super) struct Incoming {
    stream: RecvStream,
    ended: bool,
}

impl Incoming {
    pub(super) fn new(stream: RecvStream) -> Self {
        Self { stream, ended: false }
    }

    /// Nothing more is wanted.
    pub(super) fn stop(&mut self, code: Code) {
        if !self.ended {
            self.ended = true;
            // An error means that all has come.
            let _ = self.stream.stop(code.into());
        }
    }

    /// The stream was opened before the handshake was complete, so somebody may have recorded it and plays it again.
    pub(super) fn came_early(&self) -> bool {
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
            Err(ReadError::Reset(_)) => Err(Fault::Stream(Code::REQUEST_CANCELLED, "the client has broken off")),
            Err(_) => Err(Fault::Gone),
        })
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.stop(Code::NO_ERROR);
    }
}

/// Data to a client. It is broken off if this is dropped before its end.
#[derive(Debug)]
pub(super) struct Outgoing {
    stream: SendStream,
    ended: bool,
}

impl Outgoing {
    pub(super) fn new(stream: SendStream) -> Self {
        Self { stream, ended: false }
    }

    /// Hands over as much as there is room for, which is less than all only if nothing more fits. Ready with nothing
    /// handed over only if there is nothing.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, parts: &mut [Bytes]) -> Poll<Result<usize, Fault>> {
        if parts.iter().all(Bytes::is_empty) {
            return Poll::Ready(Ok(0));
        }
        let written = ready!(pin!(self.stream.write_chunks(parts)).poll(cx));
        Poll::Ready(written.map(|written| written.bytes).map_err(|error| self.failed(&error)))
    }

    fn failed(&mut self, error: &WriteError) -> Fault {
        match error {
            WriteError::Stopped(_) => Fault::Stream(Code::REQUEST_CANCELLED, "the client wants no more of it"),
            _ => {
                self.ended = true;
                Fault::Gone
            }
        }
    }

    /// That was all.
    pub(super) fn finish(&mut self) {
        self.ended = true;
        // An error means that the client has stopped it.
        let _ = self.stream.finish();
    }

    /// It is broken off.
    pub(super) fn reset(&mut self, code: Code) {
        if !self.ended {
            self.ended = true;
            let _ = self.stream.reset(code.into());
        }
    }

    /// Ready when the client wants no more, has everything, or is gone.
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

/// Writes all of it.
pub(super) async fn write_all(stream: &mut SendStream, bytes: Bytes) -> Result<(), Fault> {
    stream.write_all_chunks(&mut [bytes]).await.map_err(|error| match error {
        WriteError::Stopped(_) => {
            Fault::Connection(Code::CLOSED_CRITICAL_STREAM, "a stream that is needed was stopped")
        }
        _ => Fault::Gone,
    })
}
