//! Settings that only PHP-FPM's configuration has. No key of `howdah.toml` sets them: the reader of that configuration
//! adds them after loading.

use crate::fpm_access::FpmAccess;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

/// PHP-FPM settings of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FpmServer {
    /// File for the process ID of the server.
    pub pid_file: Option<PathBuf>,
    /// Permissions of the pools' Unix sockets, by path.
    pub sockets: BTreeMap<PathBuf, SocketAccess>,
}

/// Owner, group and permissions of a socket's file; `None` keeps those of `listen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketAccess {
    pub owner: Option<u32>,
    pub group: Option<u32>,
    pub mode: Option<u32>,
}

/// PHP-FPM settings of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FpmPool {
    /// Path of the ping page, and its text.
    pub ping_path: Option<String>,
    pub ping_response: String,
    /// Extensions of the scripts that may run, with their dots; empty for all.
    pub extensions: Vec<String>,
    /// Hosts that may connect over TCP; `None` for all.
    pub clients: Option<Vec<IpAddr>>,
    /// Maximum number of functions in an entry of the slow log.
    pub trace_depth: usize,
    /// The format of the pool's access log.
    pub access: FpmAccess,
}
