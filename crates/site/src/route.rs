//! Phase "route": maps the request's path to a PHP script, a static file, a directory, or nothing.
//!
//! The path is percent-decoded and normalised first (`decode`, `normalise`). Everything after that sees plain bytes, so
//! no encoding can give a path two meanings. The first match wins:
//!
//! 1. a regular file: run if its name ends in `.php`, else sent;
//! 2. a directory: its first index file that exists, else its listing if a rule allows that (without a slash at the
//!    end: a redirect to add it);
//! 3. a script in the middle of the path: run with the rest of the path as `PATH_INFO` (`path_parts`);
//! 4. the front controller;
//! 5. nothing: 404.
//!
//! A pool's script for all paths (`runs_one_script`) gets every path but those of visible regular files that are not
//! scripts.
//!
//! **A script is never sent as source.** A file is sent only if `withheld` matches neither the requested name, nor the
//! name it resolves to through all symbolic links, nor the file itself.
//!
//! Routes are cached for `RECHECK_INTERVAL` per path and thread, so most requests need no system call here. A route
//! that depends on a missing file is rechecked on every request, so a file that PHP has just written is found at once
//! (with `runs_one_script`, after that time).
//! A deleted static file is noticed when opening it fails; the path is then resolved again (`RouteCache::forget`).
//!
//! **Every path costs only a few system calls**, however many scripts or directories it names: the kernel walks the
//! path, and only the first few possible scripts in the middle of it are tried (`path_parts::MAX_SCRIPTS`).

use crate::applied_rules::{Lookup, join};
use crate::notes::Notes;
use crate::path_parts::{Kind, hidden_from, is_script_name, misspells_script, script_end};
use crate::request_path::{decode, encode, normalise};
use crate::site::Site;
use crate::static_files::{is_out_of_descriptors, real_path_of};
use howdah_config::{Mode, PoolSettings, Symlinks};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for which a route is reused without checking the file system.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of cached routes per service, over all sites. The cache is cleared when it is full.
const MAX_CACHED: usize = 8192;
/// Maximum length of a cache key in bytes; longer ones are not cached.
const MAX_CACHED_LEN: usize = 512;

/// The route of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Route {
    /// A PHP script.
    Script(Script),
    /// A file to be sent.
    File(ResolvedFile),
    /// A directory requested without a trailing slash: the percent-encoded path with the slash.
    AddSlash(String),
    /// A directory to list, as a file system path.
    Listing(PathBuf),
    /// Nothing.
    NotFound,
    /// The lookup failed because the process is out of file descriptors.
    Unknown,
    /// The target exists but must be neither sent nor run, for example PHP source under another name.
    Forbidden,
    /// A malformed path, with the reason.
    Invalid(&'static str),
}

/// A script to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    /// `SCRIPT_NAME`: the script's path in URLs.
    pub name: Vec<u8>,
    /// `SCRIPT_FILENAME`: its path in the file system.
    pub filename: Vec<u8>,
    /// `PATH_INFO`: the rest of the path; empty if there is none.
    pub path_info: Vec<u8>,
    /// The pool's position in the settings.
    pub pool: usize,
    /// `DOCUMENT_ROOT`, if a rule overrides the site's.
    pub root: Option<PathBuf>,
    /// The request path of the file that symbolic links lead to, if that is a different one below the root.
    pub real: Option<Vec<u8>>,
}

/// A regular file that may be sent.
#[derive(Debug, PartialEq, Eq)]
pub struct ResolvedFile {
    /// File system path with all symbolic links resolved, for logs and `howdah explain`. `StaticFiles` opens `name`
    /// instead and applies the policy again, as a link may have replaced the file since then.
    pub path: PathBuf,
    /// The file's request path, decoded and normalised (`/a/b.css`). Its extension determines the media type.
    pub name: Vec<u8>,
    /// The path of the target file if links lead to a different one below the root.
    pub real: Option<Vec<u8>>,
}

/// One service's cache of recently resolved routes.
#[derive(Debug, Default)]
pub struct RouteCache {
    /// Indexed by the site's number.
    sites: Vec<SiteRoutes>,
    /// Number of cached routes of all sites.
    count: usize,
}

/// Cached routes of one site, for one of its releases.
#[derive(Debug, Default)]
struct SiteRoutes {
    release: u32,
    kept: HashMap<Box<[u8]>, CachedRoute>,
}

#[derive(Debug)]
struct CachedRoute {
    found: Instant,
    route: Arc<Route>,
    /// A file whose absence led to the route.
    absent: Option<PathBuf>,
}

