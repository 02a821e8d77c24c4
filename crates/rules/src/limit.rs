//! The action `limit`: how many requests a client may make in a time, and how many at once.
//!
//! The rate is the generic cell rate algorithm: a client may use up to `burst` requests in advance, which come back at
//! the rate. What is kept of clients has a fixed size: in each set of a hash table with a secret seed, a new client takes
//! the place of the one that is nearest to having its burst back and has no request running.

use parking_lot::Mutex;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Parts of the table with a lock each.
const SHARDS: usize = 8;
/// Sets of a part.
const SETS: usize = 1024;
/// Clients of a set.
const WAYS: usize = 8;

/// A rate and a number of requests for each client: an IPv4 address or an IPv6 network of 64 bits.
#[derive(Debug)]
pub struct Limit {
    /// The rule, by its name.
    rule: Box<str>,
    /// The time that one request takes of the rate; zero for no rate.
    interval: Duration,
    /// Number of requests that may come in advance.
    burst: u32,
    /// Maximum number of concurrent requests; 0 for any.
    at_once: u32,
    start: Instant,
    seed: RandomState,
    shards: [Mutex<Vec<Slot>>; SHARDS],
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The client; 0 for none.
    client: u128,
    /// When all its burst is there again, in nanoseconds from the start.
    full_at: u64,
    /// Requests that run.
    running: u32,
}

/// A request that was let through; it counts as running while this lives.
#[derive(Debug)]
pub struct Admitted {
    limit: Option<(Arc<Limit>, u128)>,
}

/// A rate of a rule.
#[derive(Debug, Clone, Copy)]
pub struct Rate<'a> {
    pub rule: &'a str,
    /// The time that one request takes.
    pub interval: Duration,
    /// Number of requests that may come in advance.
    pub burst: u32,
}

/// A client has to wait so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(pub Duration);

impl Limit {
    /// So many requests in this time (0 for any number), so many in advance, and so many at once (0 for any number).
    #[must_use]
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

    /// The limit of this rule.
    #[must_use]
    pub fn of_rule(self, rule: &str) -> Self {
        Self { rule: rule.into(), ..self }
    }

    /// The rate, for servers that share it; `None` without one.
    #[must_use]
    pub fn rate(&self) -> Option<Rate<'_>> {
        let Self { rule, interval, burst, .. } = self;
        (!interval.is_zero()).then_some(Rate { rule, interval: *interval, burst: *burst })
    }

    /// Admits a client's request.
    ///
    /// # Errors
    /// The time that the client has to wait.
    pub fn admit(self: &Arc<Self>, client: Option<IpAddr>, now: Instant) -> Result<Admitted, Wait> {
        self.take(client, now, self.interval)
    }

    /// Admits a request whose rate was checked elsewhere, as far as the number of concurrent ones allows it.
    ///
    /// # Errors
    /// The time that the client has to wait.
    pub fn admit_at_once(self: &Arc<Self>, client: Option<IpAddr>, now: Instant) -> Result<Admitted, Wait> {
        match self.at_once {
            0 => Ok(Admitted { limit: None }),
            _ => self.take(client, now, Duration::ZERO),
        }
    }

    fn take(self: &Arc<Self>, client: Option<IpAddr>, now: Instant, interval: Duration) -> Result<Admitted, Wait> {
        // Clients of a Unix socket are all one.
        let client = client.map_or(1, client_number);
        let has_rate = !interval.is_zero();
        let now = nanoseconds(now.saturating_duration_since(self.start));
        let interval = nanoseconds(interval);
        let ahead = interval.saturating_mul(u64::from(self.burst));
        let mut shard = self.shard(client).lock();
        let Some(slot) = find(&mut shard, self.set(client), client, now) else {
            // Every client of this set has requests running.
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

/// The client's slot, or the one it takes.
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

/// A client as a number that is not 0: an IPv4 address, or an IPv6 network of 64 bits, which is what one client has.
#[must_use]
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
    fn requests_at_once_are_counted_until_they_end() {
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
