//! A request, as rules see it.

use crate::rule::{Kind, Place};
use crate::template::{Variable, Variables};
use http::{HeaderMap, Method};
use std::net::IpAddr;
use std::path::Path;

#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub method: &'a Method,
    /// The client's connection is encrypted, to this server or to a trusted proxy that reports it.
    pub https: bool,
    /// The requested host, without its port.
    pub host: &'a [u8],
    /// Its path: decoded and normalized. Otherwise a different spelling of a path could evade a rule.
    pub path: &'a [u8],
    /// Its query as sent.
    pub query: Option<&'a [u8]>,
    pub headers: &'a HeaderMap,
    /// The client's address; `None` if it is unknown, as on a Unix socket.
    pub client: Option<IpAddr>,
}

/// File system access for `exists` and `maintenance`.
pub trait Files {
    /// The kind of a path's target; `place` is the directory set by earlier rules, if any.
    fn kind(&self, place: Option<&Place>, path: &[u8]) -> Kind;

    /// `true` if a file exists, for `maintenance`.
    fn is_there(&self, file: &Path) -> bool;
}

/// A file system without files, for rules that do not need one.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn kind(&self, _place: Option<&Place>, _path: &[u8]) -> Kind {
        Kind::No
    }

    fn is_there(&self, _file: &Path) -> bool {
        false
    }
}

impl Variables for Request<'_> {
    fn variable(&self, variable: Variable) -> Vec<u8> {
        match variable {
            Variable::Path => self.path.to_vec(),
            Variable::Query => self.query.unwrap_or_default().to_vec(),
            Variable::Host => self.host.to_vec(),
            Variable::Scheme => {
                if self.https {
                    b"https".to_vec()
                } else {
                    b"http".to_vec()
                }
            }
            Variable::Method => self.method.as_str().into(),
            Variable::Client => self.client.map(|client| client.to_string().into_bytes()).unwrap_or_default(),
        }
    }
}
