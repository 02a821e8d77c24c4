//! Learns a pool's warm-up from its traffic: frequent GETs that PHP answers with 200. Requests are grouped by route if
//! a recipe reports it, otherwise by their path with numbers ignored. One path represents its group: the last one,
//! without a query if possible, so that no visitor chooses the warm-up of all workers.
//!
//! Everything is bounded: the number of groups, and the length of the one path in each. Targets that may belong to a
//! visitor are not kept (`target.rs`); frequent ones among them are reported.
//!
//! The plan is kept in the state directory, so that a restarted server need not learn it again. The file has a line for
//! each path, followed by a tab and its group. Paths read from it are checked like those of requests.

use crate::config::PoolConfig;
use crate::learning::kept_file;
use crate::learning::target::{self, Refusal};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of counted groups. A new group replaces the rarest and inherits its count, so frequent groups
/// prevail.
const MAX_GROUPS: usize = 128;
/// Maximum number of learned paths in the warm-up.
const MAX_PATHS: usize = 16;
/// Requests after which the first plan is made.
const FIRST_REVIEW: u64 = 100;
/// Maximum number of requests between two reviews. Until then each review waits for as many requests as were seen
/// before it.
const MAX_REVIEW_INTERVAL: u64 = 1000;
/// Counts are halved when their sum exceeds this, so that old traffic loses its weight.
const WEIGHT: u64 = 2 * MAX_REVIEW_INTERVAL;
/// Requests per tick that are all counted; of further ones, one in `SAMPLE_ONE_IN` is.
const COUNTED_PER_TICK: u64 = 128;
const SAMPLE_ONE_IN: u64 = 16;
/// A group is frequent if at least one of this many requests belongs to it.
const FREQUENT_ONE_IN: u64 = 50;
const MAX_ROUTE_LEN: usize = 128;
/// Maximum number of reports of paths that are not learned.
const MAX_REPORTS: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Learned {
    pool: String,
    /// Number of requests since the last tick.
    came: AtomicU64,
    /// The plan's file.
    kept: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    groups: HashMap<String, Group>,
    /// Sum of all counts, apart from rounding when they are halved.
    weight: u64,
    since_review: u64,
    /// Requests from the last review to the next.
    wait: u64,
    /// Paths with which new workers are warmed up.
    plan: Vec<Planned>,
    /// The plan was read from the file: if it fails, a better one can be learned.
    from_file: bool,
    /// A learned plan failed: learning has stopped.
    refused: bool,
    /// Reports of frequent paths that are not learned.
    reports: Vec<String>,
}

#[derive(Debug)]
struct Group {
    count: u64,
    path: Path,
}

#[derive(Debug)]
enum Path {
    Fit(String),
    /// The last target with possible secrets masked, and the reason why it is not kept.
    Refused(String, Refusal),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Planned {
    group: String,
    path: String,
}

impl Planned {
    fn line(&self) -> String {
        format!("{}\t{}", self.path, self.group)
    }

    fn of_line(line: &str) -> Option<Self> {
        let (path, group) = line.split_once('\t').unwrap_or((line, ""));
        let target = target::read(path.as_bytes()).ok()?;
        let group = if is_route(group.as_bytes()) { group.to_owned() } else { target.group };
        Some(Self { group, path: path.to_owned() })
    }
}

/// True for a valid group name of a route: it begins with a colon, a path with a slash. The name comes from the worker,
/// so it is checked.
fn is_route(name: &[u8]) -> bool {
    (1..=MAX_ROUTE_LEN).contains(&name.len()) && name[0] == b':' && name.iter().all(u8::is_ascii_graphic)
}

impl Learned {
    /// Reads the plan that a pool with these settings kept before the restart.
    pub(crate) fn of(config: &PoolConfig) -> Self {
        let kept = config.state.as_ref().filter(|_| config.learns()).map(|state| kept_file::of_pool(state, config));
        let text = kept.as_deref().and_then(kept_file::read).unwrap_or_default();
        let plan: Vec<Planned> = text.lines().filter_map(Planned::of_line).take(MAX_PATHS).collect();
        if !plan.is_empty() {
            let paths: Vec<&str> = plan.iter().map(|planned| planned.path.as_str()).collect();
            tracing::info!(pool = config.name(), "warm-up: using {} learned before this start", paths.join(" "));
        }
        let state = State { from_file: !plan.is_empty(), plan, ..State::default() };
        Self { pool: config.name().to_owned(), came: AtomicU64::default(), kept, state: Mutex::new(state) }
    }

