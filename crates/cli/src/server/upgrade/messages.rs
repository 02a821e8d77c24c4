//! Messages between a server and its successor: JSON, with descriptors. The two may be of different releases: unknown
//! parts are ignored, and meanings do not change.

use howdah_transport::control_socket;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// To the successor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(super) enum ToSuccessor {
    /// A socket. Descriptors: the socket itself; if it is one of UDP, what datagrams for the old process are passed on over.
    Socket {
        /// Its number, from 0.
        number: usize,
        /// For UDP: what connection ids of the old process are known by.
        mark: Option<u64>,
        /// If it has a file: whether that is the server's to remove.
        owns_file: bool,
    },
    /// No further ones.
    Settled,
    /// The sockets are the successor's: it may accept.
    Go,
    /// Something that a newer server says.
    #[serde(other)]
    Unknown,
}

/// To the server whose place is taken.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(super) enum FromSuccessor {
    /// Every pool can serve.
    Ready {
        pid: u32,
        /// The sockets that the settings of now do not ask for.
        unused: Vec<usize>,
    },
    /// It accepts connections.
    Serving,
    /// It ends, and why.
    Failed { why: String },
    /// Something that a newer server says.
    #[serde(other)]
    Unknown,
}

/// The longest reason that is sent: what is over it would not fit into a message.
const MAX_REASON: usize = 8 * 1024;

impl FromSuccessor {
    /// A failure.
    pub(super) fn failed(why: &str) -> Self {
        Self::Failed { why: why.chars().take(MAX_REASON).collect() }
    }
}

/// Sends a message; waits while there is no room.
pub(super) fn send(socket: impl AsFd, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    control_socket::send(socket, &serde_json::to_vec(message)?, fds, false)
}

/// A message out of what was received. What makes no sense is what a newer server says.
pub(super) fn parse<M: for<'a> Deserialize<'a>>(bytes: &[u8], unknown: M) -> M {
    serde_json::from_slice(bytes).unwrap_or(unknown)
}

/// Both descriptors of a message that has one or two.
pub(super) fn one_or_two(fds: Vec<OwnedFd>) -> Option<(OwnedFd, Option<OwnedFd>)> {
    let mut fds = fds.into_iter();
    Some((fds.next()?, fds.next()))
}
