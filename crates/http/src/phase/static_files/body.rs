//! The body of an answer with a file: memory, a token for `sendfile`, or reads; and several of them in turn.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use howdah_pool::Chunk;
use http_body::{Body, Frame, SizeHint};

use super::content::{Content, SMALL};
use super::range::Span;
use crate::body::ChunkStream;

/// Bytes per read where the file is read. Reads happen on the connection's own task: from the page cache one takes some
/// 20 µs, less than handing it to another thread and back.
const CHUNK: usize = 128 << 10;

/// A file, parts of it, or nothing.
///
/// May contain tokens (see `crate::sendfile`) if the answer was made for [`super::Transport::PlainH1`]. Whoever wants
/// to look at the bytes calls [`FileBody::into_readable`] first.
#[derive(Debug, Default)]
pub struct FileBody {
    /// Never contains an empty piece.
    pieces: VecDeque<Piece>,
    remaining: u64,
}

#[derive(Debug)]
enum Piece {
    Memory(Bytes),
    File { content: Arc<Content>, span: Span, token: bool },
}

impl Piece {
    /// From now on by reading.
    fn read(&mut self) {
        if let Piece::File { token, .. } = self {
            *token = false;
        }
    }
}

impl FileBody {
    /// No bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The same bytes, none of them a token: for compression, TLS, HTTP/2.
    #[must_use]
    pub fn into_readable(mut self) -> Self {
        self.pieces.iter_mut().for_each(Piece::read);
        self
    }

    /// The whole body, if it is in memory and may be looked at.
    #[must_use]
    pub fn as_memory(&self) -> Option<&Bytes> {
        match self.pieces.front() {
            Some(Piece::Memory(bytes)) if self.pieces.len() == 1 => Some(bytes),
            _ => None,
        }
    }

    /// How many bytes are left.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.remaining += bytes.len() as u64;
            self.pieces.push_back(Piece::Memory(bytes));
        }
    }

    pub(super) fn push_file(&mut self, content: &Arc<Content>, span: Span, token: bool) {
        if span.len() == 0 {
            return;
        }
        match &content.small {
            #[allow(clippy::cast_possible_truncation)] // A small file's.
            Some(bytes) => self.push(bytes.slice(span.start as usize..span.end as usize)),
            None => {
                self.remaining += span.len();
                // A short part is cheaper to copy, and one write then takes it with the head.
                let token = token && span.len() > SMALL;
                self.pieces.push_back(Piece::File { content: Arc::clone(content), span, token });
            }
        }
    }

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        let next = self.next_piece();
        match &next {
            Some(Ok(bytes)) => self.remaining -= bytes.len() as u64,
            Some(Err(_)) => self.pieces.clear(),
            None => {}
        }
        next
    }

    fn next_piece(&mut self) -> Option<io::Result<Bytes>> {
        let (content, span, token) = match self.pieces.pop_front()? {
            Piece::Memory(bytes) => return Some(Ok(bytes)),
            Piece::File { content, span, token } => (content, span, token),
        };
        if token && let Some(all) = content.token() {
            #[allow(clippy::cast_possible_truncation)] // The token is as long as the file.
            return Some(Ok(all.slice(span.start as usize..span.end as usize)));
        }
        let longest = usize::try_from(span.len()).unwrap_or(CHUNK).min(CHUNK);
        match content.read(span.start, longest) {
            Ok(bytes) if bytes.len() == longest => {
                let start = span.start + longest as u64;
                if start < span.end {
                    self.pieces.push_front(Piece::File { content, span: Span { start, end: span.end }, token: false });
                }
                Some(Ok(bytes))
            }
            Ok(_) => {
                Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a file became shorter while it was being sent")))
            }
            Err(error) => Some(Err(error.into())),
        }
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(self.next().map(|result| result.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

/// For those who work on the parts of a body: they get bytes that can be read, never a token.
impl ChunkStream for FileBody {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        self.pieces.iter_mut().for_each(Piece::read);
        Poll::Ready(self.next().map(|result| result.map(|data| Chunk { data, flush: false })))
    }

    fn remaining(&self) -> Option<u64> {
        Some(self.remaining)
    }
}
