//! A UDP socket that two processes share while one takes over from the other.
//!
//! A TCP listener hands each connection to one process, which then owns it. A UDP socket has one queue for all clients,
//! so only one process may read it: the new process, from the moment the old one lets go. The new process forwards
//! datagrams with a connection id of the old process over a socket pair, together with the kernel's metadata. The old
//! process answers over the UDP socket directly. Datagrams that do not fit into the socket pair's buffer are lost, as
//! on any network.

use super::connection_ids::{Mark, destination};
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::unix::AsyncFd;

/// Requested size of the buffer between the two processes.
const BETWEEN: usize = 4 << 20;

/// Length of a forwarded datagram's prefix: the client's address, the destination address (or none), and the ECN mark.
const HEADER: usize = 16 + 2 + 4 + 1 + 16 + 1;

/// The process that read the socket before.
#[derive(Debug)]
pub struct Predecessor {
    mark: Mark,
    link: OwnedFd,
    gone: AtomicBool,
}

impl Predecessor {
    /// The process whose connection ids have this mark, at the other end of `link`.
    pub fn new(mark: Mark, link: OwnedFd) -> Self {
        Self { mark, link, gone: AtomicBool::new(false) }
    }

    /// Forwards the predecessor's datagrams and compacts the others in `bufs`. Returns `true` if any are left.
    fn sort(&self, bufs: &mut [IoSliceMut<'_>], metas: &mut [RecvMeta]) -> bool {
        let mut any = false;
        for (buf, meta) in bufs.iter_mut().zip(metas) {
            // The kernel may have joined several datagrams of one length.
            let stride = meta.stride.max(1);
            let (mut at, mut kept) = (0, 0);
            while at < meta.len {
                let end = (at + stride).min(meta.len);
                if destination(&buf[at..end]).is_some_and(|id| self.mark.made(id)) {
                    self.pass_on(meta, &buf[at..end]);
                } else {
                    if kept != at {
                        buf.copy_within(at..end, kept);
                    }
                    kept += end - at;
                }
                at = end;
            }
            meta.len = kept;
            any |= kept > 0;
        }
        any
    }

    fn pass_on(&self, meta: &RecvMeta, datagram: &[u8]) {
        let header = encode(meta);
        let pieces = [IoSlice::new(&header), IoSlice::new(datagram)];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent = rustix::net::sendmsg(&self.link, &pieces, &mut rustix::net::SendAncillaryBuffer::default(), flags);
        if matches!(sent, Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET | rustix::io::Errno::NOTCONN)) {
            self.gone.store(true, Relaxed);
        }
    }
}

/// State of a UDP socket that may be shared: which process reads it, and where other processes' datagrams go.
#[derive(Debug)]
pub(super) struct Sharing {
    pub(super) mark: Mark,
    predecessor: Option<Predecessor>,
    /// Another process reads the socket. If that process ends first, this one reads it again.
    handed_over: AtomicBool,
    /// Another process also has the socket open and passes it to this process's successor.
    outlives: AtomicBool,
    /// After the handover: the link over which the successor forwards this process's datagrams.
    successor: Mutex<Option<Arc<AsyncFd<OwnedFd>>>>,
    /// The task that waits for datagrams.
    reader: Mutex<Option<Waker>>,
}

impl Sharing {
    pub(super) fn new(predecessor: Option<Predecessor>) -> Arc<Self> {
        Arc::new(Self {
            mark: Mark::new(),
            predecessor,
            handed_over: AtomicBool::new(false),
            outlives: AtomicBool::new(false),
            successor: Mutex::new(None),
            reader: Mutex::new(None),
        })
    }

    /// The link to read datagrams from; `None` while this process reads the socket itself.
    fn link(&self) -> Option<Arc<AsyncFd<OwnedFd>>> {
        if self.handed_over.load(Acquire) { lock(&self.successor).clone() } else { None }
    }

    /// `true` if clients that arrive while this process ends are left to its successor.
    pub(super) fn outlives(&self) -> bool {
        self.outlives.load(Relaxed)
    }

    fn note_reader(&self, cx: &Context<'_>) {
        let mut reader = lock(&self.reader);
        if !reader.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *reader = Some(cx.waker().clone());
        }
    }
}

/// Handle with which a UDP socket is handed to another process.
#[derive(Debug, Clone)]
pub struct QuicHandle(Arc<Sharing>);

impl QuicHandle {
    pub(super) fn new(sharing: &Arc<Sharing>) -> Self {
        Self(sharing.clone())
    }

