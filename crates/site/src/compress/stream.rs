//! Streaming compression: PHP's output as it arrives, and large bodies in slices.
//!
//! The encoder flushes exactly when the source asks for it. After a flush, the client can decode all input so far.
//! Memory is bounded by the windows below and one slice of output. An encoder for a stream of unknown length takes 300
//! KB (gzip), 300 to 660 KB (zstd 3), 200 to 740 KB (brotli 2) or 0.5 to 1.9 MB (brotli 4), growing with the input.

use super::Coding;
use super::cache::Admission;
use super::encode::{MAX_WINDOW, STREAM_WINDOW, brotli_params};
use bytes::{Bytes, BytesMut};
use flate2::{Compress, Compression, FlushCompress, Status};
use howdah_config::Algorithm;
use howdah_protocol::{Chunk, ChunkStream, Stream};
use std::io::{self, Write};
use std::task::{Context, Poll};

/// Gzip's window as a power of two: 32 KB, which every decoder supports.
const GZIP_WINDOW: u8 = 15;

/// Bytes of input that are compressed before the task yields to the thread's other tasks.
pub const SLICE: usize = 64 * 1024;

/// An incremental encoder.
pub struct StreamEncoder {
    inner: Inner,
    /// `true` if there was input since the last flush.
    dirty: bool,
}

enum Inner {
    Gzip(Compress),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
}

impl std::fmt::Debug for StreamEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamEncoder").field("dirty", &self.dirty).finish_non_exhaustive()
    }
}

impl StreamEncoder {
    /// Creates an encoder. `length` is the approximate length of the body, if known; it selects the window of Brotli
    /// and zstd.
    pub fn new(coding: Coding, length: Option<u64>) -> io::Result<Self> {
        let inner = match coding.algorithm {
            Algorithm::Gzip => {
                // zlib's level 1 compresses markedly worse than libdeflate's, which shorter bodies get.
                let level = Compression::new(u32::from(coding.level.clamp(2, 9)));
                Inner::Gzip(Compress::new_gzip(level, GZIP_WINDOW))
            }
            Algorithm::Zstd => Inner::Zstd(zstd_encoder(coding.level, length)?),
            Algorithm::Brotli => {
                let params = brotli_params(coding.level, length);
                Inner::Brotli(Box::new(brotli::CompressorWriter::with_params(Vec::new(), 4096, &params)))
            }
        };
        Ok(Self { inner, dirty: false })
    }

    /// Encodes input and returns the output that is ready: all of it if `flush` is set.
    pub fn write(&mut self, data: &[u8], flush: bool) -> io::Result<Bytes> {
        self.dirty |= !data.is_empty();
        let flush = flush && self.dirty;
        self.dirty &= !flush;
        let sink = match &mut self.inner {
            Inner::Gzip(encoder) => {
                let mode = if flush { FlushCompress::Sync } else { FlushCompress::None };
                return deflate(encoder, data, mode);
            }
            Inner::Zstd(encoder) => feed(encoder, data, flush)?.get_mut(),
            Inner::Brotli(encoder) => feed(&mut **encoder, data, flush)?.get_mut(),
        };
        Ok(Bytes::from(std::mem::take(sink)))
    }

    /// Ends the body and returns the rest of the output.
    pub fn finish(self) -> io::Result<Bytes> {
        let rest = match self.inner {
            Inner::Gzip(mut encoder) => return deflate(&mut encoder, &[], FlushCompress::Finish),
            Inner::Zstd(encoder) => encoder.finish()?,
            Inner::Brotli(encoder) => encoder.into_inner(),
        };
        Ok(Bytes::from(rest))
    }
}

/// Runs zlib until it has consumed all input and returned all output that `mode` requires.
///
/// This replaces `flate2`'s writer, which requests the flush only once. zlib needs the same request repeated until
/// there is output space left over.
fn deflate(encoder: &mut Compress, mut data: &[u8], mode: FlushCompress) -> io::Result<Bytes> {
    let mut output = Vec::new();
    loop {
        // zlib repeats its flush marker if the output buffer has six bytes or fewer.
        output.reserve((data.len() / 2).max(256));
        let before = encoder.total_in();
        let status = encoder.compress_vec(data, &mut output, mode).map_err(io::Error::other)?;
        data = &data[(encoder.total_in() - before) as usize..];
        // Output space left over means that zlib holds nothing back. The end of the body has its own status.
        let done = match mode {
            FlushCompress::Finish => status == Status::StreamEnd,
            _ => data.is_empty() && output.len() < output.capacity(),
        };
        if done {
            return Ok(Bytes::from(output));
        }
    }
}

