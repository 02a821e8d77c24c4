//! A body made of files, parts of files and pieces of memory. A connection sends files by `sendfile` where it can;
//! other receivers get their content.

use crate::stream::{Chunk, ChunkStream};
use bytes::Bytes;
use rustix::io::{Errno, pread};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Bytes per read of a file. Reads happen on the connection's task: from the page cache a read takes about 20 µs, less
/// than handing it to another thread and back.
const CHUNK: u64 = 128 << 10;

/// Parts of files up to this size are read into memory: copying is cheaper than `sendfile`, and one write sends
/// everything.
const MAX_READ: u64 = 16 * 1024;

/// Files, parts of files and pieces of memory, in order.
#[derive(Debug, Default)]
pub struct FileBody {
    /// Never contains an empty piece.
    pieces: VecDeque<Piece>,
    remaining: u64,
    identity: Option<FileIdentity>,
}

/// Identity of a file in one state of its content: equal identities have equal bytes.
pub type FileIdentity = [u8; 16];

/// A piece of such a body.
#[derive(Debug)]
pub(crate) enum Piece {
    Memory(Bytes),
    File(FilePart),
}

/// A part of a file.
#[derive(Debug)]
pub(crate) struct FilePart {
    pub(crate) file: Arc<OwnedFd>,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl FileBody {
    /// No bytes.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The whole body, if it is in memory.
    pub fn as_memory(&self) -> Option<&Bytes> {
        match self.pieces.front() {
            Some(Piece::Memory(bytes)) if self.pieces.len() == 1 => Some(bytes),
            _ => None,
        }
    }

    /// Declares the body to be the whole content of the file with this identity.
    pub fn identify(&mut self, identity: FileIdentity) {
        self.identity = Some(identity);
    }

    /// The file whose whole content is the body, if known.
    pub fn identity(&self) -> Option<&FileIdentity> {
        self.identity.as_ref()
    }

    /// Number of bytes left.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.remaining += bytes.len() as u64;
            self.pieces.push_back(Piece::Memory(bytes));
        }
    }

    /// Adds a part of a file. If the file becomes shorter meanwhile, the body fails.
    pub fn push_file(&mut self, file: &Arc<OwnedFd>, part: Range<u64>) {
        if part.end > part.start {
            self.remaining += part.end - part.start;
            self.pieces.push_back(Piece::File(FilePart { file: file.clone(), start: part.start, end: part.end }));
        }
    }

    /// The next piece for a connection that can send files: bytes, or a part of a file that is worth a `sendfile`.
    pub(crate) fn next_piece(&mut self) -> Option<io::Result<Piece>> {
        match self.pieces.front() {
            Some(Piece::File(part)) if part.end - part.start > MAX_READ => {
                let piece = self.pieces.pop_front()?;
                if let Piece::File(part) = &piece {
                    self.remaining -= part.end - part.start;
                }
                Some(Ok(piece))
            }
            _ => self.next().map(|bytes| bytes.map(Piece::Memory)),
        }
    }

    /// The next bytes.
    pub(crate) fn next(&mut self) -> Option<io::Result<Bytes>> {
        let next = match self.pieces.pop_front()? {
            Piece::Memory(bytes) => Ok(bytes),
            Piece::File(mut part) => part.read().inspect(|bytes| {
                part.start += bytes.len() as u64;
                if part.start < part.end {
                    self.pieces.push_front(Piece::File(part));
                }
            }),
        };
        match &next {
            Ok(bytes) => self.remaining -= bytes.len() as u64,
            Err(_) => self.pieces.clear(),
        }
        Some(next)
    }
}

impl FilePart {
    /// Reads up to `CHUNK` bytes from the start of the part.
    fn read(&mut self) -> io::Result<Bytes> {
        let longest = usize::try_from((self.end - self.start).min(CHUNK)).unwrap_or(0);
        let mut buffer = Vec::with_capacity(longest);
        while buffer.len() < longest {
            let position = self.start + buffer.len() as u64;
            match pread(&self.file, rustix::buffer::spare_capacity(&mut buffer), position) {
                Ok(0) => return Err(truncated()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        buffer.truncate(longest);
        Ok(buffer.into())
    }
}

/// Error of an announced body that is incomplete: it must not look complete.
pub(crate) fn truncated() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "a file became shorter while it was being sent")
}

/// For consumers that transform the body.
impl ChunkStream for FileBody {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        Poll::Ready(self.next().map(|result| result.map(|data| Chunk { data, flush: false })))
    }

    fn remaining(&self) -> Option<u64> {
        Some(self.remaining)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(length: usize) -> (Arc<OwnedFd>, Vec<u8>) {
        let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        (Arc::new(file.into()), content)
    }

    #[test]
    fn every_reader_gets_all_bytes_in_order() {
        let (file, content) = file(300_000);
        let mut body = FileBody::empty();
        body.push(Bytes::from_static(b"before"));
        body.push_file(&file, 10..290_000);
        body.push_file(&file, 5..5);
        body.push(Bytes::from_static(b"after"));
        let expected = [&b"before"[..], &content[10..290_000], b"after"].concat();
        assert_eq!(body.remaining(), expected.len() as u64);
        let mut all = Vec::new();
        while let Some(bytes) = body.next() {
            let bytes = bytes.unwrap();
            assert!(!bytes.is_empty());
            all.extend_from_slice(&bytes);
        }
        assert!(all == expected && body.remaining() == 0);
    }

    #[test]
    fn short_parts_are_read_for_a_connection_and_long_ones_are_left_to_it() {
        let (file, content) = file(100_000);
        let mut body = FileBody::empty();
        body.push_file(&file, 0..MAX_READ);
        body.push_file(&file, 0..MAX_READ + 1);
        assert!(matches!(body.next_piece(), Some(Ok(Piece::Memory(bytes))) if bytes == content[..MAX_READ as usize]));
        assert!(
            matches!(body.next_piece(), Some(Ok(Piece::File(part))) if (part.start, part.end) == (0, MAX_READ + 1))
        );
        assert!(body.next_piece().is_none() && body.remaining() == 0);
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error_and_the_end() {
        let (file, _) = file(1000);
        let mut body = FileBody::empty();
        body.push_file(&file, 0..1001);
        body.push(Bytes::from_static(b"after"));
        assert!(body.next().unwrap().is_err() && body.next().is_none());
    }
}
