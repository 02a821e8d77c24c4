//! Storage of certificates, accounts and challenges: a directory, or a broker with copies in a directory. All
//! operations may block.

use crate::broker::Broker;
use crate::lock;
use crate::state_dir::{self, StateDir};
use crate::values::key;
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::time::SystemTime;

/// A storage, or a part of one.
#[derive(Debug, Clone)]
pub enum Storage {
    Directory(StateDir),
    /// Keys have a common prefix. `read_kept` and `keep_copy` store copies in a directory, for times when the broker is
    /// unreachable.
    Shared {
        broker: Broker,
        prefix: String,
        copies: StateDir,
    },
}

/// The version of a stored value: when it was written, or a hash of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Written(SystemTime),
    Content(u64),
}

/// A lock, released when this is dropped.
#[derive(Debug)]
pub enum Lock {
    Directory(state_dir::Lock),
    Shared(lock::SharedLock),
}

impl Storage {
    /// Creates a storage in the directory, or in the broker with copies in the directory.
    pub fn new(dir: StateDir, broker: Option<Broker>, prefix: &str) -> Self {
        match broker {
            None => Self::Directory(dir),
            Some(broker) => Self::Shared { broker, prefix: format!("howdah:{prefix}"), copies: dir },
        }
    }

    /// A part of the storage.
    ///
    /// # Errors
    /// The part's directory cannot be created.
    pub fn below(&self, part: &str) -> io::Result<Self> {
        Ok(match self {
            Self::Directory(dir) => Self::Directory(dir.below(part)?),
            Self::Shared { broker, prefix, copies } => {
                Self::Shared { broker: broker.clone(), prefix: format!("{prefix}:{part}"), copies: copies.below(part)? }
            }
        })
    }

    /// Location of a value, for messages.
    pub fn place(&self, name: &str) -> String {
        match self {
            Self::Directory(dir) => dir.path(name).display().to_string(),
            Self::Shared { broker, prefix, .. } => format!("{prefix}:{name} in {}", broker.place()),
        }
    }

    /// Reads a value; `None` if there is none.
    ///
    /// # Errors
    /// The file system's error, or the broker cannot be reached.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::Directory(dir) => dir.read(name),
            Self::Shared { broker, prefix, .. } => broker.values().get(&key(prefix, name)),
        }
    }

    /// The directory with copies of the broker's data.
    pub fn copies(&self) -> Option<&StateDir> {
        match self {
            Self::Directory(_) => None,
            Self::Shared { copies, .. } => Some(copies),
        }
    }

    /// Reads a value, or its copy if the broker cannot be reached. A broker that has lost the value gets the copy back.
    ///
    /// # Errors
    /// Those of [`Self::read`], if there is no copy.
    pub fn read_kept(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let read = self.read(name);
        let Self::Shared { broker, prefix, .. } = self else { return read };
        match read {
            Ok(Some(value)) => {
                self.keep_copy(name, &value);
                Ok(Some(value))
            }
            Ok(None) => match self.copy(name) {
                // Another server may have restored it already, with a newer value.
                Some(copy) => {
                    broker.values().add(&key(prefix, name), &copy)?;
                    self.read(name)
                }
                None => Ok(None),
            },
            Err(error) => self.copy(name).map(Some).ok_or(error),
        }
    }

    /// The local copy of a value in a broker.
    pub fn copy(&self, name: &str) -> Option<Vec<u8>> {
        self.copies()?.read(name).ok().flatten()
    }

    /// Stores the local copy of a value in a broker.
    pub fn keep_copy(&self, name: &str, value: &[u8]) {
        let Some(copies) = self.copies() else { return };
        if self.copy(name).is_none_or(|copy| copy != value)
            && let Err(error) = copies.write(name, value)
        {
            tracing::warn!("cannot save a copy of {}: {error}", self.place(name));
        }
    }

    /// The version of a value; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn version(&self, name: &str) -> io::Result<Option<Version>> {
        match self {
            Self::Directory(dir) => Ok(dir.written(name).map(Version::Written)),
            Self::Shared { .. } => Ok(self.read(name)?.map(|value| Version::of(&value))),
        }
    }

    /// The version of a value that was just read or written.
    pub fn version_of(&self, name: &str, content: &[u8]) -> Option<Version> {
        match self {
            Self::Directory(dir) => dir.written(name).map(Version::Written),
            Self::Shared { .. } => Some(Version::of(content)),
        }
    }

    /// Writes a value.
    ///
    /// # Errors
    /// The file system's error, or the broker cannot be reached.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        match self {
            Self::Directory(dir) => dir.write(name, content),
            Self::Shared { broker, prefix, .. } => broker.values().set(&key(prefix, name), content),
        }
    }

    /// Writes a value that will be removed again soon, and announces its name.
    ///
    /// # Errors
    /// Those of [`Self::write`].
    pub fn announce(&self, name: &str, content: &[u8]) -> io::Result<()> {
        match self {
            Self::Directory(dir) => dir.write(name, content),
            Self::Shared { broker, prefix, .. } => broker.values().announce(prefix, name, content),
        }
    }

    /// The names of announced values.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn announced(&self) -> io::Result<HashSet<String>> {
        match self {
            Self::Directory(dir) => {
                let entries = std::fs::read_dir(dir.path(""))?.flatten();
                Ok(entries.filter_map(|entry| entry.file_name().into_string().ok()).collect())
            }
            Self::Shared { broker, prefix, .. } => broker.values().announced(prefix),
        }
    }

    /// Removes an announced value.
    pub fn withdraw(&self, name: &str) {
        match self {
            Self::Directory(dir) => dir.remove(name),
            Self::Shared { broker, prefix, .. } => {
                if let Err(error) = broker.values().withdraw(prefix, name) {
                    tracing::debug!("cannot remove {}: {error}", self.place(name));
                }
            }
        }
    }

    pub fn remove(&self, name: &str) {
        match self {
            Self::Directory(dir) => dir.remove(name),
            Self::Shared { broker, prefix, copies } => {
                copies.remove(name);
                if let Err(error) = broker.values().remove(&key(prefix, name)) {
                    tracing::debug!("cannot remove {}: {error}", self.place(name));
                }
            }
        }
    }

    /// Takes a lock if it is free.
    ///
    /// # Errors
    /// Those of [`Self::write`].
    pub fn try_lock(&self, name: &str) -> io::Result<Option<Lock>> {
        match self {
            Self::Directory(dir) => Ok(dir.try_lock(name)?.map(Lock::Directory)),
            Self::Shared { broker, prefix, .. } => Ok(lock::try_lock(broker, key(prefix, name))?.map(Lock::Shared)),
        }
    }
}

impl Version {
    fn of(content: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        Self::Content(hasher.finish())
    }
}

#[cfg(test)]
#[path = "storage_tests.rs"]
mod tests;
