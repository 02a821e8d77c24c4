//! A broker: the Redis or NATS in which several servers share data. All connections to it belong to one thread.

use crate::address::{Address, Scheme};
use crate::nats::Nats;
use crate::redis::{COMMAND_TIMEOUT, Redis, Value, cmd};
use ::redis::Cmd;
use rustls::ClientConfig;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// Lua script that updates a list of short-lived values: their names, surrounded by spaces.
const WRITE_ANNOUNCED: &str = "local names = redis.call('get', KEYS[2]) or ' ' \
    if not string.find(names, ' ' .. ARGV[3] .. ' ', 1, true) then names = names .. ARGV[3] .. ' ' end \
    redis.call('set', KEYS[2], names, 'PX', ARGV[2]) \
    return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])";
const REMOVE_ANNOUNCED: &str = "local names = redis.call('get', KEYS[2]) or ' ' \
    local from, to = string.find(names, ' ' .. ARGV[1] .. ' ', 1, true) \
    if from then redis.call('set', KEYS[2], string.sub(names, 1, from) .. string.sub(names, to + 1), 'PX', ARGV[2]) end \
    return redis.call('del', KEYS[1])";

/// Lua script that takes a request out of a bucket. The bucket's value is the time at which it will be full again, in
/// microseconds. Returns the time to wait.
const ADMIT: &str = "local time = redis.call('time') \
    local now = time[1] * 1000000 + time[2] \
    local full = math.max(tonumber(redis.call('get', KEYS[1]) or 0), now) \
    local wait = full - now - ARGV[2] \
    if wait > 0 then return wait end \
    full = full + ARGV[1] \
    redis.call('set', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000)) \
    return 0";
/// Maximum time that a request waits for the broker's decision.
const ADMIT_TIMEOUT: Duration = Duration::from_millis(200);

/// Lua script that only acts for the holder of a lock. Redis executes `EVAL` atomically.
const EXTEND_OWN: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";
const REMOVE_OWN: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

/// A connection to a broker. Clones share it; its thread ends with the last one.
#[derive(Clone)]
pub struct Broker(Arc<Shared>);

/// Kind of the broker, with its client.
pub(crate) enum Kind {
    Redis {
        values: Arc<Redis>,
        /// A separate connection for rate limits: abandoning a command early does not break other commands.
        rates: Arc<Redis>,
    },
    Nats(Arc<Nats>),
}

struct Shared {
    kind: Kind,
    /// The last attempt to reach the rate limits' connection failed.
    rates_away: AtomicBool,
    runtime: Handle,
    /// Dropping it ends the thread.
    _running: oneshot::Sender<()>,
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broker({})", self.place())
    }
}

impl Broker {
    /// Creates a client for the broker at this address, which connects with the first operation. `tls` is required for
    /// encrypted addresses.
    ///
    /// # Errors
    /// The system cannot start the thread.
    pub fn new(address: Address, tls: Option<Arc<ClientConfig>>) -> io::Result<Self> {
        let tls = tls.filter(|_| address.is_encrypted());
        if tls.is_none() && address.is_encrypted() {
            return Err(io::Error::other(format!("{address}: no settings for TLS")));
        }
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel::<()>();
        let serve = move || {
            // An error means that the last clone was dropped.
            let _ = runtime.block_on(ended);
        };
        std::thread::Builder::new().name("broker".to_owned()).spawn(serve)?;
        let redis = || Arc::new(Redis::new(address.clone(), tls.clone()));
        let kind = match address.scheme {
            Scheme::Redis => Kind::Redis { values: redis(), rates: redis() },
            Scheme::Nats => Kind::Nats(Arc::new(Nats::new(address, tls))),
        };
        Ok(Self(Arc::new(Shared { kind, rates_away: AtomicBool::new(false), runtime: handle, _running: running })))
    }

    /// The broker's address for messages, without credentials.
    pub fn place(&self) -> String {
        match &self.0.kind {
            Kind::Redis { values, .. } => values.address().to_string(),
            Kind::Nats(nats) => nats.address().to_string(),
        }
    }

    /// `true` if the broker supports values, locks and rates; NATS only supports logs.
    pub fn has_values(&self) -> bool {
        matches!(self.0.kind, Kind::Redis { .. })
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Runs a task on the broker's thread.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.0.runtime.spawn(task).abort_handle()
    }

    /// Runs a command and blocks until it has ended, within a time limit.
    pub(crate) fn run(&self, command: Cmd) -> io::Result<Value> {
        let Kind::Redis { values, .. } = &self.0.kind else {
            return Err(io::Error::other(format!("{} stores no values", self.place())));
        };
        let redis = values.clone();
        self.wait(async move { redis.run(&command, COMMAND_TIMEOUT).await })?
    }

