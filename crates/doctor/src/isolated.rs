//! Tests each page alone, in a process that has served only one other page before, whose first request triggers late
//! initialization. Checks the state that the page leaves, and whether each visit gets the response of classic mode. The
//! cause of a finding is the page itself, or the other page if the response differs only after that.

use crate::compare::{Difference, Expected, Words};
use crate::findings::{Finding, Severity};
use crate::mode::Mode;
use crate::pages::Page;
use crate::state::{Change, Record, places};
use crate::subject::{ProbeScope, Subject};
use crate::visitor::Visitor;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// Number of further visits, to distinguish growth from a cache that is filled once.
const REPEATS: usize = 6;

/// Minimum growth that is reported, in bytes per request.
const MIN_GROWTH: u64 = 48;

/// Visitors of the page, in order, after the other page: the second visitor comes between two visits of the first.
const VISIT_ORDER: [usize; 3] = [0, 1, 0];

/// State that changed in a request, by kind and name.
type ChangedState = BTreeMap<(String, String), Change>;

/// A page's effects in one mode.
#[derive(Debug, Default)]
struct PageEffects {
    /// Responses: the other page's first, then in `VISIT_ORDER`.
    words: Vec<Words>,
    /// State left by each visit in `VISIT_ORDER`.
    left: Vec<ChangedState>,
    /// Memory in use before each further visit, in bytes.
    memory: Vec<u64>,
    /// `true` if the process was replaced between two visits.
    restarted: bool,
    cut: bool,
}

/// Runs the visits in classic mode.
pub(crate) fn expected(classic: &mut Subject<'_>, other: &Page, page: &Page) -> Vec<Words> {
    let mut visitors = Visitor::several(2);
    let mut words = vec![classic.visit(&mut visitors[0], other, ProbeScope::Full).1];
    words.extend(VISIT_ORDER.map(|who| classic.visit(&mut visitors[who], page, ProbeScope::Full).1));
    words
}

/// Runs the same visits in another mode, and records the state that they leave.
fn seen(subject: &mut Subject<'_>, other: &Page, page: &Page) -> Result<PageEffects> {
    subject.begin_anew(other);
    subject.records()?;
    let mut visitors = Visitor::several(2);
    let mut seen = PageEffects {
        words: vec![subject.visit(&mut visitors[0], other, ProbeScope::Full).1],
        ..PageEffects::default()
    };
    let mut ids = Vec::new();
    for who in VISIT_ORDER {
        let (id, words) = subject.visit(&mut visitors[who], page, ProbeScope::Full);
        seen.words.push(words);
        ids.push(id);
    }
    ids.push(subject.look(page));
    let mut later = Vec::new();
    // In snapshot mode, a restore frees the memory of a request.
    if subject.mode != Mode::Snapshot {
        later.extend((0..REPEATS).map(|_| subject.visit(&mut visitors[0], page, ProbeScope::Memory).0));
        later.push(subject.look(page));
    }
    let records = subject.records()?;
    let by_id = |id: &u64| records.iter().find(|record| record.id == id.to_string());
    seen.left = ids.windows(2).map(|pair| left_between(by_id(&pair[0]), by_id(&pair[1]))).collect();
    seen.memory = later.iter().filter_map(by_id).map(|record| record.memory).collect();
    let is_first = |id: &u64| by_id(id).is_some_and(|record| record.after.is_none());
    seen.restarted = matches!(subject.mode, Mode::Worker | Mode::Async) && ids[1..].iter().any(is_first);
    seen.cut = records.iter().any(|record| record.cut);
    Ok(seen)
}

/// State that a request left: the changes that the next request found. In a mode that restores the boot state, only
/// those that the request itself did not find.
fn left_between(own: Option<&Record>, next: Option<&Record>) -> ChangedState {
    let (Some(own), Some(next)) = (own, next) else { return ChangedState::new() };
    let is_new = |change: &&Change| next.after.is_some() || (!own.changes.contains(change) && !change.is_reset());
    // A new process has no state of the request.
    if next.after.is_none() && own.after.is_some() {
        return ChangedState::new();
    }
    let changes: Vec<Change> = next.changes.iter().filter(is_new).cloned().collect();
    places(&changes).into_iter().map(|change| (change.key(), change)).collect()
}

