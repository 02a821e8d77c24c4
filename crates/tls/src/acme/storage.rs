//! Where servers share certificates, accounts and challenges: a directory, or a Redis. Everything may block.

use crate::acme::redis::{Redis, RedisAddress, Value};
use crate::state_dir::{self, StateDir};
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime};

/// Lifetime of a lock in Redis, so that a server which dies does not keep others from renewing; the holder extends it
/// several times within.
const LOCK_LIFE: Duration = Duration::from_secs(30);
const EXTEND: Duration = Duration::from_secs(8);
/// Lifetime of temporary data (challenges) in Redis, in case a server never removes it.
const PASSING: Duration = Duration::from_secs(3600);

/// Both only for the one who took the lock. `EVAL` is one step for Redis.
const EXTEND_OWN: &[u8] =
    b"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";
const REMOVE_OWN: &[u8] =
    b"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

/// The key under which a Redis has the names of what lies there for a while, with blanks around them.
const PASSING_NAMES: &str = "names";
/// Writes and removes what such a name stands for, in one step with the list.
const WRITE_PASSING: &[u8] = b"local names = redis.call('get', KEYS[2]) or ' ' \
    if not string.find(names, ' ' .. ARGV[3] .. ' ', 1, true) then names = names .. ARGV[3] .. ' ' end \
    redis.call('set', KEYS[2], names, 'PX', ARGV[2]) \
    return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])";
const REMOVE_PASSING: &[u8] = b"local names = redis.call('get', KEYS[2]) or ' ' \
    local from, to = string.find(names, ' ' .. ARGV[1] .. ' ', 1, true) \
    if from then redis.call('set', KEYS[2], string.sub(names, 1, from) .. string.sub(names, to + 1), 'PX', ARGV[2]) end \
    return redis.call('del', KEYS[1])";

/// The storage of certificates.
#[derive(Debug, Clone)]
pub(super) enum Storage {
    Directory(StateDir),
    /// Keys have a common prefix. Data that was read is also kept in a directory, for when Redis cannot be reached.
    Redis {
        redis: Arc<Redis>,
        prefix: String,
        copies: StateDir,
    },
}

/// Which content something has: another one is something new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Written(SystemTime),
    Content(u64),
}

/// A lock, until this goes.
#[derive(Debug)]
pub(super) enum Lock {
    Directory(#[expect(dead_code, reason = "holds the lock until it goes")] state_dir::Lock),
    /// Its end ends the thread that keeps the lock.
    Redis(#[expect(dead_code, reason = "holds the lock until it goes")] Sender<()>),
}

impl Storage {
    /// The directory, or the Redis with the directory for copies.
    pub(super) fn new(dir: StateDir, redis: Option<RedisAddress>, prefix: &str) -> Self {
        match redis {
            None => Self::Directory(dir),
            Some(address) => {
                Self::Redis { redis: Arc::new(Redis::new(address)), prefix: format!("howdah:{prefix}"), copies: dir }
            }
        }
    }

    /// A part of it.
    pub(super) fn below(&self, part: &str) -> io::Result<Self> {
        Ok(match self {
            Self::Directory(dir) => Self::Directory(dir.below(part)?),
            Self::Redis { redis, prefix, copies } => {
                Self::Redis { redis: redis.clone(), prefix: format!("{prefix}:{part}"), copies: copies.below(part)? }
            }
        })
    }

    /// Where something is, for people.
    pub(super) fn place(&self, name: &str) -> String {
        match self {
            Self::Directory(dir) => dir.path(name).display().to_string(),
            Self::Redis { redis, prefix, .. } => format!("{prefix}:{name} in {}", redis.place()),
        }
    }

    /// The stored data; `None` if there is none.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::Directory(dir) => dir.read(name),
            Self::Redis { redis, prefix, .. } => match redis.run(&[b"GET", key(prefix, name).as_bytes()])? {
                Value::Bytes(value) => Ok(Some(value)),
                Value::Nothing => Ok(None),
                Value::Number(_) => Err(io::ErrorKind::InvalidData.into()),
            },
        }
    }

    /// Where copies of what is in a Redis lie.
    pub(super) fn copies(&self) -> Option<&StateDir> {
        match self {
            Self::Directory(_) => None,
            Self::Redis { copies, .. } => Some(copies),
        }
    }

    /// The stored data, or the copy if Redis cannot be reached. A Redis that has lost it gets the copy back.
    pub(super) fn read_kept(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let read = self.read(name);
        let Self::Redis { redis, prefix, .. } = self else { return read };
        match read {
            Ok(Some(value)) => {
                self.keep_copy(name, &value);
                Ok(Some(value))
            }
            Ok(None) => match self.copy(name) {
                // Another server may have done that meanwhile, with something newer.
                Some(copy) => {
                    redis.run(&[b"SET", key(prefix, name).as_bytes(), &copy, b"NX"])?;
                    self.read(name)
                }
                None => Ok(None),
            },
            Err(error) => self.copy(name).map(Some).ok_or(error),
        }
    }

    /// The copy in the directory of a Redis storage.
    pub(super) fn copy(&self, name: &str) -> Option<Vec<u8>> {
        self.copies()?.read(name).ok().flatten()
    }

    /// Keeps it there.
    pub(super) fn keep_copy(&self, name: &str, value: &[u8]) {
        let Some(copies) = self.copies() else { return };
        if self.copy(name).is_none_or(|copy| copy != value)
            && let Err(error) = copies.write(name, value)
        {
            tracing::warn!("cannot keep a copy of {}: {error}", self.place(name));
        }
    }

    /// Which content is there; `None` if nothing is.
    pub(super) fn version(&self, name: &str) -> io::Result<Option<Version>> {
        match self {
            Self::Directory(dir) => Ok(dir.written(name).map(Version::Written)),
            Self::Redis { .. } => Ok(self.read(name)?.map(|value| Version::of(&value))),
        }
    }