    /// The mark by which the other process recognizes connection ids of this one.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.0.mark
    }

    /// Creates the socket pair over which datagrams are forwarded. Returns this process's end, then the other's.
    ///
    /// # Errors
    /// The system's error.
    pub fn link() -> io::Result<(OwnedFd, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for end in [&ours, &theirs] {
            // The kernel caps this at its own limit.
            let _ = rustix::net::sockopt::set_socket_send_buffer_size(end, BETWEEN);
        }
        Ok((ours, theirs))
    }

    /// Stops reading the socket: from now on, datagrams come from `link`. Call once, within a Tokio runtime.
    ///
    /// # Errors
    /// The system's error; this process keeps reading the socket.
    pub fn let_go(&self, link: OwnedFd) -> io::Result<()> {
        // Its replacement is unsafe: the descriptor must stay open, which owning it guarantees.
        #[allow(deprecated)]
        let link = AsyncFd::with_interest(link, tokio::io::Interest::READABLE)?;
        *lock(&self.0.successor) = Some(Arc::new(link));
        self.0.handed_over.store(true, Release);
        self.wake_reader();
        Ok(())
    }

    /// The socket stays open when this process ends. Clients that arrive meanwhile are left to the successor, not
    /// refused.
    pub fn outlives_process(&self) {
        self.0.outlives.store(true, Relaxed);
    }

    /// Cancels the handover: this process reads the socket again.
    pub fn take_back(&self) {
        self.0.handed_over.store(false, Release);
        *lock(&self.0.successor) = None;
        self.wake_reader();
    }

    fn wake_reader(&self) {
        if let Some(reader) = lock(&self.0.reader).take() {
            reader.wake();
        }
    }
}

/// The UDP socket that `quinn` reads and writes.
pub(super) struct SharedSocket {
    udp: Arc<dyn AsyncUdpSocket>,
    sharing: Arc<Sharing>,
}

impl fmt::Debug for SharedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSocket").field("udp", &self.udp).finish_non_exhaustive()
    }
}

impl SharedSocket {
    pub(super) fn new(udp: Arc<dyn AsyncUdpSocket>, sharing: Arc<Sharing>) -> Arc<Self> {
        Arc::new(Self { udp, sharing })
    }

