//! Inputs of the directives: the request, and its environment. A trait gives access to the file system, so that tests
//! need none.

use http::HeaderMap;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};
use std::time::SystemTime;

/// A request as it was received.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// `GET`.
    pub method: &'a str,
    /// The target as sent, with its query.
    pub target: &'a [u8],
    /// The path, decoded and normalised.
    pub path: &'a [u8],
    /// The part after the `?`, as sent.
    pub query: Option<&'a [u8]>,
    /// `HTTP/1.1`.
    pub protocol: &'a str,
    /// The client uses TLS.
    pub https: bool,
    /// The requested host, with its port.
    pub host: &'a str,
    /// The server's address for this connection.
    pub server_addr: &'a str,
    /// The requested port.
    pub server_port: &'a str,
    /// The client's address.
    pub remote: Option<IpAddr>,
    /// The client's port.
    pub remote_port: &'a str,
    /// The request's headers.
    pub headers: &'a HeaderMap,
    /// The document root, without a slash at its end.
    pub root: &'a [u8],
    /// `SERVER_SOFTWARE`.
    pub software: &'a str,
    /// Time of arrival.
    pub time: SystemTime,
}

impl Facts<'_> {
    /// The host without its port.
    pub fn server_name(&self) -> &str {
        let host = self.host;
        let end = match host.rfind(':') {
            Some(at) if !host[at..].contains(']') => at,
            _ => host.len(),
        };
        if end == 0 { self.server_addr } else { &host[..end] }
    }

    /// The host in the form of addresses: an IPv6 address has brackets.
    pub(crate) fn host_name(&self) -> Cow<'_, str> {
        let name = self.server_name();
        if name.parse::<Ipv6Addr>().is_ok() { Cow::Owned(format!("[{name}]")) } else { Cow::Borrowed(name) }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.https { "https" } else { "http" }
    }

    /// A header's value; several lines are joined with commas.
    pub(crate) fn header(&self, name: &str) -> Vec<u8> {
        let values: Vec<&[u8]> = self.headers.get_all(name).iter().map(http::HeaderValue::as_bytes).collect();
        values.join(&b", "[..])
    }
}

/// Owned facts of a request, to send to another thread.
#[derive(Debug)]
pub struct OwnedFacts {
    method: String,
    target: Vec<u8>,
    path: Vec<u8>,
    query: Option<Vec<u8>>,
    protocol: String,
    https: bool,
    host: String,
    server_addr: String,
    server_port: String,
    remote: Option<IpAddr>,
    remote_port: String,
    headers: HeaderMap,
    root: Vec<u8>,
    software: String,
    time: SystemTime,
}

impl From<&Facts<'_>> for OwnedFacts {
    fn from(facts: &Facts<'_>) -> Self {
        Self {
            method: facts.method.to_owned(),
            target: facts.target.to_vec(),
            path: facts.path.to_vec(),
            query: facts.query.map(<[u8]>::to_vec),
            protocol: facts.protocol.to_owned(),
            https: facts.https,
            host: facts.host.to_owned(),
            server_addr: facts.server_addr.to_owned(),
            server_port: facts.server_port.to_owned(),
            remote: facts.remote,
            remote_port: facts.remote_port.to_owned(),
            headers: facts.headers.clone(),
            root: facts.root.to_vec(),
            software: facts.software.to_owned(),
            time: facts.time,
        }
    }
}

impl OwnedFacts {
    /// Borrows the facts.
    pub fn facts(&self) -> Facts<'_> {
        Facts {
            method: &self.method,
            target: &self.target,
            path: &self.path,
            query: self.query.as_deref(),
            protocol: &self.protocol,
            https: self.https,
            host: &self.host,
            server_addr: &self.server_addr,
            server_port: &self.server_port,
            remote: self.remote,
            remote_port: &self.remote_port,
            headers: &self.headers,
            root: &self.root,
            software: &self.software,
            time: self.time,
        }
    }
}

/// The decision costs more than the calling thread may spend. If that thread serves other connections, another thread
/// may do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooExpensive;

/// The kind of a path's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    Directory,
    /// A device, a socket or the like.
    Other,
}

/// Facts about a path, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    /// Its length in bytes.
    pub size: u64,
    /// Executable by any user.
    pub executable: bool,
    /// Changes whenever the file changes.
    pub stamp: Stamp,
}

/// Identifies a state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Device and inode.
    pub file: (u64, u64),
    /// Seconds and nanoseconds of the last change of content or metadata.
    pub changed: (i64, i64),
}

/// The file system and the environment of a request.
pub trait System {
    /// Looks up a path, following links; `None` if it does not exist.
    fn stat(&self, path: &[u8]) -> Option<Entry>;
    /// `true` if a path names a symbolic link.
    fn is_link(&self, path: &[u8]) -> bool;
    /// A file's content. Of a longer file than `most` bytes, at least one byte more is returned.
    fn read(&self, path: &[u8], most: usize) -> std::io::Result<Vec<u8>>;
    /// A variable of the environment that PHP is started with.
    fn environment(&self, name: &str) -> Option<String>;
    /// `true` if the calling thread serves other connections as well: it reads no files and does no other expensive
    /// work.
    fn is_shared(&self) -> bool;
}
