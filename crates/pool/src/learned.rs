//! What a pool learns of its traffic for its warm-up: which GETs are frequent and answered by PHP with 200. Paths that
//! differ in their numbers alone are one; of such a group the last path stands for all. A path with a query is planned only
//! where the path without one was not seen.
//!
//! All of it is bounded: so many groups, each with one path of so many bytes. What looks like a secret is not kept: a
//! warm-up request is repeated with each boot, and stands in the log.
//!
//! The plan is kept in the state directory, so that a server that starts anew need not learn it again. There it is a line for
//! each path; what is read is looked at as requests are.

use crate::config::PoolConfig;
use crate::kept_file;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Groups that are counted. A new one takes the place of the rarest, with its count: what is frequent comes through.
const MOST_GROUPS: usize = 128;
/// Paths that the warm-up gets.
const MOST_PATHS: usize = 16;
/// Requests after which the first plan is made; after each, as many again as were seen until the next. What comes since the
/// last plan thus has the weight of all before, and plans become rare: each that differs costs a boot.
const FIRST_LOOK: u64 = 100;
/// Requests that are all looked at. Of later ones it is one in `SAMPLE`.
const ALL: u64 = 1000;
const SAMPLE: u64 = 16;
/// One of so many requests has to be of a group for it to be frequent.
const RARE: u64 = 50;
const LONGEST_PATH: usize = 256;
const LONGEST_QUERY: usize = 64;
/// A word without a space or a hyphen that is longer than this may be a token.
const LONGEST_WORD: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Learned {
    came: AtomicU64,
    /// Where the plan is kept.
    kept: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    groups: HashMap<String, Group>,
    looked_at: u64,
    look_at: u64,
    /// What new workers are warmed up with.
    plan: Vec<String>,
    /// It is of before the start: should it not work any more, a better one can be learnt.
    of_before: bool,
    /// A plan did not work: nothing is learnt any more.
    refused: bool,
}

#[derive(Debug)]
struct Group {
    count: u64,
    path: String,
}

impl Learned {
    /// What a pool of these settings has learnt before the start, as far as that was kept.
    pub(crate) fn of(config: &PoolConfig) -> Self {
        let kept = config.state.as_ref().filter(|_| config.learns).map(|state| kept_file::of_pool(state, config));
        let text = kept.as_deref().and_then(kept_file::read).unwrap_or_default();
        let plan: Vec<String> =
            text.lines().filter_map(|path| Some(group_of(path.as_bytes())?.1)).take(MOST_PATHS).collect();
        if !plan.is_empty() {
            tracing::info!(pool = config.name(), "warm-up: learnt {} before this start", plan.join(" "));
        }
        let state = State { of_before: !plan.is_empty(), plan, ..State::default() };
        Self { came: AtomicU64::default(), kept, state: Mutex::new(state) }
    }

    /// Whether the request that comes now is to be looked at.
    pub(crate) fn wants_next(&self) -> bool {
        let came = self.came.fetch_add(1, Ordering::Relaxed);
        came < ALL || came.is_multiple_of(SAMPLE)
    }

    /// A GET for this target was answered with 200.
    pub(crate) fn note(&self, target: &[u8]) {
        let Some((group, path)) = group_of(target) else { return };
        let mut state = self.state.lock();
        if state.refused {
            return;
        }
        state.looked_at += 1;
        if state.groups.len() >= MOST_GROUPS && !state.groups.contains_key(&group) {
            let Some((rarest, count)) =
                state.groups.iter().map(|(name, group)| (name, group.count)).min_by_key(|g| g.1)
            else {
                return;
            };
            let rarest = rarest.clone();
            state.groups.remove(&rarest);
            state.groups.insert(group, Group { count: count + 1, path });
            return;
        }
        match state.groups.entry(group) {
            Entry::Occupied(mut known) => {
                known.get_mut().count += 1;
                known.get_mut().path = path;
            }
            Entry::Vacant(new) => drop(new.insert(Group { count: 1, path })),
        }
    }

