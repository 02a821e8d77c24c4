//! Demotes routes of a pool that keeps state between requests to classic mode: because their responses differed from
//! classic mode's, took longer, or because their requests killed workers.
//!
//! `routes.rs` defines routes. Only suspected and demoted routes are remembered, so nothing is looked up while all is
//! well. Both tables are bounded. A new suspect replaces the one with the oldest finding. If too many routes are
//! demoted, all are, as the pool cannot be trusted with any.

use crate::learning::routes::{Routes, covers};
use crate::learning::target::may_be_asked_again;
use howdah_observe::PoolMetrics;
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// Number of a route's last comparisons that count, and how many of them have to differ or be slower to demote it. A
/// difference is an error, while times scatter.
const COMPARISONS: u32 = 10;
const DIFFERING: u32 = 3;
const SLOWER: u32 = 8;
/// Number of workers that a route's requests have to kill to demote it, and the maximum number of its requests per such
/// death.
const DEATHS: u32 = 3;
const REQUESTS: u32 = 10;
/// Requests after which a death, or a finding that a route is fast, is forgotten.
const FORGIVE_AFTER: u32 = 1000;
/// Number of a route's requests whose restore searched for written pages, from which the route is compared.
const SEARCHES: u32 = 20;
/// Deaths of different requests this close together count as one: they have another cause.
const SAME_DEATH_WINDOW: Duration = Duration::from_millis(5);
/// Time after which a death no longer counts.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// Maximum number of suspected and of demoted routes.
const MAX_SUSPECTS: usize = 256;
const MAX_DEMOTED: usize = 128;
/// Maximum length of a reason, in bytes.
const MAX_REASON_LEN: usize = 400;
/// The name of all routes together.
const ALL: &str = "*";

/// Where a request runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In its own pool.
    Own,
    /// In its own pool; its response should be compared.
    Suspected,
    /// In classic mode.
    Classic,
    /// In classic mode until the next reload, because it was slow.
    Cold,
}

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Same,
    /// The response is the same but took longer than in classic mode; the text describes by how much.
    Slower(String),
    /// Describes the difference.
    Differs(String),
}

impl Verdict {
    /// Label in the metric.
    const fn name(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Slower(_) => "slower",
            Self::Differs(_) => "differs",
        }
    }
}

/// A route whose requests run in classic mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DemotedRoute {
    pub route: String,
    /// Seconds since the epoch.
    pub since: u64,
    pub reason: String,
    /// The reason is its speed, which a warm-up may change.
    #[serde(skip)]
    slow: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuspectedRoute {
    pub route: String,
    /// Number of its last comparisons that differed.
    pub differed: u32,
    /// Number of those that were slower than classic mode.
    pub slower: u32,
    /// Number of its last comparisons.
    pub compared: u32,
    /// Number of workers that its requests have killed.
    pub deaths: u32,
    /// Requests after which all memory was searched for written pages, because the snapshot lacks code or memory that
    /// they use.
    pub searched: u32,
    /// All requests in the same period.
    pub came: u32,
}

/// The demotions of one pool.
#[derive(Debug)]
pub struct Demotions {
    pool: Arc<str>,
    /// The pool in classic mode.
    classic: Arc<str>,
    metrics: Arc<PoolMetrics>,
    /// A route is suspected or demoted. While false, requests check nothing else.
    knows_some: AtomicBool,
    table: Mutex<Table>,
}

impl Demotions {
    pub(crate) fn new(pool: Arc<str>, classic: Arc<str>, metrics: Arc<PoolMetrics>) -> Self {
        Self { pool, classic, metrics, knows_some: AtomicBool::new(false), table: Mutex::default() }
    }

    /// The name of the pool in classic mode.
    pub fn classic(&self) -> &str {
        &self.classic
    }

    /// Decides where a new request for this target runs.
    pub fn way_of(&self, target: &[u8]) -> Placement {
        if !self.knows_some.load(Relaxed) {
            return Placement::Own;
        }
        let mut table = self.table.lock();
        let route = table.routes.of(target);
        table.note_request(&route)
    }

    /// Notes the name of the route that responded to this target, as the application reports it.
    pub(crate) fn note_route(&self, target: &[u8], name: &[u8]) {
        // The status would show a part of the target.
        if may_be_asked_again(target) {
            self.table.lock().note_route(name, target);
        }
    }

    /// Notes the comparison of a response for this target.
    pub fn note_comparison(&self, target: &[u8], verdict: Verdict) {
        self.metrics.compared.inc(verdict.name());
        if verdict == Verdict::Same && !self.knows_some.load(Relaxed) {
            return;
        }
        let mut table = self.table.lock();
        let route = table.routes.of(target);
        let demoted = table.note_comparison(&route, verdict);
        self.changed(&table, demoted);
    }

    /// Notes that a request for this target died with its worker; `again`: it had already died with another one.
    pub(crate) fn note_death(&self, target: &[u8], again: bool) {
        let mut table = self.table.lock();
        let route = table.routes.of(target);
        let demoted = table.note_death(&route, again, Instant::now());
        self.changed(&table, demoted);
    }

