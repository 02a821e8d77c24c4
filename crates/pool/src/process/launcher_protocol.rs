//! Messages between the server and its launcher: JSON on a control socket, with descriptors.
//!
//! The launcher is root and the server is not, so this is a trust boundary: an attacker who controls the server can
//! send any message. While the server is still root it sends the allowed programs in `Program` messages, which end with
//! `Settled`. Later a process with root's rights reads further programs from the settings (`settings_process`).

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
    /// The server's Unix socket. The launcher removes it when it ends, as its directory may belong to root.
    Socket {
        path: PathBuf,
        /// Another process still listens there, and this server is about to replace it: keep the file until
        /// `KeepSockets` orders its removal.
        later: bool,
    },
    /// The program that may be started as root.
    RootProgram(Box<RootProgram>),
    /// Ends the three messages above, after which the server gives up root's rights.
    Settled,
    /// Start a pool's program, which must have been settled. Descriptors: its control socket, and pipes for its
    /// standard output and error.
    Start {
        /// The server's number for the process.
        id: u64,
        program: Box<Program>,
    },
    /// Read the settings with root's rights, after which their programs may be started too. The end of the process that
    /// reads them is reported, with status 0 on success.
    Settle {
        /// The server's number for the process.
        id: u64,
    },
    /// Start the program that may run as root. Descriptor: a socket to the server.
    StartRootProgram {
        /// The server's number for the process.
        id: u64,
    },
    /// Keep these Unix sockets of the server at the end (`keep`), as its successor listens there; or remove them, as
    /// this server has replaced its predecessor.
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
    /// Kills the worker.
    Kill,
    /// Asks the worker for its stack.
    Stack,
}

/// Launcher → server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum FromLauncher {
    /// A process that was started has ended, or could not be started.
    Ended {
        id: u64,
        /// Its end, or the reason why it did not start.
        end: End,
    },
}
