//! One direction of an exchange: bytes of one connection for another, with at most one buffer of them in memory.

use super::framing::{Decoder, Framing};
use bytes::{Buf, BytesMut};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// Maximum number of bytes that wait in one direction.
const MAX_BUFFER: usize = 64 << 10;

/// Progress of a pipe.
#[derive(Debug)]
pub(super) enum Step {
    /// Bytes have been read or written.
    Moved,
    /// The connection that is read has ended.
    Ended,
}

/// The failed side.
#[derive(Debug)]
pub(super) enum Failure {
    Read(io::Error),
    Write,
    Malformed(anyhow::Error),
}

#[derive(Debug)]
pub(super) struct Pipe {
    /// Bytes to write first: heads.
    head: BytesMut,
    /// Bytes that have been read.
    pub(super) buffer: BytesMut,
    /// Number of bytes at the beginning of the buffer that belong to the body, and are to be written.
    ready: usize,
    body: Decoder,
    /// `true` if nothing can be written any more: what belongs to the body is dropped.
    pub(super) discards: bool,
}

impl Pipe {
    /// A pipe without a body. `buffer` has been read already.
    pub(super) fn new(buffer: BytesMut) -> Self {
        Self { head: BytesMut::new(), buffer, ready: 0, body: Decoder::new(Framing::Length(0)), discards: false }
    }

    /// Replaces the head.
    pub(super) fn set_head(&mut self, head: &[u8]) {
        self.head.clear();
        self.push_head(head);
    }

    /// Adds a head.
    pub(super) fn push_head(&mut self, head: &[u8]) {
        self.head.extend_from_slice(head);
    }

    /// Begins a body with the bytes that have been read.
    pub(super) fn begin(&mut self, framing: Framing, seen: impl FnMut(&[u8])) -> Result<(), Failure> {
        self.body = Decoder::new(framing);
        self.decode(seen)
    }

    /// From now on drops everything that is read.
    pub(super) fn discard_rest(&mut self) {
        self.body = Decoder::new(Framing::UntilClose);
        self.discards = true;
        self.ready = self.buffer.len();
    }

    /// `true` if the whole body has been written.
    pub(super) fn is_done(&self) -> bool {
        self.body.is_done() && self.is_flushed()
    }

    /// `true` if all that may be written has been written.
    pub(super) fn is_flushed(&self) -> bool {
        self.head.is_empty() && self.ready == 0
    }

    /// `true` if the end of the connection is the end of the body.
    pub(super) const fn ends_with_connection(&self) -> bool {
        self.body.ends_with_connection()
    }

    fn decode(&mut self, seen: impl FnMut(&[u8])) -> Result<(), Failure> {
        self.ready += self.body.feed(&self.buffer[self.ready..], seen).map_err(Failure::Malformed)?;
        Ok(())
    }

    /// Writes or reads once. After the body it reads ahead, up to a full buffer, to see when the connection ends.
    /// Cancelling it loses nothing. `seen` gets the body's content.
    pub(super) async fn step(
        &mut self,
        from: &mut ReadHalf<'_>,
        to: &mut WriteHalf<'_>,
        seen: impl FnMut(&[u8]),
    ) -> Result<Step, Failure> {
        if self.discards {
            self.head.clear();
            self.buffer.advance(std::mem::take(&mut self.ready));
        }
        if !self.head.is_empty() {
            let wrote = to.write_buf(&mut self.head).await;
            return wrote.map(|_| Step::Moved).map_err(|_| Failure::Write);
        }
        if self.ready > 0 {
            let wrote = to.write(&self.buffer[..self.ready]).await.map_err(|_| Failure::Write)?;
            self.buffer.advance(wrote);
            self.ready -= wrote;
            return Ok(Step::Moved);
        }
        if self.buffer.len() >= MAX_BUFFER {
            std::future::pending::<()>().await;
        }
        self.buffer.reserve(MAX_BUFFER - self.buffer.len());
        if from.read_buf(&mut self.buffer).await.map_err(Failure::Read)? == 0 {
            return Ok(Step::Ended);
        }
        if !self.body.is_done() {
            self.decode(seen)?;
        }
        Ok(Step::Moved)
    }
}