    /// Notes that a request for this target ran code or used memory that the snapshot does not have, so that its
    /// restore took long.
    pub(crate) fn note_search(&self, target: &[u8]) {
        // The target could not be compared, and the status would show its visitor's token.
        if !may_be_asked_again(target) {
            return;
        }
        let mut table = self.table.lock();
        let route = table.routes.of(target);
        table.note_search(&route);
        self.changed(&table, None);
    }

    /// Restores slow routes after a reload: with another warm-up they may be fast now.
    pub(crate) fn restore_slow(&self) {
        let mut table = self.table.lock();
        let slow: Vec<String> =
            table.demoted.values().filter(|demoted| demoted.slow).map(|demoted| demoted.route.clone()).collect();
        for route in slow {
            table.demoted.remove(&route);
            tracing::info!(pool = &*self.pool, route, "route restored: the pool has new workers");
        }
        self.changed(&table, None);
    }

    /// Restores a path, or a route by its name, to the pool; all routes for `*`. Returns the number of restored routes.
    pub fn restore(&self, path: &str) -> usize {
        let mut table = self.table.lock();
        let restored = table.restore(path);
        self.changed(&table, None);
        for route in &restored {
            tracing::info!(pool = &*self.pool, route, "route restored: its requests run in this pool again");
        }
        restored.len()
    }

    /// Number of routes that run in classic mode.
    pub(crate) fn count(&self) -> usize {
        self.table.lock().demoted.len()
    }

    /// The routes whose requests run in classic mode.
    pub fn demoted(&self) -> Vec<DemotedRoute> {
        self.table.lock().demoted.values().cloned().collect()
    }

    /// The routes under suspicion.
    pub fn suspected(&self) -> Vec<SuspectedRoute> {
        let table = self.table.lock();
        let of = |(route, suspect): (&String, &Suspect)| SuspectedRoute {
            route: route.clone(),
            differed: suspect.differed.count(),
            slower: suspect.slower.count(),
            compared: suspect.compared,
            deaths: suspect.deaths,
            searched: suspect.searched,
            came: suspect.came,
        };
        table.suspects.iter().map(of).collect()
    }

    fn changed(&self, table: &Table, demoted: Option<DemotedRoute>) {
        self.knows_some.store(!table.is_empty(), Relaxed);
        let Some(DemotedRoute { route, reason, .. }) = demoted else { return };
        let classic = &self.classic;
        let text = format!("demoted: its requests run in the pool {classic} in classic mode from now on");
        tracing::warn!(pool = &*self.pool, route, reason, "{text}; `howdah routes` lists and restores such routes");
    }
}

/// One bit for each of the last comparisons, the newest lowest; set for a finding.
#[derive(Debug, Default)]
struct RecentComparisons(u32);

impl RecentComparisons {
    const fn note(&mut self, found: bool) {
        self.0 = ((self.0 << 1) | found as u32) & ((1 << COMPARISONS) - 1);
    }

    const fn count(&self) -> u32 {
        self.0.count_ones()
    }
}

/// Record of a route that is not demoted.
#[derive(Debug, Default)]
struct Suspect {
    differed: RecentComparisons,
    slower: RecentComparisons,
    /// Number of comparisons, up to `COMPARISONS`.
    compared: u32,
    deaths: u32,
    last_death: Option<Instant>,
    /// Requests since the route became a suspect, or since its first death that still counts.
    came: u32,
    /// Requests whose restore searched for written pages.
    searched: u32,
    /// A comparison found it as fast as classic mode, despite its searches.
    is_fast: bool,
    /// Sequence number of the last finding.
    heard: u64,
}

impl Suspect {
    /// Most of its requests use code or memory that the snapshot does not have, and no comparison found it fast.
    const fn is_cold(&self) -> bool {
        !self.is_fast && self.searched >= SEARCHES && self.searched * 2 > self.came
    }
}

/// The decision table, without clock or threads.
#[derive(Debug, Default)]
struct Table {
    routes: Routes,
    suspects: BTreeMap<String, Suspect>,
    demoted: BTreeMap<String, DemotedRoute>,
    heard: u64,
}

impl Table {
    fn is_empty(&self) -> bool {
        self.suspects.is_empty() && self.demoted.is_empty()
    }

    fn is_demoted(&self, route: &str) -> bool {
        self.demoted.contains_key(route) || self.demoted.contains_key(ALL)
    }

    /// Merges demotions of single paths into the route that they belong to, and drops their suspicions.
    fn note_route(&mut self, name: &[u8], target: &[u8]) {
        let Some(route) = self.routes.note(name, target) else { return };
        let demoted: Vec<String> = self.demoted.keys().filter(|path| covers(&route, path)).cloned().collect();
        let demoted: Vec<_> = demoted.iter().filter_map(|path| self.demoted.remove(path)).collect();
        if let Some(demoted) = demoted.into_iter().max_by_key(|demoted| (!demoted.slow, demoted.since)) {
            self.demoted.insert(route.clone(), DemotedRoute { route: route.clone(), ..demoted });
        }
        self.suspects.retain(|path, _| !covers(&route, path));
    }

