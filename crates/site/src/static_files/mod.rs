//! Static files: responds to GET and HEAD with a file below a directory.
//!
//! There are two steps. [`StaticFiles::open`] turns a path into an [`OpenFile`] (usually from the cache, which needs no
//! system call for a small file within `static.revalidate_after`) or returns the reason for its refusal.
//! [`StaticFiles::serve`] turns the file and a request into a response. Reading order: `root` (safely from a path to a
//! descriptor) with `links` and `real_path`, `content` (a descriptor with its header values), `cache`, `conditional`,
//! `range` and `coding` (the request's fields), `respond` (the response).
//!
//! For the rest of the crate:
//! - The path given to `open` is relative to the root, percent-decoded and normalised. The route handles PHP scripts,
//!   but a name that ends in `.php`, or a link that leads to one, is refused here as well.
//! - Opening, `stat` and reading happen on the calling task. With a warm page cache they take microseconds. A slow disk
//!   delays the other connections of that thread, as in nginx without threads.

mod cache;
mod coding;
mod conditional;
mod content;
mod links;
mod media_type;
mod range;
mod real_path;
mod respond;
mod root;

#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_server;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use howdah_config::StaticSettings;
use howdah_protocol::{Body, FileBody, Head};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use rustix::fs::{AtFlags, CWD, statat};
use rustix::io::Errno;

use cache::{Cache, Opened};
use coding::Coding;
use content::{Content, Stamp};
pub use links::Links;
pub(crate) use real_path::{is_out_of_descriptors, real_path_of};
use root::Root;

use crate::refusal::Refusal;
use crate::withheld::Withheld;

/// Minimum interval between searches for new twins (precompressed files). A new twin is used at the first revalidation
/// after this time.
const TWIN_RECHECK: Duration = Duration::from_secs(1);
/// A file modified less than this before it was loaded could change again without a change of its timestamps: kernels
/// before 6.13 count them in ticks of up to 10 ms.
const MTIME_TICK: Duration = Duration::from_millis(20);

/// Returns the response with the file `name`, which the route has found at `path`; `None` if it no longer exists.
pub(crate) fn run(
    files: &StaticFiles,
    name: &[u8],
    path: &Path,
    request: &Head,
) -> Result<Option<Response<Body>>, Refusal> {
    let name = name.strip_prefix(b"/").unwrap_or(name);
    match files.open(Path::new(OsStr::from_bytes(name))) {
        Ok(file) => Ok(Some(files.serve(&file, &request.method, &request.headers).map(Body::files))),
        Err(Miss::NotFound | Miss::Directory) => Ok(None),
        Err(miss) => Err(miss.refusal(path)),
    }
}

/// Returns the media type of the file `name`; `None` if it cannot be sent.
pub(crate) fn media_type(files: &StaticFiles, name: &[u8]) -> Option<HeaderValue> {
    let name = Path::new(OsStr::from_bytes(name.strip_prefix(b"/").unwrap_or(name)));
    Some(files.open(name).ok()?.media_type().clone())
}

/// Returns the request head for an error page, without ranges and conditions: those are about the requested resource.
pub(crate) fn page_head(head: &Head, method: Method) -> Head {
    let mut head = head.clone();
    head.method = method;
    for name in [
        header::RANGE,
        header::IF_RANGE,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_MATCH,
        header::IF_UNMODIFIED_SINCE,
    ] {
        head.headers.remove(name);
    }
    head
}

/// Returns the response with the file at `path` (relative to the directory) that a script has handed over, with the
/// script's media type.
pub(crate) fn run_for_script(
    files: &StaticFiles,
    path: &Path,
    request: &Head,
    media_type: Option<&HeaderValue>,
) -> Result<Response<Body>, Refusal> {
    let file = files.open(path).map_err(|miss| miss.refusal(&files.path.join(path)))?;
    // The script accepted the request's method, so the file is sent even for POST.
    let method = if request.method == Method::HEAD { Method::HEAD } else { Method::GET };
    let response = respond::respond(&file.0, &method, &request.headers, media_type);
    Ok(response.map(Body::files))
}

/// Reason for which no file can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The file does not exist or is neither a regular file nor a directory: 404, or the front controller.
    NotFound,
    Directory,
    /// Hidden by policy: a dotfile, PHP source, or a link that is not followed. 404 without details.
    Hidden,
    /// No permission to read it: 403.
    Forbidden,
    /// Another process is writing the file at this moment: 503.
    Changing,
    /// Out of descriptors or memory (503), or the disk failed (500).
    Failed(Errno),
}

