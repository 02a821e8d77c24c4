//! Reads through a buffer of the thread, so that idle connections have no buffer.

use crate::socket::Socket;
use bytes::BytesMut;
use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;

/// Maximum bytes per read.
pub(crate) const READ: usize = 16 * 1024;

thread_local! {
    pub(crate) static READS: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into());
}

/// Appends one read to `input`. Ready with its length; 0 is the end.
pub(crate) fn poll_read(socket: &mut Socket, input: &mut BytesMut, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
    READS.with_borrow_mut(|space| {
        let mut buf = ReadBuf::new(space);
        ready!(socket.poll_read(cx, &mut buf))?;
        input.extend_from_slice(buf.filled());
        Poll::Ready(Ok(buf.filled().len()))
    })
}

/// Reads and drops further input, so that closing does not reset the connection before the peer has read the response.
/// Ready at the peer's close; the I/O thread ends it if it takes too long.
pub(crate) fn poll_linger(socket: &mut Socket, cx: &mut Context<'_>) -> Poll<()> {
    READS.with_borrow_mut(|space| {
        // Bounded per turn, so that one busy sender does not hold up the others.
        for _ in 0..32 {
            let mut buf = ReadBuf::new(space);
            match ready!(socket.poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {}
                _ => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}
