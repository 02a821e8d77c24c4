//! The certificates of the server, by name. Handshakes on all I/O threads look in it and take no lock; a change makes a new
//! table of the layer that it concerns and puts it in the place of the old one.

use arc_swap::ArcSwap;
use rustls::SignatureScheme;
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::certificate::Certificate;

/// Names are looked up in lower case; those of clients that are longer than a name of DNS can be are nobody's.
const LONGEST_NAME: usize = 253;

/// Name → certificates, in the order in which they were given. `*.example.org` is a name like any other here.
type Names = HashMap<Box<str>, Vec<Arc<CertifiedKey>>>;

/// See above.
#[derive(Debug, Default)]
pub struct Store {
    table: ArcSwap<Table>,
    /// Held by whoever changes something.
    changing: Mutex<()>,
}

/// What a handshake sees. Each layer is replaced for itself.
#[derive(Debug, Default, Clone)]
struct Table {
    /// Of the settings' files.
    files: Arc<Names>,
    /// For those who send no name, or one that nobody has: the first of the settings' files.
    first_file: Option<Arc<CertifiedKey>>,
    /// Made or obtained by the server itself.
    own: Arc<Names>,
    /// The same as `first_file`, where there are no files.
    own_default: Option<Arc<CertifiedKey>>,
    /// What proves to a certificate authority that a name is ours (RFC 8737).
    challenges: Arc<HashMap<Box<str>, Arc<CertifiedKey>>>,
}

impl Store {
    /// An empty store.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Puts the certificates of the settings' files in the place of those that were there. The first one is for clients
    /// whose name nobody has. Certificates of the same name are tried in this order, by what the client can check.
    pub fn replace_files<'a>(&self, certificates: impl IntoIterator<Item = &'a Certificate>) {
        let (mut files, mut first) = (Names::new(), None);
        for certificate in certificates {
            first.get_or_insert_with(|| certificate.key.clone());
            add(&mut files, certificate.names.iter(), &certificate.key);
        }
        self.change(|table| (table.files, table.first_file) = (Arc::new(files), first));
    }

    /// Adds certificates that the server made or obtained itself, in the place of earlier ones of these names. Certificates
    /// of the settings' files come before them.
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

    /// Takes such certificates out.
    pub fn remove<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        self.change(|table| {
            let own = Arc::make_mut(&mut table.own);
            for name in names {
                own.remove(name.to_ascii_lowercase().as_str());
            }
        });
    }

    /// Says which certificate is for clients whose name nobody has, where the settings name no files.
    pub fn set_default(&self, certificate: Option<&Certificate>) {
        self.change(|table| table.own_default = certificate.map(|certificate| certificate.key.clone()));
    }

    /// Serves `certificate` to whoever asks for `name` with the protocol `acme-tls/1`, and to nobody else.
    pub fn insert_challenge(&self, name: &str, certificate: Arc<CertifiedKey>) {
        let name = name.to_ascii_lowercase().into();
        self.change(|table| drop(Arc::make_mut(&mut table.challenges).insert(name, certificate)));
    }

    /// Ends that.
    pub fn remove_challenge(&self, name: &str) {
        self.change(|table| drop(Arc::make_mut(&mut table.challenges).remove(name.to_ascii_lowercase().as_str())));
    }

    /// True if there is no certificate, so that every handshake fails.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let table = self.table.load();
        table.files.is_empty() && table.first_file.is_none() && table.own.is_empty() && table.own_default.is_none()
    }

    /// Whether there is a certificate for just this name, not one for everybody.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let Some(name) = lookup_key(name, &mut [0; LONGEST_NAME]).map(str::to_owned) else { return false };
        let table = self.table.load();
        table.candidates(&name).next().is_some()
    }

    /// The certificate for a client that sent this name and can check these signatures.
    #[must_use]
    pub fn find(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let table = self.table.load();
        let mut space = [0; LONGEST_NAME];
        if let Some(name) = name.and_then(|name| lookup_key(name, &mut space)) {
            let mut first = None;
            for key in table.candidates(name) {
                if key.key.choose_scheme(schemes).is_some() {
                    return Some(key.clone());
                }
                first.get_or_insert(key);
            }
            if let Some(first) = first {
                return Some(first.clone());
            }
        }
        table.first_file.clone().or_else(|| table.own_default.clone())
    }

    /// The certificate that proves that this name is ours.
    pub(crate) fn challenge(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let mut space = [0; LONGEST_NAME];
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
    /// Certificates for a name: exact ones before wildcards, files before own ones. A wildcard stands for one label
    /// (RFC 6125 6.4.3).
    fn candidates<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<CertifiedKey>> {
        let exact = [&self.files, &self.own].into_iter().filter_map(move |names| names.get(name));
        let wildcard = move || {
            let parent = name.split_once('.').map(|(_, parent)| parent)?;
            let mut space = [0; LONGEST_NAME + 2];
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

/// A client's name as it is looked up, without an allocation. rustls has made sure that it is a name of DNS.
fn lookup_key<'a>(name: &str, space: &'a mut [u8; LONGEST_NAME]) -> Option<&'a str> {
    let name = name.strip_suffix('.').unwrap_or(name).as_bytes();
    let space = space.get_mut(..name.len())?;
    space.copy_from_slice(name);
    space.make_ascii_lowercase();
    std::str::from_utf8(space).ok()
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