    /// `true` if the current request is to be counted.
    pub(crate) fn wants_next(&self) -> bool {
        let came = self.came.fetch_add(1, Ordering::Relaxed);
        came < COUNTED_PER_TICK || came.is_multiple_of(SAMPLE_ONE_IN)
    }

    /// Called on each tick of the supervisor: restarts the sampling, so that a pool with few requests learns from all
    /// of them.
    pub(crate) fn tick(&self) {
        self.came.store(0, Ordering::Relaxed);
    }

    /// Counts a GET for this target that was answered with 200, and its route if the worker reported one.
    pub(crate) fn note(&self, target: &[u8], route: Option<&[u8]>) {
        let read = target::read(target);
        let route = route.map(|name| [b":", name].concat()).filter(|name| is_route(name));
        let route = route.and_then(|name| String::from_utf8(name).ok());
        let (group, path) = match read {
            Ok(target) => (route.unwrap_or(target.group), Path::Fit(target.text.to_owned())),
            Err(why) => {
                let masked = target::masked(target);
                (route.unwrap_or_else(|| format!("!{masked}")), Path::Refused(masked, why))
            }
        };
        let mut state = self.state.lock();
        if !state.refused {
            state.note(group, path);
        }
    }

    /// Returns new warm-up paths and the number of requests they are based on, if enough was learned since the last
    /// review to change them. `fixed`: the paths in the settings.
    pub(crate) fn new_plan(&self, fixed: &[String]) -> Option<(Vec<String>, u64)> {
        let mut state = self.state.lock();
        if state.refused || state.since_review < state.wait.max(FIRST_REVIEW) {
            return None;
        }
        let seen = state.weight;
        (state.since_review, state.wait) = (0, seen.min(MAX_REVIEW_INTERVAL));
        let plan = state.next_plan(fixed);
        self.report(&mut state);
        state.age();
        let plan = plan?;
        state.plan.clone_from(&plan);
        state.from_file = false;
        drop(state);
        if let Some(kept) = &self.kept {
            kept_file::write(kept, &plan.iter().map(Planned::line).collect::<Vec<_>>().join("\n"));
        }
        Some((plan.into_iter().map(|planned| planned.path).collect(), seen))
    }

    /// Logs frequent paths that cannot be learned, once each.
    fn report(&self, state: &mut State) {
        for report in state.not_learnt() {
            if state.reports.len() < MAX_REPORTS && !state.reports.contains(&report) {
                tracing::info!(pool = self.pool, "warm-up: frequent paths that are not learned: {report}");
                state.reports.push(report);
            }
        }
    }

    /// The plan's paths: for each group the path seen last.
    pub(crate) fn plan(&self) -> Vec<String> {
        let state = self.state.lock();
        state.plan.iter().map(|planned| state.path_of(&planned.group).unwrap_or(&planned.path).to_owned()).collect()
    }

    /// Reports of frequent paths that are not learned, each with the reason.
    pub(crate) fn reports(&self) -> Vec<String> {
        self.state.lock().reports.clone()
    }

    /// Discards a plan that failed. Returns true if there was one.
    pub(crate) fn refuse(&self) -> bool {
        let mut state = self.state.lock();
        let had_one = !state.plan.is_empty();
        *state = State { refused: had_one && !state.from_file, ..State::default() };
        drop(state);
        if let Some(kept) = self.kept.as_ref().filter(|_| had_one) {
            kept_file::remove(kept);
        }
        had_one
    }

