//! What lies in the storage for each name: the certificate with its key, in one file so that nobody ever sees the one
//! without the other; what its last attempts came to; and a lock for whoever makes the next one.

use crate::acme::storage::{Lock, Storage, Version};
use crate::certificate::Certificate;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Written when something was written, so that other servers need to look at one file only.
const CHANGED: &str = "changed";

/// The certificates of an authority.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    storage: Storage,
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
        Self { storage }
    }

    fn file(name: &str) -> String {
        format!("{name}/certificate.pem")
    }

    fn attempts_file(name: &str) -> String {
        format!("{name}/attempts.json")
    }

    /// The certificate of a name, if there is one that can be served.
    pub(super) fn load(&self, name: &str) -> Option<Found> {
        let file = Self::file(name);
        let place = PathBuf::from(self.storage.place(&file));
        let read = self.storage.read_kept(&file).map_err(|error| error.to_string());
        let loaded = read.and_then(|pem| {
            let Some(pem) = pem else { return Ok(None) };
            let certificate = Certificate::from_pem(&pem, &pem, &place, &place).map_err(|error| error.to_string())?;
            Ok(Some(Found { certificate, version: self.storage.version_of(&file, &pem) }))
        });
        match loaded {
            Ok(Some(found)) if found.certificate.names.iter().any(|own| **own == *name) => Some(found),
            Ok(Some(_)) => {
                tracing::error!("{} is not for {name}: it is not used", place.display());
                None
            }
            Ok(None) => None,
            Err(why) => {
                tracing::error!("{}: {why}: it is not used", place.display());
                None
            }
        }
    }

    /// Keeps a certificate.
    pub(super) fn save(&self, name: &str, pem: &str) -> Result<Found, String> {
        let file = Self::file(name);
        let place = PathBuf::from(self.storage.place(&file));
        let certificate = Certificate::from_pem(pem.as_bytes(), pem.as_bytes(), &place, &place);
        let certificate = certificate.map_err(|error| format!("the authority's certificate is of no use: {error}"))?;
        if certificate.names.iter().all(|own| **own != *name) {
            return Err("the authority's certificate is for another name".to_owned());
        }
        let written = self.storage.write(&file, pem.as_bytes());
        written.map_err(|error| format!("cannot write {}: {error}", place.display()))?;
        self.storage.remove(&Self::attempts_file(name));
        // Another text each time.
        let _ = self.storage.write(CHANGED, format!("{:x}", fastrand::u128(..)).as_bytes());
        Ok(Found { certificate, version: self.storage.version_of(&file, pem.as_bytes()) })
    }

    /// Which certificate a name has.
    pub(super) fn version(&self, name: &str) -> std::io::Result<Option<Version>> {
        self.storage.version(&Self::file(name))
    }

    /// Another one when a certificate was written, of whatever name.
    pub(super) fn changed(&self) -> std::io::Result<Option<Version>> {
        self.storage.version(CHANGED)
    }

    /// What earlier attempts came to.
    pub(super) fn attempts(&self, name: &str) -> Option<Attempts> {
        serde_json::from_slice(&self.storage.read(&Self::attempts_file(name)).ok()??).ok()
    }

    pub(super) fn note(&self, name: &str, attempts: &Attempts) {
        let Ok(text) = serde_json::to_vec(attempts) else { return };
        if let Err(error) = self.storage.write(&Self::attempts_file(name), &text) {
            tracing::warn!("cannot note a failed attempt for {name}: {error}");
        }
    }

    /// The lock of whoever orders for this name.
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