impl RouteCache {
    /// Returns the route of a request for `path` (as sent, without the query), with the settings of rules applied.
    pub fn resolve(&mut self, site: &Site, path: &[u8], lookup: &Lookup<'_>, now: Instant) -> Arc<Route> {
        let key = lookup.key(path);
        if let Some(route) = self.known(site, &key, now) {
            return route;
        }
        let (route, absent) = resolve(site, path, lookup, None);
        self.keep(site, &key, now, route, absent)
    }

    /// Returns the route of an existing file that `.htaccess` files have chosen, as [`resolve_settled`] does.
    pub(crate) fn settled(
        &mut self,
        site: &Site,
        path: &[u8],
        php: Option<bool>,
        lookup: &Lookup<'_>,
        now: Instant,
    ) -> Arc<Route> {
        let php_key = php.map_or(2, u8::from);
        // Keys of `Lookup` continue with 0 or 1.
        let key = [&[0, 2 + php_key], &*lookup.key(path)].concat();
        if let Some(route) = self.known(site, &key, now) {
            return route;
        }
        let route = resolve_settled(site, path, php, lookup);
        self.keep(site, &key, now, route, None)
    }

    fn known(&self, site: &Site, key: &[u8], now: Instant) -> Option<Arc<Route>> {
        let of_site = self.sites.get(site.number).filter(|known| known.release == site.release)?;
        let kept = of_site.kept.get(key)?;
        let fresh = now.saturating_duration_since(kept.found) < RECHECK_INTERVAL;
        let stays_absent = || kept.absent.as_deref().is_none_or(|path| std::fs::symlink_metadata(path).is_err());
        (fresh && stays_absent()).then(|| kept.route.clone())
    }

    fn keep(&mut self, site: &Site, key: &[u8], now: Instant, route: Route, absent: Option<PathBuf>) -> Arc<Route> {
        let route = Arc::new(route);
        // Listings have their own cache (`listings`), and failed lookups are retried.
        if key.len() > MAX_CACHED_LEN || matches!(*route, Route::Listing(_) | Route::Unknown) {
            return route;
        }
        if self.count >= MAX_CACHED {
            self.sites.clear();
            self.count = 0;
        }
        if self.sites.len() <= site.number {
            self.sites.resize_with(site.number + 1, SiteRoutes::default);
        }
        let known = &mut self.sites[site.number];
        if known.release < site.release {
            self.count -= known.kept.len();
            *known = SiteRoutes { release: site.release, ..SiteRoutes::default() };
        }
        let kept = CachedRoute { found: now, route: route.clone(), absent };
        // Requests on the previous release are not cached.
        if known.release == site.release && known.kept.insert(key.into(), kept).is_none() {
            self.count += 1;
        }
        route
    }

    /// Drops the cached route of `path`, because its file no longer exists.
    pub fn forget(&mut self, site: &Site, path: &[u8], lookup: &Lookup<'_>) {
        let of_site = self.sites.get_mut(site.number).filter(|known| known.release == site.release);
        if of_site.and_then(|known| known.kept.remove(&*lookup.key(path))).is_some() {
            self.count -= 1;
        }
    }
}

/// `true` if workers run one script for all paths: modes `worker` and `async`, and `snapshot` without a boot file.
pub(crate) fn runs_one_script(pool: &PoolSettings) -> bool {
    matches!(pool.mode, Mode::Worker | Mode::Async) || (pool.mode == Mode::Snapshot && pool.boot.is_none())
}

/// Resolves like a request, and records the reasons in `notes`.
pub(crate) fn explain(site: &Site, raw: &[u8], lookup: &Lookup<'_>, notes: &Notes) -> Route {
    resolve(site, raw, lookup, Some(notes)).0
}

/// Returns the route of a decoded and normalised path that `.htaccess` files have chosen: no index files, no front
/// controller. `php` forces or forbids running the file; `lookup` names the pool and allows directory listings.
pub(crate) fn resolve_settled(site: &Site, path: &[u8], php: Option<bool>, lookup: &Lookup<'_>) -> Route {
    let finder = Finder::new(site, lookup, None);
    if let Some(script) = finder.resident_script(path) {
        return finder.plain_file(path).unwrap_or(Route::Script(script));
    }
    if finder.is_hidden(path) {
        return finder.script_with_path_info(path).filter(|_| php != Some(false)).unwrap_or(Route::NotFound);
    }
    let route = match finder.look(path) {
        Ok(Kind::File) if php == Some(true) && !misspells_script(path) => finder.script(path, b""),
        Ok(Kind::File) => finder.file(path),
        Ok(Kind::Directory) if lookup.listing && path.ends_with(b"/") => match finder.reach(path) {
            ResolvedPath::At(..) => Some(Route::Listing(finder.full(path))),
            ResolvedPath::Unknown => Some(Route::Unknown),
            ResolvedPath::Refused | ResolvedPath::Gone => None,
        },
        Ok(Kind::Directory) => Some(Route::Forbidden),
        Ok(Kind::Other) => None,
        Err(_) => finder.script_with_path_info(path),
    };
    match route {
        Some(Route::Script(_)) if php == Some(false) => Route::Forbidden,
        Some(route) => route,
        None => Route::NotFound,
    }
}

