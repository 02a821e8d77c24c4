//! Demotes routes of a pool that keeps state between requests to classic mode, because their responses differed from
//! classic mode's, because they took longer than there, or because their requests killed their workers.
//!
//! `routes.rs` defines a route. Only routes under suspicion and demoted ones are remembered, so there is
//! nothing to look up while all is well, and both tables are bounded: of suspects the one that was not heard of for
//! longest is forgotten; where too many routes are demoted, all are, as the pool cannot be trusted with any.

use crate::learning::routes::{Routes, covers};
use crate::learning::target::may_be_asked_again;
use howdah_observe::PoolMetrics;
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// Comparisons of a route that count, and how many of them have to differ, or to have taken longer. One that differs is an
/// error; times scatter.
const COMPARISONS: u32 = 10;
const DIFFERING: u32 = 3;
const SLOWER: u32 = 8;
/// Workers that a route's requests have to kill, and how many of its requests come for one such death at the most.
const DEATHS: u32 = 3;
const REQUESTS: u32 = 10;
/// After so many requests a death is forgotten, and that a route is as fast as in classic mode.
const FORGIVE_AFTER: u32 = 1000;
/// Requests of a route whose restore has searched for written pages, until it is compared.
const SEARCHES: u32 = 20;
/// Deaths of different requests this close to each other are one: something else has killed the workers.
const SAME_DEATH_WINDOW: Duration = Duration::from_millis(5);
/// A death of so long ago counts no more.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// Most routes under suspicion, and most demoted ones.
const SUSPECTS: usize = 256;
const DEMOTED: usize = 128;
/// Maximum length of a reason, in bytes.
const REASON: usize = 400;
/// The name that stands for all routes.
const ALL: &str = "*";

/// Where a request runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It runs in its pool.
    Own,
    /// In its own pool, and it is worth a comparison.
    Suspected,
    /// It runs in classic mode.
    Classic,
    /// In classic mode until workers with another warm-up serve: it was slow.
    Cold,
}

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Same,
    /// The response is the same, and took longer than in classic mode; says by how much.
    Slower(String),
    /// Says how it differs.
    Differs(String),
}

impl Verdict {
    /// Its name in the metric.
    const fn name(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Slower(_) => "slower",
            Self::Differs(_) => "differs",
        }
    }
}

/// A route that is run in classic mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DemotedRoute {
    pub route: String,
    /// Seconds since the epoch.
    pub since: u64,
    pub reason: String,
    /// It took longer, which a warm-up may change.
    #[serde(skip)]
    slow: bool,
}

/// A route of which something is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuspectedRoute {
    pub route: String,
    /// Number of its last comparisons that differed, and of others that were slower than classic mode.
    pub differed: u32,
    pub slower: u32,
    pub compared: u32,
    /// Workers that its requests have killed.
    pub deaths: u32,
    /// Requests after which all memory was searched for written pages, as their code is not warm, and all requests meanwhile.
    pub searched: u32,
    pub came: u32,
}

/// The demotions of one pool.
#[derive(Debug)]
pub struct Demotions {
    pool: Arc<str>,
    /// The pool in classic mode.
    classic: Arc<str>,
    metrics: Arc<PoolMetrics>,
    /// Something is known of some route: all that is looked at while nothing is.
    knows_some: AtomicBool,
    table: Mutex<Table>,
}

impl Demotions {
    pub(crate) fn new(pool: Arc<str>, classic: Arc<str>, metrics: Arc<PoolMetrics>) -> Self {
        Self { pool, classic, metrics, knows_some: AtomicBool::new(false), table: Mutex::default() }
    }

    /// The name of the pool in classic mode.
    #[must_use]
    pub fn classic(&self) -> &str {
        &self.classic
    }

    /// Where a request for this target, which arrives now, is to run.
    #[must_use]
    pub fn way_of(&self, target: &[u8]) -> Way {
        if !self.knows_some.load(Relaxed) {
            return Way::Own;
        }
        let mut table = self.table.lock();
        let route = table.routes.of(target);
        table.note_request(&route)
    }

    /// The application has reported the name of the route that responds to this target.
    pub(crate) fn note_route(&self, target: &[u8], name: &[u8]) {
        // A part of it would be in the status.
        if may_be_asked_again(target) {
            self.table.lock().note_route(name, target);
        }
    }

    /// A response for this target was compared.
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

