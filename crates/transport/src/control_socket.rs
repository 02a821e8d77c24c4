//! Messages with descriptors, sent alongside a lane and between the server and its other processes. Each is one Unix
//! `SOCK_SEQPACKET` datagram of at most `MAX_MESSAGE` bytes.
//!
//! The kernel preserves message boundaries, so a peer that dies cannot leave half a message. Alongside a lane, a
//! message is one tag byte and a payload (`Message`); the other processes exchange JSON.

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Maximum size of a message in bytes.
pub const MAX_MESSAGE: usize = 64 * 1024;

/// A message on a worker's control socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Server → worker, with a descriptor: the body of a request that the worker has begun and whose body it requested
    /// (`NeedBody`).
    Body {
        /// The request's number on the lane.
        number: u64,
    },
    /// Server → worker: the body is unavailable. The request has failed and must not run.
    NoBody {
        /// The request's number on the lane.
        number: u64,
    },
    /// Server → worker, with a descriptor: the text that a request waits for: its pool's status (`NeedStatus`) or
    /// the answer to a question about connections (`Live`).
    Text {
        /// The request's number on the lane.
        number: u64,
    },
    /// Worker → server: the PHP stack as text, sent from a signal handler.
    Stack(Vec<u8>),
}

const TAG_BODY: u8 = b'B';
const TAG_NO_BODY: u8 = b'N';
const TAG_TEXT: u8 = b'T';
/// First byte of a `Message::Stack`.
pub const TAG_STACK: u8 = b'S';

/// One end of a control socket.
#[derive(Debug)]
pub struct ControlSocket(OwnedFd);

impl From<OwnedFd> for ControlSocket {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Creates a connected pair of sockets that preserve message boundaries.
///
/// # Errors
/// The system's error when descriptors run out.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one message with descriptors (at most 8).
///
/// # Errors
/// The system's error: the peer is gone, the message is too long, or (with `nonblocking`) the buffer is full.
pub fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>], nonblocking: bool) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors in one message"));
    }
    let mut flags = SendFlags::NOSIGNAL;
    if nonblocking {
        flags |= SendFlags::DONTWAIT;
    }
    loop {
        match sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, flags) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Receives one message with its descriptors (close-on-exec). `None`: the peer has closed, or has sent an empty
/// message.
///
/// # Errors
/// The system's error; `WouldBlock` if `nonblocking` is set and no message is waiting; an error for a message that is
/// too long.
pub fn receive(socket: impl AsFd, nonblocking: bool) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut flags = RecvFlags::CMSG_CLOEXEC;
    if nonblocking {
        flags |= RecvFlags::DONTWAIT;
    }
    let mut reset = false;
    let got = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(got) => break got,
            Err(rustix::io::Errno::INTR) => {}
            // The peer closed while messages of ours were unread. The kernel reports this once, before the peer's own
            // messages.
            Err(rustix::io::Errno::CONNRESET) if !reset => reset = true,
            Err(e) => return Err(e.into()),
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if got.bytes == 0 && fds.is_empty() {
        return Ok(None);
    }
    if got.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::other("control message too long"));
    }
    bytes.truncate(got.bytes);
    Ok(Some((bytes, fds)))
}

impl ControlSocket {
    /// Sends a body's descriptor to a worker that waits for it. Never blocks.
    ///
    /// # Errors
    /// The worker is gone; `WouldBlock`: it requests bodies without receiving them.
    pub fn send_body(&self, number: u64, body: BorrowedFd<'_>) -> io::Result<()> {
        send(&self.0, &about_request(TAG_BODY, number), &[body], true)
    }

    /// Sends a text to a worker that waits for it. Never blocks.
    ///
    /// # Errors
    /// As `send_body`.
    pub fn send_text(&self, number: u64, text: BorrowedFd<'_>) -> io::Result<()> {
        send(&self.0, &about_request(TAG_TEXT, number), &[text], true)
    }

    /// Informs a worker that waits for a body that there is none.
    ///
    /// # Errors
    /// As `send_body`.
    pub fn send_no_body(&self, number: u64) -> io::Result<()> {
        send(&self.0, &about_request(TAG_NO_BODY, number), &[], true)
    }

    /// Bytes of kernel memory used by messages that the peer has not received.
    pub fn unreceived(&self) -> usize {
        let mut unread: libc::c_int = 0;
        // SAFETY: the call writes one `int` to the address it is given, which lives through the call. (`SIOCOUTQ`,
        // which libc does not name for sockets, is the same number.)
        let asked = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TIOCOUTQ, &raw mut unread) };
        if asked == 0 { usize::try_from(unread).unwrap_or(0) } else { 0 }
    }

    /// True if the peer has received everything that was sent to it.
    pub fn all_received(&self) -> bool {
        self.unreceived() == 0
    }

    /// True if a message is waiting or the peer has closed.
    pub fn has_message(&self) -> bool {
        let peeked = rustix::net::recv(&self.0, &mut [0u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        !matches!(peeked, Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR))
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// The system's error, or an invalid message.
    pub fn receive(&self) -> io::Result<Option<(Message, Option<OwnedFd>)>> {
        receive(&self.0, false)?.map(parse).transpose()
    }

    /// Returns the next message without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if none is waiting; otherwise as for `receive`.
    pub fn try_receive(&self) -> io::Result<Option<(Message, Option<OwnedFd>)>> {
        receive(&self.0, true)?.map(parse).transpose()
    }
}

fn about_request(tag: u8, number: u64) -> [u8; 9] {
    let mut bytes = [tag; 9];
    bytes[1..].copy_from_slice(&number.to_ne_bytes());
    bytes
}

fn number(bytes: &[u8]) -> io::Result<u64> {
    bytes.try_into().map(u64::from_ne_bytes).map_err(|_| io::Error::other("malformed control message"))
}

fn parse((bytes, mut fds): (Vec<u8>, Vec<OwnedFd>)) -> io::Result<(Message, Option<OwnedFd>)> {
    let fd = if fds.is_empty() { None } else { Some(fds.swap_remove(0)) };
    let message = match bytes.split_first() {
        Some((&TAG_BODY, of)) => Message::Body { number: number(of)? },
        Some((&TAG_NO_BODY, of)) => Message::NoBody { number: number(of)? },
        Some((&TAG_TEXT, of)) => Message::Text { number: number(of)? },
        Some((&TAG_STACK, text)) => Message::Stack(text.to_vec()),
        _ => return Err(io::Error::other("unknown control message")),
    };
    Ok((message, fd))
}

#[cfg(test)]
mod tests {
    use super::{pair, receive, send};
    use std::io::ErrorKind;
    use std::time::{Duration, Instant};

    /// Regression: a worker that a template announced before it exited with orders unread was lost. It took a lane that
    /// was also given to another worker, and was never reaped.
    #[test]
    fn data_of_a_peer_that_left_data_unread_is_still_read() {
        let (ours, theirs) = pair().unwrap();
        send(&ours, b"unread", &[], true).unwrap();
        send(&theirs, b"one", &[], true).unwrap();
        send(&theirs, b"two", &[], true).unwrap();
        drop(theirs);
        for said in ["one", "two"] {
            let (bytes, _) = receive(&ours, true).unwrap().unwrap();
            assert_eq!(bytes, said.as_bytes());
        }
        // A process that another test is forking may hold a copy of the other end for a moment.
        let until = Instant::now() + Duration::from_secs(60);
        let end = loop {
            match receive(&ours, true) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                    std::thread::yield_now()
                }
                other => break other,
            }
        };
        assert!(end.unwrap().is_none());
    }
}