    /// The paths that new workers are to be warmed up with, if enough has been learnt since the last time to change them.
    /// `fixed`: those that the settings name.
    pub(crate) fn new_plan(&self, fixed: &[String]) -> Option<(Vec<String>, u64)> {
        let mut state = self.state.lock();
        if state.looked_at < state.look_at.max(FIRST_LOOK) || state.refused {
            return None;
        }
        let seen = state.looked_at;
        state.look_at = seen.saturating_mul(2);
        let named: Vec<String> = fixed.iter().filter_map(|path| Some(group_of(path.as_bytes())?.0)).collect();
        // Whoever sends the path with a query must not choose what warms up everybody's workers.
        let has_plain = |name: &str| name.split_once('?').is_some_and(|(path, _)| state.groups.contains_key(path));
        let is_frequent =
            |(name, group): &(&String, &Group)| group.count * RARE >= seen && !named.contains(name) && !has_plain(name);
        let mut frequent: Vec<(u64, &str)> =
            state.groups.iter().filter(is_frequent).map(|(_, group)| (group.count, group.path.as_str())).collect();
        frequent.sort_by(|a, b| b.cmp(a));
        let plan: Vec<String> = frequent.iter().take(MOST_PATHS).map(|(_, path)| (*path).to_owned()).collect();
        let known: Vec<_> = state.plan.iter().filter_map(|path| Some(group_of(path.as_bytes())?.0)).collect();
        let is_new = |path: &String| group_of(path.as_bytes()).is_some_and(|(group, _)| !known.contains(&group));
        if !plan.iter().any(is_new) {
            return None;
        }
        state.plan.clone_from(&plan);
        state.of_before = false;
        drop(state);
        if let Some(kept) = &self.kept {
            kept_file::write(kept, &plan.join("\n"));
        }
        Some((plan, seen))
    }

    pub(crate) fn plan(&self) -> Vec<String> {
        self.state.lock().plan.clone()
    }

    /// The plan does not work. True: there was one.
    pub(crate) fn refuse(&self) -> bool {
        let mut state = self.state.lock();
        let had_one = !state.plan.is_empty();
        *state = State { refused: had_one && !state.of_before, ..State::default() };
        drop(state);
        if let Some(kept) = self.kept.as_ref().filter(|_| had_one) {
            kept_file::remove(kept);
        }
        had_one
    }

    /// The same, if the plan is of before the start.
    pub(crate) fn forget_what_was_before(&self) {
        if self.state.lock().of_before {
            self.refuse();
        }
    }
}

/// The group of a target, and the target as text; none for what is not to be asked for again.
fn group_of(target: &[u8]) -> Option<(String, String)> {
    let text = std::str::from_utf8(target).ok()?;
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    let is_plain = text.bytes().all(|b| b.is_ascii_graphic());
    let is_fit = path.starts_with('/')
        && path.len() <= LONGEST_PATH
        && query.is_none_or(|query| query.len() <= LONGEST_QUERY)
        && !path.split('/').any(looks_secret)
        && !query.is_some_and(|query| query.split(['&', '=', ';']).any(looks_secret));
    if !is_plain || !is_fit {
        return None;
    }
    let mut group = String::with_capacity(text.len());
    for c in path.chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if c != '0' || !group.ends_with('0') {
            group.push(c);
        }
    }
    for name in query.into_iter().flat_map(|query| query.split('&')) {
        group.push('?');
        group.push_str(name.split('=').next().unwrap_or_default());
    }
    Some((group, text.to_owned()))
}

/// Whether a target may be asked for again in nobody's name: it has no token that makes it somebody's, or that is used up by
/// being asked for.
#[must_use]
pub fn may_be_asked_again(target: &[u8]) -> bool {
    group_of(target).is_some()
}

