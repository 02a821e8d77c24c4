//! The server's certificates by name. Handshakes on all I/O threads read the store without a lock; a change builds a
//! new table for its layer and swaps it in.

use arc_swap::ArcSwap;
use rustls::SignatureScheme;
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::certificate::Certificate;
use crate::hosts::Hosts;
use crate::names;

/// Maximum length of a DNS name; clients' longer names count as unknown. Names are looked up in lower case.
const MAX_NAME_LEN: usize = 253;

/// Name → certificates, in the order in which they were added. `*.example.org` is an ordinary key here.
type Names = HashMap<Box<str>, Vec<Arc<CertifiedKey>>>;

/// The certificate store.
#[derive(Debug, Default)]
pub struct Store {
    table: ArcSwap<Table>,
    /// Held during a change, to serialize writers.
    changing: Mutex<()>,
}

/// The tables that a handshake reads. Each layer is replaced separately.
#[derive(Debug, Default, Clone)]
struct Table {
    /// The sites by host.
    hosts: Arc<Hosts>,
    /// Certificate files that belong to a site, by the site's number.
    of_sites: Arc<Vec<Vec<SiteCertificate>>>,
    /// Certificate files of the whole server.
    files: Arc<Names>,
    /// The first of the server's files, for clients with no name or an unknown one.
    first_file: Option<Arc<CertifiedKey>>,
    /// Certificates that the server created or obtained itself.
    own: Arc<Names>,
    /// The default certificate if the settings name no files for the whole server.
    own_default: Option<Arc<CertifiedKey>>,
    /// Challenge certificates that prove control over a name to authorities (RFC 8737).
    challenges: Arc<HashMap<Box<str>, Arc<CertifiedKey>>>,
}

#[derive(Debug)]
struct SiteCertificate {
    names: Vec<Box<str>>,
    key: Arc<CertifiedKey>,
}

impl SiteCertificate {
    fn covers(&self, name: &str) -> bool {
        self.names.iter().any(|own| names::covers(own, name))
    }
}

impl Store {
    /// An empty store.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Sets the sites' hosts, for certificates that belong to a site.
    pub fn set_hosts(&self, hosts: Hosts) {
        self.change(|table| table.hosts = Arc::new(hosts));
    }

    /// Replaces the certificates of the settings' files, each with the number of its site if it belongs to one. The
    /// first one without a site is for clients with unknown names. Certificates of the same name are tried in this
    /// order, until the client supports the signature.
    pub fn replace_all_files<'a>(&self, certificates: impl IntoIterator<Item = (Option<usize>, &'a Certificate)>) {
        let (mut files, mut first, mut of_sites) = (Names::new(), None, Vec::new());
        for (site, certificate) in certificates {
            let Some(site) = site else {
                first.get_or_insert_with(|| certificate.key.clone());
                add(&mut files, certificate.names.iter(), &certificate.key);
                continue;
            };
            if of_sites.len() <= site {
                of_sites.resize_with(site + 1, Vec::new);
            }
            of_sites[site].push(SiteCertificate { names: certificate.names.clone(), key: certificate.key.clone() });
        }
        self.change(|table| {
            (table.files, table.first_file, table.of_sites) = (Arc::new(files), first, Arc::new(of_sites));
        });
    }

    /// Replaces the certificates of the settings' files with ones that belong to no site.
    pub fn replace_files<'a>(&self, certificates: impl IntoIterator<Item = &'a Certificate>) {
        self.replace_all_files(certificates.into_iter().map(|certificate| (None, certificate)));
    }

    /// Adds certificates that the server created or obtained, replacing earlier ones of the same names. Of certificates
    /// with the same name, those of the settings' files take precedence.
    pub fn insert<'a>(&self, certificates: impl IntoIterator<Item = &'a Certificate>) {
        self.change(|table| {
            let own = Arc::make_mut(&mut table.own);
            for certificate in certificates {
                for name in &certificate.names {
                    own.remove(name);
                }
                add(own, certificate.names.iter(), &certificate.key);
            }
        });
    }

    /// Removes certificates added by `insert`.
    pub fn remove<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        self.change(|table| {
            let own = Arc::make_mut(&mut table.own);
            for name in names {
                own.remove(name.to_ascii_lowercase().as_str());
            }
        });
    }

    /// Sets the certificate for clients with unknown names, if the settings name no files for the whole server.
    pub fn set_default(&self, certificate: Option<&Certificate>) {
        self.change(|table| table.own_default = certificate.map(|certificate| certificate.key.clone()));
    }

    /// Serves `certificate` only to clients that request `name` with the protocol `acme-tls/1`.
    pub fn insert_challenge(&self, name: &str, certificate: Arc<CertifiedKey>) {
        let name = name.to_ascii_lowercase().into();
        self.change(|table| drop(Arc::make_mut(&mut table.challenges).insert(name, certificate)));
    }

    /// Removes the challenge certificate of a name.
    pub fn remove_challenge(&self, name: &str) {
        self.change(|table| drop(Arc::make_mut(&mut table.challenges).remove(name.to_ascii_lowercase().as_str())));
    }

    /// `true` if the store is empty, so that every handshake fails.
    pub fn is_empty(&self) -> bool {
        let table = self.table.load();
        let of_sites = table.of_sites.iter().all(Vec::is_empty);
        of_sites && table.first_file.is_none() && table.own.is_empty() && table.own_default.is_none()
    }

    /// `true` if a certificate covers this name; default ones do not count.
    pub fn has(&self, name: &str) -> bool {
        let Some(name) = lookup_key(name, &mut [0; MAX_NAME_LEN]).map(str::to_owned) else { return false };
        let table = self.table.load();
        table.covering(&name).next().is_some()
    }

    /// The certificate for a client that sent this name and supports these signature schemes.
    pub fn find(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let table = self.table.load();
        let mut space = [0; MAX_NAME_LEN];
        let name = name.and_then(|name| lookup_key(name, &mut space));
        let mut first = None;
        for key in name.into_iter().flat_map(|name| table.covering(name)).chain(table.of_site(name)) {
            if key.key.choose_scheme(schemes).is_some() {
                return Some(key.clone());
            }
            first.get_or_insert(key);
        }
        first.or_else(|| table.default()).cloned()
    }

    /// `true` if the certificate for a client that sends `name` covers `host` too.
    pub fn covers(&self, name: &str, host: &str) -> bool {
        let table = self.table.load();
        let (mut name_space, mut host_space) = ([0; MAX_NAME_LEN], [0; MAX_NAME_LEN]);
        let (Some(name), Some(host)) = (lookup_key(name, &mut name_space), lookup_key(host, &mut host_space)) else {
            return false;
        };
        let is_for_host = |key: &Arc<CertifiedKey>| table.covering(host).any(|other| Arc::ptr_eq(key, other));
        let mut shown = table.covering(name).chain(table.of_site(Some(name))).peekable();
        if shown.peek().is_none() { table.default().is_some_and(is_for_host) } else { shown.all(is_for_host) }
    }

    /// The challenge certificate for this name.
    pub(crate) fn challenge(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let mut space = [0; MAX_NAME_LEN];
        self.table.load().challenges.get(lookup_key(name, &mut space)?).cloned()
    }

    fn change(&self, change: impl FnOnce(&mut Table)) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = Table::clone(&self.table.load());
        change(&mut table);
        self.table.store(Arc::new(table));
    }
}