fn feed<'a, W: Write>(encoder: &'a mut W, data: &[u8], flush: bool) -> io::Result<&'a mut W> {
    encoder.write_all(data)?;
    if flush {
        encoder.flush()?;
    }
    Ok(encoder)
}

fn zstd_encoder(level: u8, length: Option<u64>) -> io::Result<zstd::stream::write::Encoder<'static, Vec<u8>>> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), i32::from(level))?;
    match length {
        Some(length) => {
            let window = length.max(1).ilog2() + 1;
            encoder.window_log(window.clamp(STREAM_WINDOW, MAX_WINDOW))?;
        }
        None => {
            encoder.window_log(STREAM_WINDOW)?;
            // Reduces the tables with the window; by default they take more memory than the window.
            encoder.set_parameter(zstd::zstd_safe::CParameter::HashLog(15))?;
            encoder.set_parameter(zstd::zstd_safe::CParameter::ChainLog(15))?;
        }
    }
    Ok(encoder)
}

/// A complete body as a stream: one chunk without a flush.
#[derive(Debug)]
pub struct SingleChunk(Option<Bytes>);

impl SingleChunk {
    /// The source of this body.
    pub fn new(body: Bytes) -> Self {
        Self(Some(body))
    }
}

impl ChunkStream for SingleChunk {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        Poll::Ready(self.0.take().map(|data| Ok(Chunk { data, flush: false })))
    }
}

/// A stream that encodes the chunks of its source. It yields no chunk while the encoder buffers the input. If the
/// source fails, the stream fails too, without the end marker of the coding, so that no decoder accepts the body as
/// complete.
pub struct Encoded {
    source: Stream,
    /// `None` once the body has ended or failed.
    encoder: Option<StreamEncoder>,
    /// Input that is not yet encoded.
    waiting: Option<Chunk>,
    /// Bytes encoded since this task last yielded to others.
    work: usize,
    admission: Option<Admission>,
    output: BytesMut,
    taken: u64,
    given: u64,
}

impl std::fmt::Debug for Encoded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoded").field("taken", &self.taken).field("given", &self.given).finish_non_exhaustive()
    }
}

impl Encoded {
    /// Encodes `source` with `encoder`.
    pub fn new(source: Stream, encoder: StreamEncoder) -> Self {
        Self {
            source,
            encoder: Some(encoder),
            waiting: None,
            work: 0,
            admission: None,
            output: BytesMut::new(),
            taken: 0,
            given: 0,
        }
    }

    /// Copies the output and stores it in the cache at the end of the body.
    pub(super) fn admit(mut self, admission: Option<Admission>) -> Self {
        self.admission = admission;
        self
    }

    /// Number of bytes read from the source.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Number of encoded bytes returned.
    pub fn given(&self) -> u64 {
        self.given
    }

    fn finish(&mut self) -> Part {
        let Some(encoder) = self.encoder.take() else { return Poll::Ready(None) };
        match encoder.finish() {
            Ok(data) => {
                let ready = self.give(data, false);
                if let Some(admission) = self.admission.take() {
                    admission.complete(std::mem::take(&mut self.output).freeze());
                }
                ready
            }
            Err(error) => self.give_up(error),
        }
    }

    fn give(&mut self, data: Bytes, flush: bool) -> Part {
        self.given += data.len() as u64;
        if self.admission.is_some() {
            self.output.extend_from_slice(&data);
        }
        Poll::Ready(Some(Ok(Chunk { data, flush })))
    }

    fn give_up(&mut self, error: io::Error) -> Part {
        self.encoder = None;
        self.waiting = None;
        self.admission = None;
        self.output = BytesMut::new();
        Poll::Ready(Some(Err(error)))
    }
}

type Part = Poll<Option<io::Result<Chunk>>>;

impl ChunkStream for Encoded {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Part {
        loop {
            if self.work >= SLICE {
                self.work = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let Some(encoder) = &mut self.encoder else { return Poll::Ready(None) };
            if let Some(waiting) = &mut self.waiting {
                let part = waiting.data.split_to(waiting.data.len().min(SLICE));
                let last = waiting.data.is_empty();
                let flush = last && waiting.flush;
                if last {
                    self.waiting = None;
                }
                self.work += part.len();
                self.taken += part.len() as u64;
                match encoder.write(&part, flush) {
                    Ok(data) if data.is_empty() && !flush => continue,
                    Ok(data) => return self.give(data, flush),
                    Err(error) => return self.give_up(error),
                }
            }
            match self.source.poll_chunk(cx) {
                Poll::Ready(Some(Ok(chunk))) => self.waiting = Some(chunk),
                Poll::Ready(Some(Err(error))) => return self.give_up(error),
                Poll::Ready(None) => return self.finish(),
                Poll::Pending => {
                    self.work = 0;
                    return Poll::Pending;
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
