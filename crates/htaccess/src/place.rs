//! Paths, and their targets in the file system.

use crate::limits;
use crate::system::{Entry, Kind, System};
use howdah_rules::path::decode;
use std::borrow::Cow;

pub(crate) fn split_query(path: &[u8]) -> (&[u8], Option<Vec<u8>>) {
    match path.iter().position(|&b| b == b'?') {
        Some(at) => (&path[..at], Some(path[at + 1..].to_vec())),
        None => (path, None),
    }
}

/// Removes `.`, `..` and empty segments from a path, which cannot leave the root.
pub(crate) fn normal(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut last = &b""[..];
    for part in path.split(|&b| b == b'/') {
        last = part;
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let mut made = Vec::with_capacity(path.len() + 1);
    for part in &parts {
        made.push(b'/');
        made.extend(part.iter().filter(|b| **b != 0));
    }
    if made.is_empty() || matches!(last, b"" | b"." | b"..") {
        made.push(b'/');
    }
    made.truncate(limits::EXPANDED);
    made
}

/// Resolves the path that a directive names, relative to another path. Only `name` is percent-encoded.
pub(crate) fn sibling(other: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let name = decode(name).ok()?;
    if name.starts_with(b"/") {
        return Some(normal(&name));
    }
    let end = other.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    Some(normal(&[&other[..end], &name].concat()))
}

/// The target of a path in the file system.
pub(crate) struct ResolvedPath {
    pub filename: Vec<u8>,
    pub path_info: Vec<u8>,
    pub kind: Option<Kind>,
}

impl ResolvedPath {
    /// Searches for the first segment that is not a directory; the segments after it are the rest. `None` if there are
    /// too many segments.
    pub(crate) fn find(root: &[u8], path: &[u8], system: &dyn System) -> Option<Self> {
        let kind = |entry: Option<Entry>| entry.map(|entry| entry.kind);
        let full = [root, path].concat();
        let whole = kind(system.stat(&full));
        if whole.is_some() {
            let few = path.iter().filter(|b| **b == b'/').count() <= limits::DIRECTORIES;
            return few.then(|| Self { filename: full, path_info: Vec::new(), kind: whole });
        }
        let ends = (root.len() + 1..full.len()).filter(|&at| full[at] == b'/').chain([full.len()]);
        for (directories, end) in ends.enumerate() {
            if directories > limits::DIRECTORIES {
                return None;
            }
            let kind = kind(system.stat(&full[..end]));
            if kind != Some(Kind::Directory) {
                return Some(Self { filename: full[..end].to_vec(), path_info: full[end..].to_vec(), kind });
            }
        }
        Some(Self { filename: full, path_info: Vec::new(), kind: None })
    }

    /// The directories on the path, the root first, each with a trailing slash.
    pub(crate) fn directories(&self, root: &[u8]) -> Vec<Cow<'_, [u8]>> {
        let slashes = (root.len()..self.filename.len()).filter(|&at| self.filename[at] == b'/');
        let mut found: Vec<Cow<'_, [u8]>> = slashes.map(|at| self.filename[..=at].into()).collect();
        if self.kind == Some(Kind::Directory) && !self.filename.ends_with(b"/") {
            found.push([self.filename.as_slice(), b"/"].concat().into());
        }
        found
    }
}