/// Resolves a path on the file system. The second value is a file whose absence led to the route.
fn resolve(site: &Site, raw: &[u8], lookup: &Lookup<'_>, notes: Option<&Notes>) -> (Route, Option<PathBuf>) {
    let path = match lookup.path {
        Some(path) => Cow::Borrowed(path),
        None => match decode(raw).and_then(|decoded| normalise(&decoded)) {
            Ok(path) => Cow::Owned(path),
            Err(reason) => {
                note(notes, || format!("the path has {reason}"));
                return (Route::Invalid(reason), None);
            }
        },
    };
    let path = &*path;
    let finder = Finder::new(site, lookup, notes);
    if let Some(script) = finder.resident_script(path) {
        if lookup.no_php {
            return (finder.plain_file(path).unwrap_or(Route::Forbidden), None);
        }
        finder.note(|| "the pool runs one script for all paths that are not files".to_owned());
        // Returns no absent path, so a new file is found only after `RECHECK_INTERVAL`. Paths of a worker script rarely
        // name files, and a check per request would almost always be wasted.
        return (finder.plain_file(path).unwrap_or(Route::Script(script)), None);
    }
    let mut absent = None;
    if finder.is_hidden(path) {
        if let Some(route) = finder.script_with_path_info(path) {
            return (route, None);
        }
        finder.note(|| "a name in the path begins with a dot: treated as missing (`static.dotfiles`)".to_owned());
    } else {
        let found = finder.look(path);
        match &found {
            Ok(Kind::File) => {
                if let Some(route) = finder.file(path) {
                    return (route, None);
                }
            }
            Ok(Kind::Directory) => {
                if let Some(route) = finder.directory(path) {
                    return (route, None);
                }
            }
            Ok(Kind::Other) => {
                finder.note(|| format!("{} is neither a file nor a directory", finder.full(path).display()));
                return (Route::NotFound, None);
            }
            Err(error) => {
                finder.note(|| format!("{}: {error}", finder.full(path).display()));
                absent = Some(finder.full(path));
            }
        }
        // The kernel returns `ENOENT` only if every name before the missing one is a directory, and `ENOTDIR` if one is
        // a file.
        let no_file_on_the_way = found.is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if !no_file_on_the_way && let Some(route) = finder.script_with_path_info(path) {
            return (route, absent);
        }
    }
    (finder.front_controller().unwrap_or(Route::NotFound), absent)
}

fn note(notes: Option<&Notes>, text: impl FnOnce() -> String) {
    if let Some(notes) = notes {
        notes.add("route", text());
    }
}

/// Result of resolving a path under the policy on symbolic links.
enum ResolvedPath {
    /// The file system path with all links resolved, and its request path if that is a different one below the root.
    At(PathBuf, Option<Vec<u8>>),
    /// The path contains a link that the policy does not follow.
    Refused,
    /// The file no longer exists.
    Gone,
    /// The lookup failed because the process is out of file descriptors.
    Unknown,
}

impl ResolvedPath {
    fn missed(error: &io::Error, path: &Path) -> Self {
        if is_out_of_descriptors(error) {
            tracing::error!(target: "howdah::request", path = %path.display(), %error, "cannot look up a file: 503");
            return Self::Unknown;
        }
        Self::Gone
    }
}

/// Resolves the path of one request below the root.
struct Finder<'a> {
    site: &'a Site,
    lookup: &'a Lookup<'a>,
    pool: usize,
    notes: Option<&'a Notes>,
}

impl<'a> Finder<'a> {
    fn new(site: &'a Site, lookup: &'a Lookup<'a>, notes: Option<&'a Notes>) -> Self {
        Self { site, lookup, pool: lookup.pool.unwrap_or(site.pool), notes }
    }

    fn note(&self, text: impl FnOnce() -> String) {
        note(self.notes, text);
    }

    /// Returns the file system path of a normalised request path.
    fn full(&self, path: &[u8]) -> PathBuf {
        let (base, rest) = self.lookup.base(self.site, path);
        join(base, rest)
    }

