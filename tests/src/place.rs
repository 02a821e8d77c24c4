//! Directories and a port for one server of the tests.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};

/// The directories of one site.
#[derive(Debug)]
pub struct Place {
    /// The top directory; it is removed at the end.
    pub top: PathBuf,
    /// The document root.
    pub root: PathBuf,
    /// The server's private `TMPDIR`.
    pub tmp: PathBuf,
    /// Sockets and configuration.
    pub run: PathBuf,
    /// PHP's session files.
    pub sessions: PathBuf,
}

impl Place {
    /// Replaces `@ROOT@` and `@TOP@` in a setting's value.
    pub(crate) fn fill_in(&self, value: &str) -> String {
        value.replace("@ROOT@", &self.root.display().to_string()).replace("@TOP@", &self.top.display().to_string())
    }
}

/// A TCP port of 127.0.0.1 that is reserved for a server of this test: no other socket gets it while this lives,
/// whether or not the server listens there already. (It sets `SO_REUSEADDR` as all servers do, which may then bind the
/// port a second time.)
#[derive(Debug)]
pub struct Port {
    pub number: u16,
    _bound: OwnedFd,
}

impl Port {
    /// Reserves a port that is not bound. Numbers do not repeat in a process, so no test receives traffic meant for a
    /// server that has ended, and they are below those that the system assigns.
    pub fn hold() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        for _ in 0..2000 {
            let offset = NEXT.fetch_add(1, Ordering::Relaxed);
            let number = 20000 + (first_port() + offset % 12000) % 12000;
            if let Ok(bound) = bind_alone(number) {
                return Self { number, _bound: bound };
            }
        }
        panic!("no free port");
    }
}

/// First port that a test program tries, above 20000: the test runner gives each test its own range.
fn first_port() -> u16 {
    let given = std::env::var("HOWDAH_TEST_PORTS").ok().and_then(|port| port.parse::<u16>().ok());
    given.map_or_else(
        || u16::try_from(std::process::id() % 97).unwrap_or(0) * 113,
        |port| port.saturating_sub(20000) % 12000,
    )
}

/// Binds a port that no other socket is bound to, without listening. A process that another test is starting has a copy
/// for a moment, which would keep a listener alive.
fn bind_alone(port: u16) -> rustix::io::Result<OwnedFd> {
    use rustix::net::{AddressFamily, SocketAddrV4, SocketFlags, SocketType, bind, socket_with, sockopt};
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(socket)
}

/// Reserves a port of this test until the test program ends.
pub fn free_port() -> u16 {
    let port = Port::hold();
    let number = port.number;
    std::mem::forget(port);
    number
}

#[cfg(test)]
mod tests {
    use super::Port;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_held_port_is_for_the_servers_own_listener_only() {
        let port = Port::hold();
        assert!(super::bind_alone(port.number).is_err(), "another harness gets it too");
        assert!(TcpStream::connect(("127.0.0.1", port.number)).is_err(), "no listener");
        let server = TcpListener::bind(("127.0.0.1", port.number)).unwrap_or_else(|e| panic!("its server: {e}"));
        assert!(TcpStream::connect(("127.0.0.1", port.number)).is_ok());
        drop(server);
        assert_ne!(Port::hold().number, port.number);
    }
}