/// Tests a page in a mode. `samples` are classic mode's responses so far; new ones are added.
pub(crate) fn examine(
    classic: &mut Subject<'_>,
    subject: &mut Subject<'_>,
    other: &Page,
    page: &Page,
    samples: &mut Vec<Vec<Words>>,
) -> Result<Vec<Finding>> {
    let mut here = seen(subject, other, page)?;
    samples.push(expected(classic, other, page));
    let mut differences = differences(samples, &here.words);
    if differences.iter().any(Option::is_some) {
        // Repeat the test: a random difference will not occur again.
        here = seen(subject, other, page)?;
        samples.push(expected(classic, other, page));
        differences = self::differences(samples, &here.words);
    }
    let mut findings = of_responses(classic, subject, other, page, &differences)?;
    if findings.is_empty() {
        findings.extend(shared_token(subject.mode, page, samples, &here.words));
    }
    findings.extend(of_state(subject, other, page, &here)?);
    findings.extend(of_growth(subject.mode, page, &here));
    if here.restarted {
        findings.push(note(
            subject.mode,
            page,
            "restart",
            "the worker ends",
            "ends its process (exit(), a fatal error): the next request boots",
        ));
    }
    if here.cut {
        findings.push(note(
            subject.mode,
            page,
            "probe",
            "not everything was compared",
            "has more state than the probe reads",
        ));
    }
    Ok(findings)
}

fn differences(samples: &[Vec<Words>], here: &[Words]) -> Vec<Option<Difference>> {
    let at = |at: usize| Expected::of(samples.iter().map(|sample| sample[at].clone()).collect());
    here.iter().enumerate().map(|(n, words)| at(n).difference(words)).collect()
}

fn of_responses(
    classic: &mut Subject<'_>,
    subject: &mut Subject<'_>,
    other: &Page,
    page: &Page,
    differences: &[Option<Difference>],
) -> Result<Vec<Finding>> {
    let (mode, route) = (subject.mode, page.name());
    let at = |at: usize| differences.get(at).and_then(Option::as_ref);
    if let Some(found) = at(1) {
        let first = |subject: &mut Subject<'_>| {
            subject.begin_anew(other);
            subject.visit(&mut Visitor::new(1), page, ProbeScope::Full).1
        };
        let (one, here, two) = (first(classic), first(subject), first(classic));
        if let Some(found) = Expected::of(vec![one, two]).difference(&here) {
            return Ok(vec![Finding::response(mode, &route, "differs", &found, "is a different page in this mode")]);
        }
        let blamed = Finding::response(mode, &other.name(), "response", found, &format!("changes what {route} shows"));
        return Ok(vec![Finding { seen_on: Some(route), ..blamed }]);
    }
    let later = at(1).or_else(|| at(2)).or_else(|| at(3));
    Ok(later
        .map(|found| Finding::response(mode, &route, "response", found, "shows what an earlier visit left"))
        .into_iter()
        .collect())
}

/// Reports a token that two visitors share although classic mode gives each their own.
fn shared_token(mode: Mode, page: &Page, samples: &[Vec<Words>], here: &[Words]) -> Option<Finding> {
    let expected = |at: usize| Expected::of(samples.iter().map(|sample| sample[at].clone()).collect());
    let found = expected(1).shared(&here[1], &expected(2), &here[2])?;
    Some(Finding::response(mode, &page.name(), "token", &found, "gives two visitors the same token"))
}

fn note(mode: Mode, page: &Page, kind: &str, name: &str, what: &str) -> Finding {
    Finding::new(mode, &page.name(), Severity::Note, kind, name, what.to_owned())
}