    /// Discards the plan if it was read from the file.
    pub(crate) fn discard_kept_plan(&self) {
        if self.state.lock().from_file {
            self.refuse();
        }
    }
}

impl State {
    fn note(&mut self, group: String, path: Path) {
        self.since_review += 1;
        self.weight += 1;
        if let Some(known) = self.groups.get_mut(&group) {
            known.count += 1;
            known.take(path);
            return;
        }
        let mut count = 1;
        if self.groups.len() >= MAX_GROUPS {
            let rarest = self.groups.iter().min_by_key(|(_, group)| group.count).map(|(name, _)| name.clone());
            count += rarest.and_then(|name| self.groups.remove(&name)).map_or(0, |group| group.count);
        }
        self.groups.insert(group, Group { count, path });
    }

    fn path_of(&self, group: &str) -> Option<&str> {
        match &self.groups.get(group)?.path {
            Path::Fit(path) => Some(path),
            Path::Refused(..) => None,
        }
    }

    fn count_of(&self, group: &str) -> u64 {
        self.groups.get(group).map_or(0, |group| group.count)
    }

    fn is_frequent(&self, group: &Group) -> bool {
        group.count * FREQUENT_ONE_IN >= self.weight
    }

    /// Returns the plan extended by frequent groups that are not in it; `None` if nothing changes. A planned group
    /// stays while there is room, and is replaced only by one twice as frequent: each plan costs a boot.
    fn next_plan(&self, fixed: &[String]) -> Option<Vec<Planned>> {
        let named: HashSet<String> =
            fixed.iter().filter_map(|path| Some(target::read(path.as_bytes()).ok()?.group)).collect();
        let is_named = |path: &str| target::read(path.as_bytes()).is_ok_and(|target| named.contains(&target.group));
        // A page must not count twice because a client adds a query.
        let has_plain = |name: &str| name.split_once('?').is_some_and(|(path, _)| self.groups.contains_key(path));
        let mut plan: Vec<Planned> = self.plan.clone();
        for planned in &mut plan {
            if let Some(path) = self.path_of(&planned.group) {
                path.clone_into(&mut planned.path);
            }
        }
        let mut frequent: Vec<(u64, &String, &String)> = self
            .groups
            .iter()
            .filter(|(_, group)| self.is_frequent(group))
            .filter_map(|(name, group)| match &group.path {
                Path::Fit(path) => Some((group.count, name, path)),
                Path::Refused(..) => None,
            })
            .filter(|(_, name, path)| !is_named(path) && !has_plain(name))
            .filter(|(_, name, _)| !plan.iter().any(|planned| planned.group == **name))
            .collect();
        frequent.sort_by(|a, b| b.cmp(a));
        let mut is_new = false;
        for (count, name, path) in frequent {
            if plan.len() >= MAX_PATHS {
                let rarest = (0..plan.len()).min_by_key(|at| self.count_of(&plan[*at].group));
                match rarest {
                    Some(at) if self.count_of(&plan[at].group) * 2 < count => drop(plan.swap_remove(at)),
                    _ => break,
                }
            }
            plan.push(Planned { group: name.clone(), path: path.clone() });
            is_new = true;
        }
        plan.sort_by_key(|planned| std::cmp::Reverse(self.count_of(&planned.group)));
        is_new.then_some(plan)
    }

    fn not_learnt(&self) -> Vec<String> {
        let mut found: Vec<(u64, String)> = self
            .groups
            .values()
            .filter(|group| self.is_frequent(group))
            .filter_map(|group| match &group.path {
                Path::Refused(masked, why) => Some((group.count, format!("{masked}: {}", why.text()))),
                Path::Fit(_) => None,
            })
            .collect();
        found.sort_by(|a, b| b.cmp(a));
        found.into_iter().map(|(_, report)| report).collect()
    }

