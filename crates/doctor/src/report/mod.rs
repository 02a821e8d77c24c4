//! Reports: text for a terminal, and an HTML page.

mod page;
mod text;

pub use page::page;
pub use text::text;

use crate::findings::Finding;
use crate::verdict::{ModeReport, Report};
use std::collections::BTreeMap;

/// Groups findings by the causing route, visible ones first.
fn by_route<'a>(findings: impl Iterator<Item = &'a Finding>) -> BTreeMap<&'a str, Vec<&'a Finding>> {
    let mut routes: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    findings.for_each(|finding| routes.entry(&finding.route).or_default().push(finding));
    routes.values_mut().for_each(|list| list.sort_by_key(|finding| !is_seen(finding)));
    routes
}

/// Groups pages that have exactly the same findings.
fn by_pages<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<(String, Vec<&'a Finding>)> {
    let mut groups: Vec<(&str, usize, Vec<&Finding>)> = Vec::new();
    let is_alike = |one: &Finding, two: &Finding| {
        is_seen(one)
            && (&one.kind, &one.name, &one.what, &one.seen_on) == (&two.kind, &two.name, &two.what, &two.seen_on)
    };
    for (route, list) in by_route(findings) {
        let same = groups.iter_mut().find(|(_, _, other)| {
            other.len() == list.len() && other.iter().zip(&list).all(|(one, two)| is_alike(one, two))
        });
        match same {
            Some((_, more, _)) => *more += 1,
            None => groups.push((route, 0, list)),
        }
    }
    let title = |route: &str, more: usize| match more {
        0 => route.to_owned(),
        1 => format!("{route} and another page"),
        more => format!("{route} and {more} more pages"),
    };
    groups.into_iter().map(|(route, more, list)| (title(route, more), list)).collect()
}

/// `true` if a response shows the finding.
fn is_seen(finding: &Finding) -> bool {
    matches!(finding.kind.as_str(), "response" | "differs" | "token")
}

/// The recommendation in one sentence.
fn verdict(report: &Report) -> String {
    let advice = &report.advice;
    let count = report.routes.len();
    let modes: Vec<&ModeReport> = report.modes.iter().filter(|mode| mode.fails.is_none()).collect();
    let Some(best) = modes.iter().find(|mode| mode.mode == advice.mode) else {
        return match modes.iter().any(|mode| mode.leaks().next().is_none()) {
            true => "Classic mode: no other safe mode is faster.".to_owned(),
            false => "Classic mode: no other mode is safe and faster.".to_owned(),
        };
    };
    let rest = match advice.classic_routes.len() {
        0 => format!("safe for all {count} pages"),
        n => format!(
            "safe for {} of {count} pages; {n} {} in classic mode",
            best.safe_routes(),
            if n == 1 { "path stays" } else { "paths stay" }
        ),
    };
    format!("{} mode: {rest}; {:.1} times as fast as classic mode overall.", capital(advice.mode.name()), advice.faster)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Mean response time and processor time of a mode over its pages, in milliseconds, and the maximum memory.
fn mean(costs: &[crate::cost::Cost]) -> (f64, f64, u64) {
    let count = costs.len().max(1) as f64;
    let sum = |of: fn(&crate::cost::Cost) -> f64| costs.iter().map(of).sum::<f64>() / count;
    (sum(|cost| cost.ms), sum(|cost| cost.cpu_ms), costs.iter().map(|cost| cost.memory).max().unwrap_or_default())
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / f64::from(1 << 20))
}
