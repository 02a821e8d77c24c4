//! The action `limit`: the rate of a client's requests, and the number of its concurrent requests.
//!
//! The rate is enforced by the generic cell rate algorithm: a client may use up to `burst` requests in advance, which
//! are regained at the rate. The table of clients has a fixed size. It is a hash table with a secret seed; in a full
//! set, a new client replaces the idle one whose burst is closest to being restored.

use parking_lot::Mutex;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of shards of the table, each with a lock.
const SHARDS: usize = 8;
/// Number of sets in a shard.
const SETS: usize = 1024;
/// Number of clients in a set.
const WAYS: usize = 8;

/// Limits the rate and concurrency of each client: an IPv4 address or an IPv6 /64 network.
#[derive(Debug)]
pub struct Limit {
    /// The rule's name.
    rule: Box<str>,
    /// The time per request at the permitted rate; zero for no rate limit.
    interval: Duration,
    /// Number of requests allowed in advance.
    burst: u32,
    /// Maximum number of concurrent requests; 0 for no limit.
    at_once: u32,
    start: Instant,
    seed: RandomState,
    shards: [Mutex<Vec<Slot>>; SHARDS],
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The client's number; 0 for an empty slot.
    client: u128,
    /// When the full burst is restored, in nanoseconds since the limit's start.
    full_at: u64,
    /// Number of running requests.
    running: u32,
}

/// An admitted request. It counts as running until this is dropped.
#[derive(Debug)]
pub struct Admitted {
    limit: Option<(Arc<Limit>, u128)>,
}

#[derive(Debug, Clone, Copy)]
pub struct Rate<'a> {
    pub rule: &'a str,
    /// The time per request at the permitted rate.
    pub interval: Duration,
    /// Number of requests allowed in advance.
    pub burst: u32,
}

/// Time that the client has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(pub Duration);

impl Limit {
    /// Creates a limit: requests per period (0 for no rate limit), burst, and concurrent requests (0 for no limit).
    pub fn new(requests: u32, per: Duration, burst: u32, at_once: u32) -> Self {
        Self {
            rule: "".into(),
            interval: per.checked_div(requests).unwrap_or_default(),
            burst,
            at_once,
            start: Instant::now(),
            seed: RandomState::new(),
            shards: std::array::from_fn(|_| Mutex::new(Vec::new())),
        }
    }

    /// Sets the name of the limit's rule.
    pub fn of_rule(self, rule: &str) -> Self {
        Self { rule: rule.into(), ..self }
    }

    /// The rate, for servers that share it; `None` if there is no rate limit.
    pub fn rate(&self) -> Option<Rate<'_>> {
        let Self { rule, interval, burst, .. } = self;
        (!interval.is_zero()).then_some(Rate { rule, interval: *interval, burst: *burst })
    }

    /// Admits a client's request.
    ///
    /// # Errors
    /// The time until the client may try again.
    pub fn admit(self: &Arc<Self>, client: Option<IpAddr>, now: Instant) -> Result<Admitted, Wait> {
        self.take(client, now, self.interval)
    }

    /// Admits a request whose rate was checked elsewhere, subject to the limit of concurrent requests.
    ///
    /// # Errors
    /// The time until the client may try again.
    pub fn admit_at_once(self: &Arc<Self>, client: Option<IpAddr>, now: Instant) -> Result<Admitted, Wait> {
        match self.at_once {
            0 => Ok(Admitted { limit: None }),
            _ => self.take(client, now, Duration::ZERO),
        }
    }

    fn take(self: &Arc<Self>, client: Option<IpAddr>, now: Instant, interval: Duration) -> Result<Admitted, Wait> {
        // All clients of a Unix socket count as one.
        let client = client.map_or(1, client_number);
        let has_rate = !interval.is_zero();
        let now = nanoseconds(now.saturating_duration_since(self.start));
        let interval = nanoseconds(interval);
        let ahead = interval.saturating_mul(u64::from(self.burst));
        let mut shard = self.shard(client).lock();
        let Some(slot) = find(&mut shard, self.set(client), client, now) else {
            // Every client in this set has running requests.
            return Err(Wait(Duration::from_secs(1)));
        };
        if self.at_once > 0 && slot.running >= self.at_once {
            return Err(Wait(Duration::from_secs(1)));
        }
        let begins = slot.full_at.max(now);
        if has_rate && begins - now > ahead {
            return Err(Wait(Duration::from_nanos(begins - now - ahead)));
        }
        if has_rate {
            slot.full_at = begins.saturating_add(interval);
        }
        if self.at_once == 0 {
            return Ok(Admitted { limit: None });
        }
        slot.running += 1;
        Ok(Admitted { limit: Some((self.clone(), client)) })
    }

    fn shard(&self, client: u128) -> &Mutex<Vec<Slot>> {
        &self.shards[self.seed.hash_one(client) as usize % SHARDS]
    }

    fn set(&self, client: u128) -> usize {
        (self.seed.hash_one(client) >> 32) as usize % SETS
    }
}

