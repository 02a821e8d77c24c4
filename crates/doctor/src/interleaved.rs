//! Runs all pages in one process, by several visitors in turn, and finds pages that show state of another page, and the
//! page that left it. That page is found by bisecting the pages before, and is then requested alone before the
//! differing one, so that a page which only shows another's leak is not blamed.

use crate::compare::{Difference, Expected, Words};
use crate::findings::{Finding, Severity};
use crate::mode::Mode;
use crate::pages::Page;
use crate::state::places;
use crate::subject::{ProbeScope, Subject};
use crate::visitor::Visitor;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// Number of requests for each page, each by another visitor.
const ROUNDS: usize = 2;

/// Maximum number of causes to find.
const CAUSES: usize = 3;

/// Maximum number of pages with known leaks that are tested one by one.
const MAX_SUSPECTS: usize = 16;

/// A page that differs.
#[derive(Debug)]
pub(crate) struct Differing {
    pub(crate) difference: Difference,
    /// The pages that were requested before.
    before: Vec<usize>,
}

/// Requests in order, each with its visitor.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pages: &'a [Page],
    visitors: usize,
    steps: Vec<(usize, usize)>,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(pages: &'a [Page], visitors: usize) -> Self {
        let steps = (0..ROUNDS).flat_map(|round| (0..pages.len()).map(move |page| ((page + round) % visitors, page)));
        Self { pages, visitors, steps: steps.collect() }
    }

    /// Runs the plan and returns the response to each step. In async mode, as many requests run at once as there are
    /// visitors.
    pub(crate) fn run(&self, subject: &mut Subject<'_>) -> Vec<Words> {
        subject.begin_anew(&self.pages[0]);
        let mut visitors = Visitor::several(self.visitors);
        let mut words = Vec::new();
        if subject.mode != Mode::Async {
            for &(who, page) in &self.steps {
                words.push(subject.visit(&mut visitors[who], &self.pages[page], ProbeScope::Full).1);
            }
            subject.look(&self.pages[0]);
            return words;
        }
        // Consecutive steps have different visitors, except at the end of a round.
        let mut at = 0;
        while at < self.steps.len() {
            let mut busy = BTreeSet::new();
            let count = self.steps[at..].iter().take_while(|(who, _)| busy.insert(*who)).count();
            let chunk: BTreeMap<usize, usize> = self.steps[at..at + count].iter().copied().collect();
            let visits = visitors.iter_mut().enumerate().filter_map(|(who, v)| Some((who, v, *chunk.get(&who)?)));
            let (order, visits): (Vec<usize>, Vec<_>) =
                visits.map(|(who, v, page)| (who, (v, &self.pages[page]))).unzip();
            let mut by: BTreeMap<usize, Words> = order.into_iter().zip(subject.visit_at_once(visits)).collect();
            words.extend(self.steps[at..at + count].iter().filter_map(|(who, _)| by.remove(who)));
            at += count;
        }
        words
    }

    /// Returns the pages that differ from classic mode, with their first difference and the pages requested before.
    pub(crate) fn differing(&self, classic: &[Vec<Words>], here: &[Words]) -> BTreeMap<usize, Differing> {
        let mut found = BTreeMap::new();
        for (at, &(_, page)) in self.steps.iter().enumerate() {
            let expected = Expected::of(classic.iter().filter_map(|run| run.get(at).cloned()).collect());
            if let Some(difference) = here.get(at).and_then(|words| expected.difference(words)) {
                let mut before: Vec<usize> = Vec::new();
                for &(_, suspect) in self.steps[..at].iter().filter(|(_, suspect)| *suspect != page) {
                    if !before.contains(&suspect) {
                        before.push(suspect);
                    }
                }
                found.entry(page).or_insert(Differing { difference, before });
            }
        }
        found
    }

    /// Finds values that one page sets and another overwrites: a request in between sees the wrong value.
    pub(crate) fn overwritten(&self, subject: &mut Subject<'_>) -> Result<Vec<Finding>> {
        let mut found: BTreeMap<(String, String, String), Finding> = BTreeMap::new();
        let records = subject.records()?;
        // The first record belongs to the first step.
        let first_id =
            records.iter().filter(|record| record.after.is_none()).filter_map(|record| record.id.parse().ok());
        let first_id: u64 = first_id.max().unwrap_or(u64::MAX);
        for record in records {
            let Some(before) = record.after.as_ref().and_then(|id| id.parse::<u64>().ok()) else { continue };
            let step = usize::try_from(before.wrapping_sub(first_id)).ok().and_then(|at| self.steps.get(at));
            let Some(&(_, page)) = step else { continue };
            for change in places(&record.changes) {
                let is_text = |value: &Option<String>| {
                    value.as_deref().is_some_and(|value| value.starts_with('"') && value != "\"\"")
                };
                let is_own = subject.is_own(change.file.as_deref());
                if matches!(change.kind.as_str(), "static" | "function")
                    && is_own
                    && is_text(&change.before)
                    && is_text(&change.after)
                {
                    let route = self.pages[page].name();
                    let key = (route.clone(), change.kind.clone(), change.name.clone());
                    let why = "overwrites what another page has set";
                    let finding = || Finding::of_change(subject.mode, &route, &change, Severity::Leak, why);
                    found.entry(key).or_insert_with(finding);
                }
            }
        }
        Ok(found.into_values().collect())
    }
}

