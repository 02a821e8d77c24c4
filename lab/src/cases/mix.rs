//! Mixed loads: groups of clients that send requests at the same time, each with its kinds of requests, connections and
//! rhythm.
//!
//! This module only describes the load. `load/mixed` turns it into requests and times, and sends them.

use std::net::Ipv4Addr;

use serde::Deserialize;

/// Milliseconds that `usleep.php` waits.
pub const SLEEP_MS: f64 = 20.0;

/// A mixed load.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    /// All clients.
    pub clients: Vec<Clients>,
    /// Seed of every random choice: the same seed gives the same requests at the same times to every system.
    pub seed: u64,
}

/// A group of clients that behave alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Clients {
    /// Their requests. With more than one entry, each request is drawn by weight.
    pub requests: Vec<Draw>,
    /// Number of connections, each with at most one request at a time.
    pub connections: u32,
    /// `true` if connections are reused; otherwise each request has a new one.
    pub keep_alive: bool,
    /// Source addresses of the connections.
    pub from: Source,
    /// Times of the requests.
    pub rhythm: Rhythm,
}

/// One kind of request of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// Name of the kind, by which results are grouped. Heavy-tailed work is split into several kinds, see
    /// [`Work::kind_of`].
    pub kind: String,
    /// Work of the script.
    pub work: Work,
    /// Share of the group's requests, relative to the other entries.
    pub weight: f64,
}

/// Work of a script for a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// `hello.php`.
    Hello,
    /// `usleep.php`: waits 20 ms.
    Sleep,
    /// `work.php`: computes for about this time.
    Compute {
        /// Milliseconds of processor time.
        ms: f64,
    },
    /// `work.php` with a time from a lognormal distribution.
    LogNormal {
        /// Median time.
        median_ms: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// `work.php` with a time from a Pareto distribution.
    Pareto {
        /// Minimum time.
        least_ms: f64,
        /// Tail index: the smaller, the heavier; below 1 there is no mean.
        alpha: f64,
    },
    /// Any path, for a server that the lab has not started.
    Path {
        /// Path and query.
        path: String,
        /// The correct body; without one, every body is correct.
        body: Option<String>,
    },
}

impl Work {
    /// Returns the kind by the time that the script computes. Otherwise the long requests of heavy-tailed work would
    /// hide the latency of the short ones.
    pub fn kind_of(ms: f64) -> &'static str {
        match ms {
            ms if ms <= 2.0 => "short",
            ms if ms <= 20.0 => "medium",
            _ => "long",
        }
    }

    /// Returns `true` if the script computes, so that the machine's speed must be known.
    pub fn computes(&self) -> bool {
        matches!(self, Self::Compute { .. } | Self::LogNormal { .. } | Self::Pareto { .. })
    }

    fn description(&self) -> String {
        match self {
            Self::Hello => "hello".into(),
            Self::Sleep => format!("usleep {SLEEP_MS} ms"),
            Self::Compute { ms } => format!("{ms} ms of computing"),
            Self::LogNormal { median_ms, sigma } => {
                format!("computing, lognormal (median {median_ms} ms, sigma {sigma})")
            }
            Self::Pareto { least_ms, alpha } => format!("computing, Pareto (at least {least_ms} ms, index {alpha})"),
            Self::Path { path, .. } => path.clone(),
        }
    }
}

/// Source addresses of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Chosen by the kernel.
    Any,
    /// All from one address.
    One(Ipv4Addr),
    /// A separate one for each, counting up from this one.
    Each(Ipv4Addr),
}

/// Times of requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Rhythm {
    /// Closed loop: each request is sent as soon as the previous response has arrived.
    Closed,
    /// Open loop: at random times, whether or not the server keeps up.
    Poisson {
        /// Requests per second.
        per_second: f64,
    },
    /// Open loop at a share of a measured capacity.
    PoissonShare {
        /// Share of that capacity; above 1 means overload.
        share: f64,
        /// The case that measures the capacity.
        of: &'static str,
        /// The system whose capacity counts.
        scope: Scope,
    },
    /// Open loop: a number of requests at the same time, repeatedly.
    Waves {
        /// Requests of one wave.
        size: u32,
        /// Milliseconds between two waves.
        every_ms: u32,
    },
}

/// The system that an open loop's share of capacity refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The slowest system, so that all get the same rate.
    Slowest,
    /// Each system's own.
    Own,
}

