//! Counts and differences of a run. Everything kept is bounded, however long the run takes.

use crate::against::{Comparison, DifferentPage, PageDifference};
use crate::compare::without_tokens;
use crate::traffic::{Skip, Traffic};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of pages that are listed with their differences, and of differences for each.
const MAX_PAGES: usize = 1000;
const MAX_PER_PAGE: usize = 20;
/// Maximum length of a path and of a differing text, in characters.
const MAX_PATH: usize = 1000;
const MAX_TEXT: usize = 300;
/// Maximum number of differing pages, and of requests without a response, that are reported during the run.
const MAX_TOLD: usize = 50;

/// Written by the proxy's thread, which must never wait: so it prints nothing.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    compared: usize,
    traffic: Traffic,
    different: BTreeMap<String, Vec<PageDifference>>,
    /// Messages to print.
    messages: Vec<String>,
}

impl Tally {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn request(&self) {
        self.counts().traffic.requests += 1;
    }

    pub(super) fn chosen(&self) {
        self.counts().traffic.chosen += 1;
    }

    pub(super) fn skipped(&self, why: Skip) {
        *self.counts().traffic.skipped.entry(why).or_default() += 1;
    }

    pub(super) fn refused(&self) {
        self.counts().traffic.refused += 1;
    }

    /// The old server did not respond.
    pub(super) fn unanswered(&self, why: &str) {
        let mut counts = self.counts();
        counts.traffic.unanswered += 1;
        let is_told = counts.traffic.unanswered <= MAX_TOLD as u64;
        if is_told {
            counts.messages.push(format!("no response from the old server: {why}"));
        }
    }

    /// Returns the messages since the last call.
    pub(super) fn messages(&self) -> Vec<String> {
        std::mem::take(&mut self.counts().messages)
    }

    pub(super) fn compared(&self) -> usize {
        self.counts().compared
    }

    /// Records one comparison.
    pub(super) fn record(&self, path: &str, found: Vec<PageDifference>) {
        let mut counts = self.counts();
        counts.compared += 1;
        if found.is_empty() {
            return;
        }
        counts.traffic.different += 1;
        let path: String = path.chars().take(MAX_PATH).collect();
        let found = found.into_iter().map(shortened);
        if let Some(known) = counts.different.get_mut(&path) {
            let new = found.filter(|difference| !known.contains(difference)).collect::<Vec<_>>();
            known.extend(new);
            known.truncate(MAX_PER_PAGE);
        } else if counts.different.len() < MAX_PAGES {
            let found: Vec<_> = found.take(MAX_PER_PAGE).collect();
            if let Some(PageDifference { part, there, here, .. }) =
                found.first().filter(|_| counts.different.len() < MAX_TOLD)
            {
                let line = format!("GET {path} differs in {part}: `{there}` there, `{here}` here");
                counts.messages.push(line.replace(['\r', '\n'], " "));
            }
            counts.different.insert(path, found);
        } else {
            counts.traffic.unlisted += 1;
        }
    }

    /// Counts for a progress message.
    pub(super) fn progress(&self) -> String {
        let counts = self.counts();
        let Counts { compared, traffic, .. } = &*counts;
        let skipped: u64 = traffic.skipped.values().sum();
        format!(
            "{} requests passed on; {compared} copies compared, {} differ, {skipped} skipped",
            traffic.requests, traffic.different
        )
    }

    #[cfg(test)]
    pub(super) fn traffic(&self) -> Traffic {
        self.counts().traffic.clone()
    }

    /// Returns the result. Copies that were still waiting or being compared at the end count as `Skip::Ended`.
    pub(super) fn comparison(&self, application: &str, address: &str) -> Comparison {
        let mut counts = std::mem::take(&mut *self.counts());
        let skipped: u64 = counts.traffic.skipped.values().sum();
        let left = counts.traffic.chosen.saturating_sub(skipped + counts.compared as u64);
        if left > 0 {
            *counts.traffic.skipped.entry(Skip::Ended).or_default() += left;
        }
        let different = counts.different.into_iter();
        Comparison {
            application: application.to_owned(),
            address: address.to_owned(),
            pages: counts.compared,
            unanswered: Vec::new(),
            different: different.map(|(path, differences)| DifferentPage { path, differences }).collect(),
            traffic: Some(counts.traffic),
        }
    }
}

/// Fields of a response that have no tokens of sessions.
const PUBLIC: &[&str] = &["status", "content-type", "content-language", "cache-control", "expires", "pragma", "vary"];

/// A difference without the tokens of clients' sessions.
fn shortened(difference: PageDifference) -> PageDifference {
    let short = |text: &str| {
        let is_public = PUBLIC.contains(&difference.part.as_str());
        let shown = if is_public { text.to_owned() } else { without_tokens(text) };
        shown.chars().take(MAX_TEXT).collect()
    };
    PageDifference { there: short(&difference.there), here: short(&difference.here), ..difference }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(here: &str) -> Vec<PageDifference> {
        let there = "s=a1B2c3D4e5F6g7; path=/".to_owned();
        vec![PageDifference { part: "set-cookie".to_owned(), there, here: here.to_owned(), hint: String::new() }]
    }

    #[test]
    fn a_long_run_keeps_a_bounded_list_and_counts_the_rest() {
        let tally = Tally::default();
        for n in 0..MAX_PAGES + 5 {
            tally.chosen();
            tally.record(&format!("/{n}{}", "x".repeat(2 * MAX_PATH)), found("none"));
        }
        for n in 0..100 {
            tally.chosen();
            tally.record("/0", found(&n.to_string()));
            tally.record("/alike", Vec::new());
        }
        tally.chosen();
        let comparison = tally.comparison("shop", "http://old");
        assert_eq!((comparison.pages, comparison.different.len()), (MAX_PAGES + 205, MAX_PAGES));
        let traffic = comparison.traffic.unwrap();
        assert_eq!((traffic.different, traffic.unlisted), (MAX_PAGES as u64 + 105, 105));
        assert!(comparison.different.iter().all(|page| page.path.len() <= MAX_PATH));
    }

    #[test]
    fn one_page_has_each_difference_once_and_no_tokens() {
        let tally = Tally::default();
        for n in (0..2 * MAX_PER_PAGE).chain(0..5) {
            tally.chosen();
            tally.record("/a", found(&format!("another {n}")));
        }
        tally.chosen();
        tally.skipped(Skip::Busy);
        tally.chosen();
        tally.skipped(Skip::Ended);
        tally.chosen();
        let comparison = tally.comparison("shop", "http://old");
        let differences = &comparison.different[0].differences;
        assert_eq!((comparison.different.len(), differences.len()), (1, MAX_PER_PAGE));
        assert_eq!(differences[1].there, "[a token]; path=/");
        let skipped = comparison.traffic.unwrap().skipped;
        assert_eq!(skipped.into_iter().collect::<Vec<_>>(), [(Skip::Busy, 1), (Skip::Ended, 2)]);
    }
}