    /// `true` if a name in the path begins with a dot: such paths are treated as absent.
    fn is_hidden(&self, path: &[u8]) -> bool {
        self.hidden_from(path).is_some()
    }

    fn hidden_from(&self, path: &[u8]) -> Option<usize> {
        if self.site.settings.static_files.dotfiles { None } else { hidden_from(path) }
    }

    /// Returns the kind of the file, with symbolic links followed. One `stat` call.
    fn look(&self, path: &[u8]) -> io::Result<Kind> {
        #[cfg(test)]
        tests::LOOKS.set(tests::LOOKS.get() + 1);
        std::fs::metadata(self.full(path)).as_ref().map(Kind::from).map_err(|error| {
            if error.kind() == ErrorKind::PermissionDenied && self.notes.is_none() {
                self.site.static_files.links().report_closed(&self.site.root, &self.full(path));
            }
            error.kind().into()
        })
    }

    fn kind(&self, path: &[u8]) -> Option<Kind> {
        self.look(path).ok()
    }

    /// Resolves all links of a path, if the policy on links allows it. A refused link is logged.
    fn reach(&self, path: &[u8]) -> ResolvedPath {
        let full = self.full(path);
        let resolved = match real_path_of(&full) {
            Ok(resolved) => resolved,
            Err(error) => return ResolvedPath::missed(&error, &full),
        };
        let links = self.site.static_files.links();
        let (base, rest) = self.lookup.base(self.site, path);
        let mount = &path[..path.len() - rest.len()];
        if links.policy() == Symlinks::Always {
            let other = resolved != join(base, rest);
            let real = other.then(|| real_path_of(base).ok()).flatten().and_then(|root| below(&root, mount, &resolved));
            return ResolvedPath::At(resolved, real.filter(|real| real != path));
        }
        // The root is resolved on each call because a deployment may have switched it.
        let root = match real_path_of(base) {
            Ok(root) => root,
            Err(error) => return ResolvedPath::missed(&error, base),
        };
        let rest = Path::new(OsStr::from_bytes(rest.strip_prefix(b"/").unwrap_or(rest)));
        if links.allow(&root, rest, &resolved) {
            let real = below(&root, mount, &resolved).filter(|real| real != path);
            return ResolvedPath::At(resolved, real);
        }
        self.note(|| {
            format!("{} leads to {} through a link that is not followed", self.full(path).display(), resolved.display())
        });
        if self.notes.is_none() {
            links.report_link(&root, rest, &resolved);
        }
        ResolvedPath::Refused
    }

    /// Returns the route of a regular file; `None` if it no longer exists. A file behind a link that is not followed is
    /// `NotFound`: falling back to the front controller, for a style sheet say, would only hide the mistake.
    fn file(&self, path: &[u8]) -> Option<Route> {
        if is_script_name(path) {
            return self.script(path, b"");
        }
        let (resolved, real) = match self.reach(path) {
            ResolvedPath::At(resolved, real) => (resolved, real),
            ResolvedPath::Refused => return Some(Route::NotFound),
            ResolvedPath::Unknown => return Some(Route::Unknown),
            ResolvedPath::Gone => return None,
        };
        let withheld = &self.site.withheld;
        if withheld.by_name(path) || withheld.by_name(resolved.as_os_str().as_bytes()) || withheld.is_at(&resolved) {
            self.note(|| format!("{} is never sent (`static.never_send`, or PHP source)", resolved.display()));
            return Some(Route::Forbidden);
        }
        self.note(|| format!("{} is a file", resolved.display()));
        Some(Route::File(ResolvedFile { path: resolved, name: path.to_vec(), real }))
    }

    fn directory(&self, path: &[u8]) -> Option<Route> {
        let slash = path.ends_with(b"/");
        let mut candidate = path.to_vec();
        if !slash {
            candidate.push(b'/');
        }
        let start = candidate.len();
        let mut refused = false;
        for index in self.lookup.index.map_or(&*self.site.settings.index, |index| index) {
            candidate.truncate(start);
            candidate.extend_from_slice(index.as_bytes());
            if let Some(Kind::File) = self.kind(&candidate)
                && let Some(route) = self.file(&candidate)
            {
                if route == Route::Unknown {
                    return Some(route);
                }
                if route == Route::NotFound {
                    refused = true;
                    continue;
                }
                self.note(|| format!("{} is a directory, with the index {index}", self.full(path).display()));
                candidate.truncate(start);
                return Some(if slash { route } else { Route::AddSlash(encode(&candidate)) });
            }
        }
        self.note(|| format!("{} is a directory without an index", self.full(path).display()));
        if refused {
            return Some(Route::NotFound);
        }
        candidate.truncate(start);
        let reached = if self.lookup.listing { self.reach(path) } else { ResolvedPath::Gone };
        if matches!(reached, ResolvedPath::Unknown) {
            return Some(Route::Unknown);
        }
        matches!(reached, ResolvedPath::At(..))
            .then(|| if slash { Route::Listing(self.full(path)) } else { Route::AddSlash(encode(&candidate)) })
    }

