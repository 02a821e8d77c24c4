//! The report as one self-contained HTML page, without scripts, other files or network access.

use super::{by_pages, capital, mean, megabytes, verdict};
use crate::cost::Cost;
use crate::findings::Finding;
use crate::verdict::{ModeReport, Report};
use std::fmt::Write;

/// Number of a route's findings that are shown unfolded.
const SHOWN_PER_KIND: usize = 5;

const PAGE: &str = include_str!("page.html");

/// The report as HTML.
pub fn page(report: &Report) -> String {
    let remarks: String = report.remarks.iter().map(|remark| format!("<li>{}</li>", escaped(remark))).collect();
    let parts = [
        ("application", escaped(&report.application)),
        ("root", escaped(&report.root)),
        ("pages", report.routes.len().to_string()),
        ("visitors", report.visitors.to_string()),
        ("verdict", escaped(&verdict(report))),
        ("new", new_leaks(report)),
        ("modes", modes(report)),
        ("leaks", leaks(report)),
        ("routes", routes(report)),
        ("notes", notes(report)),
        ("remarks", remarks),
        ("settings", escaped(&report.advice.settings)),
    ];
    // A single pass, so that text of the application is never treated as a placeholder.
    let mut out = String::new();
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out.push_str(before);
        out.push_str(parts.iter().find(|(part, _)| *part == name).map_or("", |(_, text)| text));
        rest = after;
    }
    out + rest
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn new_leaks(report: &Report) -> String {
    match &report.new_leaks {
        None => String::new(),
        Some(new) if new.is_empty() => "<p class=\"good\">No new leaks since the last report.</p>".to_owned(),
        Some(new) => {
            format!("<h2>New since the last report: {}</h2><ul class=\"found\">{}</ul>", new.len(), list(new.iter()))
        }
    }
}

/// A card for each mode.
fn modes(report: &Report) -> String {
    let classic = mean(&report.classic);
    let mut out = card(
        "Classic",
        "the reference",
        "Every request starts fresh. The other modes are compared with it.",
        Some(classic),
        classic.0,
        false,
    );
    for mode in &report.modes {
        let title = capital(mode.mode.name());
        if let Some(why) = &mode.fails {
            let _ = write!(
                out,
                "<div class=\"card\"><h3>{title}</h3><p class=\"bad\">does not run</p><p>{}</p></div>",
                escaped(why)
            );
            continue;
        }
        let count = mode.leaks().count();
        let about = match count {
            0 => "Nothing leaks from one request to another.".to_owned(),
            1 => "One leak from a request to others.".to_owned(),
            n => format!("{n} leaks from a request to others."),
        };
        let safe = format!("safe for {} of {}", mode.safe_routes(), report.routes.len());
        let chosen = mode.mode == report.advice.mode;
        // If the mode works for no page, its costs mean nothing.
        let cost = (mode.safe_routes() > 0).then(|| mean(&mode.costs));
        out.push_str(&card(&title, &safe, &about, cost, classic.0, chosen));
    }
    out
}

fn card(title: &str, safe: &str, about: &str, cost: Option<(f64, f64, u64)>, classic: f64, chosen: bool) -> String {
    let ms = cost.map_or(0.0, |(ms, _, _)| ms);
    let cost = cost.map_or_else(String::new, |(ms, cpu, memory)| {
        format!("<b>{ms:.1} ms</b> a page, {cpu:.1} ms of processor time, {} a worker", megabytes(memory))
    });
    let share = (ms / classic.max(f64::MIN_POSITIVE) * 100.0).min(100.0);
    let (class, mark) = if chosen { ("card chosen", "<span class=\"mark\">recommended</span>") } else { ("card", "") };
    format!(
        "<div class=\"{class}\"><h3>{title} {mark}</h3><p class=\"safe\">{safe}</p><p>{about}</p>\
         <div class=\"bar\"><span style=\"width:{share:.0}%\"></span></div>\
         <p class=\"cost\">{cost}</p></div>"
    )
}

fn leaks(report: &Report) -> String {
    let mut out = String::new();
    for mode in &report.modes {
        if mode.leaks().next().is_some() {
            let _ = write!(
                out,
                "<h3>{} mode</h3><ul class=\"found\">{}</ul>",
                capital(mode.mode.name()),
                list(mode.leaks())
            );
        }
    }
    if out.is_empty() { "<p class=\"good\">None was found.</p>".to_owned() } else { out }
}

fn notes(report: &Report) -> String {
    let mut out = String::new();
    for mode in &report.modes {
        let notes: Vec<&Finding> = mode.findings.iter().filter(|finding| !finding.is_leak()).collect();
        if !notes.is_empty() {
            let title = capital(mode.mode.name());
            let _ = write!(out, "<details><summary>{title} mode: {}</summary><ul class=\"found\">", notes.len());
            let _ = write!(out, "{}</ul></details>", list(notes.into_iter()));
        }
    }
    out
}

/// A card for each route; additional findings are folded.
fn list<'a>(findings: impl Iterator<Item = &'a Finding>) -> String {
    let mut out = String::new();
    for (route, findings) in by_pages(findings) {
        let told: Vec<String> = findings.iter().map(|finding| one(finding)).collect();
        let (first, rest) = told.split_at(told.len().min(SHOWN_PER_KIND));
        let _ = write!(out, "<li><p><b>{}</b></p>{}", escaped(&route), first.concat());
        if !rest.is_empty() {
            let _ = write!(out, "<details><summary>{} more</summary>{}</details>", rest.len(), rest.concat());
        }
        out.push_str("</li>");
    }
    out
}

fn one(finding: &Finding) -> String {
    let title = match finding.kind.as_str() {
        "response" | "differs" | "token" => match &finding.seen_on {
            Some(seen) => format!("Changes what <b>{}</b> shows", escaped(seen)),
            None => "Differs from classic mode".to_owned(),
        },
        "memory" => "Memory".to_owned(),
        "restart" | "probe" => "Noticed".to_owned(),
        kind => format!("<span class=\"kind\">{}</span> <code>{}</code>", escaped(kind), escaped(&finding.name)),
    };
    let file =
        finding.file.as_ref().map(|file| format!(" <span class=\"file\">{}</span>", escaped(file))).unwrap_or_default();
    format!("<p class=\"one\">{title}<br><span class=\"what\">{}</span>{file}</p>", escaped(&finding.what))
}

/// Table of each route in each mode.
fn routes(report: &Report) -> String {
    let shown: Vec<&ModeReport> = report.modes.iter().filter(|mode| mode.fails.is_none()).collect();
    let heads: String = shown.iter().map(|mode| format!("<th>{}</th>", capital(mode.mode.name()))).collect();
    let mut out = format!("<tr><th>Page</th><th>Classic</th>{heads}</tr>");
    for (at, route) in report.routes.iter().enumerate() {
        let _ = write!(out, "<tr><td><code>{}</code></td><td>{}</td>", escaped(route), time(report.classic.get(at)));
        for mode in &shown {
            let (class, mark) = if mode.safe[at] { ("good", "✓") } else { ("bad", "✗ leaks") };
            let _ = write!(out, "<td><span class=\"{class}\">{mark}</span> {}</td>", time(mode.costs.get(at)));
        }
        out.push_str("</tr>");
    }
    out
}

fn time(cost: Option<&Cost>) -> String {
    cost.map(|cost| {
        format!(
            "<span title=\"{:.1} ms of processor time, {}\">{:.1} ms</span>",
            cost.cpu_ms,
            megabytes(cost.memory),
            cost.ms
        )
    })
    .unwrap_or_default()
}
