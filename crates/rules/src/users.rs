//! Users and the hashes of their passwords: in a rule, or in an htpasswd file, which is read again when it has changed.

use crate::password::Hash;
use parking_lot::Mutex;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How long a file is taken as it was read.
const FRESH: Duration = Duration::from_secs(1);
/// Bytes of a file.
const LONGEST_FILE: u64 = 8 << 20;

/// Users and the hashes of their passwords.
#[derive(Debug)]
pub struct Users {
    file: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    users: Arc<Vec<(String, Hash)>>,
    looked: Option<Instant>,
    seen: Option<Stamp>,
}

/// What tells that a file is another: when and how long it was, and which one.
type Stamp = (SystemTime, u64, u64);

impl Users {
    /// Users that a rule names, each with a hash.
    ///
    /// # Errors
    /// Hashes that are not understood.
    pub fn named(list: &[(String, String)]) -> Result<Self, String> {
        let mut users = Vec::new();
        for (name, hash) in list {
            let hash = Hash::new(hash).map_err(|error| format!("has a user {name:?} whose password {error}"))?;
            users.push((name.clone(), hash));
        }
        Ok(Self { file: None, state: Mutex::new(State { users: Arc::new(users), ..State::default() }) })
    }

    /// Users of an htpasswd file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn file(path: &Path) -> Result<Self, String> {
        let (users, stamp) = read(path)?;
        let state = State { users: Arc::new(users), looked: None, seen: Some(stamp) };
        Ok(Self { file: Some(path.to_path_buf()), state: Mutex::new(state) })
    }

    /// The hash of a user's password.
    pub(crate) fn hash(&self, user: &str, now: Instant) -> Option<Hash> {
        let users = self.now(now);
        users.iter().find(|(name, _)| name == user).map(|(_, hash)| hash.clone())
    }

    /// Some user's hash, the costliest to verify.
    pub(crate) fn any_hash(&self) -> Option<Hash> {
        let users = self.state.lock().users.clone();
        users.iter().map(|(_, hash)| hash).max_by_key(|hash| hash.cost()).cloned()
    }

    /// The users, read again if the file has changed. No one comes in while it cannot be read.
    fn now(&self, now: Instant) -> Arc<Vec<(String, Hash)>> {
        let mut state = self.state.lock();
        let Some(path) = &self.file else { return state.users.clone() };
        if state.looked.is_some_and(|looked| now.saturating_duration_since(looked) < FRESH) {
            return state.users.clone();
        }
        state.looked = Some(now);
        let stamp = std::fs::metadata(path).ok().and_then(|meta| stamp(&meta));
        if stamp.is_none() || stamp != state.seen {
            match read(path) {
                Ok((users, stamp)) => (state.users, state.seen) = (Arc::new(users), Some(stamp)),
                Err(error) => {
                    if state.seen.take().is_some() {
                        tracing::error!(target: "howdah::rules", "{error}: nobody is let in by it");
                    }
                    state.users = Arc::default();
                }
            }
        }
        state.users.clone()
    }
}

fn stamp(meta: &std::fs::Metadata) -> Option<Stamp> {
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}

fn read(path: &Path) -> Result<(Vec<(String, Hash)>, Stamp), String> {
    let fail = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    let meta = std::fs::metadata(path).map_err(|error| fail(&error))?;
    if !meta.is_file() || meta.len() > LONGEST_FILE {
        return Err(fail(&"it is no regular file of up to 8 MB"));
    }
    let stamp = stamp(&meta).ok_or_else(|| fail(&"its time of change is not known"))?;
    let text = std::fs::read(path).map_err(|error| fail(&error))?;
    Ok((parse(&String::from_utf8_lossy(&text), path), stamp))
}

/// The users of a file. A line that is not understood lets nobody in, and is named in the log.
fn parse(text: &str, path: &Path) -> Vec<(String, Hash)> {
    let mut users: Vec<(String, Hash)> = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')) {
        let Some((name, hash)) = line.split_once(':') else {
            tracing::warn!(target: "howdah::rules", "{}:{}: no USER:HASH", path.display(), at + 1);
            continue;
        };
        // Behind the hash other servers allow a comment.
        let hash = hash.split(':').next().unwrap_or_default().trim_end();
        match Hash::new(hash) {
            Ok(hash) => users.push((name.to_owned(), hash)),
            Err(error) => {
                tracing::warn!(target: "howdah::rules", "{}:{}: the password of {name:?} {error}", path.display(), at + 1);
            }
        }
    }
    users
}