    /// Returns the directory of a rule's `root`. An `alias` does not change `DOCUMENT_ROOT`, as in Apache.
    fn root(&self) -> Option<PathBuf> {
        self.lookup.place.filter(|place| place.mount.is_empty()).map(|place| place.directory.clone())
    }

    /// Returns the route of an existing script, if the policy on links allows it.
    fn script(&self, name: &[u8], path_info: &[u8]) -> Option<Route> {
        let real = match self.reach(name) {
            ResolvedPath::At(_, real) => real,
            ResolvedPath::Refused => return Some(Route::NotFound),
            ResolvedPath::Unknown => return Some(Route::Unknown),
            ResolvedPath::Gone => return None,
        };
        let filename = self.full(name).into_os_string().into_vec();
        if self.lookup.no_php {
            self.note(|| format!("{} is a script, but a rule has `php = false`", String::from_utf8_lossy(&filename)));
            return Some(Route::Forbidden);
        }
        self.note(|| {
            let info = String::from_utf8_lossy(path_info);
            let with = if info.is_empty() { String::new() } else { format!(", with PATH_INFO {info}") };
            format!("the script {}{with}", String::from_utf8_lossy(&filename))
        });
        Some(Route::Script(Script {
            name: name.to_vec(),
            filename,
            path_info: path_info.to_vec(),
            pool: self.pool,
            root: self.root(),
            real,
        }))
    }

    /// Finds a script in the middle of the path; the rest of the path becomes `PATH_INFO`.
    fn script_with_path_info(&self, path: &[u8]) -> Option<Route> {
        let visible = self.hidden_from(path).unwrap_or(path.len());
        let end = script_end(path, visible, |name| self.kind(name))?;
        self.script(&path[..end], &path[end..])
    }

    /// Returns the script of a pool whose workers run one script for all paths (`runs_one_script`). Its `SCRIPT_NAME`
    /// is its path below the root, or only its file name if it is outside the root.
    fn resident_script(&self, path: &[u8]) -> Option<Script> {
        let pool = self.site.server.settings.pools.get(self.pool).filter(|pool| runs_one_script(pool))?;
        let file = pool.script.as_deref()?;
        let below = file.strip_prefix(&self.site.root).ok().or_else(|| file.file_name().map(Path::new))?;
        let mut name = vec![b'/'];
        name.extend_from_slice(below.as_os_str().as_bytes());
        let path_info = path.strip_prefix(name.as_slice()).filter(|rest| rest.starts_with(b"/")).unwrap_or_default();
        Some(Script {
            filename: file.as_os_str().as_bytes().to_vec(),
            path_info: path_info.to_vec(),
            name,
            pool: self.pool,
            root: self.root(),
            real: None,
        })
    }

    /// Returns the route of a regular file that is not a script. A pool with one script gets all other paths.
    fn plain_file(&self, path: &[u8]) -> Option<Route> {
        if self.is_hidden(path) || is_script_name(path) {
            return None;
        }
        match self.kind(path) {
            Some(Kind::File) => self.file(path),
            _ => None,
        }
    }

    fn front_controller(&self) -> Option<Route> {
        let name = match self.lookup.front_controller {
            Some(named) => named.map(|name| &**name),
            None => self.site.settings.front_controller.as_deref(),
        };
        // If a rule forbids running PHP, there is no fallback for missing files.
        let name = name.filter(|name| !name.is_empty() && !self.lookup.no_php)?;
        self.note(|| format!("the front controller, {name}"));
        let path = format!("/{}", name.trim_start_matches('/'));
        match self.kind(path.as_bytes()) {
            Some(Kind::File) => self.script(path.as_bytes(), b""),
            _ => None,
        }
    }
}

/// Returns the request path of a resolved file below `root`; `mount` is the request path of the root itself.
fn below(root: &Path, mount: &[u8], resolved: &Path) -> Option<Vec<u8>> {
    let rest = resolved.strip_prefix(root).ok().filter(|rest| !rest.as_os_str().is_empty())?;
    Some([mount, b"/", rest.as_os_str().as_bytes()].concat())
}

/// The document root as bytes, for `DOCUMENT_ROOT`.
pub(crate) fn root_bytes(root: &Path) -> &[u8] {
    root.as_os_str().as_bytes()
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
