//! Files that scripts have the server send: `X-Accel-Redirect` with a URL path that maps to a directory (as in nginx),
//! `X-Sendfile` with a file system path (as in Apache and lighttpd). The static file code responds, with support for
//! ranges, conditions and `sendfile`. The script's own output is discarded.
//!
//! Both are disabled unless directories are configured. Clients never get these fields. A trusted proxy gets those that
//! this server does not handle, because it may handle them itself. The same applies to other fields for nginx.

use crate::refusal::Refusal;
use crate::request_path::{decode, normalise};
use crate::static_files::{self, StaticFiles};
use crate::withheld::Withheld;
use howdah_config::{StaticSettings, Symlinks};
use howdah_pool::RequestId;
use howdah_protocol::{Head, Response};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const X_ACCEL_REDIRECT: HeaderName = HeaderName::from_static("x-accel-redirect");
const X_SENDFILE: HeaderName = HeaderName::from_static("x-sendfile");

/// Header fields of the script's response that are kept, as in nginx; the media type is handled separately. All others
/// describe the discarded response.
const KEPT_HEADERS: [HeaderName; 4] =
    [header::SET_COOKIE, header::CONTENT_DISPOSITION, header::CACHE_CONTROL, header::EXPIRES];

/// Maximum number of files that are kept open for each directory.
const OPEN_FILES: usize = 64;

/// `true` for header fields that only a proxy in front may see, because they contain internal paths. The others have no
/// effect here: flushed data is sent at once with and without `X-Accel-Buffering: no`.
fn is_for_proxies(name: &HeaderName) -> bool {
    name.as_str().starts_with("x-accel-") || *name == X_SENDFILE
}

/// Removes the fields that clients must not see.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let said: Vec<HeaderName> = headers.keys().filter(|name| is_for_proxies(name)).cloned().collect();
    for name in said {
        headers.remove(name);
    }
}

/// A directory of files that only scripts can hand over.
#[derive(Debug)]
struct Directory {
    /// Its URL prefix, or its file system path.
    named: PathBuf,
    files: Arc<StaticFiles>,
}

#[derive(Debug, Default)]
pub struct SendfileDirectories {
    by_address: Vec<Directory>,
    by_path: Vec<Directory>,
}

impl SendfileDirectories {
    /// Opens the directories of the settings. An error names the setting and the problem.
    pub fn new(settings: &StaticSettings, withheld: &Arc<Withheld>) -> Result<Self, String> {
        // The script decides about access to a file.
        let mut own = settings.clone();
        own.follow_symlinks = Symlinks::Never.into();
        own.dotfiles = true;
        own.precompressed = false;
        own.open_files = own.open_files.min(OPEN_FILES);
        let open = |name: &str, path: &Path| {
            let files = StaticFiles::new(path, &own, withheld.clone());
            files.map(Arc::new).map_err(|error| format!("static.{name}: {}: {error}", path.display()))
        };
        let mut found = Self::default();
        for (address, path) in &settings.x_accel_redirect {
            let files = open("x_accel_redirect", Path::new(path))?;
            found.by_address.push(Directory { named: PathBuf::from(address), files });
        }
        for path in &settings.x_sendfile {
            let files = open("x_sendfile", path)?;
            // Applications may use the configured path or the resolved one.
            if let Ok(real) = path.canonicalize()
                && real != *path
            {
                found.by_path.push(Directory { named: real, files: files.clone() });
            }
            found.by_path.push(Directory { named: path.clone(), files });
        }
        Ok(found)
    }

    /// Replaces `response` with the file that it names, if any. A trusted client is a proxy, which may handle the
    /// fields itself if this server does not.
    pub(crate) fn apply(
        &self,
        response: &mut Response,
        request: &Head,
        id: RequestId,
        trusted: bool,
    ) -> Result<(), Refusal> {
        // Responses have few fields, so one pass over the names is cheaper than two lookups.
        if !response.headers().keys().any(is_for_proxies) {
            return Ok(());
        }
        for (field, directories) in [(X_ACCEL_REDIRECT, &self.by_address), (X_SENDFILE, &self.by_path)] {
            if directories.is_empty() {
                if !trusted && response.headers_mut().remove(&field).is_some() {
                    tracing::warn!(target: "howdah::php", request = %id, "{field} dropped: no directory is configured for it");
                }
            } else if let Some(named) = response.headers_mut().remove(&field) {
                // Dropping the old response discards the rest of its body.
                *response = respond(directories, &field, &named, response.headers(), request, id)?;
                return Ok(());
            }
        }
        if !trusted {
            strip(response.headers_mut());
        }
        Ok(())
    }
}

