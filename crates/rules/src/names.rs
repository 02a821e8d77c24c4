//! Second evaluation of the rules that protect files. The served file may have another name than the requested path:
//! `/login.php/x` runs `/login.php`, `/` an index, every page a front controller, and a rewrite leads elsewhere.
//! Protecting rules are therefore evaluated again for these names, so that no other path to a file bypasses its rule.
//!
//! - Protecting actions are `allow`, `deny`, `limit`, `auth`, `php`, `status`, `maintenance`, and a redirect in a rule
//!   with `https = false`, each in a rule with a condition on the path or on `exists`. All others run once.
//! - A rule that was applied for the path is not applied again: what later rules have lifted stays lifted, and no limit
//!   counts twice.
//! - A rule that matches every path (`/*`, or all but some) concerns URLs. It does not apply to the script or index
//!   that serves a URL, because no exception from it would be possible then. It applies only to the target of a rewrite
//!   or link.

use crate::conditions::Present;
use crate::index::Index;
use crate::outcome::{Access, Outcome, Stop};
use crate::request::{Files, Request};
use crate::rule::{Action, Conditions, Kind, Place, Rule};
use crate::run::Run;
use crate::trace::{Trace, Verdict};
use std::sync::Arc;

/// Paths that no pattern is written for: a condition that matches these matches every path.
const ANY_PATHS: [&[u8]; 2] = [b"/\x01", b"/\x01/\x01"];

/// A name of the file or script that will be served.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a> {
    /// Decoded and normalized, like a requested path.
    pub path: &'a [u8],
    /// A rewrite or link has led to this name, so rules for every path count too.
    pub elsewhere: bool,
    /// The name is that of the served file, not only of the requested path; `php` applies only to served files.
    pub served: bool,
}

/// The protecting rules, and the rules that make exceptions from them.
#[derive(Debug, Default)]
pub(crate) struct Protecting {
    rules: Vec<Rule>,
    present: Vec<(Present, Present)>,
    /// For each rule, `true` if it matches every path, apart from excluded ones.
    general: Vec<bool>,
    /// The number of each rule among all rules of the site.
    numbers: Vec<u16>,
    index: Index,
}

