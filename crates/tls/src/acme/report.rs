//! State of each name, for `howdah status` and the metrics.

use parking_lot::Mutex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// State of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NameReport {
    pub name: String,
    /// Its authority: `acme` or `local`.
    pub source: &'static str,
    /// Expiry of its certificate, in seconds since the epoch; `None` without a certificate.
    pub until: Option<u64>,
    /// Time of the next task: a renewal, or another attempt.
    pub next: Option<u64>,
    /// Failed attempts since the last success, other than failures of the authority.
    pub failures: u32,
    /// Error of the last failed attempt.
    pub last_error: Option<String>,
}

/// State of all names, which the manager and the local CA update.
#[derive(Debug, Default)]
pub struct Report {
    names: Mutex<BTreeMap<String, NameReport>>,
    orders: AtomicU64,
    failures: AtomicU64,
}

impl Report {
    /// State of each name, sorted by name.
    pub fn names(&self) -> Vec<NameReport> {
        self.names.lock().values().cloned().collect()
    }

    /// Number of certificates obtained.
    pub fn orders(&self) -> u64 {
        self.orders.load(Ordering::Relaxed)
    }

    /// Number of failed attempts.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, report: NameReport) {
        self.names.lock().insert(report.name.clone(), report);
    }

    pub fn remove(&self, name: &str) {
        self.names.lock().remove(name);
    }

    pub(crate) fn obtained(&self) {
        self.orders.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

/// Seconds since the epoch.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