/// Words of readers have hyphens, or no digits; tokens have neither the one nor lack the other. A UUID is no word either.
fn looks_secret(text: &str) -> bool {
    let has_digit = text.bytes().any(|b| b.is_ascii_digit());
    let mixed = text.bytes().any(|b| b.is_ascii_uppercase()) && text.bytes().any(|b| b.is_ascii_lowercase());
    let is_uuid = text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let longest = text.split(['-', '.', ',', '+']).map(str::len).max().unwrap_or(0);
    let is_hex = text.len() >= 12 && has_digit && text.bytes().all(|b| b.is_ascii_hexdigit());
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    is_uuid
        || (is_hex && !is_number)
        || (longest > LONGEST_WORD && (has_digit || mixed))
        || (longest >= 12 && has_digit && mixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(learned: &Learned, target: &str, times: usize) {
        (0..times).for_each(|_| learned.note(target.as_bytes()));
    }

    #[test]
    fn frequent_paths_are_planned_one_for_each_group_and_told_once() {
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
    fn a_query_is_not_planned_where_the_path_is_asked_for_without_one() {
        let learned = Learned::default();
        learn(&learned, "/", 100);
        learn(&learned, "/?lang=xx", 100);
        learn(&learned, "/list?page=1", 100);
        assert_eq!(learned.new_plan(&[]).unwrap().0, ["/list?page=1", "/"]);
    }

    #[test]
    fn a_path_that_becomes_frequent_is_planned_before_the_requests_of_before_have_come_again() {
        let learned = Learned::default();
        learn(&learned, "/probe", 100);
        let _ = learned.new_plan(&[]).unwrap();
        learn(&learned, "/probe", 900);
        assert_eq!(learned.new_plan(&[]), None, "nothing new");
        learn(&learned, "/shop", 999);
        assert_eq!(learned.new_plan(&[]), None, "too few requests since the last look");
        learn(&learned, "/shop", 1);
        assert_eq!(learned.new_plan(&[]).unwrap().0, ["/shop", "/probe"]);
    }

    #[test]
    fn what_looks_like_a_secret_is_not_kept() {
        let kept = |target: &str| group_of(target.as_bytes()).is_some();
        for target in ["/", "/en/blog/posts/a-long-title-of-2024", "/api/products/12?page=2&sort=name", "/a.b/c_d"] {
            assert!(kept(target), "{target}");
        }
        for target in [
            "/reset/9f86d081884c7d659a2feaa0c55ad015",
            "/a?token=9f86d081884c7d659a2feaa0c55ad015",
            "/a?key=aB3dE5fG7hI9",
            "/confirm/4f3c2b1a9e8d7c6b",
            "/unsubscribe/123e4567-e89b-12d3-a456-426614174000",
            "/a?state=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx",
            "*",
            "/ü",
        ] {
            assert!(!kept(target), "{target}");
        }
        assert!(!kept(&format!("/{}", "a-".repeat(200))) && !kept(&format!("/?{}", "a=b&".repeat(20))));
    }

    #[test]
    fn a_plan_is_there_again_at_the_next_start_and_one_that_fails_then_can_be_learnt_anew() {
        let state = tempfile::tempdir().unwrap();
        let config = |name: &str| {
            let mut config = crate::pool_stage::config(1);
            (config.learns, config.state) = (true, Some(state.path().join("state")));
            config.boot.pool = name.to_owned();
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
        assert!(next.refuse(), "what was learnt now, and fails, is not learnt again");
        learn(&next, "/posts/3", 1000);
        assert_eq!(next.new_plan(&[]), None);
    }

    #[test]
    fn what_somebody_has_written_into_the_file_is_asked_for_only_if_it_could_have_been_learnt() {
        let state = tempfile::tempdir().unwrap();
        let mut config = crate::pool_stage::config(1);
        (config.learns, config.state) = (true, Some(state.path().to_owned()));
        let many: String = (0..100).map(|n| format!("/page-{}\n", "x".repeat(n))).collect();
        let file = kept_file::of_pool(state.path(), &config);
        kept_file::write(
            &file,
            &format!("*\nhttp://elsewhere/\n/reset/9f86d081884c7d659a2feaa0c55ad015\n/\u{1b}\n{many}"),
        );
        let plan = Learned::of(&config).plan();
        assert_eq!(plan.len(), MOST_PATHS);
        assert!(plan.iter().all(|path| path.starts_with("/page-")), "{plan:?}");
        kept_file::write(&file, &"/page\n".repeat(100_000));
        assert!(Learned::of(&config).plan().is_empty(), "too long");
        config.learns = false;
        kept_file::write(&file, "/page");
        assert!(Learned::of(&config).plan().is_empty());
    }

    #[test]
    fn many_paths_use_no_more_memory() {
        let learned = Learned::default();
        for n in 0..10_000_u32 {
            let name: String = n.to_string().bytes().map(|b| char::from(b'a' + b - b'0')).collect();
            learned.note(format!("/{name}").as_bytes());
            learned.note(b"/often");
        }
        assert!(learned.state.lock().groups.len() <= MOST_GROUPS);
        assert_eq!(learned.new_plan(&[]).unwrap().0, ["/often"]);
    }
}
