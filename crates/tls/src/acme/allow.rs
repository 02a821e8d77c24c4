//! Whether a name that nobody listed may have a certificate. Whoever can point a name to this machine can ask for it, so
//! every step is bounded: how many names are asked about at once, how many are ordered in a minute, how many refusals are
//! remembered.

use crate::acme::OnDemand;
use crate::acme::http_client::Client;
use http::Uri;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a refusal is remembered.
const REFUSED: Duration = Duration::from_secs(300);
/// The same if nobody could be asked.
const UNREACHED: Duration = Duration::from_secs(10);
/// Refusals that are remembered.
const MOST_REFUSALS: usize = 10_000;
const MINUTE: Duration = Duration::from_secs(60);

/// What was found out about a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    Refused(u16),
    Unreached(String),
}

/// Asks.
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

/// What bounds names on demand.
#[derive(Debug)]
pub(super) struct Bounds {
    limit: f64,
    left: f64,
    filled: Instant,
    refused: HashMap<String, Instant>,
}

impl Bounds {
    pub(super) fn new(limit: u32, now: Instant) -> Self {
        Self { limit: limit.into(), left: limit.into(), filled: now, refused: HashMap::new() }
    }

    /// Takes the place of a new name in this minute.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let gained = now.saturating_duration_since(self.filled).as_secs_f64() / MINUTE.as_secs_f64() * self.limit;
        self.left = (self.left + gained).min(self.limit);
        self.filled = now;
        let has_place = self.left >= 1.0;
        if has_place {
            self.left -= 1.0;
        }
        has_place
    }

    /// Whether a name was refused a moment ago.
    pub(super) fn is_refused(&self, name: &str, now: Instant) -> bool {
        self.refused.get(name).is_some_and(|until| *until > now)
    }

    pub(super) fn refuse(&mut self, name: &str, verdict: &Verdict, now: Instant) {
        if self.refused.len() >= MOST_REFUSALS {
            self.refused.retain(|_, until| *until > now);
        }
        if self.refused.len() >= MOST_REFUSALS {
            // Somebody sends names without end. To ask again about those of before costs what to ask about new ones does.
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
    fn a_minute_has_so_many_new_names() {
        let start = Instant::now();
        let mut bounds = Bounds::new(3, start);
        assert_eq!((0..5).filter(|_| bounds.take(start)).count(), 3);
        assert!(!bounds.take(start + Duration::from_secs(10)));
        assert!(bounds.take(start + Duration::from_secs(25)));
        assert_eq!((0..9).filter(|_| bounds.take(start + Duration::from_secs(3600))).count(), 3);
    }

    #[test]
    fn refusals_are_remembered_for_a_while_and_not_without_end() {
        let start = Instant::now();
        let mut bounds = Bounds::new(1, start);
        bounds.refuse("a.org", &Verdict::Refused(403), start);
        bounds.refuse("b.org", &Verdict::Unreached(String::new()), start);
        let later = start + Duration::from_secs(60);
        assert!(bounds.is_refused("a.org", later));
        assert!(!bounds.is_refused("b.org", later));
        for n in 0..3 * MOST_REFUSALS {
            bounds.refuse(&format!("{n}.org"), &Verdict::Refused(403), start);
        }
        assert!(bounds.refused.len() <= MOST_REFUSALS);
    }
}