/// Finds the client's slot, or assigns one; `None` if all slots of the set have running requests.
fn find(shard: &mut Vec<Slot>, set: usize, client: u128, now: u64) -> Option<&mut Slot> {
    if shard.is_empty() {
        shard.resize(SETS * WAYS, Slot::default());
    }
    let ways = &mut shard[set * WAYS..(set + 1) * WAYS];
    let at = ways.iter().position(|slot| slot.client == client).or_else(|| {
        let idle = ways.iter().enumerate().filter(|(_, slot)| slot.running == 0);
        let (at, _) = idle.min_by_key(|(_, slot)| (slot.client != 0, slot.full_at))?;
        ways[at] = Slot { client, full_at: now, running: 0 };
        Some(at)
    })?;
    ways.get_mut(at)
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let Some((limit, client)) = self.limit.take() else { return };
        let set = limit.set(client);
        let mut shard = limit.shard(client).lock();
        let ways = shard.get_mut(set * WAYS..(set + 1) * WAYS).unwrap_or_default();
        if let Some(slot) = ways.iter_mut().find(|slot| slot.client == client) {
            slot.running = slot.running.saturating_sub(1);
        }
    }
}

/// A client as a nonzero number: an IPv4 address, or an IPv6 /64 network, which usually belongs to one client.
pub fn client_number(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => 1 << 64 | u128::from(address.to_bits()),
        IpAddr::V6(address) => 2 << 64 | address.to_bits() >> 64,
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_burst_is_let_through_and_comes_back_at_the_rate() {
        let limit = Arc::new(Limit::new(10, Duration::from_secs(1), 2, 0));
        let (now, client) = (limit.start, address("192.0.2.1"));
        for _ in 0..3 {
            assert!(limit.admit(client, now).is_ok());
        }
        assert_eq!(limit.admit(client, now).unwrap_err(), Wait(Duration::from_millis(100)));
        assert!(limit.admit(address("192.0.2.2"), now).is_ok());
        let later = now + Duration::from_millis(100);
        assert!(limit.admit(client, later).is_ok() && limit.admit(client, later).is_err());
        let much_later = now + Duration::from_secs(3600);
        assert_eq!((0..10).filter(|_| limit.admit(client, much_later).is_ok()).count(), 3);
    }

    #[test]
    fn a_network_of_64_bits_is_one_client_and_a_mapped_address_the_plain_one() {
        let limit = Arc::new(Limit::new(1, Duration::from_secs(1), 0, 0));
        let now = limit.start;
        assert!(limit.admit(address("2001:db8::1"), now).is_ok());
        assert!(limit.admit(address("2001:db8::ffff:2"), now).is_err());
        assert!(limit.admit(address("2001:db8:0:1::1"), now).is_ok());
        assert!(limit.admit(address("192.0.2.1"), now).is_ok());
        assert!(limit.admit(address("::ffff:192.0.2.1"), now).is_err());
        assert!(limit.admit(None, now).is_ok() && limit.admit(None, now).is_err());
    }

    #[test]
    fn concurrent_requests_are_counted_until_they_end() {
        let limit = Arc::new(Limit::new(0, Duration::from_secs(1), 0, 2));
        let (now, client) = (limit.start, address("192.0.2.1"));
        let (one, _two) = (limit.admit(client, now).unwrap(), limit.admit(client, now).unwrap());
        assert!(limit.admit(client, now).is_err() && limit.admit(address("192.0.2.2"), now).is_ok());
        drop(one);
        assert!(limit.admit(client, now).is_ok());
    }

    #[test]
    fn a_million_clients_take_no_more_memory_than_the_table() {
        let limit = Arc::new(Limit::new(1, Duration::from_secs(1), 0, 1));
        let now = limit.start;
        let running: Vec<_> = (0..200_000u32).map(|at| limit.admit(Some(IpAddr::V4(at.into())), now)).collect();
        let let_through = running.iter().filter(|result| result.is_ok()).count();
        assert!(let_through <= SHARDS * SETS * WAYS && let_through > SHARDS * SETS * WAYS / 2, "{let_through}");
        drop(running);
        assert!(limit.shards.iter().all(|shard| shard.lock().iter().all(|slot| slot.running == 0)));
    }
}