    /// Which content something that was just read or written has.
    pub(super) fn version_of(&self, name: &str, content: &[u8]) -> Option<Version> {
        match self {
            Self::Directory(dir) => dir.written(name).map(Version::Written),
            Self::Redis { .. } => Some(Version::of(content)),
        }
    }

    pub(super) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        match self {
            Self::Directory(dir) => dir.write(name, content),
            Self::Redis { redis, prefix, .. } => redis.run(&[b"SET", key(prefix, name).as_bytes(), content]).map(drop),
        }
    }

    /// Writes what is taken away again soon.
    pub(super) fn write_passing(&self, name: &str, content: &[u8]) -> io::Result<()> {
        match self {
            Self::Directory(dir) => dir.write(name, content),
            Self::Redis { redis, prefix, .. } => {
                let (life, key, names) = (life_of_passing(), key(prefix, name), key(prefix, PASSING_NAMES));
                let (keys, life) = ([key.as_bytes(), names.as_bytes()], life.as_bytes());
                redis.run(&[b"EVAL", WRITE_PASSING, b"2", keys[0], keys[1], content, life, name.as_bytes()]).map(drop)
            }
        }
    }

    /// The names of what is there for a while.
    pub(super) fn passing_names(&self) -> io::Result<HashSet<String>> {
        match self {
            Self::Directory(dir) => {
                let entries = std::fs::read_dir(dir.path(""))?.flatten();
                Ok(entries.filter_map(|entry| entry.file_name().into_string().ok()).collect())
            }
            Self::Redis { .. } => {
                let names = self.read(PASSING_NAMES)?.unwrap_or_default();
                Ok(String::from_utf8_lossy(&names).split_whitespace().map(str::to_owned).collect())
            }
        }
    }

    /// Removes what is there for a while.
    pub(super) fn remove_passing(&self, name: &str) {
        match self {
            Self::Directory(dir) => dir.remove(name),
            Self::Redis { redis, prefix, .. } => {
                let (life, key, names) = (life_of_passing(), key(prefix, name), key(prefix, PASSING_NAMES));
                let (keys, life) = ([key.as_bytes(), names.as_bytes()], life.as_bytes());
                let removed = redis.run(&[b"EVAL", REMOVE_PASSING, b"2", keys[0], keys[1], name.as_bytes(), life]);
                if let Err(error) = removed {
                    tracing::debug!("cannot remove {}: {error}", self.place(name));
                }
            }
        }
    }

    pub(super) fn remove(&self, name: &str) {
        match self {
            Self::Directory(dir) => dir.remove(name),
            Self::Redis { redis, prefix, copies } => {
                copies.remove(name);
                if let Err(error) = redis.run(&[b"DEL", key(prefix, name).as_bytes()]) {
                    tracing::debug!("cannot remove {}: {error}", self.place(name));
                }
            }
        }
    }

    /// Takes a lock if it is free.
    pub(super) fn try_lock(&self, name: &str) -> io::Result<Option<Lock>> {
        match self {
            Self::Directory(dir) => Ok(dir.try_lock(name)?.map(Lock::Directory)),
            Self::Redis { redis, prefix, .. } => try_lock(redis, key(prefix, name)),
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

fn life_of_passing() -> String {
    PASSING.as_millis().to_string()
}

fn key(prefix: &str, name: &str) -> String {
    format!("{prefix}:{name}")
}

fn try_lock(redis: &Arc<Redis>, key: String) -> io::Result<Option<Lock>> {
    let own = format!("{}-{:x}{:x}", std::process::id(), fastrand::u64(..), fastrand::u64(..));
    if !take_lock(redis, &key, &own)? {
        return Ok(None);
    }
    let (held, end) = channel::<()>();
    let redis = redis.clone();
    let keep = move || {
        while end.recv_timeout(EXTEND) == Err(RecvTimeoutError::Timeout) {
            if !extend_lock(&redis, &key, &own) {
                tracing::warn!(
                    "the lock {key} in {} was taken by another server, which may repeat the work",
                    redis.place()
                );
                return;
            }
        }
        // Otherwise it expires.
        let _ = redis.run(&[b"EVAL", REMOVE_OWN, b"1", key.as_bytes(), own.as_bytes()]);
    };
    std::thread::Builder::new().name("acme-lock".to_owned()).spawn(keep)?;
    Ok(Some(Lock::Redis(held)))
}

/// `true` if it is ours now.
fn take_lock(redis: &Redis, key: &str, own: &str) -> io::Result<bool> {
    let life = LOCK_LIFE.as_millis().to_string();
    let took = redis.run(&[b"SET", key.as_bytes(), own.as_bytes(), b"NX", b"PX", life.as_bytes()])?;
    // A command that was sent again after its connection broke may find the lock of the first time.
    Ok(took != Value::Nothing || redis.run(&[b"GET", key.as_bytes()])? == Value::Bytes(own.into()))
}

/// `false` if another server has it. An unreachable Redis gives it to no one, and one that was away for longer than the
/// lock's life gives it to the first that asks.
fn extend_lock(redis: &Redis, key: &str, own: &str) -> bool {
    let life = LOCK_LIFE.as_millis().to_string();
    match redis.run(&[b"EVAL", EXTEND_OWN, b"1", key.as_bytes(), own.as_bytes(), life.as_bytes()]) {
        Ok(Value::Number(1)) => true,
        Ok(_) => take_lock(redis, key, own).unwrap_or(true),
        Err(error) => {
            tracing::debug!("cannot extend the lock {key}: {error}");
            true
        }
    }
}

#[cfg(test)]
#[path = "storage_tests.rs"]
mod tests;
