//! Settings that only a configuration of PHP-FPM has. No key of `howdah.toml` sets them: the reader of that configuration
//! puts them in after loading.

use crate::fpm_access::FpmAccess;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

/// Those of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FpmServer {
    /// File that gets the number of the server's process.
    pub pid_file: Option<PathBuf>,
    /// Access to the Unix sockets of pools, by their paths.
    pub sockets: BTreeMap<PathBuf, SocketAccess>,
}

/// Owner, group and permissions of a socket's file; `None` for those of `listen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketAccess {
    pub owner: Option<u32>,
    pub group: Option<u32>,
    pub mode: Option<u32>,
}

/// Those of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FpmPool {
    /// Path of the ping page, and its text.
    pub ping_path: Option<String>,
    pub ping_response: String,
    /// Endings of the scripts that may run, with their dots; empty for any.
    pub extensions: Vec<String>,
    /// Machines that may connect over TCP; `None` for any.
    pub clients: Option<Vec<IpAddr>>,
    /// Maximum number of functions in an entry of the slow log.
    pub trace_depth: usize,
    /// The form of its access log.
    pub access: FpmAccess,
}
