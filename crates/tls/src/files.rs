//! Certificates from the settings' files, reloaded while the server runs. The files are polled every few seconds: there
//! is no watch that could overflow, and polling works on every file system.
//!
//! Tools write the two files of a pair one after the other, or move a link. Until the new files match, the old pair is
//! served.

use crate::access::FileUser;
use crate::certificate::{Certificate, CertificateError};
use crate::store::Store;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Interval at which files are polled: two stat(2) calls per pair.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The file of a chain and the file of its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pair {
    /// The server's own certificate first, then its issuers.
    pub certificate: PathBuf,
    /// May be the same file.
    pub key: PathBuf,
    /// The number of the site that the pair is reserved for.
    pub site: Option<usize>,
}

/// The pairs of the settings, with their loaded certificates.
#[derive(Debug, Clone)]
pub struct Files {
    loaded: Vec<Loaded>,
}

#[derive(Debug, Clone)]
struct Loaded {
    pair: Pair,
    certificate: Certificate,
    seen: FileStamp,
    /// The error that prevented a reload; the earlier certificate is still served.
    unreadable: Option<Arc<str>>,
}

/// Detects that a file was replaced: device, inode, size, and the times of the last change of content and inode.
type FileStamp = [Option<(u64, u64, u64, i128, i128)>; 2];

impl Files {
    /// Loads all pairs, and reports all errors together.
    ///
    /// # Errors
    /// One error for each pair that cannot be served.
    pub fn load(pairs: impl IntoIterator<Item = Pair>) -> Result<Self, Vec<CertificateError>> {
        Self::load_over(pairs, None)
    }

    /// Loads all pairs. A pair that was loaded `before` and that the user may no longer read is kept.
    ///
    /// # Errors
    /// As for `load`.
    pub fn load_over(
        pairs: impl IntoIterator<Item = Pair>,
        before: Option<&Self>,
    ) -> Result<Self, Vec<CertificateError>> {
        let (mut loaded, mut errors) = (Vec::new(), Vec::new());
        for pair in pairs {
            // Taken before the files are read, so that a change meanwhile is noticed.
            let seen = seen(&pair);
            match Certificate::from_files(&pair.certificate, &pair.key) {
                Ok(certificate) => loaded.push(Loaded { pair, certificate, seen, unreadable: None }),
                Err(error) => match before.and_then(|before| before.stands_in(&pair)) {
                    Some(kept) => {
                        let unreadable = Some(error.to_string().into());
                        loaded.push(Loaded { pair, unreadable, ..kept.clone() });
                    }
                    None => errors.push(error),
                },
            }
        }
        if errors.is_empty() { Ok(Self { loaded }) } else { Err(errors) }
    }

    /// The earlier certificate from the same files, if the user may not read one of them now.
    fn stands_in(&self, pair: &Pair) -> Option<&Loaded> {
        let is_closed = |path: &Path| {
            std::fs::File::open(path).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
        };
        let same = |loaded: &&Loaded| loaded.pair.certificate == pair.certificate && loaded.pair.key == pair.key;
        (is_closed(&pair.certificate) || is_closed(&pair.key)).then(|| self.loaded.iter().find(same))?
    }

    /// Merges several lists.
    pub fn joined(all: Vec<Self>) -> Self {
        Self { loaded: all.into_iter().flat_map(|files| files.loaded).collect() }
    }

    /// The certificates in the settings' order.
    pub fn certificates(&self) -> impl Iterator<Item = (&Pair, &Certificate)> {
        self.loaded.iter().map(|loaded| (&loaded.pair, &loaded.certificate))
    }

    /// Warnings about pairs that are still served.
    pub fn warnings(&self) -> Vec<String> {
        let unreadable = self.loaded.iter().filter_map(|loaded| {
            let (why, path) = (loaded.unreadable.as_ref()?, loaded.pair.certificate.display());
            Some(format!(
                "the certificate {path} was not loaded again: {why}; still serving the earlier one: let the server's user \
                 read the files, or restart the server after each renewal"
            ))
        });
        let others = self.loaded.iter().flat_map(|loaded| warnings(&loaded.pair, &loaded.certificate));
        unreadable.chain(others).collect()
    }

    /// Passes the certificates to the store.
    pub fn put_into(&self, store: &Store) {
        store.replace_all_files(self.loaded.iter().map(|loaded| (loaded.pair.site, &loaded.certificate)));
    }

    /// Polls the files once, and reloads those that were replaced.
    pub fn poll(&mut self, store: &Store) {
        let mut changed = false;
        for loaded in &mut self.loaded {
            let now = seen(&loaded.pair);
            if now != loaded.seen {
                // Set on failure as well, so that the same files are not tried again.
                loaded.seen = now;
                changed |= loaded.reload();
            }
        }
        if changed {
            self.put_into(store);
        }
    }

    /// Ignores files that root loaded but the server's user cannot see: that is not a change.
    fn forget_hidden(&mut self) {
        for loaded in &mut self.loaded {
            let now = seen(&loaded.pair);
            for (seen, now) in loaded.seen.iter_mut().zip(now).filter(|(_, now)| now.is_none()) {
                *seen = now;
            }
        }
    }

    /// Polls the files forever; on a separate thread, because a file system may hang.
    pub async fn watch(mut self, store: Arc<Store>) {
        if self.loaded.is_empty() {
            return;
        }
        self.forget_hidden();
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let store = store.clone();
            let polling = tokio::task::spawn_blocking(move || {
                self.poll(&store);
                self
            });
            match polling.await {
                Ok(files) => self = files,
                Err(error) => {
                    tracing::error!(target: "howdah::tls", %error, "certificate watcher stopped: changed files are ignored");
                    return;
                }
            }
        }
    }
}

impl Loaded {
    /// Reloads the pair; returns `true` if there is a new certificate.
    fn reload(&mut self) -> bool {
        let certificate = self.pair.certificate.display();
        match Certificate::from_files(&self.pair.certificate, &self.pair.key) {
            Ok(new) => {
                tracing::info!(target: "howdah::tls", %certificate, names = new.names.join(" "), "certificate replaced");
                for warning in warnings(&self.pair, &new) {
                    tracing::warn!(target: "howdah::tls", "{warning}");
                }
                (self.certificate, self.unreadable) = (new, None);
                true
            }
            Err(error) => {
                tracing::error!(
                    target: "howdah::tls", %certificate, %error,
                    "changed certificate is unusable, keeping the old one"
                );
                false
            }
        }
    }
}

fn warnings(pair: &Pair, certificate: &Certificate) -> Vec<String> {
    let concerns = certificate.concerns(SystemTime::now()).into_iter();
    let mut warnings: Vec<String> =
        concerns.map(|concern| format!("the certificate {} {concern}", pair.certificate.display())).collect();
    if FileUser::OTHERS.may(&pair.key, 0o7) {
        let key = pair.key.display();
        warnings.push(format!("every user of this machine can read the key {key} (`chmod o= {key}`)"));
    }
    warnings
}

fn seen(pair: &Pair) -> FileStamp {
    let one = |path: &Path| {
        let meta = std::fs::metadata(path).ok()?;
        let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let (modified, changed) = (nanos(meta.mtime(), meta.mtime_nsec()), nanos(meta.ctime(), meta.ctime_nsec()));
        Some((meta.dev(), meta.ino(), meta.len(), modified, changed))
    };
    [one(&pair.certificate), one(&pair.key)]
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
