//! The predecessor's side of an upgrade: it starts the successor, gives it the sockets, and waits until it serves.

use super::messages::{FromSuccessor, ToSuccessor, parse, send};
use super::successor::Successor;
use crate::server::reload::Server;
use crate::server::socket_files::{Files, file_of};
use howdah_config::ListenAddr;
use howdah_pool::process::launcher::Launcher;
use howdah_pool::process::root_program::RootProgram;
use howdah_protocol::front::Front;
use howdah_protocol::http3::QuicHandle;
use howdah_protocol::listener::ListenerHandle;
use howdah_protocol::listeners::Listeners;
use howdah_transport::control_socket;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Maximum time for the successor's short steps.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time until the successor's exit is noticed.
const EXIT_WAIT: Duration = Duration::from_secs(1);

/// Sockets to hand over. They are copies that keep ports open, so this is dropped when the server stops accepting.
pub(crate) struct Sockets {
    listeners: Arc<Listeners>,
    admin: OwnedFd,
    admin_addr: ListenAddr,
    files: Files,
}

/// Everything that an upgrade needs.
pub(crate) struct HandOver {
    pub(crate) server: Arc<Server>,
    pub(crate) program: RootProgram,
    pub(crate) launcher: Launcher,
    pub(crate) sockets: Arc<Sockets>,
    /// Maximum time for the successor to become ready.
    pub(crate) patience: Duration,
}

/// A successor that serves.
pub(crate) struct ReadySuccessor {
    pub(crate) pid: u32,
    /// Files of the Unix sockets that the successor listens on.
    pub(crate) files: Vec<PathBuf>,
    /// While this is open, the successor knows that this process is running.
    _socket: AsyncFd<OwnedFd>,
}

impl HandOver {
    /// Returns when the successor serves. On failure the successor has ended, the server is unchanged, and the error is
    /// the reason. Waits for a running reload; no other reload begins meanwhile.
    pub(crate) async fn run(self) -> Result<ReadySuccessor, String> {
        let server = self.server.clone();
        server.without_reloads(self.start()).await
    }

    async fn start(self) -> Result<ReadySuccessor, String> {
        let listeners = self.sockets.listeners.handles().ok_or("no descriptor was left for a listening socket")?;
        let no_socket = |error: io::Error| format!("cannot communicate with a new process: {error}");
        let (ours, theirs) = control_socket::pair().map_err(no_socket)?;
        // The replacement is an unsafe function, whose contract is met here by owning the descriptor.
        #[allow(deprecated)]
        let socket = AsyncFd::with_interest(ours, Interest::READABLE).map_err(no_socket)?;
        let program = self.program.binary.display().to_string();
        let successor = Successor::start(&self.program, &self.launcher, theirs).map_err(|error| error.to_string())?;
        tracing::info!("upgrade: starting {program}");
        let mut running = SuccessorGuard { successor: Some(successor) };
        let mut given = Vec::new();
        let replaced = tokio::select! {
            replaced = self.talk(&socket, &listeners, &mut given) => replaced,
            how = running.ended() => {
                let why = || format!("{program} has ended before it was ready: {how}");
                Err(last_words(&socket).unwrap_or_else(why))
            }
        };
        let why = match replaced {
            Ok((pid, files)) => {
                running.successor = None;
                return Ok(ReadySuccessor { pid, files, _socket: socket });
            }
            Err(why) => why,
        };
        given.iter().for_each(QuicHandle::take_back);
        drop(socket);
        running.end().await;
        Err(why)
    }

    /// Exchanges messages with the successor. `given` receives the endpoints whose datagrams must be taken back on
    /// failure.
    async fn talk(
        &self,
        socket: &AsyncFd<OwnedFd>,
        listeners: &[Arc<ListenerHandle>],
        given: &mut Vec<QuicHandle>,
    ) -> Result<(u32, Vec<PathBuf>), String> {
        let broken = |error: io::Error| format!("cannot communicate with the new process: {error}");
        let links = match self.give(socket, listeners) {
            Ok(links) => links,
            Err(error) => {
                // If the successor does not read, it has usually exited; its exit status is the better error.
                tokio::time::sleep(EXIT_WAIT).await;
                return Err(broken(error));
            }
        };
        let ready = tokio::time::timeout(self.patience, receive(socket)).await;
        let (pid, unused) = match ready {
            Ok(Ok(FromSuccessor::Ready { pid, unused })) => (pid, unused),
            Ok(Ok(FromSuccessor::Failed { why })) => return Err(why),
            Ok(Ok(_)) => return Err("unexpected message from the new process".to_owned()),
            Ok(Err(error)) => return Err(broken(error)),
            Err(_) => {
                return Err(format!(
                    "the new process was not ready within {:?} (twice `boot_timeout`); see its log",
                    self.patience
                ));
            }
        };
        for (number, quic, link) in links {
            if !unused.contains(&number) {
                quic.let_go(link).map_err(broken)?;
                given.push(quic);
            }
        }
        send(socket.get_ref(), &ToSuccessor::Go, &[]).map_err(broken)?;
        match tokio::time::timeout(MESSAGE_TIMEOUT, receive(socket)).await {
            Ok(Ok(FromSuccessor::Serving)) => {}
            Ok(Ok(FromSuccessor::Failed { why })) => return Err(why),
            Ok(Err(error)) => return Err(broken(error)),
            _ => return Err("the new process was ready, but does not serve".to_owned()),
        }
        Ok((pid, self.sockets.leave_files(listeners, &unused)))
    }