impl Miss {
    fn refusal(self, path: &Path) -> Refusal {
        Refusal::new(match self {
            Miss::NotFound | Miss::Directory | Miss::Hidden => StatusCode::NOT_FOUND,
            Miss::Forbidden => StatusCode::FORBIDDEN,
            Miss::Changing => StatusCode::SERVICE_UNAVAILABLE,
            Miss::Failed(error) => {
                tracing::error!(target: "howdah::static", path = %path.display(), %error, "cannot open a file");
                match error {
                    Errno::MFILE | Errno::NFILE | Errno::NOMEM => StatusCode::SERVICE_UNAVAILABLE,
                    _ => StatusCode::INTERNAL_SERVER_ERROR,
                }
            }
        })
    }
}

impl From<Errno> for Miss {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::NXIO | Errno::INVAL | Errno::NODEV => {
                Miss::NotFound
            }
            Errno::LOOP | Errno::XDEV => Miss::Hidden,
            Errno::ACCESS | Errno::PERM => Miss::Forbidden,
            other => Miss::Failed(other),
        }
    }
}

/// A file that can be sent. Its descriptors stay open until the last clone is dropped.
#[derive(Clone, Debug)]
pub struct OpenFile(Arc<Opened>);

impl OpenFile {
    /// The uncompressed size in bytes.
    pub fn len(&self) -> u64 {
        self.0.plain.stamp.size
    }

    /// `true` if it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The media type, as in `Content-Type`.
    pub fn media_type(&self) -> &HeaderValue {
        &self.0.plain.media_type
    }
}

/// The static files below one document root.
#[derive(Debug)]
pub struct StaticFiles {
    path: PathBuf,
    root: RwLock<Arc<Root>>,
    links: Arc<Links>,
    withheld: Arc<Withheld>,
    cache: Cache,
    settings: StaticSettings,
    /// `static.revalidate_after` in milliseconds.
    validity: u64,
    /// `TWIN_RECHECK` in milliseconds.
    twins_validity: u64,
    born: Instant,
}

impl StaticFiles {
    /// Opens the document root.
    ///
    /// # Errors
    /// The root is not a directory, or cannot be opened.
    pub fn new(root: impl Into<PathBuf>, settings: &StaticSettings, withheld: Arc<Withheld>) -> io::Result<Self> {
        Self::with_links(root, settings, Vec::new(), withheld)
    }

    /// Like `new`, but also follows every link that leads into the directories `public`.
    ///
    /// # Errors
    /// As for `new`.
    pub fn with_links(
        root: impl Into<PathBuf>,
        settings: &StaticSettings,
        public: Vec<PathBuf>,
        withheld: Arc<Withheld>,
    ) -> io::Result<Self> {
        let path = root.into();
        let links = Arc::new(Links::new(settings, public));
        Ok(Self {
            root: RwLock::new(Arc::new(Root::open(&path, links.clone(), withheld.clone())?)),
            links,
            path,
            withheld,
            cache: Cache::new(settings.open_files.min(descriptors_to_spare())),
            settings: settings.clone(),
            #[allow(clippy::cast_possible_truncation)]
            validity: settings.revalidate_after.as_millis() as u64,
            #[allow(clippy::cast_possible_truncation)]
            twins_validity: TWIN_RECHECK.as_millis() as u64,
            born: Instant::now(),
        })
    }

    /// Finds the file at `path`, relative to the root, percent-decoded and normalised.
    ///
    /// # Errors
    /// No file can be sent; the [`Miss`] is the reason.
    pub fn open(&self, path: &Path) -> Result<OpenFile, Miss> {
        if !root::is_visible(path, self.settings.dotfiles) {
            return Err(Miss::Hidden);
        }
        let now = self.now();
        if let Some(opened) = self.cache.get(path) {
            if self.is_current(path, &opened, now) {
                return Ok(OpenFile(opened));
            }
            self.cache.remove(path);
        }
        let root = self.root();
        let loaded = match self.load(&root, path, now) {
            // Out of descriptors: the request is more important than the cache.
            Err(Miss::Failed(Errno::MFILE | Errno::NFILE)) => {
                self.cache.clear();
                self.load(&root, path, now)
            }
            other => other,
        };
        let opened = Arc::new(loaded?);
        self.cache.insert(path, &opened);
        Ok(OpenFile(opened))
    }

