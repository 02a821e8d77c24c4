//! Messages between the server and its launcher: JSON on a control socket, with descriptors.
//!
//! The launcher is root and the server is not, so this is a trust boundary: an attacker who controls the server can
//! send anything. The programs are settled before, in `Program` messages that end with `Settled`, while the server is
//! still root; further ones only as a process with root's rights reads them from the settings (`settling`).

use crate::process::end::End;
use crate::process::program::Program;
use crate::process::root_program::RootProgram;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Server → launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum ToLauncher {
    /// A program that may be started.
    Program(Box<Program>),
    /// The server's Unix socket, which the launcher removes when it ends: its directory may be root's.
    Socket {
        path: PathBuf,
        /// Not now: another process listens there, and this one is about to take its place.
        later: bool,
    },
    /// The program that may be started as root.
    RootProgram(Box<RootProgram>),
    /// No more of the three above: from here on the server is no longer root.
    Settled,
    /// Start a pool's program, one of those that were settled. Descriptors: its control socket, and pipes for its standard
    /// output and error.
    Start {
        /// The server's number for the process.
        id: u64,
        program: Box<Program>,
    },
    /// Have the settings read with root's rights: their programs may be started, too. The end of the process that reads
    /// them is reported; its status is 0 if that is so.
    Settle {
        /// The server's number for the process.
        id: u64,
    },
    /// Start the program that may run as root. Descriptor: a socket to the server.
    StartRootProgram {
        /// The server's number for the process.
        id: u64,
    },
    /// Leave these of the server's Unix sockets where they are, as a process that took its place listens there; or remove
    /// them at the end, as this server has taken another's place.
    KeepSockets { paths: Vec<PathBuf>, keep: bool },
    /// Kill a process that was started.
    Kill { id: u64 },
    /// Send a signal to a child of a process that was started. Descriptor: its pidfd.
    Signal { which: WorkerSignal },
}

/// The signals that workers get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerSignal {
    /// Ends it.
    Kill,
    /// Asks it for its stack.
    Stack,
}

/// Launcher → server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum FromLauncher {
    /// A process that was started has ended, or could not be started.
    Ended {
        id: u64,
        /// How, or why not.
        end: End,
    },
}