    /// Blocks until this future, which runs on the broker's thread, has ended.
    fn wait<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
        let (sender, receiver) = sync_channel(1);
        self.0.runtime.spawn(async move {
            let _ = sender.send(future.await);
        });
        receiver.recv().map_err(|_| io::Error::other("the server is stopping"))
    }
}

/// Rate limits.
impl Broker {
    /// Takes a request out of the bucket with this key. The bucket refills by one request per `interval`, and `burst`
    /// more requests may come in advance. The error is the time to wait. `None`: the broker is unreachable or too slow,
    /// so the caller must decide alone.
    pub async fn admit(&self, key: &str, interval: Duration, burst: u32) -> Option<Result<(), Duration>> {
        let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX >> 12);
        let ahead = microseconds(interval.saturating_mul(burst));
        let command = eval(ADMIT, &[&format!("howdah:rate:{key}")]).arg(microseconds(interval)).arg(ahead).take();
        let shared = &self.0;
        let Kind::Redis { rates, .. } = &shared.kind else { return None };
        let rates = rates.clone();
        let reply = shared.runtime.spawn(async move { rates.run(&command, ADMIT_TIMEOUT).await }).await.ok()?;
        let is_unreachable = reply.is_err();
        if shared.rates_away.swap(is_unreachable, Ordering::Relaxed) != is_unreachable {
            match &reply {
                Err(why) => tracing::warn!("{why}: each server limits rates alone until it is back"),
                Ok(_) => tracing::info!("{} is back: rate limits are shared again", self.place()),
            }
        }
        match reply.ok()? {
            Value::Int(0) => Some(Ok(())),
            Value::Int(wait) => Some(Err(Duration::from_micros(u64::try_from(wait).ok()?))),
            _ => None,
        }
    }
}

/// Values and locks. Everything blocks.
impl Broker {
    pub(crate) fn get(&self, key: &str) -> io::Result<Option<Vec<u8>>> {
        match self.run(cmd("GET").arg(key).take())? {
            Value::BulkString(value) => Ok(Some(value)),
            Value::Nil => Ok(None),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    pub(crate) fn set(&self, key: &str, value: &[u8]) -> io::Result<()> {
        self.run(cmd("SET").arg(key).arg(value).take()).map(drop)
    }

    /// Sets a value unless it exists.
    pub(crate) fn add(&self, key: &str, value: &[u8]) -> io::Result<()> {
        self.run(cmd("SET").arg(key).arg(value).arg("NX").take()).map(drop)
    }

    pub(crate) fn remove(&self, key: &str) -> io::Result<()> {
        self.run(cmd("DEL").arg(key).take()).map(drop)
    }

    /// Sets a value that expires, and adds its name to the list with the key `names`.
    pub(crate) fn announce(&self, keys: [&str; 2], name: &str, value: &[u8], life: Duration) -> io::Result<()> {
        let command = eval(WRITE_ANNOUNCED, &keys).arg(value).arg(milliseconds(life)).arg(name).take();
        self.run(command).map(drop)
    }

    /// Removes an announced value, and its name from the list.
    pub(crate) fn withdraw(&self, keys: [&str; 2], name: &str, life: Duration) -> io::Result<()> {
        self.run(eval(REMOVE_ANNOUNCED, &keys).arg(name).arg(milliseconds(life)).take()).map(drop)
    }

    /// Takes a lock for this time. `true`: `own` holds it now.
    pub(crate) fn take_lock(&self, key: &str, own: &str, life: Duration) -> io::Result<bool> {
        let took = self.run(cmd("SET").arg(key).arg(own).arg("NX").arg("PX").arg(milliseconds(life)).take())?;
        // A command that was resent after its connection broke may find the lock taken by its first attempt.
        Ok(took != Value::Nil || self.get(key)?.as_deref() == Some(own.as_bytes()))
    }

    /// Extends a lock. `false`: `own` does not hold it.
    pub(crate) fn extend_lock(&self, key: &str, own: &str, life: Duration) -> io::Result<bool> {
        Ok(self.run(eval(EXTEND_OWN, &[key]).arg(own).arg(milliseconds(life)).take())? == Value::Int(1))
    }

    /// Releases a lock that `own` holds.
    pub(crate) fn release_lock(&self, key: &str, own: &str) -> io::Result<bool> {
        Ok(self.run(eval(REMOVE_OWN, &[key]).arg(own).take())? == Value::Int(1))
    }
}

fn eval(script: &str, keys: &[&str]) -> Cmd {
    cmd("EVAL").arg(script).arg(keys.len()).arg(keys).take()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
