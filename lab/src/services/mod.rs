//! The lab's own MariaDB, Redis and upstream server: in private directories, stopped with the lab.

pub mod mariadb;
pub mod redis;
pub mod upstream;

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::cases::Need;
use crate::guard::Guarded;
use crate::interrupt::Interrupt;
use crate::record::MysqlWork;
use crate::sample::mysql::Counters;

/// The services that a set of cases needs.
#[derive(Debug, Default)]
pub struct Services {
    /// MariaDB, if one of the cases needs it.
    pub mariadb: Option<mariadb::MariaDb>,
    /// Redis, likewise.
    pub redis: Option<redis::Redis>,
    /// The upstream server for proxied requests.
    pub upstream: Option<upstream::Upstream>,
}

impl Services {
    /// Starts and fills the required services.
    pub fn start(needs: &BTreeSet<Need>, dir: &Path, interrupt: &Interrupt) -> Result<Self> {
        let mut services = Self::default();
        if needs.contains(&Need::MariaDb) {
            services.mariadb = Some(mariadb::MariaDb::start(&dir.join("mariadb"), interrupt)?);
        }
        if needs.contains(&Need::Redis) {
            services.redis = Some(redis::Redis::start(&dir.join("redis"), interrupt)?);
        }
        if needs.contains(&Need::Upstream) {
            services.upstream = Some(upstream::Upstream::start(&dir.join("upstream"), interrupt)?);
        }
        Ok(services)
    }

    /// Returns the name and guard of each.
    pub fn roots(&self) -> Vec<(String, u32)> {
        let mariadb = self.mariadb.as_ref().map(|service| ("mariadb".to_owned(), service.root()));
        let redis = self.redis.as_ref().map(|service| ("redis".to_owned(), service.root()));
        let upstream =
            self.upstream.iter().flat_map(|service| service.roots()).map(|root| ("upstream".to_owned(), root));
        mariadb.into_iter().chain(redis).chain(upstream).collect()
    }

    /// Returns MariaDB's counters, if it runs.
    pub fn counters(&self) -> Result<Option<Counters>> {
        self.mariadb.as_ref().map(|service| Counters::read(&service.socket)).transpose()
    }

    /// Returns the counts caused by reading the counters.
    pub fn reading_cost(&self) -> MysqlWork {
        self.mariadb.as_ref().map(|service| service.reading_cost.clone()).unwrap_or_default()
    }
}

/// Waits until a service responds, for as long as its process runs.
fn wait_until_ready(
    name: &str,
    guarded: &Guarded,
    limit: Duration,
    interrupt: &Interrupt,
    ready: impl Fn() -> Result<()>,
) -> Result<()> {
    let deadline = Instant::now() + limit;
    let log = guarded.log.display();
    while let Err(error) = ready() {
        interrupt.check()?;
        if let Some(how) = guarded.exited() {
            bail!("{name} ended {how}; its log is {log}");
        }
        if Instant::now() > deadline {
            return Err(error.context(format!("{name} is not ready; its log is {log}")));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