    /// The response to a request for `file`: 200, 206, 304, 405, 412 or 416.
    pub fn serve(&self, file: &OpenFile, method: &Method, headers: &HeaderMap) -> Response<FileBody> {
        respond::respond(&file.0, method, headers, None)
    }

    /// The policy on links.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Number of descriptors held by the cache.
    pub fn open_descriptors(&self) -> usize {
        self.cache.descriptors()
    }

    /// Milliseconds since this value was created.
    fn now(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns `true` if the last check is older than `validity`, and to only one of several concurrent callers. The
    /// others use the cached state.
    fn is_due(checked: &AtomicU64, now: u64, validity: u64) -> bool {
        let last = checked.load(Ordering::Relaxed);
        now.saturating_sub(last) >= validity
            && checked.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns the root's descriptor. If the root's path leads elsewhere now, reopens it and clears the cache.
    fn root(&self) -> Arc<Root> {
        let root = Arc::clone(&self.root.read().unwrap_or_else(PoisonError::into_inner));
        if root.is_at(&self.path) {
            return root;
        }
        match Root::open(&self.path, self.links.clone(), self.withheld.clone()) {
            Ok(new) => {
                let new = Arc::new(new);
                *self.root.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
                self.cache.clear();
                new
            }
            // In the middle of a deployment: keep the old root until the new one exists.
            Err(_) => root,
        }
    }

    /// `true` if the path still leads to this file in the state in which it was loaded. When a revalidation is due,
    /// resolves the whole path, to notice a moved root too: at least one system call.
    fn is_current(&self, path: &Path, opened: &Opened, now: u64) -> bool {
        let every_time = self.validity == 0;
        if !every_time && !Self::is_due(&opened.checked, now, self.validity) {
            return opened.plain.is_intact() && opened.twins.iter().all(|twin| twin.is_intact());
        }
        let full = self.path.join(path);
        let stamp = |path: &Path| statat(CWD, path, AtFlags::empty()).ok().map(|stat| Stamp::of(&stat));
        if opened.loaded_within_a_tick || stamp(&full) != Some(opened.plain.stamp) {
            return false;
        }
        if !self.settings.precompressed {
            return true;
        }
        let all = Self::is_due(&opened.twins_checked, now, self.twins_validity);
        Coding::ALL.into_iter().all(|coding| {
            let known = opened.twin(coding).map(|twin| twin.stamp);
            // A twin older than the file is treated as missing, before and now.
            let found = || stamp(&twin_path(&full, coding)).filter(|twin| fresh(twin, &opened.plain.stamp));
            (known.is_none() && !all) || found() == known
        })
    }

    fn load(&self, root: &Root, path: &Path, now: u64) -> Result<Opened, Miss> {
        let media_type = media_type::of(path);
        let plain = Content::load(root.open_file(path)?, None, media_type.clone())?;
        let is_withheld = |content: &Content| {
            let (device, inode) = content.stamp.file();
            self.withheld.is_file(device, inode)
        };
        if is_withheld(&plain) {
            return Err(Miss::Hidden);
        }
        let mut twins = Vec::new();
        if self.settings.precompressed {
            for coding in Coding::ALL {
                let twin = root.open_file(&twin_path(path, coding));
                let twin = twin.and_then(|file| Content::load(file, Some(coding), media_type.clone()));
                if let Ok(twin) = twin
                    && fresh(&twin.stamp, &plain.stamp)
                    && !is_withheld(&twin)
                {
                    twins.push(Arc::new(twin));
                }
            }
            twins.sort_by_key(|twin| twin.stamp.size);
        }
        let within_a_tick = plain.stamp.is_younger_than(MTIME_TICK, SystemTime::now());
        Ok(Opened::new(plain, twins, now, within_a_tick))
    }
}

/// Number of descriptors that the cache may hold without starving connections: a quarter of the process's limit.
fn descriptors_to_spare() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit / 4).unwrap_or(usize::MAX))
}

fn twin_path(path: &Path, coding: Coding) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(coding.extension());
    name.into()
}

/// `true` if a twin is not older than its file. Compared in whole seconds: compression tools copy the file's
/// modification time, some of them without the fraction.
fn fresh(twin: &Stamp, plain: &Stamp) -> bool {
    twin.modified.div_euclid(1_000_000_000) >= plain.modified.div_euclid(1_000_000_000)
}
