//! Output of a connection: headers and short pieces in one buffer, so that one call sends a whole small response; then
//! long pieces and files, which are not copied here.

use crate::body::HeldBytes;
use crate::connection::Connection;
use crate::files::{FilePart, Piece};
use crate::socket::{self, Socket, Written};
use crate::tls_socket::TlsSocket;
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

/// Maximum size of a piece that is copied into the buffer of short pieces: cheaper than a vectored write.
const MAX_COPIED: usize = 4096;

/// Maximum capacity of `short` that a connection keeps between responses.
const KEPT_CAPACITY: usize = 1024;

/// Maximum number of slices per call: the limit of `HeldBytes::send_after`.
const MAX_SLICES: usize = 7;

/// Pending output, in this order: `short` from `written` on, then `pieces`.
#[derive(Debug, Default)]
pub(crate) struct Out {
    short: Vec<u8>,
    written: usize,
    pieces: VecDeque<Piece>,
    /// Bytes in `pieces` that are in memory.
    in_pieces: usize,
    total: u64,
}

impl Out {
    pub(crate) fn is_empty(&self) -> bool {
        self.short.len() == self.written && self.pieces.is_empty()
    }

    /// Bytes written so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Bytes in memory that wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.short.len() - self.written + self.in_pieces
    }

    /// Bytes that wait to be written, including those of files.
    pub(super) fn unsent(&self) -> u64 {
        let of_files = self.pieces.iter().map(|piece| match piece {
            Piece::Memory(_) => 0,
            Piece::File(part) => part.end - part.start,
        });
        self.waiting() as u64 + of_files.sum::<u64>()
    }

    /// The buffer for short pieces; `None` while longer pieces wait, which must be written first.
    fn short(&mut self) -> Option<&mut Vec<u8>> {
        // Drops written bytes, so that the buffer does not grow without limit for a client that never quite catches up.
        if self.written > MAX_COPIED {
            self.short.drain(..self.written);
            self.written = 0;
        }
        self.pieces.is_empty().then_some(&mut self.short)
    }

    /// Adds the bytes that `write` appends.
    pub(crate) fn put<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        match self.short() {
            Some(short) => write(short),
            None => {
                let mut bytes = Vec::new();
                let result = write(&mut bytes);
                if !bytes.is_empty() {
                    self.push_piece(Piece::Memory(bytes.into()));
                }
                result
            }
        }
    }

    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        match self.short() {
            Some(short) if bytes.len() <= MAX_COPIED => short.extend_from_slice(&bytes),
            _ if bytes.is_empty() => {}
            _ => self.push_piece(Piece::Memory(bytes)),
        }
    }

    /// Adds a part of a file.
    pub(crate) fn push_file(&mut self, part: FilePart) {
        self.push_piece(Piece::File(part));
    }

    fn push_piece(&mut self, piece: Piece) {
        if let Piece::Memory(bytes) = &piece {
            self.in_pieces += bytes.len();
        }
        self.pieces.push_back(piece);
    }

    /// Adds memory held elsewhere. A socket without TLS takes what it can directly from there; the rest is copied, so
    /// that a slow reader does not hold that memory.
    pub(crate) fn push_held(
        &mut self,
        held: &dyn HeldBytes,
        socket: &Socket,
        connection: &Connection,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        let mut taken = 0;
        if self.pieces.is_empty() && !matches!(socket, Socket::Tls(_)) {
            let before = [IoSlice::new(&self.short[self.written..])];
            let offered = before[0].len() + held.len();
            let result = socket.poll_write_with(cx, |fd| {
                let bytes = held.send_after(&before, fd)?;
                Ok(Written { bytes, full: bytes < offered })
            });
            connection.state.note_write(&result);
            if let Poll::Ready(result) = result {
                taken = result?;
            }
        }
        self.total += taken as u64;
        let of_short = taken.min(self.short.len() - self.written);
        self.written += of_short;
        let taken = taken - of_short;
        if taken < held.len() {
            let mut charge = connection.charge();
            if !charge.grow((held.len() - taken) as u64) {
                return Err(io::Error::other("no room for the response in `http.memory`"));
            }
            self.push_piece(Piece::Memory(charge.cover(held.copy_from(taken).into())));
        }
        Ok(())
    }

    /// Writes pending output. Ready when all of it is written.
    pub(crate) fn poll_flush(
        &mut self,
        socket: &mut Socket,
        connection: &Connection,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let result = match &mut *socket {
                Socket::Tls(tls) => self.poll_encrypted(tls, cx),
                plain => plain.poll_write_with(cx, |fd| self.attempt(fd)),
            };
            connection.state.note_write(&result);
            match ready!(result)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.advance(written),
            }
        }
        if socket.is_behind() {
            let result = socket.poll_flush(cx).map_ok(|()| 0);
            connection.state.note_write(&result);
            ready!(result)?;
        }
        connection.state.on_caught_up();
        if self.short.capacity() > KEPT_CAPACITY {
            self.short = Vec::new();
        } else {
            self.short.clear();
        }
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// Attempts one write of the first pending output.
    fn attempt(&self, socket: impl AsFd) -> io::Result<Written> {
        let short = &self.short[self.written..];
        if let (true, Some(Piece::File(part))) = (short.is_empty(), self.pieces.front()) {
            return socket::send_file(socket.as_fd(), part);
        }
        if self.pieces.is_empty() {
            return socket::send_memory(socket.as_fd(), &[IoSlice::new(short)], false);
        }
        let (slices, used, more) = self.slices();
        socket::send_memory(socket.as_fd(), &slices[..used], more)
    }

    /// Like `attempt`, through TLS.
    fn poll_encrypted(&self, socket: &mut TlsSocket, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let (true, Some(Piece::File(part))) = (self.short.len() == self.written, self.pieces.front()) {
            return socket.poll_write_file(cx, part);
        }
        let (slices, used, _) = self.slices();
        socket.poll_write_vectored(cx, &slices[..used])
    }

    /// The leading pieces that are in memory: the slices, their number, and `true` if more output follows them.
    fn slices(&self) -> ([IoSlice<'_>; MAX_SLICES], usize, bool) {
        let short = &self.short[self.written..];
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let mut used = 0;
        if !short.is_empty() {
            slices[0] = IoSlice::new(short);
            used = 1;
        }
        for piece in &self.pieces {
            match piece {
                Piece::Memory(bytes) if used < MAX_SLICES => {
                    slices[used] = IoSlice::new(bytes);
                    used += 1;
                }
                _ => return (slices, used, true),
            }
        }
        (slices, used, false)
    }

    fn advance(&mut self, mut written: usize) {
        self.total += written as u64;
        let of_short = written.min(self.short.len() - self.written);
        self.written += of_short;
        written -= of_short;
        while written > 0 {
            let Some(piece) = self.pieces.front_mut() else { return };
            let over = match piece {
                Piece::Memory(bytes) => {
                    let n = written.min(bytes.len());
                    bytes.advance(n);
                    self.in_pieces -= n;
                    written -= n;
                    bytes.is_empty()
                }
                Piece::File(part) => {
                    let n = (written as u64).min(part.end - part.start);
                    part.start += n;
                    written -= usize::try_from(n).unwrap_or(written);
                    part.start == part.end
                }
            };
            if over {
                self.pieces.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_data_is_not_kept_for_a_slow_reader() {
        let mut out = Out::default();
        for _ in 0..1000 {
            out.push(Bytes::from(vec![b'x'; 1000]));
            let taken = out.waiting().saturating_sub(500);
            out.advance(taken);
        }
        assert_eq!((out.waiting(), out.total()), (500, 999_500));
        assert!(out.short.capacity() < 64 * 1024, "{}", out.short.capacity());
    }

    #[test]
    fn pieces_keep_their_order_whatever_their_length() {
        let mut out = Out::default();
        out.push(Bytes::from_static(b"head "));
        out.push(Bytes::from(vec![b'l'; MAX_COPIED + 1]));
        out.put(|bytes| bytes.extend_from_slice(b" tail"));
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        while !out.is_empty() {
            let written = out.attempt(&ours).unwrap();
            out.advance(written.bytes);
        }
        drop(ours);
        let all = io::read_to_string(theirs).unwrap();
        assert_eq!(all, format!("head {} tail", "l".repeat(MAX_COPIED + 1)));
        assert_eq!(out.waiting(), 0);
    }
}
