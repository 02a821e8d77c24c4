//! Maps hosts to sites for the choice of certificates, in the same order as for requests: an exact name, then the
//! longest matching wildcard, then the site of all other hosts.

use std::collections::HashMap;

/// The hosts of all sites. Names are in lower case.
#[derive(Debug, Default)]
pub struct Hosts {
    exact: HashMap<Box<str>, usize>,
    /// Sites by the domain after `*.`.
    below: HashMap<Box<str>, usize>,
    default: Option<usize>,
}

impl Hosts {
    /// Assigns a name to a site.
    pub fn exact(&mut self, name: &str, site: usize) {
        self.exact.insert(name.into(), site);
    }

    /// Assigns all subdomains of a name to a site.
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
