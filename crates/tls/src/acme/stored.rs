//! Stored data of each name: the certificate and its key, in one file so that they always match; the results of the
//! last attempts; and a lock for the next one.

use crate::certificate::Certificate;
use howdah_store::{Lock, Storage, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Changed with every certificate, so that other servers need to poll this file only.
const CHANGED: &str = "changed";

/// The stored certificates of one authority.
#[derive(Debug, Clone)]
pub(super) struct StoredCertificates {
    storage: Storage,
    /// Names whose certificates the broker still lacks because it could not be reached.
    unshared: Arc<Mutex<BTreeSet<String>>>,
}

/// A certificate, and its stored version.
#[derive(Debug, Clone)]
pub(super) struct StoredCertificate {
    pub(super) certificate: Certificate,
    pub(super) version: Option<Version>,
}

/// Failed attempts. Stored, so that a server that restarts again and again does not order each time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Attempts {
    pub(super) failures: u32,
    /// Time of the last attempt, in seconds since the epoch.
    pub(super) last: u64,
    /// Earliest time of the next attempt, in seconds since the epoch.
    pub(super) next: u64,
    pub(super) error: String,
}

impl StoredCertificates {
    pub(super) fn new(storage: Storage) -> Self {
        Self { storage, unshared: Arc::default() }
    }

    fn file(name: &str) -> String {
        format!("{name}/certificate.pem")
    }

    fn attempts_file(name: &str) -> String {
        format!("{name}/attempts.json")
    }

    /// Loads a name's certificate, if there is one that can be served: the shared one or the local copy, whichever is
    /// valid for longer. A broker that lost the certificate, or missed it while it was unreachable, gets the copy.
    pub(super) fn load(&self, name: &str) -> Option<StoredCertificate> {
        let file = Self::file(name);
        let place = self.storage.place(&file);
        let read = self.storage.read(&file);
        let shared = match &read {
            Ok(pem) => pem.as_ref().and_then(|pem| self.parse(name, &place, pem)),
            Err(_) => None,
        };
        let Some(copies) = self.storage.copies() else {
            if let Err(why) = read {
                tracing::error!("cannot read {place}, so {name} has no stored certificate: {why}");
            }
            return shared;
        };
        let copied = self.storage.copy(&file);
        let copy_place = copies.path(&file).display().to_string();
        let copy = copied.as_ref().and_then(|pem| self.parse(name, &copy_place, pem));
        let later = |found: &StoredCertificate| found.certificate.not_after;
        match (read, shared, copy, copied) {
            (Err(why), _, Some(copy), _) => {
                tracing::warn!("{why}: using {copy_place} instead");
                Some(copy)
            }
            (Err(why), ..) => {
                tracing::error!("no certificate for {name}: {why}");
                None
            }
            (Ok(_), shared, Some(copy), Some(pem))
                if shared.as_ref().is_none_or(|shared| later(shared) < later(&copy)) =>
            {
                self.share(name, &pem);
                Some(copy)
            }
            (Ok(pem), shared, ..) => {
                if let (Some(pem), Some(_)) = (pem, &shared) {
                    self.storage.keep_copy(&file, &pem);
                }
                shared
            }
        }
    }

    fn parse(&self, name: &str, place: &str, pem: &[u8]) -> Option<StoredCertificate> {
        let path = PathBuf::from(place);
        match Certificate::from_pem(pem, pem, &path, &path) {
            Ok(certificate) if certificate.names.iter().any(|own| **own == *name) => {
                Some(StoredCertificate { certificate, version: self.storage.version_of(&Self::file(name), pem) })
            }
            Ok(_) => {
                tracing::error!("ignoring {place}: the certificate does not cover {name}");
                None
            }
            Err(why) => {
                tracing::error!("ignoring {place}: {why}");
                None
            }
        }
    }

    /// Stores a certificate. A broker that is unreachable gets it later.
    pub(super) fn save(&self, name: &str, pem: &str) -> Result<StoredCertificate, String> {
        let file = Self::file(name);
        let place = PathBuf::from(self.storage.place(&file));
        let certificate = Certificate::from_pem(pem.as_bytes(), pem.as_bytes(), &place, &place);
        let certificate = certificate.map_err(|error| format!("the authority's certificate is unusable: {error}"))?;
        if certificate.names.iter().all(|own| **own != *name) {
            return Err("the authority's certificate is for another name".to_owned());
        }
        if self.storage.copies().is_some() {
            self.storage.keep_copy(&file, pem.as_bytes());
            self.share(name, pem.as_bytes());
        } else {
            let written = self.storage.write(&file, pem.as_bytes());
            written.map_err(|error| format!("cannot write {}: {error}", place.display()))?;
            self.announce(name);
        }
        Ok(StoredCertificate { certificate, version: self.storage.version_of(&file, pem.as_bytes()) })
    }

    /// Shares a certificate with the other servers, now or once the broker is reachable.
    fn share(&self, name: &str, pem: &[u8]) {
        match self.storage.write(&Self::file(name), pem) {
            Ok(()) => self.announce(name),
            Err(error) => {
                tracing::warn!("cannot share the certificate for {name} yet: {error}");
                self.unshared.lock().insert(name.to_owned());
            }
        }
    }

    fn announce(&self, name: &str) {
        self.storage.remove(&Self::attempts_file(name));
        // A random value, so that every write changes the version.
        let _ = self.storage.write(CHANGED, format!("{:x}", fastrand::u128(..)).as_bytes());
    }

    /// The stored version of a name's certificate.
    pub(super) fn version(&self, name: &str) -> std::io::Result<Option<Version>> {
        self.storage.version(&Self::file(name))
    }

    /// A version that changes when any name's certificate was written.
    pub(super) fn changed(&self) -> std::io::Result<Option<Version>> {
        let changed = self.storage.version(CHANGED)?;
        // The broker is reachable again.
        for name in std::mem::take(&mut *self.unshared.lock()) {
            self.load(&name);
        }
        Ok(changed)
    }

    /// Failed attempts so far.
    pub(super) fn attempts(&self, name: &str) -> Option<Attempts> {
        serde_json::from_slice(&self.storage.read(&Self::attempts_file(name)).ok()??).ok()
    }

    pub(super) fn note(&self, name: &str, attempts: &Attempts) {
        let Ok(text) = serde_json::to_vec(attempts) else { return };
        if let Err(error) = self.storage.write(&Self::attempts_file(name), &text) {
            tracing::warn!("cannot record a failed attempt for {name}: {error}");
        }
    }

    /// Tries to lock this name for an order.
    pub(super) fn try_lock(&self, name: &str) -> std::io::Result<Option<Lock>> {
        self.storage.try_lock(&format!("{name}/lock"))
    }
}

impl Attempts {
    /// Earliest attempt after a start. An operator who has fixed the problem restarts the server and expects a new
    /// attempt soon. A server that crashes in a loop must not use up the authority's limits (Let's Encrypt: five
    /// failures an hour).
    pub(super) fn after_start(&self) -> SystemTime {
        const AT_MOST: u64 = 15 * 60;
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.next.min(self.last.saturating_add(AT_MOST)))
    }
}
