//! One connection of the generator: its socket and its pending request. Scheduling is elsewhere.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

/// A request that was sent or is about to be.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    /// Index of the group's request.
    pub request: usize,
    /// Time when it was due; latency counts from here.
    pub due: Instant,
    /// `true` if that was in the measured period.
    pub counted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// There is no socket.
    Closed,
    /// The kernel is connecting.
    Connecting,
    /// Connected, without a pending request.
    Idle,
    /// A request was sent.
    Busy,
}

/// A connection, or a slot for one.
#[derive(Debug)]
pub struct Connection {
    /// Index of its group.
    pub group: usize,
    /// Source address.
    pub from: Option<Ipv4Addr>,
    pub state: State,
    /// The pending request.
    pub pending: Option<Pending>,
    /// Correct responses in the measured period.
    pub good: u64,
    /// The received part of an incomplete reply.
    pub held: Vec<u8>,
    socket: Option<OwnedFd>,
    /// Number of bytes of the request that were sent.
    sent: usize,
    /// Number of the socket, which identifies events of earlier ones.
    life: u32,
}

impl Connection {
    /// A closed connection.
    pub fn new(group: usize, from: Option<Ipv4Addr>) -> Self {
        Self {
            group,
            from,
            state: State::Closed,
            pending: None,
            good: 0,
            held: Vec::new(),
            socket: None,
            sent: 0,
            life: 0,
        }
    }

    /// Starts connecting. Events carry `index` and the connection's life.
    pub fn open(&mut self, address: SocketAddr, epoll: &OwnedFd, index: usize) -> rustix::io::Result<()> {
        self.close();
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        if let Some(from) = self.from {
            rustix::net::bind(&socket, &SocketAddrV4::new(from, 0))?;
        }
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        // Edge-triggered for its whole life: no further system call to wait for another direction.
        let events = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(u64::from(self.life) << 32 | index as u64);
        epoll::add(epoll, &socket, data, events)?;
        self.socket = Some(socket);
        self.state = State::Connecting;
        Ok(())
    }

    /// Returns `true` if an event with this data belongs to the current socket.
    pub fn is_life(&self, data: u64) -> bool {
        self.socket.is_some() && data >> 32 == u64::from(self.life)
    }

    /// Returns the number of the current socket.
    pub fn life(&self) -> u32 {
        self.life
    }

    /// Closes the connection; its pending request stays pending.
    pub fn close(&mut self) {
        self.socket = None;
        self.state = State::Closed;
        self.held.clear();
        self.sent = 0;
        self.life = self.life.wrapping_add(1);
    }

    /// Starts sending a request on a connected socket.
    pub fn send(&mut self, bytes: &[u8]) -> rustix::io::Result<()> {
        self.sent = 0;
        self.state = State::Busy;
        self.send_rest(bytes)
    }

    /// Continues sending it.
    pub fn send_rest(&mut self, bytes: &[u8]) -> rustix::io::Result<()> {
        let Some(socket) = &self.socket else { return Err(Errno::NOTCONN) };
        while self.sent < bytes.len() {
            match rustix::net::send(socket, &bytes[self.sent..], SendFlags::NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads once; `None` if no data is available, 0 at the end.
    pub fn receive(&mut self, buffer: &mut [u8]) -> rustix::io::Result<Option<usize>> {
        let Some(socket) = &self.socket else { return Err(Errno::NOTCONN) };
        loop {
            match rustix::net::recv(socket, &mut *buffer, RecvFlags::empty()) {
                Ok((count, _)) => return Ok(Some(count)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
