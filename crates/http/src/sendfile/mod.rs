//! Zero-copy file bodies: memory that stands for a file, and a writer that turns it into `sendfile(2)`.
//!
//! hyper owns the connection and accepts only byte buffers as a body. So a file body is a `Bytes` over a *token*: an
//! address range as long as the file. hyper queues the buffer, slices it, counts it and hands it to the connection's
//! vectored write without looking inside; there, `write_vectored` finds by its address that the slice belongs to a
//! token and sends the same range of the file from its descriptor instead of the memory.
//!
//! **The token is not a mapping of the file.** It is an anonymous, private, read-only reservation that no page was ever
//! given to. Against a real mapping this has four advantages:
//!
//! - Nothing can raise SIGBUS. A mapped file that is truncated kills the process that reads it; a token does not change
//!   when the file does. If some code reads a token by mistake it gets zeros: a wrong body, which the byte-exactness
//!   tests of this module and of `static_files` catch, and not a dead server.
//! - It is sound: a `&[u8]` must not change under its reader, and a file changes whenever somebody writes to it.
//! - It costs no memory (not charged, not touched, no page tables), and neighbouring reservations merge into one entry of
//!   the kernel's list, so thousands of open files stay far below `vm.max_map_count`.
//! - Permission `PROT_NONE` would be as cheap, but would turn a mistaken read into a crash.
//!
//! Who must never see a token: TLS, HTTP/2, compression, and every writer that copies. `static_files` makes tokens only
//! for `Transport::PlainH1`, and `FileBody::into_readable` swaps a body over to reads of the file. hyper must run with
//! `http1::Builder::writev(true)` and without `pipeline_flush(true)`: its `Queue` strategy moves buffers and never
//! copies them, its `Flatten` strategy copies.
//!
//! A file that became shorter than announced makes `sendfile` return 0. The writer answers with
//! [`io::ErrorKind::UnexpectedEof`], hyper drops the connection, and the client sees a response that is too short;
//! it is never padded. What `sendfile` cannot promise, here as in every server that uses it: queued data are references
//! to the file's pages, so a change of the file before the client has them may show in them. Truncation wipes the
//! cut-off rest of a large page: a client may get zeros from behind the cut, and then the end of the connection.
//! Replacing a file by renaming, as deployments do, has no such effect.

mod socket;
mod token;

#[cfg(test)]
mod tests;

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use crate::conn::io::Socket;

pub(crate) use socket::{Watched, poll_write_vectored};
#[cfg(test)]
pub(crate) use socket::{Written, write_vectored};
#[cfg(test)]
pub(crate) use token::is_token;
pub(crate) use token::{reserve, stand_in, stand_in_offset};

/// Writes `bufs` to `socket` if there is a token among them; `None` leaves the write to the caller.
pub(crate) fn try_write_vectored(
    socket: &Socket,
    cx: &mut Context<'_>,
    bufs: &[IoSlice<'_>],
) -> Option<Poll<io::Result<usize>>> {
    match socket {
        Socket::Tcp(stream) => poll_write_vectored(stream, cx, bufs),
        Socket::Unix(stream) => poll_write_vectored(stream, cx, bufs),
    }
}