fn of_growth(mode: Mode, page: &Page, here: &PageEffects) -> Option<Finding> {
    // The first further visits may still fill caches.
    let steps: Vec<u64> = here.memory.windows(2).skip(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let least = steps.iter().min().copied().filter(|least| *least >= MIN_GROWTH && steps.len() > 2)?;
    let mean = steps.iter().sum::<u64>() / steps.len() as u64;
    let what = format!("the process grows by {mean} bytes with each request, at least by {least}");
    Some(Finding { severity: Severity::Leak, ..note(mode, page, "memory", "memory", &what) })
}

/// Classifies the state that the page leaves.
fn of_state(subject: &mut Subject<'_>, other: &Page, page: &Page, here: &PageEffects) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let Some((first, later)) = here.left.split_first() else { return Ok(findings) };
    let keys: BTreeSet<&(String, String)> = here.left.iter().flat_map(ChangedState::keys).collect();
    let mut kept = Vec::new();
    for key in keys {
        let again: Vec<&Change> = later.iter().filter_map(|left| left.get(key)).collect();
        let Some(&change) = again.first().or(first.get(key).as_ref()) else { continue };
        let always_grows = again.len() == later.len() && again.iter().all(|change| change.grows());
        let repeated = Repeated {
            again: !again.is_empty(),
            always_grows,
            is_own: subject.is_own(change.file.as_deref()),
            one_kernel: subject.one_kernel,
        };
        let Some((severity, why)) = judged(change, &repeated) else {
            kept.push(change.clone());
            continue;
        };
        findings.push(Finding::of_change(subject.mode, &page.name(), change, severity, why));
    }
    if !kept.is_empty() {
        findings.extend(of_kept(subject, other, page, kept)?);
    }
    Ok(findings)
}

/// Changes of a value by later visits.
struct Repeated {
    /// `true` if a later visit changed the value.
    again: bool,
    always_grows: bool,
    /// `true` if the application's own code holds the value. Libraries often keep the last request until the next one
    /// replaces it; the application's code is not expected to.
    is_own: bool,
    /// `true` if a recipe's kernel serves all pages.
    one_kernel: bool,
}

/// Classifies a change. `None` if the value was set once, which may be intended.
fn judged(change: &Change, repeated: &Repeated) -> Option<(Severity, &'static str)> {
    let again = repeated.again;
    if change.is_value() {
        return match () {
            () if !again => None,
            () if repeated.always_grows || (repeated.is_own && change.grows()) => {
                Some((Severity::Leak, "grows with each request"))
            }
            () if !repeated.is_own || change.kind == "loop" => {
                Some((Severity::Note, "is different after each request"))
            }
            () => Some((Severity::Leak, "changes with each request")),
        };
    }
    if change.comes_with_code() {
        if change.kind == "constant" {
            return None;
        }
        return Some(if again {
            (Severity::Leak, "changes with each request")
        } else {
            (Severity::Note, "is set once")
        });
    }
    // The kernel starts sessions, and does so once for all pages, so this does not depend on the page.
    if repeated.one_kernel && !again && change.name.starts_with("session") {
        return Some((Severity::Note, "is set once"));
    }
    Some((Severity::Leak, "stays changed"))
}

/// Classifies values that were set once. A value is a cache if it is the same for every first visitor; otherwise all
/// visitors share the first visitor's data.
fn of_kept(subject: &mut Subject<'_>, other: &Page, page: &Page, kept: Vec<Change>) -> Result<Vec<Finding>> {
    let mut by = |who: usize| {
        subject.begin_anew(other);
        subject.records()?;
        subject.visit(&mut Visitor::new(who), other, ProbeScope::Full);
        let (id, _) = subject.visit(&mut Visitor::new(who), page, ProbeScope::Full);
        let look = subject.look(page);
        let records = subject.records()?;
        let by_id = |id: u64| records.iter().find(|record| record.id == id.to_string()).cloned();
        let changes = by_id(look).filter(|record| record.after == Some(id.to_string())).map(|record| record.changes);
        anyhow::Ok(changes.unwrap_or_default())
    };
    let (one, same, other) = (by(1)?, by(1)?, by(2)?);
    // Compare all changes within the value, not only the reported ones.
    let inside = |changes: &[Change], place: &Change| {
        let within = changes.iter().filter(|change| change.lies_in(place));
        within.map(|change| (change.name.clone(), change.after.clone())).collect::<BTreeSet<_>>()
    };
    let judge = |change: &Change| {
        let (one, same, other) = (inside(&one, change), inside(&same, change), inside(&other, change));
        // A library's object may hold the last request until the next one replaces it, inside a service that was
        // created for the first visitor.
        let may = change.kind == "object" && !subject.is_own(change.file.as_deref());
        let depends = !may && one == same && one != other && !one.is_empty() && !other.is_empty();
        let (severity, why) = match depends {
            true => (Severity::Leak, "keeps data of the first visitor"),
            false => (Severity::Note, "is set once"),
        };
        Finding::of_change(subject.mode, &page.name(), change, severity, why)
    };
    Ok(kept.iter().map(judge).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_setting_that_a_kernel_changes_once_is_no_leak() {
        let severity = |name: &str, again: bool, one_kernel: bool| {
            let change = Change {
                kind: "ini".to_owned(),
                name: name.to_owned(),
                before: Some("nocache".to_owned()),
                after: Some("0".to_owned()),
                owner: None,
                file: None,
            };
            judged(&change, &Repeated { again, always_grows: false, is_own: false, one_kernel })
                .map(|(severity, _)| severity)
        };
        assert_eq!(severity("session.cache_limiter", false, true), Some(Severity::Note));
        assert_eq!(severity("session.cache_limiter", true, true), Some(Severity::Leak));
        assert_eq!(severity("session.cache_limiter", false, false), Some(Severity::Leak));
        assert_eq!(severity("memory_limit", false, true), Some(Severity::Leak));
    }
}
