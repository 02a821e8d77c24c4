//! Finds the script of a request from a web server and corrects the path variables as PHP-FPM does
//! (`cgi.fix_pathinfo`): existing web server configurations depend on that.

use howdah_protocol::Params;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Prefixes of `SCRIPT_FILENAME` in requests of Apache's mod_proxy_fcgi.
const APACHE_PREFIXES: [&[u8]; 2] = [b"proxy:fcgi://", b"proxy:balancer://"];

/// Returns the file to run; `None` if there is none. `fix` is PHP's `cgi.fix_pathinfo`.
pub(super) fn find(params: &mut Params, fix: bool) -> Option<Vec<u8>> {
    let is_apache = strip_proxy(params);
    let own = |params: &Params, name| params.get(name).map(<[u8]>::to_vec);
    let filename = own(params, "SCRIPT_FILENAME");
    let script = filename.or_else(|| own(params, "PATH_TRANSLATED"))?;
    let script = if fix { fixed(params, script, is_apache)? } else { script };
    is_valid(&script).then_some(script)
}

/// Removes the prefix and query that mod_proxy_fcgi adds to a path, as in `proxy:fcgi://localhost:9000/srv/a.php?q`.
/// Returns `true` if there was one.
fn strip_proxy(params: &mut Params) -> bool {
    let Some(filename) = params.get("SCRIPT_FILENAME") else { return false };
    let after = APACHE_PREFIXES.iter().find_map(|prefix| {
        let (own, rest) = filename.split_at_checked(prefix.len())?;
        own.eq_ignore_ascii_case(prefix).then_some(rest)
    });
    let Some(after) = after else { return false };
    let slash = after.iter().position(|byte| *byte == b'/');
    let path = slash.map_or(filename, |slash| &after[slash..]);
    let path = path.split(|byte| *byte == b'?').next().unwrap_or_default().to_vec();
    params.set("SCRIPT_FILENAME", &path);
    slash.is_some()
}

fn fixed(params: &mut Params, script: Vec<u8>, is_apache: bool) -> Option<Vec<u8>> {
    let own = |params: &Params, name| params.get(name).map(<[u8]>::to_vec);
    let filename = own(params, "SCRIPT_FILENAME");
    let (translated, redirected) = (own(params, "PATH_TRANSLATED"), own(params, "REDIRECT_URL"));
    // Apache's mod_fastcgi: SCRIPT_FILENAME is the handler, and the script is elsewhere.
    let script = match (translated.filter(|path| *path != script), &redirected) {
        (Some(translated), Some(url)) if !is_apache => {
            replace(params, "SCRIPT_NAME", url);
            translated
        }
        _ => script,
    };
    if script.ends_with(b"/") || is_absent(&script) {
        return split(params, &script, is_apache);
    }
    if filename.is_none_or(|filename| filename != script) {
        replace(params, "SCRIPT_FILENAME", &script);
    }
    if !is_apache && redirected.is_some() {
        for name in ["PATH_INFO", "PATH_TRANSLATED"] {
            if let Some(value) = own(params, name) {
                params.set(&format!("ORIG_{name}"), &value);
                params.remove(name);
            }
        }
    }
    Some(script)
}

/// Finds a script in the middle of a path that names no file. The rest becomes `PATH_INFO`.
fn split(params: &mut Params, path: &[u8], is_apache: bool) -> Option<Vec<u8>> {
    let ends = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let Some(end) = ends.take(MAX_PARTS).find(|end| is_file(&path[..*end])) else {
        if let Some(filename) = params.get("SCRIPT_FILENAME").map(<[u8]>::to_vec) {
            params.set("ORIG_SCRIPT_FILENAME", &filename);
        }
        params.remove("SCRIPT_FILENAME");
        return None;
    };
    let (script, rest) = path.split_at(end);
    if is_apache {
        split_name(params, rest);
    } else {
        split_info(params, rest.len());
    }
    if params.get("SCRIPT_FILENAME") != Some(script) {
        replace(params, "SCRIPT_FILENAME", script);
    }
    if let Some(root) = params.get("DOCUMENT_ROOT") {
        let root = root.strip_suffix(b"/").unwrap_or(root);
        let translated = [root, params.get("PATH_INFO").unwrap_or_default()].concat();
        replace(params, "PATH_TRANSLATED", &translated);
    }
    Some(script.to_vec())
}

