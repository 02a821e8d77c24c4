//! Messages with descriptors, in addition to a lane and between the server and a zygote: one Unix `SOCK_SEQPACKET`
//! datagram each.
//!
//! Message boundaries are the kernel's, so a peer that dies cannot leave half a message. The text form is one tag byte and
//! a payload; its size is bounded by `MAX_MESSAGE`.

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The longest message in bytes.
pub const MAX_MESSAGE: usize = 64 * 1024;

/// A message on a worker's control socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Server → worker, with a descriptor: the body of a request that the worker has begun and asked for (`NeedBody`).
    Body {
        /// The request's number on the lane.
        number: u64,
    },
    /// Server → worker: the body cannot be had; the request has failed and is not to be run.
    NoBody {
        /// The request's number on the lane.
        number: u64,
    },
    /// Server → worker, with a descriptor: the state of its pool, which a request has asked for (`NeedStatus`).
    Status {
        /// The request's number on the lane.
        number: u64,
    },
    /// Worker → server: the PHP stack as text, sent from a signal handler.
    Stack(Vec<u8>),
}

const TAG_BODY: u8 = b'B';
const TAG_NO_BODY: u8 = b'N';
const TAG_STATUS: u8 = b'P';
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

/// A connected pair of sockets that keep message boundaries.
///
/// # Errors
/// The system's error when descriptors run out.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one message with descriptors (at most 8).
///
/// # Errors
/// The peer is gone, or (with `nonblocking`) its buffer is full.
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

/// Receives one message with its descriptors (close-on-exec). `None`: the peer has closed.
///
/// # Errors
/// The system's error; `WouldBlock` when `nonblocking` and nothing is there; a message that is too long.
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
            // The peer has closed and left messages of ours unread. The kernel says so once, before what the peer has said.
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
    /// Sends a body's descriptor to a worker that waits for it. Never waits itself.
    ///
    /// # Errors
    /// The worker is gone; `WouldBlock`: it asks for bodies and does not take them.
    pub fn send_body(&self, number: u64, body: BorrowedFd<'_>) -> io::Result<()> {
        send(&self.0, &about_request(TAG_BODY, number), &[body], true)
    }

    /// Sends the state of its pool to a worker that waits for it. Never waits itself.
    ///
    /// # Errors
    /// As `send_body`.
    pub fn send_status(&self, number: u64, status: BorrowedFd<'_>) -> io::Result<()> {
        send(&self.0, &about_request(TAG_STATUS, number), &[status], true)
    }

    /// Tells a worker that waits for a body that there is none.
    ///
    /// # Errors
    /// As `send_body`.
    pub fn send_no_body(&self, number: u64) -> io::Result<()> {
        send(&self.0, &about_request(TAG_NO_BODY, number), &[], true)
    }

    /// True if the other side has received everything that was sent to it.
    #[must_use]
    pub fn all_received(&self) -> bool {
        let mut unread: libc::c_int = 0;
        // SAFETY: the call writes one `int` to the address it is given, which lives through the call. (`SIOCOUTQ`,
        // which libc does not name for sockets, is the same number.)
        let asked = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TIOCOUTQ, &raw mut unread) };
        asked != 0 || unread == 0
    }

    /// True if a message waits, or the other side has closed.
    #[must_use]
    pub fn has_message(&self) -> bool {
        let peeked = rustix::net::recv(&self.0, &mut [0u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        !matches!(peeked, Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR))
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// The system's error, or a message that makes no sense.
    pub fn receive(&self) -> io::Result<Option<(Message, Option<OwnedFd>)>> {
        receive(&self.0, false)?.map(parse).transpose()
    }

    /// The next message if one is there.
    ///
    /// # Errors
    /// `WouldBlock` when none is there; else as `receive`.
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
        Some((&TAG_STATUS, of)) => Message::Status { number: number(of)? },
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

    /// A worker that a template announced before it ended, with further orders unread, was lost: it took a lane that
    /// was also given to another worker, and was never reaped.
    #[test]
    fn what_a_peer_said_is_heard_although_it_left_something_unread() {
        let (ours, theirs) = pair().unwrap();
        send(&ours, b"unread", &[], true).unwrap();
        send(&theirs, b"one", &[], true).unwrap();
        send(&theirs, b"two", &[], true).unwrap();
        drop(theirs);
        for said in ["one", "two"] {
            let (bytes, _) = receive(&ours, true).unwrap().unwrap();
            assert_eq!(bytes, said.as_bytes());
        }
        // A process that another test is just starting has a copy of the other end for a moment.
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
