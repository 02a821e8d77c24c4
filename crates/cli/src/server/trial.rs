//! New workers on trial: before a reload gives them all requests, the next edition (`edition`) serves a share of the
//! clients, and its responses are compared with those of the workers that are there.
//!
//! A client keeps its side for as long as the trial lasts, as pages and their resources belong together. It is
//! identified by its address; if that is unknown, each request is a separate client.

use crate::server::ways::Ways;
use howdah_config::HttpSettings;
use howdah_protocol::Request;
use howdah_site::{Service, forwarded};
use hyper::StatusCode;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Failed responses that are too few to say anything.
const FEWEST: u64 = 3;
/// Responses of the workers that are there, during the trial, that say more than what is known of them otherwise.
const ENOUGH: u64 = 20;

/// Responses that were begun. Counts of a trial are read while they grow: that one is behind another does not matter.
#[derive(Debug, Default)]
pub(crate) struct Count {
    responses: AtomicU64,
    /// Those with a status of 5xx.
    failed: AtomicU64,
}

impl Count {
    fn note(&self, status: StatusCode) {
        self.responses.fetch_add(1, Relaxed);
        if status.is_server_error() {
            self.failed.fetch_add(1, Relaxed);
        }
    }

    fn get(&self) -> Responses {
        Responses { all: self.responses.load(Relaxed), failed: self.failed.load(Relaxed) }
    }
}

/// Number of responses, and of failed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Responses {
    pub(crate) all: u64,
    pub(crate) failed: u64,
}

impl Responses {
    fn share(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.failed as f64 / self.all as f64 }
    }
}

/// A trial of the next edition.
pub(crate) struct Trial {
    /// One for each I/O thread.
    services: Vec<Arc<Service<Ways>>>,
    http: HttpSettings,
    /// Clients with a mark below this get the new workers; marks have 32 bits.
    below: u64,
    /// Another trial chooses others.
    salt: u64,
    unknown: AtomicU64,
    new: Count,
    old: Count,
}

impl Trial {
    /// A trial of these services for this share of the clients, from 0 to 1.
    pub(crate) fn new(services: Vec<Arc<Service<Ways>>>, http: HttpSettings, share: f64, salt: u64) -> Self {
        let (unknown, new, old) = (AtomicU64::new(0), Count::default(), Count::default());
        Self { services, http, below: below(share), salt, unknown, new, old }
    }

    /// The service for a request on this thread, if the new workers serve it.
    pub(crate) fn service(&self, thread: usize, request: &Request) -> Option<Arc<Service<Ways>>> {
        let client = forwarded::client(&request.connection.peer, &request.head.headers, &self.http).ip;
        let mark = match client {
            Some(client) => mark(client, self.salt),
            None => mark(self.unknown.fetch_add(1, Relaxed), self.salt),
        };
        (mark < self.below).then(|| self.services[thread].clone())
    }

    /// The responses of the new workers, and of those that are there.
    pub(crate) fn responses(&self) -> (Responses, Responses) {
        (self.new.get(), self.old.get())
    }
}

/// A request of a trial, and which workers serve it.
pub(crate) struct Side {
    pub(crate) trial: Arc<Trial>,
    pub(crate) is_new: bool,
}

impl Side {
    /// Counts the response to it.
    pub(crate) fn note(&self, status: StatusCode) {
        if self.is_new { &self.trial.new } else { &self.trial.old }.note(status);
    }
}

/// Marks below this are this share of all marks.
fn below(share: f64) -> u64 {
    (share * (1_u64 << 32) as f64).round() as u64
}

/// A number of 32 bits that says which side something is on.
fn mark(of: impl Hash, salt: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (salt, of).hash(&mut hasher);
    hasher.finish() >> 32
}

/// Maximum by which the share of 5xx responses may exceed that of the old workers.
const MAX_ERRORS: f64 = 0.05;

/// Why the new workers fail, if they do: many more of their responses have than of those that are there. `before`: what is
/// known of these from earlier.
pub(crate) fn failure(new: Responses, old: Responses, before: Responses) -> Option<String> {
    let other = if old.all >= ENOUGH { old } else { before };
    let fails = new.failed >= FEWEST && new.share() > other.share() + MAX_ERRORS;
    fails.then(|| {
        format!(
            "{} of {} responses of the new workers had a status of 5xx ({}); {} of the old ones, and {} more are allowed",
            new.failed,
            new.all,
            percent(new.share()),
            percent(other.share()),
            percent(MAX_ERRORS),
        )
    })
}

/// A share as people read it.
pub(crate) fn percent(share: f64) -> String {
    let tenths = (share * 1000.0).round() / 10.0;
    format!("{tenths} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    const NOTHING: Responses = Responses { all: 0, failed: 0 };

    #[test]
    fn a_share_of_the_clients_is_chosen_and_each_keeps_its_side() {
        let clients = || (0..10_000_u32).map(|number| IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number)));
        for (share, expected) in [(0.0, 0..=0), (0.05, 400..=600), (0.5, 4_700..=5_300), (1.0, 10_000..=10_000)] {
            for salt in [1, 0x9E37_79B9_7F4A_7C15] {
                let chosen = clients().filter(|client| mark(client, salt) < below(share)).count();
                assert!(expected.contains(&chosen), "{share}: {chosen}");
            }
        }
        assert!(clients().all(|client| mark(client, 7) == mark(client, 7)));
        assert!(clients().any(|client| (mark(client, 7) < below(0.5)) != (mark(client, 8) < below(0.5))));
    }

    #[test]
    fn new_workers_fail_if_many_more_of_their_responses_do() {
        let of = |all, failed| Responses { all, failed };
        let fails = |new, old, before| failure(new, old, before).is_some();
        assert!(!fails(NOTHING, NOTHING, NOTHING));
        assert!(!fails(of(2, 2), NOTHING, NOTHING), "too few");
        assert!(fails(of(3, 3), NOTHING, NOTHING));
        assert!(!fails(of(100, 5), NOTHING, NOTHING), "as many as are allowed");
        assert!(fails(of(100, 6), NOTHING, NOTHING));
        assert!(!fails(of(100, 14), of(1_000, 100), NOTHING), "the old ones fail as often");
        assert!(fails(of(100, 16), of(1_000, 100), of(10, 10)), "what is known from the trial counts");
        assert!(!fails(of(100, 16), of(10, 0), of(1_000, 150)), "where that is little, what was before does");
    }

    #[test]
    fn shares_are_readable() {
        assert_eq!([percent(0.05), percent(0.0), percent(1.0 / 3.0)], ["5 %", "0 %", "33.3 %"]);
    }
}