/// Maximum number of path prefixes that are tried as a script.
const MAX_PARTS: usize = 64;

/// Splits `SCRIPT_NAME`: mod_proxy_fcgi sends no `PATH_INFO`, but appends it to the script name.
fn split_name(params: &mut Params, rest: &[u8]) {
    let info = params.get("PATH_INFO");
    if info == Some(rest) {
        return;
    }
    if let Some(info) = info.map(<[u8]>::to_vec) {
        rename(params, &info, info.len().saturating_sub(rest.len()));
    } else if let Some(name) = params.get("SCRIPT_NAME").map(<[u8]>::to_vec) {
        let decoded = crate::request_path::decode(rest).unwrap_or_default();
        let before =
            [rest, &decoded].into_iter().find_map(|rest| name.strip_suffix(rest)).filter(|name| !name.is_empty());
        if let Some(before) = before {
            replace(params, "SCRIPT_NAME", before);
        }
    }
    params.set("PATH_INFO", rest);
}

/// Splits a `PATH_INFO` that holds the whole path: the part after the script stays, the part before becomes the script
/// name.
fn split_info(params: &mut Params, rest: usize) {
    let Some(info) = params.get("PATH_INFO").filter(|info| info.len() > rest).map(<[u8]>::to_vec) else { return };
    let at = info.len() - rest;
    if at > 0 {
        rename(params, &info, at);
        params.set("PATH_INFO", &info[at..]);
    }
}

/// Makes the first `at` bytes of `PATH_INFO` the script name.
fn rename(params: &mut Params, info: &[u8], at: usize) {
    params.set("ORIG_PATH_INFO", info);
    if params.get("SCRIPT_NAME") != Some(&info[..at]) {
        replace(params, "SCRIPT_NAME", &info[..at]);
    }
}

/// Sets a variable and keeps its previous value as `ORIG_*`.
fn replace(params: &mut Params, name: &str, value: &[u8]) {
    if let Some(before) = params.get(name).map(<[u8]>::to_vec) {
        params.set(&format!("ORIG_{name}"), &before);
    }
    params.set(name, value);
}

/// `true` if the file does not exist. A file that this user cannot access may still be visible to PHP's user.
fn is_absent(path: &[u8]) -> bool {
    let found = std::fs::metadata(OsStr::from_bytes(path));
    found.is_err_and(|error| error.kind() != ErrorKind::PermissionDenied)
}

fn is_file(path: &[u8]) -> bool {
    std::fs::metadata(OsStr::from_bytes(path)).is_ok_and(|found| found.is_file())
}

/// `true` if the path has no `..` segment and no NUL byte.
fn is_valid(path: &[u8]) -> bool {
    !path.contains(&0) && path.split(|byte| *byte == b'/').all(|part| part != b"..")
}

/// Returns `true` if a file with this path could be run.
pub(super) fn may_run(path: &[u8], extensions: Option<&[String]>) -> bool {
    is_valid(path) && is_allowed(path, extensions)
}

/// Returns `true` if the path has an extension that may run (`security.limit_extensions`): `None` means PHP-FPM's
/// default, an empty list allows any.
pub(super) fn is_allowed(path: &[u8], extensions: Option<&[String]>) -> bool {
    let Some(extensions) = extensions else {
        let extension = Path::new(OsStr::from_bytes(path)).extension();
        return extension.is_some_and(|extension| extension == "php" || extension == "phar");
    };
    let is_ending = |ending: &String| path.len() > ending.len() && path.ends_with(ending.as_bytes());
    extensions.is_empty() || extensions.iter().any(is_ending)
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
