//! Sends entries to a syslog daemon. On this machine: datagrams to the daemon's socket, in the format of `syslog(3)`
//! that daemons expect there. To other machines: in the format of RFC 5424, as datagrams by UDP (RFC 5426) or with
//! their lengths by TCP (RFC 6587 3.4.1). A TCP server that cannot be reached is retried after a while.

use crate::clock::{Iso, Moment};
use crate::record::Record;
use howdah_config::LogService;
use rustix::net::{RecvFlags, recv};
use std::io::{self, ErrorKind, Write};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant, SystemTime};

/// The facility `daemon`.
const DAEMON: u8 = 3;

/// Maximum length of an entry in a datagram; longer entries are truncated.
const MAX_DATAGRAM: usize = 60_000;
/// Fallback length if that is still too long: the size that every receiver should accept (RFC 5424 6.1).
const SHORT_DATAGRAM: usize = 2048;

/// Maximum time to connect to a TCP server, and to send an entry.
const SEND_TIMEOUT: Duration = Duration::from_secs(3);
/// Minimum time before an unreachable server is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A syslog daemon.
#[derive(Debug)]
pub(crate) struct Syslog {
    place: LogService,
    socket: Option<Socket>,
    /// When the server was last unreachable.
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

    /// Connects in advance, so that the first entry does not have to.
    pub(super) fn begin(&mut self) {
        let _ = self.socket();
    }

    /// Makes the next entry reconnect.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        (self.socket, self.failed) = (None, None);
        Ok(())
    }

    pub(super) fn send(&mut self, record: &Record<'_>) -> io::Result<()> {
        let entry = self.entry(record);
        let was_there = self.socket.is_some();
        let sent = self.send_once(&entry);
        match sent {
            // The connection has broken since the last entry: retry over a new one.
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
            // Part of an entry may have been sent: the server would not understand anything that follows.
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

    /// `<PRI>1 TIME HOST NAME PROCESS ABOUT - MESSAGE`. On this machine `<PRI>NAME[PROCESS]: MESSAGE`: there, daemons
    /// add their own time and host and do not parse RFC 5424 (journald, rsyslog's default).
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

/// Sends an entry in one datagram, truncated if it does not fit.
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

/// Checks that the peer still reads: the kernel would accept an entry for a closed connection.
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

/// Connects to the first of a name's addresses that works.
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
