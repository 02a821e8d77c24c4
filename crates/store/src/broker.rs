//! A broker: the Redis or NATS in which several servers share data. All connections to it belong to one thread.

use crate::address::{Address, Scheme};
use crate::nats::Nats;
use crate::nats_values::NatsValues;
use crate::redis::{Redis, Value};
use crate::redis_values::{RedisValues, eval};
use crate::values::Values;
use rustls::ClientConfig;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

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
    values: Box<dyn Values>,
    /// The last command about a rate failed.
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
        let runtime = handle.clone();
        let values: Box<dyn Values> = match &kind {
            Kind::Redis { values, .. } => Box::new(RedisValues { redis: values.clone(), runtime }),
            Kind::Nats(nats) => Box::new(NatsValues { nats: nats.clone(), runtime }),
        };
        Ok(Self(Arc::new(Shared {
            kind,
            values,
            rates_away: AtomicBool::new(false),
            runtime: handle,
            _running: running,
        })))
    }

    /// The broker's address for messages, without credentials.
    pub fn place(&self) -> String {
        match &self.0.kind {
            Kind::Redis { values, .. } => values.address().to_string(),
            Kind::Nats(nats) => nats.address().to_string(),
        }
    }

    /// Its values and locks.
    pub(crate) fn values(&self) -> &dyn Values {
        &*self.0.values
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.0.kind
    }

    #[cfg(test)]
    pub(crate) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// Runs a task on the broker's thread.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.0.runtime.spawn(task).abort_handle()
    }
}

/// Rate limits.
impl Broker {
    /// Takes a request out of the bucket with this key. The bucket refills by one request per `interval`, and `burst`
    /// more requests may come in advance. The error is the time to wait. `None`: the broker has no rates, is
    /// unreachable or too slow, so the caller must decide alone.
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
