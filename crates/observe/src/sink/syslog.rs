//! Entries to a syslog daemon: as datagrams to the socket of this machine, in the form that `syslog(3)` has and that daemons
//! expect there; as datagrams by UDP (RFC 5426), or by TCP with their lengths (RFC 6587 3.4.1), in the form of RFC 5424. A
//! server that cannot be reached by TCP is tried again after a while.

use crate::clock::{Iso, Moment};
use crate::record::Record;
use howdah_config::LogService;
use rustix::net::{RecvFlags, recv};
use std::io::{self, ErrorKind, Write};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant, SystemTime};

/// The facility of daemons.
const DAEMON: u8 = 3;

/// The longest entry in a datagram; what is longer is cut.
const MAX_DATAGRAM: usize = 60_000;
/// Where even that is too long: what every receiver should take (RFC 5424 6.1).
const SHORT_DATAGRAM: usize = 2048;

/// Maximum time for a TCP server to accept a connection, and to take an entry.
const SEND_TIMEOUT: Duration = Duration::from_secs(3);
/// A server that could not be reached is not tried again before.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A syslog daemon.
#[derive(Debug)]
pub(crate) struct Syslog {
    place: LogService,
    socket: Option<Socket>,
    /// When it could not be reached.
    failed: Option<Instant>,
    host: String,
    name: &'static str,
    process: u32,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Syslog {
    pub(super) fn open(place: &LogService, name: &'static str) -> io::Result<Self> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut host: String = host.trim().chars().filter(char::is_ascii_graphic).take(255).collect();
        if host.is_empty() {
            host.push('-');
        }
        let mut syslog =
            Self { place: place.clone(), socket: None, failed: None, host, name, process: std::process::id() };
        if matches!(place, LogService::SyslogUnix(_)) {
            syslog.socket = Some(connect(place)?);
        }
        Ok(syslog)
    }

    /// Connects, so that the first entry need not.
    pub(super) fn begin(&mut self) {
        let _ = self.socket();
    }

    /// The next entry finds the way anew.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        (self.socket, self.failed) = (None, None);
        Ok(())
    }

    pub(super) fn send(&mut self, record: &Record<'_>) -> io::Result<()> {
        let entry = self.entry(record);
        let was_there = self.socket.is_some();
        let sent = self.send_once(&entry);
        match sent {
            // The connection has broken since the last entry: once more, over a new one.
            Err(error) if was_there && self.socket.is_none() => self.send_once(&entry).map_err(|_| error),
            sent => sent,
        }
    }

    fn send_once(&mut self, entry: &str) -> io::Result<()> {
        let sent = match self.socket()? {
            Socket::Unix(socket) => datagram(entry, |bytes| socket.send(bytes)),
            Socket::Udp(socket) => datagram(entry, |bytes| socket.send(bytes)),
            Socket::Tcp(stream) => {
                is_open(stream).and_then(|()| stream.write_all(format!("{} {entry}", entry.len()).as_bytes()))
            }
        };
        if sent.is_err() {
            // Also as part of an entry may be on its way: nothing that follows would be understood.
            self.socket = None;
        }
        sent
    }

    fn socket(&mut self) -> io::Result<&mut Socket> {
        if self.socket.is_none() {
            if self.failed.is_some_and(|at| at.elapsed() < RETRY_INTERVAL) {
                return Err(io::Error::new(ErrorKind::NotConnected, format!("{} cannot be reached", self.place)));
            }
            match connect(&self.place) {
                Ok(socket) => (self.socket, self.failed) = (Some(socket), None),
                Err(error) => {
                    self.failed = Some(Instant::now());
                    return Err(io::Error::new(error.kind(), format!("cannot reach {}: {error}", self.place)));
                }
            }
        }
        self.socket.as_mut().ok_or_else(|| ErrorKind::NotConnected.into())
    }

    /// `<PRI>1 TIME HOST NAME PROCESS ABOUT - MESSAGE`; on this machine `<PRI>NAME[PROCESS]: MESSAGE`, as daemons put their own
    /// time and host there and do not read RFC 5424 on that socket (journald, rsyslog's default).
    fn entry(&self, record: &Record<'_>) -> String {
        let message = record.message().replace('\n', " ");
        if matches!(self.place, LogService::SyslogUnix(_)) {
            return format!("<{}>{}[{}]: {message}", DAEMON * 8 + record.priority, self.name, self.process);
        }
        let time = SystemTime::UNIX_EPOCH + Duration::from_micros(record.micros);
        let about: String = record.about.chars().filter(char::is_ascii_graphic).take(32).collect();
        let about = if about.is_empty() { "-" } else { &about };
        let (priority, time) = (DAEMON * 8 + record.priority, Iso(Moment::from(time)));
        format!("<{priority}>1 {time} {} {} {} {about} - {message}", self.host, self.name, self.process)
    }
}

/// Sends an entry whole, or as much of it as a datagram holds.
fn datagram(entry: &str, send: impl Fn(&[u8]) -> io::Result<usize>) -> io::Result<()> {
    let bytes = cut(entry, MAX_DATAGRAM);
    match send(bytes) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error()) => {
            send(cut(entry, SHORT_DATAGRAM)).map(drop)
        }
        sent => sent.map(drop),
    }
}

fn cut(entry: &str, longest: usize) -> &[u8] {
    let mut end = entry.len().min(longest);
    while !entry.is_char_boundary(end) {
        end -= 1;
    }
    &entry.as_bytes()[..end]
}

/// `true` if the other side still reads. The kernel would accept an entry for a closed connection.
fn is_open(stream: &TcpStream) -> io::Result<()> {
    let mut byte = [0; 1];
    match recv(stream, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((0, _)) => Err(ErrorKind::ConnectionReset.into()),
        Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn connect(place: &LogService) -> io::Result<Socket> {
    match place {
        LogService::Journald(path) | LogService::SyslogUnix(path) => {
            let socket = UnixDatagram::unbound()?;
            socket.connect(path)?;
            Ok(Socket::Unix(socket))
        }
        LogService::SyslogUdp(address) => first(address, |address| {
            let socket = UdpSocket::bind(if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
            socket.connect(address)?;
            Ok(Socket::Udp(socket))
        }),
        LogService::SyslogTcp(address) => first(address, |address| {
            let stream = TcpStream::connect_timeout(&address, SEND_TIMEOUT)?;
            stream.set_write_timeout(Some(SEND_TIMEOUT))?;
            Ok(Socket::Tcp(stream))
        }),
    }
}

/// The first of a name's addresses that works.
fn first(address: &str, connect: impl Fn(std::net::SocketAddr) -> io::Result<Socket>) -> io::Result<Socket> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for found in address.to_socket_addrs()? {
        match connect(found) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}
