//! Streamed bodies.

use bytes::Bytes;
use std::io;
use std::task::{Context, Poll};

/// A part of a streamed body.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// The bytes; may be empty when only `flush` matters.
    pub data: Bytes,
    /// Everything up to here should reach the client now. Connections write whenever no further part is ready, so this
    /// affects only stages in between, such as an encoder.
    pub flush: bool,
}

/// A streamed body.
pub trait ChunkStream: Send {
    /// The next part; `None` at the end. An error cuts the response off.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>>;

    /// The number of bytes that are still to come, if that is known.
    fn remaining(&self) -> Option<u64> {
        None
    }
}

/// A stream of body parts.
pub type Stream = Box<dyn ChunkStream>;
