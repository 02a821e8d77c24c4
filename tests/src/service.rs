//! A service manager like systemd: the socket for the server's notifications, and the sockets that it passes to the
//! server.

use crate::patience;
use crate::process::PATIENCE;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg, sockopt};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::Command;

/// The socket in `NOTIFY_SOCKET`.
#[derive(Debug)]
pub struct Manager {
    socket: UnixDatagram,
}

/// A notification, with its sender's process as reported by the kernel.
#[derive(Debug)]
pub struct Notice {
    pub pid: u32,
    pub text: String,
    /// Descriptors that came with it; they are closed with the notice.
    pub descriptors: Vec<OwnedFd>,
}

impl Notice {
    /// True if the notification contains this line.
    pub fn says(&self, line: &str) -> bool {
        self.text.lines().any(|said| said == line)
    }

    /// The value after `NAME=`.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }
}

impl Manager {
    /// Listens at this path.
    pub fn bind(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        sockopt::set_socket_passcred(&socket, true).unwrap_or_else(|e| panic!("{e}"));
        socket.set_read_timeout(Some(patience(PATIENCE))).unwrap_or_else(|e| panic!("{e}"));
        Self { socket }
    }

    /// Waits for the next notification.
    pub fn hear(&self) -> Notice {
        self.receive(RecvFlags::empty()).unwrap_or_else(|e| panic!("no notice: {e}"))
    }

    /// All pending notifications.
    pub fn heard(&self) -> Vec<Notice> {
        std::iter::from_fn(|| self.receive(RecvFlags::DONTWAIT).ok()).collect()
    }

    /// Waits for a notification with this line; skips earlier ones.
    pub fn until(&self, line: &str) -> Notice {
        loop {
            let notice = self.hear();
            if notice.says(line) {
                return notice;
            }
        }
    }

    fn receive(&self, flags: RecvFlags) -> rustix::io::Result<Notice> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1), ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [0; 4096];
        let got = recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut beside, flags)?;
        let (mut pid, mut descriptors) = (None, Vec::new());
        for message in beside.drain() {
            match message {
                RecvAncillaryMessage::ScmCredentials(from) => pid = u32::try_from(from.pid.as_raw_nonzero().get()).ok(),
                RecvAncillaryMessage::ScmRights(sent) => descriptors.extend(sent),
                _ => {}
            }
        }
        let text = String::from_utf8_lossy(&bytes[..got.bytes]).into_owned();
        let pid = pid.unwrap_or_else(|| panic!("no sender's credentials with {text:?}"));
        Ok(Notice { pid, text, descriptors })
    }
}

/// A shell that passes its standard input and output on as descriptors 3 and 4, as systemd does, and then executes the
/// named program.
const PASS_SOCKETS: &str = "exec 3<&0 4<&1 0</dev/null 1>&2; LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=$0 exec \"$@\"";

/// A command that executes `program` with one stored socket under this name.
pub fn with_kept(socket: OwnedFd, name: &str, program: &str) -> Command {
    let pass = "exec 3<&0 0</dev/null 1>&2; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=$0 exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", pass, name, program]).stdin(socket);
    command
}

/// As `with_kept`, with two sockets.
pub fn with_two_kept(sockets: [(OwnedFd, String); 2], program: &str) -> Command {
    let [(first, one), (second, other)] = sockets;
    let mut command = Command::new("sh");
    command.args(["-c", PASS_SOCKETS, &format!("{one}:{other}"), program]).stdin(first).stdout(second);
    command
}

/// The sockets of a unit, with their names.
pub(crate) struct Passed {
    tcp: OwnedFd,
    other: OwnedFd,
    names: &'static str,
}

impl Passed {
    /// Binds a TCP socket, and a Unix socket if a path is given, else a UDP socket on the same port.
    pub(crate) fn bind(port: u16, unix: Option<&Path>) -> Self {
        let address = ("127.0.0.1", port);
        let tcp = TcpListener::bind(address).unwrap_or_else(|e| panic!("{address:?}: {e}")).into();
        match unix {
            Some(path) => {
                let socket = UnixListener::bind(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                Self { tcp, other: socket.into(), names: "web:local" }
            }
            None => {
                let socket = UdpSocket::bind(address).unwrap_or_else(|e| panic!("UDP {address:?}: {e}"));
                Self { tcp, other: socket.into(), names: "web:quic" }
            }
        }
    }

    /// A command that executes `program` with these sockets; its standard output goes to standard error.
    pub(crate) fn to(self, program: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", PASS_SOCKETS, self.names, program]).stdin(self.tcp).stdout(self.other);
        command
    }
}