    /// The next datagram forwarded by the successor; `None` if that process has ended.
    fn poll_passed_on(
        link: &AsyncFd<OwnedFd>,
        cx: &mut Context<'_>,
        buf: &mut IoSliceMut<'_>,
        meta: &mut RecvMeta,
    ) -> Poll<io::Result<Option<()>>> {
        loop {
            let mut ready = ready!(link.poll_read_ready(cx))?;
            let mut header = [0; HEADER];
            let mut pieces = [IoSliceMut::new(&mut header), IoSliceMut::new(buf)];
            let mut nothing = rustix::net::RecvAncillaryBuffer::default();
            match rustix::net::recvmsg(link.as_fd(), &mut pieces, &mut nothing, RecvFlags::DONTWAIT) {
                Ok(got) if got.bytes == 0 => return Poll::Ready(Ok(None)),
                Ok(got) if got.bytes > HEADER => {
                    *meta = decode(&header, got.bytes - HEADER);
                    return Poll::Ready(Ok(Some(())));
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(rustix::io::Errno::CONNRESET) => return Poll::Ready(Ok(None)),
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

impl AsyncUdpSocket for SharedSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.udp.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.udp.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let sharing = &*self.sharing;
        if let Some(link) = sharing.link()
            && let (Some(buf), Some(first)) = (bufs.first_mut(), meta.first_mut())
        {
            // `take_back` wakes this task.
            sharing.note_reader(cx);
            match ready!(Self::poll_passed_on(&link, cx, buf, first))? {
                Some(()) => return Poll::Ready(Ok(1)),
                None => sharing.handed_over.store(false, Release),
            }
        }
        loop {
            match self.udp.poll_recv(cx, bufs, meta) {
                Poll::Pending => {
                    sharing.note_reader(cx);
                    // `let_go` may have run just before the reader was registered.
                    if sharing.handed_over.load(Acquire) {
                        cx.waker().wake_by_ref();
                    }
                    return Poll::Pending;
                }
                Poll::Ready(Ok(came)) => match &sharing.predecessor {
                    Some(predecessor) if !predecessor.gone.load(Relaxed) => {
                        if predecessor.sort(&mut bufs[..came], &mut meta[..came]) {
                            return Poll::Ready(Ok(came));
                        }
                    }
                    _ => return Poll::Ready(Ok(came)),
                },
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.udp.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.udp.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.udp.may_fragment()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Encodes IPv4 addresses as IPv4-mapped IPv6 addresses; one byte holds the families.
fn encode(meta: &RecvMeta) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let ip = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => (4u8, ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => (6u8, ip.octets()),
    };
    let (client_kind, client) = ip(meta.addr.ip());
    let (local_kind, local) = meta.dst_ip.map_or((0, [0; 16]), ip);
    let scope = if let SocketAddr::V6(addr) = meta.addr { addr.scope_id() } else { 0 };
    header[..16].copy_from_slice(&client);
    header[16..18].copy_from_slice(&meta.addr.port().to_be_bytes());
    header[18..22].copy_from_slice(&scope.to_be_bytes());
    header[22] = client_kind << 4 | local_kind;
    header[23..39].copy_from_slice(&local);
    header[39] = meta.ecn.map_or(0, |ecn| ecn as u8);
    header
}

fn decode(header: &[u8; HEADER], length: usize) -> RecvMeta {
    let ip = |kind: u8, bytes: &[u8]| {
        let ip = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).unwrap_or_default());
        match kind {
            4 => Some(IpAddr::V4(ip.to_ipv4_mapped()?)),
            6 => Some(IpAddr::V6(ip)),
            _ => None,
        }
    };
    let port = u16::from_be_bytes([header[16], header[17]]);
    let scope = u32::from_be_bytes([header[18], header[19], header[20], header[21]]);
    let addr = match ip(header[22] >> 4, &header[..16]) {
        Some(IpAddr::V4(ip)) => SocketAddr::new(ip.into(), port),
        Some(IpAddr::V6(ip)) => SocketAddrV6::new(ip, port, 0, scope).into(),
        None => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
    };
    RecvMeta {
        addr,
        len: length,
        stride: length,
        ecn: EcnCodepoint::from_bits(header[39]),
        dst_ip: ip(header[22] & 15, &header[23..39]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection_ids::LENGTH;
    use super::*;

    fn meta(len: usize, stride: usize) -> RecvMeta {
        RecvMeta {
            addr: "192.0.2.7:443".parse().unwrap(),
            len,
            stride,
            ecn: Some(EcnCodepoint::Ce),
            dst_ip: Some("192.0.2.1".parse().unwrap()),
        }
    }

    fn short(id: &[u8], rest: &[u8]) -> Vec<u8> {
        [&[0x40], id, rest].concat()
    }

    #[test]
    fn a_datagrams_metadata_is_passed_on_with_it() {
        for (addr, local) in [
            ("192.0.2.7:443", Some("192.0.2.1")),
            ("[2001:db8::7]:1", Some("2001:db8::1")),
            ("[fe80::1%3]:9", None),
            ("[::ffff:192.0.2.7]:5", Some("::ffff:192.0.2.1")),
        ] {
            let mut given = meta(77, 77);
            given.addr = addr.parse().unwrap();
            given.dst_ip = local.map(|ip| ip.parse().unwrap());
            let got = decode(&encode(&given), 77);
            assert_eq!((got.addr, got.dst_ip, got.len, got.stride), (given.addr, given.dst_ip, 77, 77));
            assert_eq!(got.ecn.map(|ecn| ecn as u8), given.ecn.map(|ecn| ecn as u8));
        }
    }

    #[test]
    fn joined_datagrams_are_separated_and_those_that_stay_keep_their_order() {
        let (mark, (ours, theirs)) = (Mark::new(), QuicHandle::link().unwrap());
        let old: Vec<u8> = mark.generator().generate_cid().to_vec();
        let new = [9; LENGTH];
        let pieces = [short(&new, b"1"), short(&old, b"2"), short(&new, b"3"), short(&old, b"4"), short(&new, b"")];
        let mut bytes = pieces.concat();
        let (length, stride) = (bytes.len(), pieces[0].len());
        let mut metas = [meta(length, stride)];
        let predecessor = Predecessor::new(mark, theirs);
        assert!(predecessor.sort(&mut [IoSliceMut::new(&mut bytes)], &mut metas));
        let stays = [pieces[0].clone(), pieces[2].clone(), pieces[4].clone()].concat();
        assert_eq!(&bytes[..metas[0].len], &stays[..]);
        for piece in [&pieces[1], &pieces[3]] {
            let mut bytes = [0; 100];
            let (got, _) = rustix::net::recv(&ours, &mut bytes, RecvFlags::DONTWAIT).unwrap();
            assert_eq!(&bytes[HEADER..got], &piece[..]);
        }
        let mut only_old = [pieces[1].clone()].concat();
        let mut metas = [meta(only_old.len(), only_old.len())];
        assert!(!predecessor.sort(&mut [IoSliceMut::new(&mut only_old)], &mut metas));
        drop(ours);
        assert!(!predecessor.sort(&mut [IoSliceMut::new(&mut short(&old, b"x"))], &mut [meta(10, 10)]));
        assert!(predecessor.gone.load(Relaxed), "nothing is forwarded to a process that has ended");
    }
}