impl Table {
    /// The certificates of the host's site. Without a name, those of the site that has all other hosts.
    fn own(&self, name: Option<&str>) -> &[SiteCertificate] {
        let site = self.hosts.find(name);
        site.and_then(|site| self.of_sites.get(site)).map_or(&[], Vec::as_slice)
    }

    /// Certificates that cover a name, best first: those of its site, then those of the server.
    fn covering<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<CertifiedKey>> {
        let own = self.own(Some(name)).iter().filter(move |own| own.covers(name)).map(|own| &own.key);
        own.chain(self.candidates(name))
    }

    /// All certificates of the host's site: its clients get one of these even if none covers the name.
    fn of_site<'a>(&'a self, name: Option<&'a str>) -> impl Iterator<Item = &'a Arc<CertifiedKey>> {
        self.own(name).iter().map(|own| &own.key)
    }

    /// The certificate for unknown names.
    fn default(&self) -> Option<&Arc<CertifiedKey>> {
        let of_sites = || self.of_sites.iter().flatten().map(|own| &own.key).next();
        self.first_file.as_ref().or(self.own_default.as_ref()).or_else(of_sites)
    }

    /// Certificates for a name: exact names before wildcards, files before the server's own. A wildcard stands for one
    /// label (RFC 6125 6.4.3).
    fn candidates<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<CertifiedKey>> {
        let exact = [&self.files, &self.own].into_iter().filter_map(move |names| names.get(name));
        let wildcard = move || {
            let parent = name.split_once('.').map(|(_, parent)| parent)?;
            let mut space = [0; MAX_NAME_LEN + 2];
            space[..2].copy_from_slice(b"*.");
            space.get_mut(2..2 + parent.len())?.copy_from_slice(parent.as_bytes());
            let name = std::str::from_utf8(&space[..2 + parent.len()]).ok()?;
            Some([self.files.get(name), self.own.get(name)])
        };
        exact.chain(std::iter::once_with(wildcard).flatten().flatten().flatten()).flatten()
    }
}

fn add<'a>(to: &mut Names, names: impl Iterator<Item = &'a Box<str>>, key: &Arc<CertifiedKey>) {
    for name in names {
        to.entry(name.clone()).or_default().push(key.clone());
    }
}

/// Lower-cases a client's name for the lookup, without an allocation. rustls has verified that it is a DNS name.
fn lookup_key<'a>(name: &str, space: &'a mut [u8; MAX_NAME_LEN]) -> Option<&'a str> {
    let name = name.strip_suffix('.').unwrap_or(name).as_bytes();
    let space = space.get_mut(..name.len())?;
    space.copy_from_slice(name);
    space.make_ascii_lowercase();
    std::str::from_utf8(space).ok()
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
