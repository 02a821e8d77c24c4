//! Settings that rules have made for one request, as later phases use them.

use crate::site::Site;
use howdah_rules::limit::Admitted;
use howdah_rules::{Outcome, Place};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Settings that rules have made for a request.
#[derive(Debug, Default)]
pub struct Ruled {
    /// The rules' outcome.
    pub outcome: Box<Outcome>,
    /// The user whose password was right.
    pub user: Option<Arc<str>>,
    /// Limits that count this request until it ends.
    pub admitted: Vec<Admitted>,
    /// The outcome's path is one of `try_files`.
    pub tried: bool,
}

/// Where files are looked for, where that differs from what the site says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lookup<'a> {
    /// A path that replaces the requested one: decoded and normalized.
    pub path: Option<&'a [u8]>,
    /// Where files lie.
    pub place: Option<&'a Arc<Place>>,
    /// Names that are tried in a directory.
    pub index: Option<&'a Arc<[String]>>,
    /// The script to run if no file matches; the inner `None` for none.
    pub front_controller: Option<Option<&'a Arc<str>>>,
    /// No script is run.
    pub no_php: bool,
    /// A directory without an index is listed.
    pub listing: bool,
    /// The pool's position in the settings.
    pub pool: Option<usize>,
}

impl<'a> Lookup<'a> {
    /// The lookup of an outcome.
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
        // Names in rules live as long as they do, so an address identifies one.
        fn address<T: ?Sized>(it: Option<&Arc<T>>) -> usize {
            it.map_or(0, |it| Arc::as_ptr(it).cast::<u8>() as usize)
        }
        let front = self.front_controller.map(address);
        let same = self.path.is_none() && self.place.is_none() && self.index.is_none() && front.is_none();
        if same && !self.no_php && !self.listing && self.pool.is_none() {
            return Cow::Borrowed(raw);
        }
        // No path that is asked for begins with NUL.
        let flags = [self.path.is_some(), front.is_some(), self.no_php, self.listing, self.pool.is_some()];
        let mut key = vec![0];
        key.extend(flags.map(u8::from));
        for number in [address(self.place), address(self.index), front.unwrap_or(0), self.pool.unwrap_or(0)] {
            key.extend_from_slice(&number.to_le_bytes());
        }
        key.extend_from_slice(self.path.unwrap_or(raw));
        Cow::Owned(key)
    }

    /// The directory that paths start from, and the part of the path below it.
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

/// The part of a path below the place's.
fn below<'p>(place: &Place, path: &'p [u8]) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(place.mount.as_bytes())?;
    (rest.is_empty() || rest.starts_with(b"/")).then_some(rest)
}

/// The place of a path in the file system.
pub(crate) fn join(base: &Path, rest: &[u8]) -> PathBuf {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut full = base.as_os_str().as_bytes().to_vec();
    full.extend_from_slice(rest);
    PathBuf::from(std::ffi::OsString::from_vec(full))
}
