//! Stored data of each name: the certificate with its key, in one file so that they always match; the results of its
//! last attempts; and a lock for the next one.

use crate::certificate::Certificate;
use howdah_store::{Lock, Storage, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Written when something was written, so that other servers need to look at one file only.
const CHANGED: &str = "changed";

/// The certificates of an authority.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    storage: Storage,
    /// Names whose certificate the broker does not have yet, as it could not be reached.
    unshared: Arc<Mutex<BTreeSet<String>>>,
}

/// A certificate, and which one it is.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) certificate: Certificate,
    pub(super) version: Option<Version>,
}

/// Attempts that failed. They are kept, so that a server that is started again and again does not order each time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Attempts {
    pub(super) failures: u32,
    /// The last one, in seconds since the epoch.
    pub(super) last: u64,
    /// Not before then.
    pub(super) next: u64,
    pub(super) error: String,
}

impl Kept {
    pub(super) fn new(storage: Storage) -> Self {
        Self { storage, unshared: Arc::default() }
    }

    fn file(name: &str) -> String {
        format!("{name}/certificate.pem")
    }

    fn attempts_file(name: &str) -> String {
        format!("{name}/attempts.json")
    }

    /// The certificate of a name, if there is one that can be served: of what servers share and of an own copy the one that is
    /// valid for longer. A broker may have lost it, or have missed it while it was away; then it gets the copy.
    pub(super) fn load(&self, name: &str) -> Option<Found> {
        let file = Self::file(name);
        let place = self.storage.place(&file);
        let read = self.storage.read(&file);
        let shared = match &read {
            Ok(pem) => pem.as_ref().and_then(|pem| self.parse(name, &place, pem)),
            Err(_) => None,
        };
        let Some(copies) = self.storage.copies() else {
            if let Err(why) = read {
                tracing::error!("{place}: {why}: ignoring it");
            }
            return shared;
        };
        let copied = self.storage.copy(&file);
        let copy_place = copies.path(&file).display().to_string();
        let copy = copied.as_ref().and_then(|pem| self.parse(name, &copy_place, pem));
        let later = |found: &Found| found.certificate.not_after;
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

    fn parse(&self, name: &str, place: &str, pem: &[u8]) -> Option<Found> {
        let path = PathBuf::from(place);
        match Certificate::from_pem(pem, pem, &path, &path) {
            Ok(certificate) if certificate.names.iter().any(|own| **own == *name) => {
                Some(Found { certificate, version: self.storage.version_of(&Self::file(name), pem) })
            }
            Ok(_) => {
                tracing::error!("{place} is not for {name}: ignoring it");
                None
            }
            Err(why) => {
                tracing::error!("{place}: {why}: ignoring it");
                None
            }
        }
    }

    /// Keeps a certificate. A broker that is away gets it later.
    pub(super) fn save(&self, name: &str, pem: &str) -> Result<Found, String> {
        let file = Self::file(name);
        let place = PathBuf::from(self.storage.place(&file));
        let certificate = Certificate::from_pem(pem.as_bytes(), pem.as_bytes(), &place, &place);
        let certificate = certificate.map_err(|error| format!("the authority's certificate is of no use: {error}"))?;
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
        Ok(Found { certificate, version: self.storage.version_of(&file, pem.as_bytes()) })
    }

    /// Gives a certificate to the other servers, now or as soon as that can be.
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
        // Another text each time.
        let _ = self.storage.write(CHANGED, format!("{:x}", fastrand::u128(..)).as_bytes());
    }

    /// Which certificate a name has.
    pub(super) fn version(&self, name: &str) -> std::io::Result<Option<Version>> {
        self.storage.version(&Self::file(name))
    }

    /// Another one when a certificate was written, of whatever name.
    pub(super) fn changed(&self) -> std::io::Result<Option<Version>> {
        let changed = self.storage.version(CHANGED)?;
        // It can be reached again.
        for name in std::mem::take(&mut *self.unshared.lock()) {
            self.load(&name);
        }
        Ok(changed)
    }

    /// Results of earlier attempts.
    pub(super) fn attempts(&self, name: &str) -> Option<Attempts> {
        serde_json::from_slice(&self.storage.read(&Self::attempts_file(name)).ok()??).ok()
    }

    pub(super) fn note(&self, name: &str, attempts: &Attempts) {
        let Ok(text) = serde_json::to_vec(attempts) else { return };
        if let Err(error) = self.storage.write(&Self::attempts_file(name), &text) {
            tracing::warn!("cannot record a failed attempt for {name}: {error}");
        }
    }

    /// The lock for an order of this name.
    pub(super) fn try_lock(&self, name: &str) -> std::io::Result<Option<Lock>> {
        self.storage.try_lock(&format!("{name}/lock"))
    }
}

impl Attempts {
    /// When to try again after a start. Somebody who has put right what was wrong starts the server and wants to see it
    /// work; a server that dies again and again must not use up what the authority allows (Let's Encrypt: five failures in
    /// an hour).
    pub(super) fn after_start(&self) -> SystemTime {
        const AT_MOST: u64 = 15 * 60;
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.next.min(self.last.saturating_add(AT_MOST)))
    }
}