impl Clients {
    /// Connections in a closed loop with one kind of request.
    pub fn closed(kind: &str, connections: u32, work: Work) -> Self {
        Self {
            requests: vec![Draw { kind: kind.into(), work, weight: 1.0 }],
            connections,
            keep_alive: true,
            from: Source::Any,
            rhythm: Rhythm::Closed,
        }
    }

    /// Sets the rhythm.
    pub fn rhythm(self, rhythm: Rhythm) -> Self {
        Self { rhythm, ..self }
    }

    /// Sets the source addresses.
    pub fn from(self, from: Source) -> Self {
        Self { from, ..self }
    }

    /// Uses a new connection for each request.
    pub fn closing(self) -> Self {
        Self { keep_alive: false, ..self }
    }

    /// Describes the group in words.
    pub fn description(&self) -> String {
        let total: f64 = self.requests.iter().map(|draw| draw.weight).sum();
        let requests: Vec<String> = self
            .requests
            .iter()
            .map(|draw| match self.requests.len() {
                1 => draw.work.description(),
                _ => format!("{:.0} % {}", draw.weight / total * 100.0, draw.work.description()),
            })
            .collect();
        let connections = format!(
            "{} connection{}{}",
            self.connections,
            if self.connections == 1 { "" } else { "s" },
            if self.keep_alive { "" } else { ", a new one for each request" },
        );
        let from = match self.from {
            Source::Any => String::new(),
            Source::One(address) => format!(", all from {address}"),
            Source::Each(address) => format!(", each from its own address ({address} and up)"),
        };
        let rhythm = match &self.rhythm {
            Rhythm::Closed => String::new(),
            Rhythm::Poisson { per_second } => format!(", open loop, {per_second}/s at random times"),
            Rhythm::PoissonShare { share, of, scope } => {
                let whose = match scope {
                    Scope::Slowest => "the slowest system's",
                    Scope::Own => "its own",
                };
                format!(", open loop, at random times, {share} × {whose} rate on {of}")
            }
            Rhythm::Waves { size, every_ms } => format!(", open loop, {size} at once every {every_ms} ms"),
        };
        format!("{} on {connections}{from}{rhythm}", requests.join(", "))
    }
}

impl Mix {
    /// A mix of these groups.
    pub fn of(clients: impl IntoIterator<Item = Clients>) -> Self {
        Self { clients: clients.into_iter().collect(), seed: 1 }
    }

    /// Returns the number of connections of all groups.
    pub fn connections(&self) -> u32 {
        self.clients.iter().map(|clients| clients.connections).sum()
    }

    /// Returns the kinds of its requests.
    pub fn kinds(&self) -> Vec<String> {
        let heavy = ["short", "medium", "long"].map(str::to_owned);
        let all = self.clients.iter().flat_map(|clients| &clients.requests);
        all.flat_map(|draw| match draw.work {
            Work::LogNormal { .. } | Work::Pareto { .. } => heavy.to_vec(),
            _ => vec![draw.kind.clone()],
        })
        .collect()
    }

    /// Returns `true` if a script computes, so that the machine's speed must be known.
    pub fn computes(&self) -> bool {
        self.clients.iter().flat_map(|clients| &clients.requests).any(|draw| draw.work.computes())
    }

    /// Returns the case that measures the capacity that this load refers to, if it refers to one.
    pub fn capacity_case(&self) -> Option<(&'static str, Scope)> {
        self.clients.iter().find_map(|clients| match &clients.rhythm {
            Rhythm::PoissonShare { of, scope, .. } => Some((*of, *scope)),
            _ => None,
        })
    }

    /// Converts every share of a capacity to a rate.
    pub fn at_capacity(&self, capacity: f64) -> Self {
        let mut mix = self.clone();
        for clients in &mut mix.clients {
            if let Rhythm::PoissonShare { share, .. } = clients.rhythm {
                clients.rhythm = Rhythm::Poisson { per_second: share * capacity };
            }
        }
        mix
    }

    /// Returns the offered requests per second, unless the responses decide the rate.
    pub fn offered(&self) -> Option<f64> {
        let rates = self.clients.iter().filter_map(|clients| match clients.rhythm {
            Rhythm::Poisson { per_second } => Some(per_second),
            Rhythm::Waves { size, every_ms } => Some(f64::from(size) * 1000.0 / f64::from(every_ms)),
            Rhythm::Closed | Rhythm::PoissonShare { .. } => None,
        });
        rates.reduce(|a, b| a + b)
    }

    /// Describes the whole load in words.
    pub fn description(&self) -> String {
        self.clients.iter().map(Clients::description).collect::<Vec<_>>().join("; with ")
    }
}