    fn note_request(&mut self, route: &str) -> Placement {
        if let Some(demoted) = self.demoted.get(route).or_else(|| self.demoted.get(ALL)) {
            return if demoted.slow { Placement::Cold } else { Placement::Classic };
        }
        let Some(suspect) = self.suspects.get_mut(route) else { return Placement::Own };
        suspect.came = suspect.came.saturating_add(1);
        if suspect.compared > 0 || suspect.is_cold() {
            return Placement::Suspected;
        }
        if suspect.came > FORGIVE_AFTER {
            self.suspects.remove(route);
        }
        Placement::Own
    }

    /// Records a comparison; returns the route if this demotes it.
    fn note_comparison(&mut self, route: &str, verdict: Verdict) -> Option<DemotedRoute> {
        if self.is_demoted(route) || (verdict == Verdict::Same && !self.suspects.contains_key(route)) {
            return None;
        }
        let suspect = self.suspect(route);
        suspect.differed.note(matches!(verdict, Verdict::Differs(_)));
        suspect.slower.note(matches!(verdict, Verdict::Slower(_)));
        suspect.compared = (suspect.compared + 1).min(COMPARISONS);
        let (differed, slower, compared) = (suspect.differed.count(), suspect.slower.count(), suspect.compared);
        match verdict {
            Verdict::Differs(how) if differed >= DIFFERING => {
                Some(self.demote(route, format!("{differed} of {compared} responses differed, latest: {how}"), false))
            }
            Verdict::Slower(how) if slower >= SLOWER => {
                let cold =
                    if suspect.is_cold() { "; it is not warm: each restore searches for written pages" } else { "" };
                let reason =
                    format!("{slower} of {compared} requests took longer than in classic mode, latest: {how}{cold}");
                Some(self.demote(route, reason, true))
            }
            _ if differed == 0 && slower == 0 && suspect.deaths == 0 => {
                if suspect.is_cold() {
                    (suspect.compared, suspect.is_fast) = (0, true);
                } else {
                    self.suspects.remove(route);
                }
                None
            }
            _ => None,
        }
    }

    /// Records a death; returns the route if this demotes it.
    fn note_death(&mut self, route: &str, again: bool, now: Instant) -> Option<DemotedRoute> {
        if self.is_demoted(route) {
            return None;
        }
        let suspect = self.suspect(route);
        let since = suspect.last_death.map(|last| now.saturating_duration_since(last));
        match since {
            Some(since) if since < SAME_DEATH_WINDOW && !again => return None,
            Some(since) if since < FORGET_AFTER => {}
            _ => (suspect.deaths, suspect.came) = (0, 1),
        }
        suspect.last_death = Some(now);
        suspect.deaths += 1;
        let (deaths, came) = (suspect.deaths, suspect.came);
        if deaths < DEATHS || came > deaths.saturating_mul(REQUESTS) {
            return None;
        }
        Some(self.demote(route, format!("its requests have killed {deaths} workers"), false))
    }

    fn note_search(&mut self, route: &str) {
        if !self.is_demoted(route) {
            let suspect = self.suspect(route);
            suspect.searched += 1;
            suspect.came = suspect.came.max(suspect.searched);
        }
    }

    fn demote(&mut self, route: &str, mut reason: String, slow: bool) -> DemotedRoute {
        self.suspects.remove(route);
        let mut name = route;
        if self.demoted.len() >= MAX_DEMOTED {
            name = ALL;
            reason = format!("{MAX_DEMOTED} routes were demoted already; {route}: {reason}");
        }
        let cut = (0..=MAX_REASON_LEN.min(reason.len())).rev().find(|at| reason.is_char_boundary(*at));
        reason.truncate(cut.unwrap_or(0));
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let demoted = DemotedRoute { route: name.to_owned(), since, reason, slow: slow && name != ALL };
        self.demoted.insert(name.to_owned(), demoted.clone());
        demoted
    }

    fn restore(&mut self, path: &str) -> Vec<String> {
        if path == ALL {
            self.suspects.clear();
            return std::mem::take(&mut self.demoted).into_keys().collect();
        }
        let route = self.routes.of(path.as_bytes());
        self.suspects.remove(&route);
        self.demoted.remove(&route).map(|demoted| demoted.route).into_iter().collect()
    }

    /// The record of a route, created if missing.
    fn suspect(&mut self, route: &str) -> &mut Suspect {
        if self.suspects.len() >= MAX_SUSPECTS && !self.suspects.contains_key(route) {
            let oldest = self.suspects.iter().min_by_key(|(_, suspect)| suspect.heard).map(|(name, _)| name.clone());
            oldest.map(|name| self.suspects.remove(&name));
        }
        self.heard += 1;
        let heard = self.heard;
        let suspect = self.suspects.entry(route.to_owned()).or_default();
        suspect.heard = heard;
        suspect
    }
}

#[cfg(test)]
#[path = "demotions_tests.rs"]
mod tests;
