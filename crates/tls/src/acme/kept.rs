//! What lies in the directory for each name: the certificate with its key, in one file so that nobody ever sees the one
//! without the other; what its last attempts came to; and a lock for whoever makes the next one.

use crate::certificate::Certificate;
use crate::state_dir::{Lock, StateDir};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// Touched when something was written, so that other servers need to look at one file only.
const CHANGED: &str = "changed";

/// The directory of an authority's certificates.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    dir: StateDir,
}

/// A certificate, and when its file was written.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) certificate: Certificate,
    pub(super) written: Option<SystemTime>,
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
    pub(super) fn new(dir: StateDir) -> Self {
        Self { dir }
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
        let written = self.dir.written(&file)?;
        let path = self.dir.path(&file);
        let loaded = self.dir.read(&file).map_err(|error| error.to_string()).and_then(|pem| {
            let pem = pem.unwrap_or_default();
            Certificate::from_pem(&pem, &pem, &path, &path).map_err(|error| error.to_string())
        });
        match loaded {
            Ok(certificate) if certificate.names.iter().any(|own| **own == *name) => {
                Some(Found { certificate, written: Some(written) })
            }
            Ok(_) => {
                tracing::error!("{} is not for {name}: it is not used", path.display());
                None
            }
            Err(why) => {
                tracing::error!("{}: {why}: it is not used", path.display());
                None
            }
        }
    }

    /// Keeps a certificate.
    pub(super) fn save(&self, name: &str, pem: &str) -> Result<Found, String> {
        let file = Self::file(name);
        let path = self.dir.path(&file);
        let certificate = Certificate::from_pem(pem.as_bytes(), pem.as_bytes(), &path, &path);
        let certificate = certificate.map_err(|error| format!("the authority's certificate is of no use: {error}"))?;
        if certificate.names.iter().all(|own| **own != *name) {
            return Err("the authority's certificate is for another name".to_owned());
        }
        let written = self.dir.write(&file, pem.as_bytes());
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        self.dir.remove(&Self::attempts_file(name));
        let _ = self.dir.write(CHANGED, b"");
        Ok(Found { certificate, written: self.dir.written(&file) })
    }

    /// When a name's certificate was written.
    pub(super) fn written(&self, name: &str) -> Option<SystemTime> {
        self.dir.written(&Self::file(name))
    }

    /// When the last certificate was written, of whatever name.
    pub(super) fn changed(&self) -> Option<SystemTime> {
        self.dir.written(CHANGED)
    }

    /// What earlier attempts came to.
    pub(super) fn attempts(&self, name: &str) -> Option<Attempts> {
        serde_json::from_slice(&self.dir.read(&Self::attempts_file(name)).ok()??).ok()
    }

    pub(super) fn note(&self, name: &str, attempts: &Attempts) {
        let Ok(text) = serde_json::to_vec(attempts) else { return };
        if let Err(error) = self.dir.write(&Self::attempts_file(name), &text) {
            tracing::warn!("cannot note a failed attempt for {name}: {error}");
        }
    }

    /// The lock of whoever orders for this name.
    pub(super) fn try_lock(&self, name: &str) -> std::io::Result<Option<Lock>> {
        self.dir.try_lock(&format!("{name}/lock"))
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
