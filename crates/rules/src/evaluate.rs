//! Evaluates rules for one request, in order; rules after a rewrite see its result (`run`).

use crate::conditions::Present;
use crate::index::{Candidates, Index, MAX_RULES};
use crate::names::{Name, Protecting, open_above};
use crate::outcome::Outcome;
use crate::pattern::PathPattern;
use crate::regex::TooManySteps;
use crate::request::{Files, Request};
use crate::rule::{Action, Route, Rule, Try};
use crate::run::Run;
use crate::template::Template;
use crate::trace::{Trace, Verdict};
use crate::tree::Problem;
use std::borrow::Cow;
use std::sync::Arc;

/// The rules of a site, compiled.
#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// For each rule, the conditions and negated conditions that it has.
    present: Vec<(Present, Present)>,
    index: Index,
    /// The rules that protect files, and those with `last`, for the names of the destination.
    protecting: Protecting,
    /// The routes of the rules, indexed by their number minus 1.
    routes: Vec<Arc<Route>>,
}

impl Rules {
    /// Compiles rules.
    ///
    /// # Errors
    /// All errors in the rules.
    pub fn new(mut rules: Vec<Rule>) -> Result<Self, Vec<Problem>> {
        let mut problems: Vec<Problem> = rules.iter_mut().flat_map(resolve).collect();
        if rules.len() > MAX_RULES {
            problems.push(Problem::new(0, "rule", format!("there are more than {MAX_RULES} rules")));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let index = Index::new(&rules);
        let present = rules.iter().map(|rule| (rule.conditions.present(), rule.not.present())).collect();
        let protecting = Protecting::new(&rules);
        let routes = number_routes(&mut rules);
        Ok(Self { rules, present, index, protecting, routes })
    }

    /// The routes of the rules, each at its number minus 1.
    pub fn routes(&self) -> &[Arc<Route>] {
        &self.routes
    }

    /// The pools that rules name.
    pub fn pools(&self) -> impl Iterator<Item = &str> {
        let actions = self.rules.iter().flat_map(|rule| &rule.actions);
        actions.filter_map(|action| if let Action::Pool(pool) = action { Some(&**pool) } else { None })
    }

    /// The rules, in their order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// `true` if there are no rules.
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Evaluates the rules for a request; `None` if no rule has an effect.
    pub fn evaluate(&self, request: &Request<'_>, files: &impl Files, trace: &mut impl Trace) -> Option<Box<Outcome>> {
        if self.rules.is_empty() {
            return None;
        }
        let mut run = Run::new(request, files, None);
        self.follow(&mut run, trace);
        if let Some(outcome) = &mut run.outcome {
            outcome.judged = std::mem::take(&mut run.judged);
        }
        if run.rewritten {
            let (path, query) = (run.path.into_owned(), run.query.map(Cow::into_owned));
            let outcome = run.outcome.get_or_insert_default();
            (outcome.path, outcome.query) = (Some(path), Some(query));
        }
        run.outcome
    }

    /// `true` if any rule protects something by its path.
    pub const fn protect(&self) -> bool {
        !self.protecting.is_empty()
    }

    /// Applies the protecting rules to the names of a request's destination (`names`); `None` if they have no effect.
    /// `first` is the rules' result for the path. The outcome has only `access`, `php`, `stop` and `judged`.
    pub fn judge(
        &self,
        request: &Request<'_>,
        names: &[Name<'_>],
        first: Option<&Outcome>,
        files: &impl Files,
        trace: &mut impl Trace,
    ) -> Option<Box<Outcome>> {
        self.protecting.judge(request, names, first, files, trace)
    }

    /// Rules that protect everything below a path but not the path itself, with that path.
    pub fn open_above(&self) -> impl Iterator<Item = (&Rule, String)> {
        self.rules.iter().filter_map(|rule| Some((rule, open_above(rule)?)))
    }

    fn follow<T: Trace>(&self, run: &mut Run<'_, impl Files>, trace: &mut T) {
        let mut candidates = self.index.candidates(&run.path, run.original.host);
        let mut from = 0;
        while let Some(at) = self.next::<T>(&candidates, from) {
            from = at + 1;
            let rule = &self.rules[at];
            let known = !T::ON && self.index.is_settled(at);
            match run.misses(rule, self.present[at], known) {
                Err(TooManySteps) => {
                    run.fail(rule, "its pattern took too many steps");
                    break;
                }
                Ok(Some(missed)) => {
                    if T::ON {
                        trace.rule(at, &rule.name, Verdict::Missed(missed.key.word(), missed.wanted(rule)));
                    }
                    continue;
                }
                Ok(None) => {}
            }
            if T::ON {
                let actions = rule.describe_actions();
                trace.rule(at, &rule.name, Verdict::Matched(&actions));
            }
            if self.protecting.has(at) {
                run.judged.add(u16::try_from(at).unwrap_or(u16::MAX));
            }
            let done = run.apply(rule);
            if done.stop || rule.last {
                break;
            }
            if done.rewritten {
                candidates = self.index.candidates(&run.path, run.original.host);
            }
        }
        if T::ON {
            for (at, rule) in self.rules.iter().enumerate().skip(from) {
                trace.rule(at, &rule.name, Verdict::Skipped);
            }
        }
    }

    /// The next rule to evaluate; with a trace every rule, to report why it does not match.
    fn next<T: Trace>(&self, candidates: &Candidates, from: usize) -> Option<usize> {
        if T::ON { (from < self.rules.len()).then_some(from) } else { candidates.next(from) }
    }
}

/// Numbers the routes, from 1.
fn number_routes(rules: &mut [Rule]) -> Vec<Arc<Route>> {
    let mut routes = Vec::new();
    for action in rules.iter_mut().flat_map(|rule| &mut rule.actions) {
        if let Action::Route(route) = action {
            *route = Arc::new(Route { number: routes.len() + 1, ..(**route).clone() });
            routes.push(route.clone());
        }
    }
    routes
}

/// Resolves the references in a rule's templates.
fn resolve(rule: &mut Rule) -> Vec<Problem> {
    let groups = rule.conditions.path.iter().map(PathPattern::groups).max().unwrap_or(1);
    let paths = &rule.conditions.path;
    let has_group =
        |name: &str| paths.iter().any(|path| matches!(path, PathPattern::Regex(regex) if regex.has_group(name)));
    let mut problems = Vec::new();
    let line = rule.line;
    let mut settle = |key: &str, template: &mut Template| {
        if let Err(error) = template.resolve(groups, has_group) {
            problems.push(Problem::new(line, key, error));
        }
    };
    for action in &mut rule.actions {
        match action {
            Action::Rewrite(template, _) => settle("rewrite", template),
            Action::Redirect(template, _, _) => settle("redirect", template),
            Action::TryFiles(list) => {
                let mut own: Vec<Try> = list.to_vec();
                for attempt in &mut own {
                    if let Try::Path(template) = attempt {
                        settle("try_files", template);
                    }
                }
                *list = own.into();
            }
            _ => {}
        }
    }
    problems
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
mod tests;
