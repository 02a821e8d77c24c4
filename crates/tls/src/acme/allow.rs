//! Decides whether an unlisted name may have a certificate. Anyone who can point a name to this machine can request
//! one, so every step is bounded: names checked per client, allowed names ordered per minute, refusals remembered. One
//! client's refused names do not reduce the limits of others.

use crate::acme::OnDemand;
use crate::acme::http_client::Client;
use http::Uri;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Time for which a refusal is remembered.
const REFUSED: Duration = Duration::from_secs(300);
/// Time for which a failed check is remembered.
const UNREACHED: Duration = Duration::from_secs(10);
/// Maximum number of refusals that are remembered.
const MAX_REFUSALS: usize = 10_000;
/// Maximum number of concurrent checks for one client; `PER_MINUTE` is the minimum of its limit per minute.
const BURST: u32 = 8;
const PER_MINUTE: u32 = 30;
/// Maximum number of clients with remembered limits.
const MAX_CLIENTS: usize = 10_000;
const MINUTE: Duration = Duration::from_secs(60);

/// Result of the check of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    Refused(u16),
    Unreached(String),
}

/// Asks the application about a name.
pub(super) async fn ask(client: &Client, on_demand: &OnDemand, name: &str) -> Verdict {
    let separator = if on_demand.allow_url.contains('?') { '&' } else { '?' };
    let url = format!("{}{separator}domain={name}", on_demand.allow_url);
    let status = match url.parse::<Uri>() {
        Ok(url) => client.status_of(&url).await,
        Err(error) => Err(error.to_string()),
    };
    match status {
        Ok(200..300) => Verdict::Allowed,
        Ok(status @ 400..500) => Verdict::Refused(status),
        Ok(status) => Verdict::Unreached(format!("status {status}")),
        Err(why) => Verdict::Unreached(why),
    }
}

/// A token bucket: it holds one minute's tokens and refills at that rate.
#[derive(Debug)]
struct Rate {
    left: f64,
    filled: Instant,
}

impl Rate {
    fn new(limit: u32, now: Instant) -> Self {
        Self { left: limit.into(), filled: now }
    }

    fn fill(&mut self, limit: u32, now: Instant) {
        let limit = f64::from(limit);
        let gained = now.saturating_duration_since(self.filled).as_secs_f64() / MINUTE.as_secs_f64() * limit;
        self.left = (self.left + gained).min(limit);
        self.filled = now;
    }

    fn take(&mut self, limit: u32, now: Instant) -> bool {
        self.fill(limit, now);
        let has_place = self.left >= 1.0;
        if has_place {
            self.left -= 1.0;
        }
        has_place
    }
}

/// Limits of one client whose handshakes have requested names.
#[derive(Debug)]
struct ClientRate {
    asks: u32,
    rate: Rate,
}

/// Limits on certificates on demand.
#[derive(Debug)]
pub(super) struct Bounds {
    limit: u32,
    orders: Rate,
    clients: HashMap<u128, ClientRate>,
    refused: HashMap<String, Instant>,
}

impl Bounds {
    pub(super) fn new(limit: u32, now: Instant) -> Self {
        Self { limit, orders: Rate::new(limit, now), clients: HashMap::new(), refused: HashMap::new() }
    }

    /// Takes one of this minute's new names, after the name was allowed.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        self.orders.take(self.limit, now)
    }

    /// `true` if another name of this client may be checked. The caller must call `asked` after the check.
    pub(super) fn may_ask(&mut self, client: u128, now: Instant) -> bool {
        let limit = self.limit.max(PER_MINUTE);
        if self.clients.len() >= MAX_CLIENTS && !self.clients.contains_key(&client) {
            self.clients.retain(|_, client| {
                client.rate.fill(limit, now);
                client.asks > 0 || client.rate.left < f64::from(limit)
            });
            if self.clients.len() >= MAX_CLIENTS {
                self.clients.retain(|_, client| client.asks > 0);
            }
        }
        let client = self.clients.entry(client).or_insert_with(|| ClientRate { asks: 0, rate: Rate::new(limit, now) });
        let may = client.asks < BURST && client.rate.take(limit, now);
        client.asks += u32::from(may);
        may
    }

    /// Ends a check that `may_ask` permitted.
    pub(super) fn asked(&mut self, client: u128) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.asks = client.asks.saturating_sub(1);
        }
    }

    /// `true` if a name was refused recently.
    pub(super) fn is_refused(&self, name: &str, now: Instant) -> bool {
        self.refused.get(name).is_some_and(|until| *until > now)
    }

    pub(super) fn refuse(&mut self, name: &str, verdict: &Verdict, now: Instant) {
        if self.refused.len() >= MAX_REFUSALS {
            self.refused.retain(|_, until| *until > now);
        }
        if self.refused.len() >= MAX_REFUSALS {
            // A client sends names without end. Checking earlier names again costs no more than checking its new ones.
            self.refused.clear();
        }
        let pause = if matches!(verdict, Verdict::Refused(_)) { REFUSED } else { UNREACHED };
        self.refused.insert(name.to_owned(), now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_names_per_minute_are_limited() {
        let start = Instant::now();
        let mut bounds = Bounds::new(3, start);
        assert_eq!((0..5).filter(|_| bounds.take(start)).count(), 3);
        assert!(!bounds.take(start + Duration::from_secs(10)));
        assert!(bounds.take(start + Duration::from_secs(25)));
        assert_eq!((0..9).filter(|_| bounds.take(start + Duration::from_secs(3600))).count(), 3);
    }

    #[test]
    fn on_demand_checks_per_client_are_limited() {
        let start = Instant::now();
        let mut bounds = Bounds::new(1, start);
        assert_eq!((0..100).filter(|_| bounds.may_ask(1, start)).count(), BURST as usize);
        assert!(bounds.may_ask(2, start));
        // After each answer another name may be checked, up to the limit per minute.
        let more = (0..100).filter(|_| {
            bounds.asked(1);
            bounds.may_ask(1, start)
        });
        assert_eq!(more.count(), (PER_MINUTE - BURST) as usize);
        bounds.asked(1);
        assert!(bounds.may_ask(1, start + MINUTE) && bounds.take(start));
        for client in 0..3 * MAX_CLIENTS as u128 {
            bounds.may_ask(client, start);
            bounds.asked(client);
        }
        assert!(bounds.clients.len() <= MAX_CLIENTS);
    }

    #[test]
    fn refusals_are_remembered_for_a_limited_time() {
        let start = Instant::now();
        let mut bounds = Bounds::new(1, start);
        bounds.refuse("a.org", &Verdict::Refused(403), start);
        bounds.refuse("b.org", &Verdict::Unreached(String::new()), start);
        let later = start + Duration::from_secs(60);
        assert!(bounds.is_refused("a.org", later));
        assert!(!bounds.is_refused("b.org", later));
        for n in 0..3 * MAX_REFUSALS {
            bounds.refuse(&format!("{n}.org"), &Verdict::Refused(403), start);
        }
        assert!(bounds.refused.len() <= MAX_REFUSALS);
    }
}
