//! Turns a mix into requests as bytes: all random choices and slow work happen before the first request is sent.

use std::net::SocketAddr;

use anyhow::{Result, bail};

use super::random::{sequence, times_of};
use crate::cases::mix::{Clients, Mix, Rhythm, Source, Work};

/// Length of a group's sequence of choices.
const SEQUENCE: usize = 1 << 16;

/// A mix that can be sent.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Address of the server.
    pub address: SocketAddr,
    /// Names of the kinds of requests; results are in this order.
    pub kinds: Vec<String>,
    /// The groups of clients.
    pub groups: Vec<Group>,
    /// Seed of the arrival times.
    pub seed: u64,
}

/// A group of clients.
#[derive(Debug, Clone)]
pub struct Group {
    /// The different requests.
    pub requests: Vec<Prototype>,
    /// Indexes of the requests to send, repeated in a cycle.
    pub order: Vec<u32>,
    pub connections: u32,
    /// `true` if connections are reused.
    pub keep_alive: bool,
    /// Source addresses.
    pub from: Source,
    /// When requests are due.
    pub rhythm: Rhythm,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Prototype {
    /// The request's bytes.
    pub bytes: Vec<u8>,
    /// The correct body, if it is known.
    pub body: Option<Vec<u8>>,
    /// Index of its kind.
    pub kind: usize,
    /// Its path, for the checks before and after the run.
    pub path: String,
}

/// Parameters of `work.php`, from which its correct response is computed.
#[derive(Debug)]
struct Generator {
    value: u64,
    rounds: u64,
}

impl Generator {
    fn after(&mut self, rounds: u64) -> u64 {
        debug_assert!(rounds >= self.rounds, "it does not run backwards");
        for _ in self.rounds..rounds {
            self.value = (self.value * 1_103_515_245 + 12_345) & 0x7fff_ffff;
        }
        self.rounds = rounds;
        self.value
    }
}

/// Returns the correct response of `work.php` for this number of rounds.
pub fn work_response(rounds: u64) -> String {
    Generator { value: 1, rounds: 0 }.after(rounds).to_string()
}

fn rounds_of(ms: f64, per_ms: f64) -> u64 {
    (ms * per_ms).round().max(1.0) as u64
}

impl Prepared {
    /// Creates every request. `rounds_per_ms` is the machine's speed on `work.php`.
    pub fn new(mix: &Mix, address: SocketAddr, rounds_per_ms: f64) -> Result<Self> {
        let mut prepared = Self { address, kinds: Vec::new(), groups: Vec::new(), seed: mix.seed };
        for (index, clients) in mix.clients.iter().enumerate() {
            if clients.requests.is_empty() || clients.connections == 0 {
                bail!("a group of clients needs at least one request and one connection");
            }
            if matches!(clients.rhythm, Rhythm::PoissonShare { .. }) {
                bail!("an open loop at a share of a capacity needs the capacity first");
            }
            let seed = mix.seed.wrapping_mul(1_000_003).wrapping_add(index as u64);
            let group = prepared.group(clients, rounds_per_ms, seed);
            prepared.groups.push(group);
        }
        Ok(prepared)
    }

    fn group(&mut self, clients: &Clients, rounds_per_ms: f64, seed: u64) -> Group {
        let (mut requests, mut weights) = (Vec::new(), Vec::new());
        for draw in &clients.requests {
            let mut add = |kind: &str, path: String, body: Option<String>, weight: f64| {
                let kind = self.kind(kind);
                requests.push(self.prototype(path, body, kind, clients.keep_alive));
                weights.push(weight);
            };
            let computing = |rounds: u64| format!("/work.php?n={rounds}");
            match &draw.work {
                Work::Hello => add(&draw.kind, "/hello.php".into(), Some("Hello, world!".into()), draw.weight),
                Work::Sleep => add(&draw.kind, "/usleep.php".into(), Some("slept".into()), draw.weight),
                Work::Path { path, body } => add(&draw.kind, path.clone(), body.clone(), draw.weight),
                Work::Compute { ms } => {
                    let rounds = rounds_of(*ms, rounds_per_ms);
                    add(&draw.kind, computing(rounds), Some(work_response(rounds)), draw.weight);
                }
                Work::LogNormal { .. } | Work::Pareto { .. } => {
                    let times = times_of(&draw.work).unwrap_or_default();
                    let mut generator = Generator { value: 1, rounds: 0 };
                    for ms in &times {
                        let rounds = rounds_of(*ms, rounds_per_ms);
                        let response = generator.after(rounds).to_string();
                        add(Work::kind_of(*ms), computing(rounds), Some(response), draw.weight / times.len() as f64);
                    }
                }
            }
        }
        Group {
            order: if requests.len() == 1 { vec![0] } else { sequence(&weights, SEQUENCE, seed) },
            requests,
            connections: clients.connections,
            keep_alive: clients.keep_alive,
            from: clients.from,
            rhythm: clients.rhythm.clone(),
        }
    }

