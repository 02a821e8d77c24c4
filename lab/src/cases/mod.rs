//! The work that every system gets: requests, connections, and the correct response.

pub mod catalogue;
pub mod expect;
pub mod mix;
pub mod mix_file;
pub mod mixed;
pub mod suites;
pub mod transport;

pub use expect::Expect;
pub use transport::{Connections, Protocol, Transport};

use crate::jit;
use crate::record::CaseRecord;

/// Servers that a case needs in addition to the system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// MariaDB with the lab's tables.
    MariaDb,
    Redis,
    /// An upstream server for proxied requests; the same for all systems, and it computes nothing.
    Upstream,
}

/// The site or file that serves the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum App {
    /// The lab's own scripts, one for each case.
    Scripts,
    /// The product API on Symfony.
    Shop,
    /// The shop API with Doctrine ORM, with adjustable weight.
    Heavy,
    /// The order API on Symfony, which needs no database.
    Orders,
    WordPress,
    /// A directory that the user named.
    User,
}

impl App {
    /// Returns the path that reports facts about PHP, for systems that can run it.
    pub fn probe(self) -> Option<&'static str> {
        match self {
            Self::Scripts | Self::WordPress => Some("/probe.php"),
            Self::Orders => Some("/api/probe"),
            Self::Shop | Self::Heavy | Self::User => None,
        }
    }
}

/// Configuration of a system's parts, where that is a condition of the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Setup {
    /// As the lab compares systems: as similar as possible.
    #[default]
    Lab,
    /// With the defaults of their packages.
    Shipped,
    /// Tuned for speed.
    Tuned,
}

/// One kind of work.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Short name, as on the command line.
    pub id: String,
    /// Display name.
    pub title: String,
    /// Work of the script.
    pub about: String,
    /// The site or file that serves it.
    pub app: App,
    /// Protocol and connections of the clients.
    pub transport: Transport,
    /// Path on systems that serve scripts by file.
    pub path: String,
    /// Connections of the load generator.
    pub connections: u32,
    /// PHP workers that a system gets.
    pub workers: u32,
    /// `Accept-Encoding` of the requests.
    pub accept_encoding: String,
    /// Milliseconds that the script waits on purpose.
    pub wait_ms: f64,
    /// True if PHP compiles with its JIT.
    pub jit: bool,
    /// Other servers that must run.
    pub needs: Vec<Need>,
    /// The correct response.
    pub expect: Expect,
    /// Groups of clients with different requests at the same time, for a mixed load.
    pub mix: Option<mix::Mix>,
    /// Requirements for the pool, other than a fixed number of workers.
    pub pool: Pool,
    pub setup: Setup,
    /// `true` if the system is measured from its start, without a warm-up.
    pub cold: bool,
}

/// Requirements of a case for the pool, other than the number of workers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    /// Number of workers without load; the same as under load if absent.
    pub min_workers: Option<u32>,
    /// Number of requests after which a worker is replaced.
    pub max_requests: Option<u32>,
    /// Maximum time that a request waits for a worker, for systems with such a setting.
    pub queue_timeout_ms: Option<u32>,
}

impl Pool {
    pub fn description(&self) -> Vec<String> {
        let min_workers = self.min_workers.map(|min_workers| format!("from {min_workers} worker(s) without load"));
        let replaced = self.max_requests.map(|most| format!("a worker is replaced after {most} requests"));
        let timeout = self.queue_timeout_ms.map(|ms| format!("waits for a worker at most {ms} ms (Howdah)"));
        [min_workers, replaced, timeout].into_iter().flatten().collect()
    }
}

impl Case {
    /// A case on the lab's own scripts with 8 connections and 4 workers.
    pub fn script(id: &str, title: &str, about: &str, expect: Expect) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            about: about.into(),
            app: App::Scripts,
            transport: Transport::default(),
            path: format!("/{id}.php"),
            connections: 8,
            workers: 4,
            accept_encoding: "gzip".into(),
            wait_ms: 0.0,
            jit: false,
            needs: Vec::new(),
            expect,
            mix: None,
            pool: Pool::default(),
            setup: Setup::default(),
            cold: false,
        }
    }

    /// Uses another script.
    pub fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// Uses more connections and workers.
    pub fn load(mut self, connections: u32, workers: u32) -> Self {
        (self.connections, self.workers) = (connections, workers);
        self
    }

    /// Requests an unencoded response.
    pub fn identity(mut self) -> Self {
        self.accept_encoding = "identity".into();
        self
    }

    /// Needs other servers.
    pub fn needs(mut self, needs: &[Need]) -> Self {
        self.needs = needs.to_vec();
        self
    }

    /// Uses TLS.
    pub fn over_tls(mut self, protocol: Protocol, connections: Connections) -> Self {
        self.transport = Transport::Tls(protocol, connections);
        self
    }

    /// Returns `true` if the requests are passed to an upstream server.
    pub fn is_proxied(&self) -> bool {
        self.needs.contains(&Need::Upstream)
    }

    /// Returns this case with PHP's JIT, as a separate case.
    pub fn with_jit(&self) -> Self {
        Self {
            id: format!("{}{}", self.id, jit::SUFFIX),
            title: format!("{}, JIT", self.title),
            jit: true,
            ..self.clone()
        }
    }

    /// Returns the record of this case for the results.
    pub fn record(&self) -> CaseRecord {
        CaseRecord {
            id: self.id.clone(),
            title: self.title.clone(),
            about: self.about.clone(),
            connections: self.connections,
            workers: self.workers,
            accept_encoding: self.accept_encoding.clone(),
            wait_ms: self.wait_ms,
            jit: self.jit,
            way: self.transport.description(),
            clients: self.mix.iter().flat_map(|mix| &mix.clients).map(mix::Clients::description).collect(),
            pool: self.pool.description(),
        }
    }
}