    fn age(&mut self) {
        if self.weight > WEIGHT {
            self.weight /= 2;
            self.groups.retain(|_, group| {
                group.count /= 2;
                group.count > 0
            });
        }
    }
}

impl Group {
    fn take(&mut self, path: Path) {
        let keeps = match (&self.path, &path) {
            (Path::Fit(_), Path::Refused(..)) => true,
            (Path::Fit(old), Path::Fit(new)) => new.contains('?') && !old.contains('?'),
            _ => false,
        };
        if !keeps {
            self.path = path;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_config::Mode;

    fn learn(learned: &Learned, target: &str, times: usize) {
        (0..times).for_each(|_| learned.note(target.as_bytes(), None));
    }

    #[test]
    fn frequent_paths_are_planned_one_for_each_group_and_reported_once() {
        let learned = Learned::default();
        learn(&learned, "/posts/1", 30);
        learn(&learned, "/posts/27", 20);
        learn(&learned, "/", 10);
        learn(&learned, "/list?page=2", 30);
        assert_eq!(learned.new_plan(&[]), None, "too few requests");
        learn(&learned, "/list?page=3", 10);
        learn(&learned, "/rare", 1);
        let (plan, seen) = learned.new_plan(&["/".to_owned()]).unwrap();
        assert_eq!((plan, seen), (vec!["/posts/27".to_owned(), "/list?page=3".to_owned()], 101));
        learn(&learned, "/posts/5", 2000);
        assert_eq!(learned.new_plan(&["/".to_owned()]), None, "nothing new");
        learn(&learned, "/new", 50_000);
        assert_eq!(learned.new_plan(&[]).unwrap().0[0], "/new");
        assert!(learned.refuse() && learned.plan().is_empty());
        learn(&learned, "/new", 50_000);
        assert_eq!(learned.new_plan(&[]), None);
    }

    #[test]
    fn a_query_is_not_planned_if_the_path_is_requested_without_one() {
        let learned = Learned::default();
        learn(&learned, "/", 100);
        learn(&learned, "/?lang=xx", 100);
        learn(&learned, "/list?page=1", 100);
        assert_eq!(learned.new_plan(&[]).unwrap().0, ["/list?page=1", "/"]);
    }

    #[test]
    fn a_path_that_becomes_frequent_late_waits_no_longer_than_an_early_one() {
        let learned = Learned::default();
        learn(&learned, "/probe", 100);
        let _ = learned.new_plan(&[]).unwrap();
        for _ in 0..100 {
            learn(&learned, "/probe", 1000);
            assert_eq!(learned.new_plan(&[]), None, "nothing new");
        }
        learn(&learned, "/shop", 999);
        assert_eq!(learned.new_plan(&[]), None, "too few requests since the last review");
        learn(&learned, "/shop", 1);
        assert_eq!(learned.new_plan(&[]).unwrap().0, ["/probe", "/shop"]);
    }

    #[test]
    fn paths_of_one_route_share_an_entry_without_query_or_token() {
        let learned = Learned::default();
        let note = |target: &str, route: &str| learned.note(target.as_bytes(), Some(route.as_bytes()));
        for n in 0..60 {
            let slug: String = (0..6).map(|at| char::from(b'a' + (n >> at & 1) + 2 * at)).collect();
            note(&format!("/products/{slug}"), "product");
            note(&format!("/products/{slug}?utm={n}"), "product");
            note("/c/123e4567-e89b-12d3-a456-426614174000", "cart");
            note("/bad\u{fc}", &"x".repeat(500));
            note("/plain", "");
        }
        note("/products/last-one", "product");
        let (plan, _) = learned.new_plan(&[]).unwrap();
        assert_eq!(plan, ["/products/last-one", "/plain"]);
        let token = "/c/*: a part of it looks like a token or an address";
        assert_eq!(learned.reports(), [token, "/*: it has characters other than printable ASCII"]);
        note("/products/newer", "product");
        assert_eq!(learned.plan()[0], "/products/newer", "it follows the current routes");
    }

    #[test]
    fn a_full_plan_takes_only_groups_twice_as_frequent() {
        let learned = Learned::default();
        let name = |n: u8| format!("/{}", char::from(b'a' + n));
        (0..16).for_each(|n| learn(&learned, &name(n), 20));
        assert_eq!(learned.new_plan(&[]).unwrap().0.len(), MAX_PATHS);
        (0..16).for_each(|n| learn(&learned, &name(n), 40));
        learn(&learned, "/some", 70);
        assert_eq!(learned.new_plan(&[]), None);
        learn(&learned, "/some", 1000);
        let (plan, _) = learned.new_plan(&[]).unwrap();
        assert_eq!((plan.len(), plan[0].as_str()), (MAX_PATHS, "/some"));
    }

    fn learning(state: PathBuf) -> PoolConfig {
        let mut config = crate::tests::test_pool::config(1);
        config.settings.mode = Mode::Snapshot;
        config.settings.script = Some("/app/worker.php".into());
        config.settings.warmup_auto = true;
        config.state = Some(state);
        config
    }

    #[test]
    fn a_plan_survives_a_restart_and_is_relearnt_if_it_fails() {
        let state = tempfile::tempdir().unwrap();
        let config = |name: &str| {
            let mut config = learning(state.path().join("state"));
            config.settings.name = name.to_owned();
            config
        };
        let first = Learned::of(&config("shop"));
        assert!(first.plan().is_empty());
        learn(&first, "/posts/1", 100);
        let (plan, _) = first.new_plan(&[]).unwrap();
        assert!(Learned::of(&config("other")).plan().is_empty());
        let next = Learned::of(&config("shop"));
        assert_eq!(next.plan(), plan);
        learn(&next, "/posts/2", 100);
        assert_eq!(next.new_plan(&[]), None, "nothing new");
        assert!(next.refuse());
        assert!(Learned::of(&config("shop")).plan().is_empty(), "it is gone");
        learn(&next, "/posts/3", 100);
        assert_eq!(next.new_plan(&[]).unwrap().0, ["/posts/3"]);
        assert!(next.refuse(), "a path that was learned now and fails is not learned again");
        learn(&next, "/posts/3", 1000);
        assert_eq!(next.new_plan(&[]), None);
    }

    #[test]
    fn paths_written_into_the_file_are_requested_only_if_they_could_have_been_learned() {
        let state = tempfile::tempdir().unwrap();
        let mut config = learning(state.path().to_owned());
        let many: String = (0..100).map(|n| format!("/page-{}\n", "x".repeat(n))).collect();
        let file = kept_file::of_pool(state.path(), &config);
        kept_file::write(
            &file,
            &format!("*\nhttp://elsewhere/\n/reset/9f86d081884c7d659a2feaa0c55ad015\n/\u{1b}\n{many}"),
        );
        let plan = Learned::of(&config).plan();
        assert_eq!(plan.len(), MAX_PATHS);
        assert!(plan.iter().all(|path| path.starts_with("/page-")), "{plan:?}");
        kept_file::write(&file, &"/page\n".repeat(100_000));
        assert!(Learned::of(&config).plan().is_empty(), "too long");
        config.settings.warmup_auto = false;
        kept_file::write(&file, "/page");
        assert!(Learned::of(&config).plan().is_empty());
    }

    #[test]
    fn many_paths_use_no_more_memory() {
        let learned = Learned::default();
        for n in 0..10_000_u32 {
            let name: String = n.to_string().bytes().map(|b| char::from(b'a' + b - b'0')).collect();
            learned.note(format!("/{name}").as_bytes(), None);
            learned.note(b"/often", None);
        }
        assert!(learned.state.lock().groups.len() <= MAX_GROUPS);
        assert_eq!(learned.new_plan(&[]).unwrap().0, ["/often"]);
    }
}
