//! What all sites of a server share.

use crate::challenges::Challenges;
use crate::compress::Cache;
use crate::passwords::Passwords;
use crate::withheld::PrivateFiles;
use howdah_budget::Budgets;
use howdah_config::Settings;
use howdah_observe::{AccessLog, Metrics, RequestMetrics};
use howdah_telemetry::Telemetry;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Lines in the log about hosts that are no site's are no closer than this.
const QUIET: Duration = Duration::from_secs(10);

/// What all sites share. Built once, read by all threads.
#[derive(Debug)]
pub struct Server {
    /// The settings as they were loaded.
    pub settings: Arc<Settings>,
    /// What everything that waits is charged to.
    pub budgets: Budgets,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// The cells of requests that come to no site.
    pub misdirected: Arc<RequestMetrics>,
    /// The access log of requests that come to no site, if one is kept.
    pub access_log: Option<Arc<AccessLog>>,
    /// Where request bodies are spooled.
    pub temp_dir: PathBuf,
    /// `SERVER_SOFTWARE`. Applications look for "nginx" in it to learn that addresses can be rewritten (WordPress).
    pub software: String,
    /// Files that no site sends, under whatever name.
    pub private: Arc<PrivateFiles>,
    /// Bodies that were compressed before, found by their content, so that it does not matter whose they are.
    pub compressed: Arc<Cache>,
    /// What authorities ask for, where the server gets certificates itself; known once these are being looked after.
    challenges: OnceLock<Arc<dyn Challenges>>,
    /// What makes traces, where they are made.
    telemetry: OnceLock<Arc<Telemetry>>,
    /// What passwords are verified with.
    pub passwords: Passwords,
    /// What was found in the file system before this changed may be another deployment's.
    era: AtomicU32,
    /// When the last line about a host that is no site's was written, and how many there were since.
    unknown_hosts: Mutex<(Option<Instant>, u64)>,
}

impl Server {
    pub(crate) fn new(
        settings: Arc<Settings>,
        metrics: Arc<Metrics>,
        access_log: Option<Arc<AccessLog>>,
        budgets: Budgets,
    ) -> Self {
        metrics.set_budgets(budgets);
        Self {
            budgets,
            misdirected: metrics.requests.of("", ""),
            passwords: Passwords::new(metrics.clone()),
            metrics,
            access_log,
            temp_dir: settings.http.temp_dir.clone().unwrap_or_else(std::env::temp_dir),
            software: concat!("Howdah/", env!("CARGO_PKG_VERSION"), " (like nginx)").to_owned(),
            private: Arc::new(PrivateFiles::new(&settings)),
            compressed: Arc::new(Cache::new(settings.compression.cache.as_usize())),
            challenges: OnceLock::new(),
            telemetry: OnceLock::new(),
            era: AtomicU32::new(0),
            unknown_hosts: Mutex::new((None, 0)),
            settings,
        }
    }

    /// Has questions of certificate authorities responded to from now on.
    pub fn respond_to_challenges(&self, challenges: Arc<dyn Challenges>) {
        // Only the first counts; there is one who looks after certificates.
        let _ = self.challenges.set(challenges);
    }

    pub(crate) fn challenges(&self) -> Option<&Arc<dyn Challenges>> {
        self.challenges.get()
    }

    /// Has traces of requests made from now on.
    pub fn make_traces(&self, telemetry: Arc<Telemetry>) {
        let _ = self.telemetry.set(telemetry);
    }

    pub(crate) fn telemetry(&self) -> Option<&Arc<Telemetry>> {
        self.telemetry.get()
    }

    /// Changes when what is known of the file system is to be forgotten.
    #[must_use]
    pub fn era(&self) -> u32 {
        self.era.load(Ordering::Relaxed)
    }

    pub(crate) fn begin_era(&self) {
        self.era.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request for a host that is no site's, and says so in the log now and then.
    pub(crate) fn note_unknown_host(&self, host: &str) {
        self.metrics.unknown_hosts.inc();
        let mut last = self.unknown_hosts.lock();
        if last.0.is_some_and(|at| at.elapsed() < QUIET) {
            last.1 += 1;
            return;
        }
        let (others, status) = (std::mem::take(&mut last.1), self.settings.unknown_host);
        last.0 = Some(Instant::now());
        drop(last);
        tracing::warn!(target: "howdah::request", host, others, "no site is for this host: {status}");
    }
}