    /// Sends all sockets. Returns, for each UDP socket, its number and this side of the link over which datagrams are
    /// forwarded.
    fn give(
        &self,
        socket: &AsyncFd<OwnedFd>,
        listeners: &[Arc<ListenerHandle>],
    ) -> io::Result<Vec<(usize, QuicHandle, OwnedFd)>> {
        let mut links = Vec::new();
        for (number, listener) in listeners.iter().enumerate() {
            let mark = listener.quic().map(|quic| quic.mark().0);
            let message = ToSuccessor::Socket { number, mark, owns_file: self.sockets.files.owns(listener.addr()) };
            match listener.quic() {
                Some(quic) => {
                    let (ours, theirs) = QuicHandle::link()?;
                    send(socket.get_ref(), &message, &[listener.as_fd(), theirs.as_fd()])?;
                    links.push((number, quic.clone(), ours));
                }
                None => send(socket.get_ref(), &message, &[listener.as_fd()])?,
            }
        }
        let owns_file = self.sockets.files.owns(&self.sockets.admin_addr);
        let admin = ToSuccessor::Socket { number: listeners.len(), mark: None, owns_file };
        send(socket.get_ref(), &admin, &[self.sockets.admin.as_fd()])?;
        send(socket.get_ref(), &ToSuccessor::Settled, &[])?;
        Ok(links)
    }
}

impl Sockets {
    /// The sockets of a running front and of the admin endpoint.
    pub(crate) fn of(front: &Front, admin: OwnedFd, admin_addr: &ListenAddr, files: &Files) -> Self {
        let (listeners, admin_addr, files) = (front.listeners().clone(), admin_addr.clone(), files.clone());
        Self { listeners, admin, admin_addr, files }
    }

    /// Leaves the files of the Unix sockets that the successor uses in place, and returns their paths.
    fn leave_files(&self, listeners: &[Arc<ListenerHandle>], unused: &[usize]) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = Vec::new();
        for (number, listener) in listeners.iter().enumerate() {
            if !unused.contains(&number) {
                listener.leave_file();
                files.extend(file_of(listener.addr()).map(Path::to_owned));
            }
        }
        if !unused.contains(&listeners.len()) {
            files.extend(file_of(&self.admin_addr).map(Path::to_owned));
        }
        files
    }
}

/// Receives the successor's next known message.
async fn receive(socket: &AsyncFd<OwnedFd>) -> io::Result<FromSuccessor> {
    loop {
        let mut ready = socket.readable().await?;
        match control_socket::receive(socket.get_ref(), true) {
            Ok(Some((bytes, _))) => match parse(&bytes, FromSuccessor::Unknown) {
                FromSuccessor::Unknown => {}
                message => return Ok(message),
            },
            // The successor closed the connection; its exit status is the better error.
            Ok(None) => return std::future::pending().await,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
            Err(error) => return Err(error),
        }
    }
}

/// Returns the reason of failure among the successor's unread messages.
fn last_words(socket: &AsyncFd<OwnedFd>) -> Option<String> {
    while let Ok(Some((bytes, _))) = control_socket::receive(socket.get_ref(), true) {
        if let FromSuccessor::Failed { why } = parse(&bytes, FromSuccessor::Unknown) {
            return Some(why);
        }
    }
    None
}

/// The successor's process: killed on drop unless it serves.
struct SuccessorGuard {
    successor: Option<Successor>,
}

impl SuccessorGuard {
    async fn ended(&mut self) -> String {
        match &mut self.successor {
            Some(successor) => {
                let how = successor.ended().await;
                self.successor = None;
                how
            }
            None => std::future::pending().await,
        }
    }

    /// Waits briefly for the successor to exit, as it does after its message, then kills it.
    async fn end(&mut self) {
        if self.successor.is_some() && tokio::time::timeout(EXIT_WAIT, self.ended()).await.is_err() {
            if let Some(successor) = &self.successor {
                successor.kill();
            }
            let _ = tokio::time::timeout(MESSAGE_TIMEOUT, self.ended()).await;
        }
    }
}

impl Drop for SuccessorGuard {
    fn drop(&mut self) {
        if let Some(successor) = &self.successor {
            successor.kill();
        }
    }
}
