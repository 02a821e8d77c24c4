//! Users and their password hashes: in a rule, or in an htpasswd file, which is read again when it has changed. After
//! the settings are loaded, only threads that verify passwords read the file. I/O threads call `Users::fresh`, which
//! only checks its state with `stat`.

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
/// Maximum length of a file in bytes.
const MAX_FILE_LEN: u64 = 8 << 20;

/// Users and the hashes of their passwords.
#[derive(Debug)]
pub struct Users {
    file: Option<PathBuf>,
    state: Mutex<State>,
    /// Held while the file is read, so that one thread reads it for all waiting ones.
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
    /// The most expensive hash to verify.
    costliest: Option<Hash>,
}

impl Table {
    /// Adds a user. As in Apache, the first line of a user counts.
    fn add(&mut self, name: &str, hash: Hash) {
        if self.costliest.as_ref().is_none_or(|known| known.cost() < hash.cost()) {
            self.costliest = Some(hash.clone());
        }
        self.hashes.entry(name.into()).or_insert(hash);
    }

    pub(crate) fn hash(&self, user: &str) -> Option<&Hash> {
        self.hashes.get(user)
    }

    /// The hash to verify for unknown users, so that they take as long.
    pub(crate) const fn costliest(&self) -> Option<&Hash> {
        self.costliest.as_ref()
    }
}

/// Identifies the state of a file: modification time, length and inode.
type Stamp = (SystemTime, u64, u64);

impl Users {
    /// Creates users from a rule's names and hashes.
    ///
    /// # Errors
    /// Hashes that cannot be used.
    pub fn named(list: &[(String, String)]) -> Result<Self, String> {
        let mut table = Table::default();
        for (name, hash) in list {
            let hash = Hash::new(hash).map_err(|error| format!("has a user {name:?} whose password {error}"))?;
            table.add(name, hash);
        }
        Ok(Self::new(None, State { table: Arc::new(table), ..State::default() }))
    }

    /// Creates users from an htpasswd file.
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

    /// The cached users; `None` if the file has changed or is missing, and [`Users::read_again`] has to be called.
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

    /// The users, read again if the file has changed; none if it cannot be read. Blocks.
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
    // Opening a FIFO would wait for a writer.
    let is_file = std::fs::metadata(path).map_err(|error| fail(&error))?.is_file();
    let no_file = || fail(&"it is not a regular file of up to 8 MB");
    let file = if is_file { File::open(path).map_err(|error| fail(&error))? } else { return Err(no_file()) };
    let meta = file.metadata().map_err(|error| fail(&error))?;
    let stamp = stamp(&meta).ok_or_else(|| fail(&"its modification time is unknown"))?;
    let mut text = Vec::new();
    file.take(MAX_FILE_LEN + 1).read_to_end(&mut text).map_err(|error| fail(&error))?;
    if text.len() as u64 > MAX_FILE_LEN {
        return Err(no_file());
    }
    Ok((parse(&String::from_utf8_lossy(&text), path), stamp))
}

/// Parses the users of a file. An invalid line admits no user, and is logged.
fn parse(text: &str, path: &Path) -> Table {
    let mut users = Table::default();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')) {
        let Some((name, hash)) = line.split_once(':') else {
            tracing::warn!(target: "howdah::rules", "{}:{}: expected USER:HASH", path.display(), at + 1);
            continue;
        };
        // Other servers allow a comment after the hash.
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
