//! The report for a terminal.

use super::{mean, megabytes, verdict};
use crate::findings::Finding;
use crate::verdict::{ModeReport, Report};
use std::fmt::Write;

/// How many notes of a mode are told; the page and the JSON have all.
const NOTES: usize = 10;

/// The report in lines.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut out = format!(
        "{}: {} pages of {}, {} visitors\n\n",
        report.application,
        report.routes.len(),
        report.root,
        report.visitors
    );
    let _ = writeln!(out, "{:<10}{:>14}{:>12}{:>12}{:>10}{:>10}", "MODE", "SAFE FOR", "MS A PAGE", "CPU MS", "MEMORY", "LEAKS");
    let (ms, cpu, memory) = mean(&report.classic);
    let all = report.routes.len();
    let _ = writeln!(out, "{:<10}{:>14}{ms:>12.1}{cpu:>12.1}{:>10}{:>10}", "classic", "-", megabytes(memory), "-");
    for mode in &report.modes {
        if mode.fails.is_some() {
            let _ = writeln!(out, "{:<10}{:>14}", mode.mode, "does not run");
            continue;
        }
        let (ms, cpu, memory) = mean(&mode.costs);
        let safe = format!("{} of {all}", mode.safe_routes());
        let leaks = mode.leaks().count();
        let _ = writeln!(out, "{:<10}{safe:>14}{ms:>12.1}{cpu:>12.1}{:>10}{leaks:>10}", mode.mode, megabytes(memory));
    }
    for mode in &report.modes {
        of_mode(mode, &mut out);
    }
    if let Some(new) = &report.new_leaks {
        let _ = writeln!(out, "\nCompared with the last report: {} new leaks", new.len());
        new.iter().for_each(|finding| tell(finding, &mut out));
    }
    let _ = writeln!(out, "\n{}", verdict(report));
    report.remarks.iter().for_each(|remark| out.push_str(&format!("{remark}\n")));
    out.push_str("\nFor howdah.toml:\n\n");
    report.advice.settings.lines().for_each(|line| out.push_str(&format!("    {line}\n").replace("    \n", "\n")));
    out
}

fn of_mode(mode: &ModeReport, out: &mut String) {
    if let Some(why) = &mode.fails {
        let _ = writeln!(out, "\n{} mode does not run: {why}", mode.mode);
        return;
    }
    let leaks: Vec<&Finding> = mode.leaks().collect();
    if !leaks.is_empty() {
        let _ = writeln!(out, "\nLeaks in {} mode", mode.mode);
        leaks.iter().for_each(|finding| tell(finding, out));
    }
    let notes: Vec<&Finding> = mode.findings.iter().filter(|finding| !finding.is_leak()).collect();
    if !notes.is_empty() {
        let _ = writeln!(out, "\nIn {} mode stays, and nobody was seen to be harmed", mode.mode);
        notes.iter().take(NOTES).for_each(|finding| tell(finding, out));
        if notes.len() > NOTES {
            let _ = writeln!(out, "  and {} more", notes.len() - NOTES);
        }
    }
}

/// `App\Cart::$items changed by GET /cart`, and what is known of it.
fn tell(finding: &Finding, out: &mut String) {
    let by = match &finding.seen_on {
        Some(seen) => format!("{} of {seen} changed by {}", finding.name, finding.route),
        None if matches!(finding.kind.as_str(), "memory" | "restart" | "probe") => {
            let _ = writeln!(out, "  {}: {}", finding.route, finding.what);
            return;
        }
        None if matches!(finding.kind.as_str(), "response" | "differs" | "token") => {
            format!("{} of {} differs", finding.name, finding.route)
        }
        None => format!("{} {} changed by {}", finding.kind, finding.name, finding.route),
    };
    let _ = writeln!(out, "  {by}\n      {}", finding.what);
    if let Some(file) = &finding.file {
        let _ = writeln!(out, "      in {file}");
    }
}
