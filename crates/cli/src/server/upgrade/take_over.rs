//! The successor's side of an upgrade: it takes over the sockets, and reports that it can serve, or why it cannot.

use super::messages::{FromSuccessor, ToSuccessor, one_or_two, parse, send};
use crate::server::own_program::TAKES_OVER;
use crate::server::pools::Pools;
use anyhow::{Context, Result, anyhow, bail};
use howdah_protocol::http3::{Mark, Predecessor};
use howdah_protocol::inherited::{Inherited, InheritedSockets};
use howdah_transport::control_socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SocketType, sockopt};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Interval at which the pools of the new server are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum time for the old server to send its sockets.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(30);

/// The connection to the predecessor. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct TakeOver {
    socket: Arc<OwnedFd>,
    /// The old server's process.
    pid: u32,
}

/// State of a server that does not serve yet, if it replaces another.
#[derive(Default)]
pub(crate) struct TakingOver {
    pub(crate) from: Option<TakeOver>,
    /// Numbers of the inherited sockets that this server does not use.
    pub(crate) unused: Vec<usize>,
}

impl TakingOver {
    /// Returns when this process may accept: immediately, or once its pools can serve and the predecessor has let go of
    /// the sockets.
    pub(crate) async fn ready(&mut self, pools: &Pools) -> Result<()> {
        let Some(from) = &self.from else { return Ok(()) };
        while pools.ready().is_err() {
            for pool in pools.needed() {
                let status = pool.status();
                if let Some(why) = status.down.or(status.last_error) {
                    bail!("pool {}: {why}", pool.name());
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        from.ready(std::mem::take(&mut self.unused)).await
    }
}

impl TakeOver {
    /// The connection to the predecessor, if one started this process. Afterwards standard input is free.
    pub(crate) fn begin() -> io::Result<Option<Self>> {
        if std::env::var_os(TAKES_OVER).is_none() {
            return Ok(None);
        }
        let stdin = io::stdin();
        if sockopt::socket_type(&stdin).ok() != Some(SocketType::SEQPACKET) {
            return Ok(None);
        }
        let socket = rustix::io::fcntl_dupfd_cloexec(&stdin, 3)?;
        let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty())?;
        rustix::stdio::dup2_stdin(&null)?;
        let peer = sockopt::socket_peercred(&socket)?;
        let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or(0);
        Ok(Some(Self { socket: Arc::new(socket), pid }))
    }

    /// Receives the predecessor's sockets. They must not be used before `ready`.
    pub(crate) fn sockets(&self) -> Result<InheritedSockets> {
        sockopt::set_socket_timeout(&self.socket, sockopt::Timeout::Recv, Some(HANDOVER_TIMEOUT))?;
        let mut sockets = InheritedSockets::default();
        loop {
            let received =
                control_socket::receive(&self.socket, false).context("cannot receive the old server's sockets")?;
            let (bytes, fds) = received.context("the old server has ended")?;
            match parse(&bytes, ToSuccessor::Unknown) {
                ToSuccessor::Settled => return Ok(sockets),
                ToSuccessor::Socket { number, mark, owns_file } => {
                    let (socket, link) = one_or_two(fds).context("a socket of the old server is missing")?;
                    let mut socket =
                        Inherited::of(socket, owns_file).context("cannot use a socket of the old server")?;
                    socket.number = number;
                    socket.predecessor = mark.zip(link).map(|(mark, link)| Predecessor::new(Mark(mark), link));
                    sockets.0.push(socket);
                }
                ToSuccessor::Go | ToSuccessor::Unknown => {}
            }
        }
    }

    /// Reports that this process can serve, and returns when the sockets are its own. `unused` are the numbers of the
    /// sockets that it does not use.
    pub(crate) async fn ready(&self, unused: Vec<usize>) -> Result<()> {
        let gone = || anyhow!("the server to be replaced has exited");
        send(&self.socket, &FromSuccessor::Ready { pid: std::process::id(), unused }, &[]).map_err(|_| gone())?;
        // The replacement is an unsafe function, whose contract is met here by owning the descriptor.
        #[allow(deprecated)]
        let socket = AsyncFd::with_interest(self.socket.clone(), Interest::READABLE)?;
        loop {
            let mut ready = socket.readable().await?;
            match control_socket::receive(&self.socket, true) {
                Ok(Some((bytes, _))) => {
                    if matches!(parse(&bytes, ToSuccessor::Unknown), ToSuccessor::Go) {
                        return Ok(());
                    }
                }
                Ok(None) => bail!(gone()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reports that this process accepts connections.
    pub(crate) fn serving(&self) {
        // A predecessor that has gone does not need the message.
        let _ = send(&self.socket, &FromSuccessor::Serving, &[]);
    }

    /// Reports why this process ends.
    pub(crate) fn failed(&self, why: &str) {
        let _ = send(&self.socket, &FromSuccessor::failed(why), &[]);
    }

    /// Process ID of the predecessor while it runs.
    pub(crate) fn predecessor(&self) -> Option<u32> {
        // `poll` reports a closed peer without being asked for it.
        let mut polled = [PollFd::new(&*self.socket, PollFlags::empty())];
        let asked = poll(&mut polled, Some(&Timespec::default()));
        let gone = asked.is_ok() && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR);
        (!gone && self.pid != 0).then_some(self.pid)
    }
}