/// Finds the pages that make `victim` differ.
pub(crate) fn causes(
    classic: &mut Subject<'_>,
    subject: &mut Subject<'_>,
    pages: &[Page],
    victim: usize,
    differing: &Differing,
    known: &BTreeSet<&str>,
) -> Vec<Finding> {
    let (seen, mut suspects) = (&differing.difference, differing.before.clone());
    let route = pages[victim].name();
    let mut findings = Vec::new();
    let mut trial = |list: &[usize]| trial(classic, subject, pages, list, victim);
    for _ in 0..CAUSES {
        if trial(&suspects).is_none() {
            // A suspect may have ended the process, and with it removed the state of the others.
            suspects.retain(|suspect| known.contains(pages[*suspect].name().as_str()));
            suspects.truncate(MAX_SUSPECTS);
            let causes = suspects.iter().filter_map(|cause| Some((*cause, trial(&[*cause])?, "")));
            findings.extend(causes);
            break;
        }
        // Binary search: the shortest prefix of the list that makes the victim differ ends with a cause.
        let (mut without, mut with) = (0, suspects.len());
        while with - without > 1 {
            let middle = usize::midpoint(without, with);
            match trial(&suspects[..middle]) {
                Some(_) => with = middle,
                None => without = middle,
            }
        }
        let cause = suspects[with - 1];
        let (found, help) = match trial(&[cause]) {
            Some(found) => (found, ""),
            None => (seen.clone(), " (after other pages)"),
        };
        findings.push((cause, found, help));
        suspects.retain(|suspect| *suspect != cause);
        if suspects.is_empty() {
            break;
        }
    }
    let mode = subject.mode;
    let told = |(cause, found, help): (usize, Difference, &str)| {
        let what = format!("changes what {route} shows{help}");
        Finding {
            seen_on: Some(route.clone()),
            ..Finding::response(mode, &pages[cause].name(), "response", &found, &what)
        }
    };
    if findings.is_empty() {
        // The difference occurred once and not again: report it as a note on the page itself.
        let once = Finding::response(mode, &route, "response", seen, "differed once, but not in a second test");
        return vec![Finding { severity: Severity::Note, ..once }];
    }
    findings.into_iter().map(told).collect()
}

/// Returns the victim's difference when one visitor requests it after another has requested the pages in `before`.
fn trial(
    classic: &mut Subject<'_>,
    subject: &mut Subject<'_>,
    pages: &[Page],
    before: &[usize],
    victim: usize,
) -> Option<Difference> {
    let run = |subject: &mut Subject<'_>| {
        subject.begin_anew(&pages[0]);
        let (mut one, mut two) = (Visitor::new(1), Visitor::new(2));
        for page in before {
            subject.visit(&mut one, &pages[*page], ProbeScope::Memory);
        }
        subject.visit(&mut two, &pages[victim], ProbeScope::Memory).1
    };
    // Classic mode before and after, so that time-dependent parts are detected.
    let first = run(classic);
    let here = run(subject);
    let last = run(classic);
    Expected::of(vec![first, last]).difference(&here)
}
