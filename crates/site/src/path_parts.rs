//! The parts of a path that each rule about names applies to. A path is decoded and normalised as a whole, then the
//! script in it is found. **The part after a script belongs to the application**: WebDAV, Git and ACME use names there
//! that files of a site must not have.
//!
//! | rule | applies to |
//! |---|---|
//! | percent-encoding, NUL, `.`, `..`, empty names (`request_path`) | the whole path, before all other rules |
//! | names that begin with a dot (`static.dotfiles`) | the part up to the script, or the whole path without one |
//! | allowed targets of links (`static.follow_symlinks`) | the same part |
//! | extensions of scripts | the last name of that part, exactly as written: `.php` |
//! | names that are never sent (`withheld`) | the last name of a file, as requested and with all links resolved |
//! | `exists` of a rule | the part up to the script |
//! | `path` of a rule | the whole path, then each name of the destination (`phase::rules::served`) |
//!
//! Spaces and dots at the end of a name are part of it: a file is found only by its exact name. A name that another
//! system would treat as a script (`X.PHP`, `x.php.`) is never run and never sent.

use crate::withheld::is_source_name;
use std::fs::Metadata;

/// Maximum number of prefixes of a path that are tried as a script. All but the last would be directories with names
/// like scripts, which are rare.
pub(crate) const MAX_SCRIPTS: usize = 16;

/// The kind of a path's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Other,
}

impl From<&Metadata> for Kind {
    fn from(meta: &Metadata) -> Self {
        if meta.is_file() {
            Self::File
        } else if meta.is_dir() {
            Self::Directory
        } else {
            Self::Other
        }
    }
}

/// `true` if a file with this name is run: it ends in exactly `.php`.
pub(crate) fn is_script_name(name: &[u8]) -> bool {
    name.strip_suffix(b".php").and_then(<[u8]>::last).is_some_and(|&before| before != b'/')
}

/// `true` if a name resembles a script's: an extension of PHP in upper case, or followed by dots, spaces or tildes.
pub(crate) fn misspells_script(name: &[u8]) -> bool {
    let ending = name.rsplit(|&b| b == b'.').next().unwrap_or_default();
    let as_written = !ending.is_empty() && ending.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    is_source_name(name) && !as_written
}

/// Returns the position of the first name that begins with a dot, except for `/.well-known/` (RFC 8615).
pub(crate) fn hidden_from(path: &[u8]) -> Option<usize> {
    let well_known = path.strip_prefix(b"/.well-known").is_some_and(|rest| matches!(rest.first(), None | Some(b'/')));
    let from = if well_known { 1 } else { 0 };
    let dots = path.windows(2).enumerate().skip(from);
    dots.filter(|(_, pair)| *pair == b"/.").map(|(at, _)| at + 1).next()
}

/// Returns the end of the first prefix of a path, before `limit`, that ends in `.php` before a slash and is a file.
/// Stops at a prefix that does not exist or is not a directory.
pub(crate) fn script_end(path: &[u8], limit: usize, look: impl Fn(&[u8]) -> Option<Kind>) -> Option<usize> {
    let ends = (5..limit.min(path.len())).filter(|&end| path[end] == b'/' && is_script_name(&path[..end]));
    for end in ends.take(MAX_SCRIPTS) {
        match look(&path[..end]) {
            Some(Kind::File) => return Some(end),
            Some(Kind::Directory) => {}
            Some(Kind::Other) | None => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_extension_is_a_script_and_other_spellings_are_recognized() {
        for (name, script, misspelt) in [
            ("/a.php", true, false),
            ("/.php", false, false),
            ("/a/.php", false, false),
            ("/a.PHP", false, true),
            ("/a.pHp", false, true),
            ("/a.php.", false, true),
            ("/a.php ", false, true),
            ("/a.php~", false, true),
            ("/a.phtml", false, false),
            ("/a.PHTML", false, true),
            ("/a.txt", false, false),
            ("/php", false, false),
        ] {
            assert_eq!(is_script_name(name.as_bytes()), script, "{name}");
            assert_eq!(misspells_script(name.as_bytes()), misspelt, "{name}");
        }
    }

    #[test]
    fn hidden_names_begin_with_a_dot_wherever_they_are() {
        for (path, from) in [
            ("/", None),
            ("/a.b/c", None),
            ("/.env", Some(1)),
            ("/a/.git/x", Some(3)),
            ("/.well-known", None),
            ("/.well-known/x", None),
            ("/.well-known/.x", Some(13)),
            ("/.well-knownx", Some(1)),
            ("/a/.well-known/x", Some(3)),
            ("/x.php/dav/.file", Some(11)),
        ] {
            assert_eq!(hidden_from(path.as_bytes()), from, "{path}");
        }
    }
}