    /// A request for this target has died with its worker; `again`: as it did before with another one.
    pub(crate) fn note_death(&self, target: &[u8], again: bool) {
        let mut table = self.table.lock();
        let route = table.routes.of(target);
        let demoted = table.note_death(&route, again, Instant::now());
        self.changed(&table, demoted);
    }

    /// A request for this target has run code or used memory that the snapshot does not have: the restore took long.
    pub(crate) fn note_search(&self, target: &[u8]) {
        // It could not be compared, and its visitor's token would be in the status.
        if !may_be_asked_again(target) {
            return;
        }
        let mut table = self.table.lock();
        let route = table.routes.of(target);
        table.note_search(&route);
        self.changed(&table, None);
    }

    /// Workers with another warm-up serve: routes that took longer than in classic mode may not do so any more.
    pub(crate) fn restore_slow(&self) {
        let mut table = self.table.lock();
        let slow: Vec<String> =
            table.demoted.values().filter(|demoted| demoted.slow).map(|demoted| demoted.route.clone()).collect();
        for route in slow {
            table.demoted.remove(&route);
            tracing::info!(pool = &*self.pool, route, "route restored: the pool has a new warm-up");
        }
        self.changed(&table, None);
    }

    /// Gives requests for a path, or for a route by its name, back to the pool; all of them for `*`. How many routes that were.
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

    /// The routes that are run in classic mode.
    #[must_use]
    pub fn demoted(&self) -> Vec<DemotedRoute> {
        self.table.lock().demoted.values().cloned().collect()
    }

    /// The routes under suspicion.
    #[must_use]
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

/// The last comparisons, a bit each, the newest lowest; set where something was found.
#[derive(Debug, Default)]
struct Last(u32);

impl Last {
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
    differed: Last,
    slower: Last,
    /// Number of comparisons.
    compared: u32,
    deaths: u32,
    last_death: Option<Instant>,
    /// Requests since the first death, or the first that was searched for.
    came: u32,
    /// Requests whose restore has searched for written pages.
    searched: u32,
    /// It was as fast as classic mode all the same.
    is_fast: bool,
    /// When it was last heard of, as a number that counts up.
    heard: u64,
}

impl Suspect {
    /// Most of its requests find code or memory that the snapshot does not have, and nothing has shown it to be fast.
    const fn is_cold(&self) -> bool {
        !self.is_fast && self.searched >= SEARCHES && self.searched * 2 > self.came
    }
}

/// The decision table. It knows neither time nor threads.
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

    /// Moves the demotions of a route's single paths to the route.
    fn note_route(&mut self, name: &[u8], target: &[u8]) {
        let Some(route) = self.routes.note(name, target) else { return };
        let demoted: Vec<String> = self.demoted.keys().filter(|path| covers(&route, path)).cloned().collect();
        let demoted: Vec<_> = demoted.iter().filter_map(|path| self.demoted.remove(path)).collect();
        if let Some(demoted) = demoted.into_iter().max_by_key(|demoted| (!demoted.slow, demoted.since)) {
            self.demoted.insert(route.clone(), DemotedRoute { route: route.clone(), ..demoted });
        }
        self.suspects.retain(|path, _| !covers(&route, path));
    }

    fn note_request(&mut self, route: &str) -> Way {
        if let Some(demoted) = self.demoted.get(route).or_else(|| self.demoted.get(ALL)) {
            return if demoted.slow { Way::Cold } else { Way::Classic };
        }
        let Some(suspect) = self.suspects.get_mut(route) else { return Way::Own };
        suspect.came = suspect.came.saturating_add(1);
        if suspect.compared > 0 || suspect.is_cold() {
            return Way::Suspected;
        }
        if suspect.came > FORGIVE_AFTER {
            self.suspects.remove(route);
        }
        Way::Own
    }

    /// The route, should it be demoted by this.
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
                Some(self.demote(route, format!("{differed} of {compared} responses differed, at last {how}"), false))
            }
            Verdict::Slower(how) if slower >= SLOWER => {
                let cold =
                    if suspect.is_cold() { "; it is not warm: each restore searches for written pages" } else { "" };
                let reason =
                    format!("{slower} of {compared} requests took longer than in classic mode, at last {how}{cold}");
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

    /// Records a death.
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
        if self.demoted.len() >= DEMOTED {
            name = ALL;
            reason = format!("{DEMOTED} routes were demoted already; {route}: {reason}");
        }
        let cut = (0..=REASON.min(reason.len())).rev().find(|at| reason.is_char_boundary(*at));
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
        if self.suspects.len() >= SUSPECTS && !self.suspects.contains_key(route) {
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
