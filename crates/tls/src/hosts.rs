//! Which site has a host, as far as certificates ask: the same order as for requests, a name before a `*`, the longest of several,
//! and then the site of all other hosts.

use std::collections::HashMap;

/// The hosts of all sites. Names are in lower case.
#[derive(Debug, Default)]
pub struct Hosts {
    exact: HashMap<Box<str>, usize>,
    /// The site of a domain after `*.`.
    below: HashMap<Box<str>, usize>,
    default: Option<usize>,
}

impl Hosts {
    /// This name is the site's.
    pub fn exact(&mut self, name: &str, site: usize) {
        self.exact.insert(name.into(), site);
    }

    /// Every name below this one is.
    pub fn below(&mut self, name: &str, site: usize) {
        self.below.insert(name.into(), site);
    }

    /// Assigns all other names to a site.
    pub fn others(&mut self, site: usize) {
        self.default = Some(site);
    }

    pub(crate) fn find(&self, name: Option<&str>) -> Option<usize> {
        name.and_then(|name| self.named(name)).or(self.default)
    }

    fn named(&self, name: &str) -> Option<usize> {
        if let Some(site) = self.exact.get(name) {
            return Some(*site);
        }
        if self.below.is_empty() {
            return None;
        }
        name.match_indices('.').find_map(|(at, _)| self.below.get(&name[at + 1..])).copied()
    }
}
