//! Messages between a server and its successor: JSON, with descriptors. The two may be different releases: each ignores
//! unknown parts, and meanings never change.

use howdah_transport::control_socket;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(super) enum ToSuccessor {
    /// A socket. Descriptors: the socket itself and, for UDP, the link over which datagrams for the old process are
    /// forwarded.
    Socket {
        /// Position among the sockets, from 0.
        number: usize,
        /// For UDP: the mark that identifies connection IDs of the old process.
        mark: Option<u64>,
        /// For a Unix socket: `true` if the server must remove its file.
        owns_file: bool,
    },
    /// All sockets have been sent.
    Settled,
    /// The successor owns the sockets and may accept.
    Go,
    /// A message of a newer release.
    #[serde(other)]
    Unknown,
}

/// To the predecessor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(super) enum FromSuccessor {
    /// Every pool without a fallback can serve.
    Ready {
        pid: u32,
        /// Positions of the sockets that the current settings do not name.
        unused: Vec<usize>,
    },
    /// The successor accepts connections.
    Serving,
    /// The successor ends, for this reason.
    Failed { why: String },
    /// A message of a newer release.
    #[serde(other)]
    Unknown,
}

/// Maximum length of a reason, in characters: a longer one would not fit into a message.
const MAX_REASON: usize = 8 * 1024;

impl FromSuccessor {
    /// A failure, with its reason cut to the maximum length.
    pub(super) fn failed(why: &str) -> Self {
        Self::Failed { why: why.chars().take(MAX_REASON).collect() }
    }
}

/// Sends a message; blocks while the socket's buffer is full.
pub(super) fn send(socket: impl AsFd, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    control_socket::send(socket, &serde_json::to_vec(message)?, fds, false)
}

/// Parses a message. A text that cannot be parsed comes from a newer release.
pub(super) fn parse<M: for<'a> Deserialize<'a>>(bytes: &[u8], unknown: M) -> M {
    serde_json::from_slice(bytes).unwrap_or(unknown)
}

/// Returns the descriptors of a message that has one or two.
pub(super) fn one_or_two(fds: Vec<OwnedFd>) -> Option<(OwnedFd, Option<OwnedFd>)> {
    let mut fds = fds.into_iter();
    Some((fds.next()?, fds.next()))
}
