//! Users and the hashes of their passwords: in a rule, or in an htpasswd file, which is read again when it has changed.
//! The threads that verify passwords read it: I/O threads call `Users::fresh`, which never does.

use crate::password::Hash;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Time for which a file is reused without a check.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of a file.
const MAX_FILE_LEN: u64 = 8 << 20;

/// Users and the hashes of their passwords.
#[derive(Debug)]
pub struct Users {
    file: Option<PathBuf>,
    state: Mutex<State>,
    /// Held while the file is read, so that one thread reads for all that wait for it.
    reading: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    table: Arc<Table>,
    looked: Option<Instant>,
    seen: Option<Stamp>,
}

/// The users of a file or a rule.
#[derive(Debug, Default)]
pub(crate) struct Table {
    hashes: HashMap<Box<str>, Hash>,
    /// The hash that is the costliest to verify.
    costliest: Option<Hash>,
}

impl Table {
    /// Adds a user. As under Apache the first line of a user counts.
    fn add(&mut self, name: &str, hash: Hash) {
        if self.costliest.as_ref().is_none_or(|known| known.cost() < hash.cost()) {
            self.costliest = Some(hash.clone());
        }
        self.hashes.entry(name.into()).or_insert(hash);
    }

    pub(crate) fn hash(&self, user: &str) -> Option<&Hash> {
        self.hashes.get(user)
    }

    /// The hash to verify the password of an unknown user with, so that it takes as long.
    pub(crate) const fn costliest(&self) -> Option<&Hash> {
        self.costliest.as_ref()
    }
}

/// Identifies a state of a file: its time, length and inode.
type Stamp = (SystemTime, u64, u64);

impl Users {
    /// Users that a rule names, each with a hash.
    ///
    /// # Errors
    /// Hashes that are not understood.
    pub fn named(list: &[(String, String)]) -> Result<Self, String> {
        let mut table = Table::default();
        for (name, hash) in list {
            let hash = Hash::new(hash).map_err(|error| format!("has a user {name:?} whose password {error}"))?;
            table.add(name, hash);
        }
        Ok(Self::new(None, State { table: Arc::new(table), ..State::default() }))
    }

    /// Users of an htpasswd file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn file(path: &Path) -> Result<Self, String> {
        let (table, stamp) = read(path)?;
        let state = State { table: Arc::new(table), looked: None, seen: Some(stamp) };
        Ok(Self::new(Some(path.to_path_buf()), state))
    }

    const fn new(file: Option<PathBuf>, state: State) -> Self {
        Self { file, state: Mutex::new(state), reading: Mutex::new(()) }
    }

    /// The users, unless the file has changed: then [`Users::read_again`] has to be called.
    pub(crate) fn fresh(&self, now: Instant) -> Option<Arc<Table>> {
        let mut state = self.state.lock();
        if let Some(path) = &self.file
            && state.looked.is_none_or(|looked| now.saturating_duration_since(looked) >= RECHECK_INTERVAL)
        {
            let stamp = std::fs::metadata(path).ok().and_then(|meta| stamp(&meta));
            if stamp.is_none() || stamp != state.seen {
                return None;
            }
            state.looked = Some(now);
        }
        Some(state.table.clone())
    }

    /// The users, read again if the file has changed. No one comes in while it cannot be read. Takes its time.
    pub(crate) fn read_again(&self, now: Instant) -> Arc<Table> {
        let _reading = self.reading.lock();
        if let Some(table) = self.fresh(now) {
            return table;
        }
        let read = self.file.as_deref().map_or_else(|| Err("no file".to_owned()), read);
        let mut state = self.state.lock();
        state.looked = Some(now);
        match read {
            Ok((table, stamp)) => (state.table, state.seen) = (Arc::new(table), Some(stamp)),
            Err(error) => {
                if state.seen.take().is_some() {
                    tracing::error!(target: "howdah::rules", "{error}: access is denied");
                }
                state.table = Arc::default();
            }
        }
        state.table.clone()
    }
}

fn stamp(meta: &std::fs::Metadata) -> Option<Stamp> {
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}

fn read(path: &Path) -> Result<(Table, Stamp), String> {
    let fail = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    // A pipe is not opened: that would wait for a writer.
    let is_file = std::fs::metadata(path).map_err(|error| fail(&error))?.is_file();
    let no_file = || fail(&"it is no regular file of up to 8 MB");
    let file = if is_file { File::open(path).map_err(|error| fail(&error))? } else { return Err(no_file()) };
    let meta = file.metadata().map_err(|error| fail(&error))?;
    let stamp = stamp(&meta).ok_or_else(|| fail(&"its time of change is not known"))?;
    let mut text = Vec::new();
    file.take(MAX_FILE_LEN + 1).read_to_end(&mut text).map_err(|error| fail(&error))?;
    if text.len() as u64 > MAX_FILE_LEN {
        return Err(no_file());
    }
    Ok((parse(&String::from_utf8_lossy(&text), path), stamp))
}

/// The users of a file. An invalid line admits no one, and is named in the log.
fn parse(text: &str, path: &Path) -> Table {
    let mut users = Table::default();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')) {
        let Some((name, hash)) = line.split_once(':') else {
            tracing::warn!(target: "howdah::rules", "{}:{}: expected USER:HASH", path.display(), at + 1);
            continue;
        };
        // Behind the hash other servers allow a comment.
        let hash = hash.split(':').next().unwrap_or_default().trim_end();
        match Hash::new(hash) {
            Ok(hash) => users.add(name, hash),
            Err(error) => {
                tracing::warn!(target: "howdah::rules", "{}:{}: the password of {name:?} {error}", path.display(), at + 1);
            }
        }
    }
    users
}