    /// Returns the index of a kind, and adds it if it is new.
    fn kind(&mut self, name: &str) -> usize {
        self.kinds.iter().position(|known| known == name).unwrap_or_else(|| {
            self.kinds.push(name.to_owned());
            self.kinds.len() - 1
        })
    }

    fn prototype(&self, path: String, body: Option<String>, kind: usize, keep_alive: bool) -> Prototype {
        let close = if keep_alive { "" } else { "Connection: close\r\n" };
        let bytes = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{close}\r\n", self.address).into_bytes();
        Prototype { bytes, body: body.map(String::into_bytes), kind, path }
    }

    pub fn one_of_each(&self) -> Vec<&Prototype> {
        let all = || self.groups.iter().flat_map(|group| &group.requests);
        (0..self.kinds.len()).filter_map(|kind| all().find(|request| request.kind == kind)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::mix::Draw;

    fn prepare(clients: Vec<Clients>) -> Prepared {
        Prepared::new(&Mix::of(clients), SocketAddr::from(([127, 0, 0, 1], 80)), 1000.0).unwrap()
    }

    #[test]
    fn answers_of_work_are_those_of_the_script() {
        // php -r '$x = 1; for ($i = 0; $i < 1000; $i++) $x = ($x * 1103515245 + 12345) & 0x7fffffff; echo $x;'
        assert_eq!(work_response(1), "1103527590");
        assert_eq!(work_response(2), "377401575");
        assert_eq!(work_response(1000), "1219259225");
    }

    #[test]
    fn kinds_keep_their_names_across_groups() {
        let prepared = prepare(vec![
            Clients::closed("slow", 1, Work::Compute { ms: 10.0 }),
            Clients::closed("fast", 7, Work::Hello).closing(),
            Clients::closed("slow", 1, Work::Sleep),
        ]);
        assert_eq!(prepared.kinds, ["slow", "fast"]);
        assert_eq!(prepared.groups.iter().map(|group| group.connections).collect::<Vec<_>>(), [1, 7, 1]);
        let paths: Vec<&str> = prepared.one_of_each().iter().map(|request| request.path.as_str()).collect();
        assert_eq!(paths, ["/work.php?n=10000", "/hello.php"]);
        assert!(prepared.groups[1].requests[0].bytes.ends_with(b"Connection: close\r\n\r\n"));
        assert!(!prepared.groups[0].requests[0].bytes.windows(10).any(|part| part == b"Connection"));
    }

    #[test]
    fn heavy_tailed_work_is_distinguished_by_its_length() {
        let work = Work::LogNormal { median_ms: 1.0, sigma: 1.5 };
        let prepared = prepare(vec![Clients::closed("x", 8, work)]);
        assert_eq!(prepared.kinds, ["short", "medium", "long"]);
        let group = &prepared.groups[0];
        // Each request once and in random order, so that a run of them has the distribution's mean.
        let mean = |order: &[u32]| {
            let rounds = |index: &u32| {
                group.requests[*index as usize].path.trim_start_matches("/work.php?n=").parse::<f64>().unwrap()
            };
            order.iter().map(rounds).sum::<f64>() / order.len() as f64 / 1000.0
        };
        let expected = (1.5f64 * 1.5 / 2.0).exp();
        assert!((mean(&group.order) / expected - 1.0).abs() < 0.1, "{}", mean(&group.order));
        assert!(!group.order.is_sorted());
        for request in group.requests.iter().step_by(100) {
            let rounds = request.path.trim_start_matches("/work.php?n=").parse().unwrap();
            assert_eq!(request.body, Some(work_response(rounds).into_bytes()));
        }
    }

    #[test]
    fn a_share_without_a_capacity_cannot_be_sent() {
        let open = Clients::closed("x", 8, Work::Hello);
        let share = Rhythm::PoissonShare { share: 0.5, of: "y", scope: crate::cases::mix::Scope::Own };
        let mix = Mix::of([open.rhythm(share)]);
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        assert!(Prepared::new(&mix, address, 1.0).is_err());
        assert!(Prepared::new(&mix.at_capacity(100.0), address, 1.0).is_ok());
        let none = Mix::of([Clients { requests: Vec::<Draw>::new(), ..Clients::closed("x", 1, Work::Hello) }]);
        assert!(Prepared::new(&none, address, 1.0).is_err());
    }
}
