//! The second judgement: what is served may have another name than the path that was asked for (`/login.php/x` runs
//! `/login.php`, `/` an index, every page a front controller, a rewrite leads elsewhere). Rules that protect are followed
//! once more with such names, so that no other way to a file leads around a rule for it.
//!
//! - What protects is `allow`, `deny`, `limit`, `auth`, `php`, `status`, `maintenance`, and a redirect of a rule with
//!   `https = false`. Everything else is done once, with the path.
//! - A rule that was followed for the path is not followed again: what later rules have taken back of it stays so, and no
//!   limit counts twice.
//! - A rule that holds for every path (`/*`, or all but some) is about addresses. It says nothing of the script or the
//!   index that stands for an address, or no exception could be made from it; only of what a rewrite or link leads to.

use crate::conditions::Present;
use crate::index::Index;
use crate::outcome::{Access, Outcome, Stop};
use crate::request::{Files, Request};
use crate::rule::{Action, Conditions, Kind, Place, Rule};
use crate::run::Run;
use crate::trace::{Trace, Verdict};
use std::sync::Arc;

/// Paths that no pattern is written for: what holds for these holds for every path.
const ANY_PATHS: [&[u8]; 2] = [b"/\x01", b"/\x01/\x01"];

/// A name of what will be served.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a> {
    /// Decoded and normalised, as a path would be that names it.
    pub path: &'a [u8],
    /// The destination differs from the requested path, so rules for every path count too.
    pub elsewhere: bool,
    /// It names what is served, and not only how it was requested: `php` is about the former.
    pub served: bool,
}

/// The rules that protect what has a name, and those that make exceptions.
#[derive(Debug, Default)]
pub(crate) struct Protecting {
    rules: Vec<Rule>,
    present: Vec<(Present, Present)>,
    /// Which of them hold for every path.
    general: Vec<bool>,
    /// The number of each among all rules.
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

    /// `true` if the rule with this number is one of them.
    pub(crate) fn has(&self, number: usize) -> bool {
        u16::try_from(number).is_ok_and(|number| self.numbers.binary_search(&number).is_ok())
    }

    /// Applies them to the names of a request's destination; `None` without effect. `first` is their result for its
    /// path. The outcome has only `access`, `php`, `stop` and `judged`.
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
        // It cannot lead back to itself.
        Action::Redirect(..) => rule.conditions.https == Some(false),
        _ => false,
    }
}

/// `true` if an action only lifts other rules' restrictions.
fn takes_back(action: &Action) -> bool {
    matches!(action, Action::Auth(None) | Action::Php(true))
}

/// `true` if a rule's conditions on the path hold for every path, except for those that it excludes.
fn is_general(rule: &Rule) -> bool {
    let fits =
        |conditions: &Conditions, any: &[u8]| conditions.path.iter().any(|path| path.matches(any).unwrap_or(false));
    let holds = |any: &[u8]| (rule.conditions.path.is_empty() || fits(&rule.conditions, any)) && !fits(&rule.not, any);
    ANY_PATHS.iter().all(|any| holds(any))
}

impl<F: Files> Run<'_, F> {
    /// Does what a rule does that protects; in a redirect `$path` is the path that was asked for.
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
    /// Adds what was said of another name: all of it holds.
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

/// A rule that protects what lies below a path and leaves the path itself open: a front controller makes a page of it.
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