impl Protecting {
    pub(crate) fn new(all: &[Rule]) -> Self {
        let mut found = Self::default();
        for (at, rule) in all.iter().enumerate() {
            let by_path = |conditions: &Conditions| !conditions.path.is_empty() || !conditions.exists.is_empty();
            let actions: Vec<Action> = rule.actions.iter().filter(|action| protects(rule, action)).cloned().collect();
            if rule.last || (!actions.is_empty() && (by_path(&rule.conditions) || by_path(&rule.not))) {
                found.numbers.push(u16::try_from(at).unwrap_or(u16::MAX));
                found.rules.push(Rule { actions, ..rule.clone() });
            }
        }
        if found.rules.iter().all(|rule| rule.actions.iter().all(takes_back)) {
            return Self::default();
        }
        found.present = found.rules.iter().map(|rule| (rule.conditions.present(), rule.not.present())).collect();
        found.general = found.rules.iter().map(is_general).collect();
        found.index = Index::new(&found.rules);
        found
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// `true` if the rule with this number is a protecting one or an exception.
    pub(crate) fn has(&self, number: usize) -> bool {
        u16::try_from(number).is_ok_and(|number| self.numbers.binary_search(&number).is_ok())
    }

    /// Applies the rules to the names of a request's destination; `None` if they have no effect. `first` is the rules'
    /// result for the path. The outcome has only `access`, `php`, `stop` and `judged`.
    pub(crate) fn judge<T: Trace>(
        &self,
        request: &Request<'_>,
        names: &[Name<'_>],
        first: Option<&Outcome>,
        files: &impl Files,
        trace: &mut T,
    ) -> Option<Box<Outcome>> {
        let mut all: Option<Box<Outcome>> = None;
        for name in names {
            if let Some(one) = self.judge_one(request, *name, first, files, trace) {
                match &mut all {
                    Some(all) => all.join(*one),
                    None => all = Some(one),
                }
            }
            if all.as_ref().is_some_and(|all| all.stop.is_some()) {
                break;
            }
        }
        all.filter(|all| !all.access.is_empty() || all.stop.is_some() || all.php == Some(false))
    }

    fn judge_one<T: Trace>(
        &self,
        request: &Request<'_>,
        name: Name<'_>,
        first: Option<&Outcome>,
        files: &impl Files,
        trace: &mut T,
    ) -> Option<Box<Outcome>> {
        let own = Request { path: name.path, ..*request };
        let place: Option<&Arc<Place>> = first.and_then(|first| first.place.as_ref());
        let mut run = Run::new(&own, files, place.map(|place| &**place));
        let candidates = self.index.candidates(name.path, request.host);
        let mut from = 0;
        while let Some(at) = candidates.next(from) {
            from = at + 1;
            let (rule, number) = (&self.rules[at], self.numbers[at]);
            match run.misses(rule, self.present[at], self.index.is_settled(at)) {
                Ok(None) => {}
                Ok(Some(_)) => continue,
                Err(_) => {
                    run.fail(rule, "its pattern took too many steps");
                    break;
                }
            }
            let known = first.is_some_and(|first| first.judged.has(number)) || (self.general[at] && !name.elsewhere);
            if !known && !rule.actions.is_empty() {
                if T::ON {
                    let actions = rule.describe_actions();
                    trace.rule(usize::from(number), &rule.name, Verdict::Matched(&actions));
                }
                run.judged.add(number);
                run.protect(rule, request);
            }
            if rule.last || run.outcome.as_ref().is_some_and(|outcome| outcome.stop.is_some()) {
                break;
            }
        }
        let (mut outcome, judged) = (run.outcome?, run.judged);
        outcome.judged = judged;
        outcome.php = outcome.php.filter(|_| name.served);
        Some(outcome)
    }
}

/// `true` if an action restricts access to a rule's path.
fn protects(rule: &Rule, action: &Action) -> bool {
    match action {
        Action::Allow(_) | Action::Deny(_) | Action::Status(..) | Action::Maintenance(_) => true,
        Action::Limit(_) | Action::Auth(_) | Action::Php(_) => true,
        // With `https = false` the redirect cannot loop.
        Action::Redirect(..) => rule.conditions.https == Some(false),
        _ => false,
    }
}

/// `true` if an action only lifts other rules' restrictions.
fn takes_back(action: &Action) -> bool {
    matches!(action, Action::Auth(None) | Action::Php(true))
}

/// `true` if a rule's path conditions match every path, apart from excluded ones.
fn is_general(rule: &Rule) -> bool {
    let fits =
        |conditions: &Conditions, any: &[u8]| conditions.path.iter().any(|path| path.matches(any).unwrap_or(false));
    let holds = |any: &[u8]| (rule.conditions.path.is_empty() || fits(&rule.conditions, any)) && !fits(&rule.not, any);
    ANY_PATHS.iter().all(|any| holds(any))
}

impl<F: Files> Run<'_, F> {
    /// Applies the protecting actions of a rule; in a redirect, `$path` is the requested path.
    fn protect(&mut self, rule: &Rule, request: &Request<'_>) {
        for action in &rule.actions {
            if let Action::Redirect(template, mode, status) = action {
                let Ok(captures) = self.captures(rule) else {
                    self.fail(rule, "its pattern took too many steps");
                    return;
                };
                let location = self.location(template, *mode, &captures, request);
                match location {
                    Some(location) => self.outcome().stop = Some(Stop::Redirect(*status, location)),
                    None => self.fail(rule, "its redirect is too long"),
                }
            } else {
                self.set(action);
            }
            if self.outcome.as_ref().is_some_and(|outcome| outcome.stop.is_some()) {
                return;
            }
        }
    }
}

impl Outcome {
    /// Merges the result for another name: the restrictions of both apply.
    fn join(&mut self, other: Self) {
        let same = |a: &Access, b: &Access| match (a, b) {
            (Access::Limit(a), Access::Limit(b)) => Arc::ptr_eq(a, b),
            (Access::Auth(a), Access::Auth(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        for access in other.access {
            if !self.access.iter().any(|there| same(there, &access)) {
                self.access.push(access);
            }
        }
        self.php = match (self.php, other.php) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (own, other) => own.or(other),
        };
        self.judged.extend(&other.judged);
        self.stop = self.stop.take().or(other.stop);
    }
}

/// The path that a rule leaves open while it protects everything below it: a front controller may serve that path as a
/// page.
pub(crate) fn open_above(rule: &Rule) -> Option<String> {
    use crate::pattern::PathPattern;
    let guards = |action: &Action| match action {
        Action::Allow(_) | Action::Deny(_) | Action::Auth(Some(_)) => true,
        Action::Status(status, _) => status.is_client_error(),
        _ => false,
    };
    let holds = |path: &str| rule.conditions.path.iter().any(|own| own.matches(path.as_bytes()).unwrap_or(true));
    let below = |path: &PathPattern| path.mount().map(str::to_owned).filter(|_| matches!(path, PathPattern::Prefix(_)));
    if !rule.actions.iter().any(guards) || rule.conditions.exists.iter().any(|kind| *kind != Kind::No) {
        return None;
    }
    rule.conditions.path.iter().filter_map(below).find(|mount| !mount.is_empty() && !holds(mount))
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
