//! The request cells, one set per route of each site: counts by source and status class, durations, and bytes sent.
//! Each request is counted at most once (not if it was refused before it was handled); the server's totals are sums of
//! these cells. The settings' routes determine the number of cells: clients cannot create any.

use crate::buckets::{BUCKETS, bucket_of};
use crate::exemplar::Exemplar;
use crate::histogram::{Cells, HistogramSnapshot, own, shards, whole_us};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// Source of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Front {
    /// A PHP script.
    Php,
    /// A static file.
    Static,
    /// Another server, to which the request was forwarded.
    Proxy,
    /// The server itself: an error or a refusal.
    Error,
}

impl Front {
    pub(crate) const ALL: [Self; 4] = [Self::Php, Self::Static, Self::Proxy, Self::Error];

    /// The label's value.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Php => "php",
            Self::Static => "static",
            Self::Proxy => "proxy",
            Self::Error => "error",
        }
    }
}

/// The classes of status, by their first digit.
pub(crate) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The numbers of one shard, written by few threads and padded to separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    counts: [[AtomicU64; CLASSES.len()]; Front::ALL.len()],
    bytes: AtomicU64,
    durations: Cells,
}

/// The cells of one route of one site.
#[derive(Debug)]
pub struct RequestMetrics {
    /// The site's name; empty for requests to no site.
    pub(crate) site: Box<str>,
    /// The route's name; empty for requests to no route.
    pub(crate) route: Box<str>,
    shards: Box<[Shard]>,
    /// The newest sampled trace of each bucket.
    exemplars: Mutex<[Option<Exemplar>; BUCKETS]>,
}

impl RequestMetrics {
    fn new(site: &str, route: &str) -> Self {
        let shards = (0..shards()).map(|_| Shard::default()).collect();
        Self { site: site.into(), route: route.into(), shards, exemplars: Mutex::default() }
    }

    /// Counts an ended request: its source, status (499 without a response) and duration, and the bytes of the
    /// response's body.
    pub fn count(&self, front: Front, status: u16, took: Duration, bytes: u64) {
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        let shard = own(&self.shards);
        shard.counts[front as usize][class].fetch_add(1, Relaxed);
        shard.bytes.fetch_add(bytes, Relaxed);
        shard.durations.count(whole_us(took));
    }

    /// Keeps the trace of a counted request as the exemplar of its duration. Skipped while another thread does so: any
    /// trace is as good.
    pub fn note_trace(&self, trace: u128, span: u64, took: Duration, at: SystemTime) {
        let took_us = whole_us(took);
        let bucket = bucket_of(took_us);
        if let Some(mut exemplars) = self.exemplars.try_lock() {
            exemplars[bucket] = Some(Exemplar { bucket, trace, span, took_us, at });
        }
    }

    /// One trace for each bucket that has one.
    pub(crate) fn exemplars(&self) -> Vec<Exemplar> {
        self.exemplars.lock().iter().flatten().copied().collect()
    }

    pub fn site(&self) -> &str {
        &self.site
    }

    pub fn route(&self) -> &str {
        &self.route
    }

    /// Number of responses by status class.
    pub fn by_class(&self) -> Vec<(&'static str, u64)> {
        let all = |class| Front::ALL.into_iter().map(|front| self.answered(front, class)).sum();
        CLASSES.iter().enumerate().map(|(class, name)| (*name, all(class))).collect()
    }

    /// Bytes sent of all bodies.
    pub fn bytes(&self) -> u64 {
        self.sum(|shard| &shard.bytes)
    }

    /// Number of responses of `front` with a status of this class.
    pub(crate) fn answered(&self, front: Front, class: usize) -> u64 {
        self.sum(|shard| &shard.counts[front as usize][class])
    }

    /// Durations of the route's requests.
    pub fn durations(&self) -> HistogramSnapshot {
        HistogramSnapshot::of(self.shards.iter().map(|shard| &shard.durations))
    }

    fn sum(&self, number: impl Fn(&Shard) -> &AtomicU64) -> u64 {
        self.shards.iter().map(|shard| number(shard).load(Relaxed)).fold(0, u64::wrapping_add)
    }
}

/// The cells of all routes.
#[derive(Debug, Default)]
pub struct Requests(RwLock<Vec<Arc<RequestMetrics>>>);

impl Requests {
    /// The cells of a site's route. Routes keep them, so that requests need no lookup.
    pub fn of(&self, site: &str, route: &str) -> Arc<RequestMetrics> {
        let mut all = self.0.write();
        if let Some(known) = all.iter().find(|known| &*known.site == site && &*known.route == route) {
            return Arc::clone(known);
        }
        let made = Arc::new(RequestMetrics::new(site, route));
        all.push(Arc::clone(&made));
        made
    }

    /// The cells of all routes.
    pub fn all(&self) -> Vec<Arc<RequestMetrics>> {
        self.0.read().clone()
    }
}
