//! Values and locks in Redis.

use crate::redis::{COMMAND_TIMEOUT, Redis, Value, cmd};
use crate::values::{ANNOUNCED_LIFE, LOCK_LIFE, Values, key, wait};
use ::redis::Cmd;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// The key with the names of announcements, surrounded by spaces.
const NAMES: &str = "names";

/// Lua script that updates a list of short-lived values: their names, surrounded by spaces.
const WRITE_ANNOUNCED: &str = "local names = redis.call('get', KEYS[2]) or ' ' \
    if not string.find(names, ' ' .. ARGV[3] .. ' ', 1, true) then names = names .. ARGV[3] .. ' ' end \
    redis.call('set', KEYS[2], names, 'PX', ARGV[2]) \
    return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])";
const REMOVE_ANNOUNCED: &str = "local names = redis.call('get', KEYS[2]) or ' ' \
    local from, to = string.find(names, ' ' .. ARGV[1] .. ' ', 1, true) \
    if from then redis.call('set', KEYS[2], string.sub(names, 1, from) .. string.sub(names, to + 1), 'PX', ARGV[2]) end \
    return redis.call('del', KEYS[1])";

/// Lua script that only acts for the holder of a lock. Redis executes `EVAL` atomically.
const EXTEND_OWN: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";
const REMOVE_OWN: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

pub(crate) struct RedisValues {
    pub(crate) redis: Arc<Redis>,
    pub(crate) runtime: Handle,
}

impl RedisValues {
    fn run(&self, command: Cmd) -> io::Result<Value> {
        let redis = self.redis.clone();
        wait(&self.runtime, async move { redis.run(&command, COMMAND_TIMEOUT).await })
    }
}

impl Values for RedisValues {
    fn get(&self, key: &str) -> io::Result<Option<Vec<u8>>> {
        match self.run(cmd("GET").arg(key).take())? {
            Value::BulkString(value) => Ok(Some(value)),
            Value::Nil => Ok(None),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn set(&self, key: &str, value: &[u8]) -> io::Result<()> {
        self.run(cmd("SET").arg(key).arg(value).take()).map(drop)
    }

    fn add(&self, key: &str, value: &[u8]) -> io::Result<()> {
        self.run(cmd("SET").arg(key).arg(value).arg("NX").take()).map(drop)
    }

    fn remove(&self, key: &str) -> io::Result<()> {
        self.run(cmd("DEL").arg(key).take()).map(drop)
    }

    fn announce(&self, prefix: &str, name: &str, value: &[u8]) -> io::Result<()> {
        let keys = [&*key(prefix, name), &key(prefix, NAMES)];
        self.run(eval(WRITE_ANNOUNCED, &keys).arg(value).arg(milliseconds(ANNOUNCED_LIFE)).arg(name).take()).map(drop)
    }

    fn announced(&self, prefix: &str) -> io::Result<HashSet<String>> {
        let names = self.get(&key(prefix, NAMES))?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&names).split_whitespace().map(str::to_owned).collect())
    }

    fn withdraw(&self, prefix: &str, name: &str) -> io::Result<()> {
        let keys = [&*key(prefix, name), &key(prefix, NAMES)];
        self.run(eval(REMOVE_ANNOUNCED, &keys).arg(name).arg(milliseconds(ANNOUNCED_LIFE)).take()).map(drop)
    }

    fn take_lock(&self, key: &str, own: &str) -> io::Result<bool> {
        let took = self.run(cmd("SET").arg(key).arg(own).arg("NX").arg("PX").arg(milliseconds(LOCK_LIFE)).take())?;
        // A command that was resent after its connection broke may find the lock taken by its first attempt.
        Ok(took != Value::Nil || self.get(key)?.as_deref() == Some(own.as_bytes()))
    }

    fn extend_lock(&self, key: &str, own: &str) -> io::Result<bool> {
        Ok(self.run(eval(EXTEND_OWN, &[key]).arg(own).arg(milliseconds(LOCK_LIFE)).take())? == Value::Int(1))
    }

    fn release_lock(&self, key: &str, own: &str) -> io::Result<()> {
        self.run(eval(REMOVE_OWN, &[key]).arg(own).take()).map(drop)
    }
}

/// A Lua script with its keys.
pub(crate) fn eval(script: &str, keys: &[&str]) -> Cmd {
    cmd("EVAL").arg(script).arg(keys.len()).arg(keys).take()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
