//! Settings that rules have made for one request, as later phases use them.

use crate::site::Site;
use howdah_rules::limit::Admitted;
use howdah_rules::{Outcome, Place};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct AppliedRules {
    /// The rules' outcome.
    pub outcome: Box<Outcome>,
    /// The authenticated user.
    pub user: Option<Arc<str>>,
    /// Limits that count this request until it ends.
    pub admitted: Vec<Admitted>,
    /// `true` if the outcome's path comes from `try_files`.
    pub tried: bool,
}

/// Parameters of the file lookup that differ from the site's settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lookup<'a> {
    /// A path that replaces the requested one: decoded and normalized.
    pub path: Option<&'a [u8]>,
    /// Directory that replaces the document root, or part of it.
    pub place: Option<&'a Arc<Place>>,
    /// Index files of a directory.
    pub index: Option<&'a Arc<[String]>>,
    /// The script to run if no file matches; the inner `None` for none.
    pub front_controller: Option<Option<&'a Arc<str>>>,
    /// `true` if no script may run.
    pub no_php: bool,
    /// `true` if a directory without an index file is listed.
    pub listing: bool,
    /// The pool's position in the settings.
    pub pool: Option<usize>,
}

impl<'a> Lookup<'a> {
    /// Builds the lookup from the outcome of the rules. What no rule sets stays `None`.
    pub(crate) fn new(site: &Site, outcome: &'a Outcome) -> Self {
        Self {
            path: outcome.path.as_deref(),
            place: outcome.place.as_ref(),
            index: outcome.index.as_ref(),
            front_controller: outcome.front_controller.as_ref().map(Option::as_ref),
            no_php: outcome.php == Some(false),
            listing: outcome.listing == Some(true),
            pool: outcome.pool.as_deref().map(|name| site.pool_named(name)),
        }
    }

    /// The lookup for another path.
    pub(crate) fn at(self, path: &'a [u8]) -> Self {
        Self { path: Some(path), ..self }
    }

    /// Key of a cached route: the raw path alone if nothing differs from the site's settings.
    pub(crate) fn key<'k>(&self, raw: &'k [u8]) -> Cow<'k, [u8]> {
        // The rules own these values for their lifetime, so an address identifies a value.
        fn address<T: ?Sized>(it: Option<&Arc<T>>) -> usize {
            it.map_or(0, |it| Arc::as_ptr(it).cast::<u8>() as usize)
        }
        let front = self.front_controller.map(address);
        let same = self.path.is_none() && self.place.is_none() && self.index.is_none() && front.is_none();
        if same && !self.no_php && !self.listing && self.pool.is_none() {
            return Cow::Borrowed(raw);
        }
        // A requested path never begins with NUL, so these keys do not collide with raw paths.
        let flags = [self.path.is_some(), front.is_some(), self.no_php, self.listing, self.pool.is_some()];
        let mut key = vec![0];
        key.extend(flags.map(u8::from));
        for number in [address(self.place), address(self.index), front.unwrap_or(0), self.pool.unwrap_or(0)] {
            key.extend_from_slice(&number.to_le_bytes());
        }
        key.extend_from_slice(self.path.unwrap_or(raw));
        Cow::Owned(key)
    }

    /// Returns the directory that contains a path, and the rest of the path below it.
    pub(crate) fn base<'p>(&self, site: &'p Site, path: &'p [u8]) -> (&'p Path, &'p [u8])
    where
        'a: 'p,
    {
        match self.place {
            Some(place) => match below(place, path) {
                Some(rest) => (&place.directory, rest),
                None => (&site.root, path),
            },
            None => (&site.root, path),
        }
    }
}

/// Returns the part of a path below the mount of a place.
fn below<'p>(place: &Place, path: &'p [u8]) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(place.mount.as_bytes())?;
    (rest.is_empty() || rest.starts_with(b"/")).then_some(rest)
}

/// Returns the file system path of `rest` below `base`.
pub(crate) fn join(base: &Path, rest: &[u8]) -> PathBuf {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut full = base.as_os_str().as_bytes().to_vec();
    full.extend_from_slice(rest);
    PathBuf::from(std::ffi::OsString::from_vec(full))
}
