//! Mixed loads: groups of clients that ask at the same time, each with its kinds of requests, connections and rhythm.
//!
//! Here is only what is wanted. `load/mixed` turns it into requests and moments, and sends them.

use std::net::Ipv4Addr;

use serde::Deserialize;

/// Milliseconds that `usleep.php` waits.
pub const SLEEP_MS: f64 = 20.0;

/// A mixed load.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    /// All clients.
    pub clients: Vec<Clients>,
    /// Decides every random choice: the same seed gives the same requests at the same moments to every system.
    pub seed: u64,
}

/// A group of clients that behave alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Clients {
    /// Their requests. With more than one entry, each request is drawn by weight.
    pub requests: Vec<Draw>,
    /// Connections, at most that many requests at once.
    pub connections: u32,
    /// Reuse of connections; if not, one is opened for each request and closed after it.
    pub keep_alive: bool,
    /// Where the connections come from.
    pub from: Source,
    /// When requests are due.
    pub rhythm: Rhythm,
}

/// One kind of request of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// Name of the kind; results are grouped by it. Heavy-tailed work has separate kinds, see [`Work::kind_of`].
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
    /// `work.php`: computes about so long.
    Compute {
        /// Milliseconds of processor time.
        ms: f64,
    },
    /// `work.php` with a time from a lognormal distribution.
    LogNormal {
        /// Half of the requests take less.
        median_ms: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// `work.php` with a time from a Pareto distribution.
    Pareto {
        /// No request takes less.
        least_ms: f64,
        /// Tail index: the smaller, the heavier; below 1 there is no mean.
        alpha: f64,
    },
    /// Any path, for servers that somebody else has started.
    Path {
        /// Path and query.
        path: String,
        /// The right body; without one every body is right.
        body: Option<String>,
    },
}

impl Work {
    /// Heavy-tailed work is grouped by the time that the script computes, or the long ones would hide what happens to the short.
    pub fn kind_of(ms: f64) -> &'static str {
        match ms {
            ms if ms <= 2.0 => "short",
            ms if ms <= 20.0 => "medium",
            _ => "long",
        }
    }

    /// True if the script computes, so that the machine's speed must be known.
    pub fn computes(&self) -> bool {
        matches!(self, Self::Compute { .. } | Self::LogNormal { .. } | Self::Pareto { .. })
    }

    fn words(&self) -> String {
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

/// Where connections come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Wherever the kernel says.
    Any,
    /// All from one address.
    One(Ipv4Addr),
    /// Each from its own, counted up from this one.
    Each(Ipv4Addr),
}

/// When requests are due.
#[derive(Debug, Clone, PartialEq)]
pub enum Rhythm {
    /// The next one as soon as the answer is there.
    Closed,
    /// Open loop: at random moments, whether or not the server keeps up.
    Poisson {
        /// Requests per second.
        per_second: f64,
    },
    /// The same at a share of what was measured before.
    PoissonShare {
        /// Share of that capacity; above 1 it is overload.
        share: f64,
        /// The case that measures the capacity.
        of: &'static str,
        /// The system whose capacity it is.
        scope: Scope,
    },
    /// Open loop: so many at one moment, again and again.
    Waves {
        /// Requests of one wave.
        size: u32,
        /// From one wave to the next.
        every_ms: u32,
    },
}

/// The system to whose capacity an open loop refers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// That of the slowest system, so that all get the same rate.
    Slowest,
    /// Each system's own.
    Own,
}

impl Clients {
    /// So many connections that ask for one kind again and again.
    pub fn closed(kind: &str, connections: u32, work: Work) -> Self {
        Self {
            requests: vec![Draw { kind: kind.into(), work, weight: 1.0 }],
            connections,
            keep_alive: true,
            from: Source::Any,
            rhythm: Rhythm::Closed,
        }
    }

    /// The same in another rhythm.
    pub fn rhythm(self, rhythm: Rhythm) -> Self {
        Self { rhythm, ..self }
    }

    /// The same from elsewhere.
    pub fn from(self, from: Source) -> Self {
        Self { from, ..self }
    }

    /// The same with a new connection for each request.
    pub fn closing(self) -> Self {
        Self { keep_alive: false, ..self }
    }

    /// The group in words.
    pub fn words(&self) -> String {
        let total: f64 = self.requests.iter().map(|draw| draw.weight).sum();
        let requests: Vec<String> = self
            .requests
            .iter()
            .map(|draw| match self.requests.len() {
                1 => draw.work.words(),
                _ => format!("{:.0} % {}", draw.weight / total * 100.0, draw.work.words()),
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
            Rhythm::Poisson { per_second } => format!(", open loop, {per_second}/s at random moments"),
            Rhythm::PoissonShare { share, of, scope } => {
                let whose = match scope {
                    Scope::Slowest => "the slowest system's",
                    Scope::Own => "its own",
                };
                format!(", open loop, at random moments, {share} × {whose} rate on {of}")
            }
            Rhythm::Waves { size, every_ms } => format!(", open loop, {size} at once every {every_ms} ms"),
        };
        format!("{} on {connections}{from}{rhythm}", requests.join(", "))
    }
}

impl Mix {
    /// These clients at once.
    pub fn of(clients: impl IntoIterator<Item = Clients>) -> Self {
        Self { clients: clients.into_iter().collect(), seed: 1 }
    }

    /// Connections of all clients.
    pub fn connections(&self) -> u32 {
        self.clients.iter().map(|clients| clients.connections).sum()
    }

    /// The kinds that its requests have.
    pub fn kinds(&self) -> Vec<String> {
        let heavy = ["short", "medium", "long"].map(str::to_owned);
        let all = self.clients.iter().flat_map(|clients| &clients.requests);
        all.flat_map(|draw| match draw.work {
            Work::LogNormal { .. } | Work::Pareto { .. } => heavy.to_vec(),
            _ => vec![draw.kind.clone()],
        })
        .collect()
    }

    /// True if a script computes, so that the machine's speed must be known.
    pub fn computes(&self) -> bool {
        self.clients.iter().flat_map(|clients| &clients.requests).any(|draw| draw.work.computes())
    }

    /// The case that measures the capacity that this load refers to, if it refers to one.
    pub fn capacity_case(&self) -> Option<(&'static str, Scope)> {
        self.clients.iter().find_map(|clients| match &clients.rhythm {
            Rhythm::PoissonShare { of, scope, .. } => Some((*of, *scope)),
            _ => None,
        })
    }

    /// The same with every share of a capacity turned into a rate.
    pub fn at_capacity(&self, capacity: f64) -> Self {
        let mut mix = self.clone();
        for clients in &mut mix.clients {
            if let Rhythm::PoissonShare { share, .. } = clients.rhythm {
                clients.rhythm = Rhythm::Poisson { per_second: share * capacity };
            }
        }
        mix
    }

    /// Requests per second that are offered, as far as the answers do not decide about it.
    pub fn offered(&self) -> Option<f64> {
        let rates = self.clients.iter().filter_map(|clients| match clients.rhythm {
            Rhythm::Poisson { per_second } => Some(per_second),
            Rhythm::Waves { size, every_ms } => Some(f64::from(size) * 1000.0 / f64::from(every_ms)),
            Rhythm::Closed | Rhythm::PoissonShare { .. } => None,
        });
        rates.reduce(|a, b| a + b)
    }

    /// The whole load in words.
    pub fn words(&self) -> String {
        self.clients.iter().map(Clients::words).collect::<Vec<_>>().join("; beside it ")
    }
}