/// Returns the response with a file.
fn respond(
    directories: &[Directory],
    field: &HeaderName,
    named: &HeaderValue,
    script: &HeaderMap,
    request: &Head,
    id: RequestId,
) -> Result<Response, Refusal> {
    let found = path(field, named.as_bytes());
    let found = found.as_deref().and_then(|path| below(directories, path));
    let log_refused = || {
        let named = named.as_bytes().escape_ascii();
        tracing::warn!(target: "howdah::php", request = %id, %named, "{field} does not name a file that can be sent");
    };
    let Some((files, path)) = found else {
        log_refused();
        return Err(Refusal::new(StatusCode::NOT_FOUND));
    };
    let media_type = script.get(header::CONTENT_TYPE);
    let mut response = static_files::run_for_script(files, path, request, media_type).inspect_err(|refusal| {
        if refusal.status() == StatusCode::NOT_FOUND {
            log_refused();
        }
    })?;
    let fields = response.headers_mut();
    for name in KEPT_HEADERS {
        for value in script.get_all(&name) {
            // Cannot fail: the script's own head had room for these fields.
            let _ = fields.try_append(name.clone(), value.clone());
        }
    }
    Ok(response)
}

/// Returns the path that a field names. A URL is decoded and loses its query; a file system path is used unchanged.
fn path(field: &HeaderName, named: &[u8]) -> Option<PathBuf> {
    if *field == X_SENDFILE {
        return Some(PathBuf::from(OsStr::from_bytes(named)));
    }
    let address = named.split(|&b| b == b'?').next().unwrap_or_default();
    let plain = normalise(&decode(address).ok()?).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(&plain)))
}

/// Returns the innermost directory that contains a path, and the rest of the path, which `StaticFiles` checks.
fn below<'a>(directories: &'a [Directory], path: &'a Path) -> Option<(&'a StaticFiles, &'a Path)> {
    let inside =
        directories.iter().filter_map(|directory| Some((directory, path.strip_prefix(&directory.named).ok()?)));
    inside.min_by_key(|(_, rest)| rest.as_os_str().len()).map(|(directory, rest)| (&*directory.files, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_directory_counts_and_names_are_compared_as_a_whole() {
        let top = tempfile::tempdir().unwrap();
        let files = Arc::new(StaticFiles::new(top.path(), &StaticSettings::default(), Arc::default()).unwrap());
        let named = |text: &str| Directory { named: text.into(), files: files.clone() };
        let directories = [named("/a/"), named("/a/b/")];
        let rest = |text: &str| below(&directories, Path::new(text)).map(|(_, rest)| rest.to_str().unwrap().to_owned());
        assert_eq!(rest("/a/x/y").as_deref(), Some("x/y"));
        assert_eq!(rest("/a/b/y").as_deref(), Some("y"));
        assert_eq!(rest("/ab/y"), None);
        assert_eq!(rest("a/y"), None);
        assert_eq!(rest("/a").as_deref(), Some(""));
        // Paths that lead out again are caught when they are opened.
        assert_eq!(rest("/a/../y").as_deref(), Some("../y"));
    }

    #[test]
    fn addresses_are_decoded_and_normalised_and_paths_are_not() {
        let address =
            |text: &str| path(&X_ACCEL_REDIRECT, text.as_bytes()).map(|path| path.to_str().unwrap().to_owned());
        assert_eq!(address("/a/b%20c?d/e").as_deref(), Some("/a/b c"));
        assert_eq!(address("/a/../b/./c//d").as_deref(), Some("/b/c/d"));
        assert_eq!(address("/a%2f..%2Fb").as_deref(), Some("/b"));
        for bad in ["", "a/b", "/../a", "/a%00", "/a%", "@named"] {
            assert_eq!(address(bad), None, "{bad}");
        }
        assert_eq!(path(&X_SENDFILE, b"/a%20?").unwrap(), Path::new("/a%20?"));
    }
}
