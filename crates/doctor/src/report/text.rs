//! The report for a terminal.

use super::{by_pages, mean, megabytes, verdict};
use crate::cost::Cost;
use crate::findings::Finding;
use crate::verdict::{ModeReport, Report};
use std::fmt::Write;

/// Maximum number of findings per route, and of notes per mode; the HTML page and the JSON have all.
const SHOWN_PER_KIND: usize = 6;
/// Maximum number of pages in the table of costs, and of characters of a page's name.
const PAGES: usize = 20;
const PAGE_WIDTH: usize = 33;

/// Formats the report for a terminal.
pub fn text(report: &Report) -> String {
    let mut out = format!(
        "{}: {} pages of {}, {} visitors\n\n",
        report.application,
        report.routes.len(),
        report.root,
        report.visitors
    );
    let _ = writeln!(
        out,
        "{:<10}{:>14}{:>12}{:>12}{:>10}{:>10}",
        "MODE", "SAFE FOR", "MS A PAGE", "CPU MS", "MEMORY", "LEAKS"
    );
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
        // If the mode works for no page, its costs mean nothing.
        let time = |ms: f64| if mode.safe_routes() > 0 { format!("{ms:.1}") } else { "-".to_owned() };
        let (ms, cpu) = (time(ms), time(cpu));
        let _ = writeln!(out, "{:<10}{safe:>14}{ms:>12}{cpu:>12}{:>10}{leaks:>10}", mode.mode, megabytes(memory));
    }
    by_page(report, &mut out);
    for mode in &report.modes {
        of_mode(mode, &mut out);
    }
    if let Some(new) = &report.new_leaks {
        let _ = writeln!(out, "\nCompared with the last report: {} new leaks", new.len());
        new.iter().for_each(|finding| {
            let _ = writeln!(out, "  {} mode, {}", finding.mode, finding.route);
            write_finding(finding, &mut out);
        });
    }
    let _ = writeln!(out, "\n{}", verdict(report));
    report.remarks.iter().for_each(|remark| out.push_str(&format!("{remark}\n")));
    out.push_str("\nFor howdah.toml:\n\n");
    report.advice.settings.lines().for_each(|line| out.push_str(&format!("    {line}\n").replace("    \n", "\n")));
    out
}

/// Costs of each page in each mode, the most expensive first, with marks for unsafe ones.
fn by_page(report: &Report, out: &mut String) {
    let modes: Vec<&ModeReport> = report.modes.iter().filter(|mode| mode.fails.is_none()).collect();
    let mut pages: Vec<usize> = (0..report.routes.len()).collect();
    let ms = |page: &usize| report.classic.get(*page).map_or(0.0, |cost| cost.ms);
    pages.sort_by(|a, b| ms(b).total_cmp(&ms(a)));
    let cell = |costs: &[Cost], page: usize, safe: bool| {
        let cost = costs.get(page).copied().unwrap_or_default();
        format!("{:.1} / {:.1}{}", cost.ms, cost.cpu_ms, if safe { ' ' } else { '!' })
    };
    let _ = write!(out, "\n{:<34}{:>16}", "PAGE (MS / CPU MS)", "classic");
    modes.iter().for_each(|mode| out.push_str(&format!("{:>16}", mode.mode.name())));
    out.push('\n');
    for &page in pages.iter().take(PAGES) {
        let route: String = report.routes[page].chars().take(PAGE_WIDTH).collect();
        let mut line = format!("{route:<34}{:>16}", cell(&report.classic, page, true));
        for mode in &modes {
            let _ = write!(line, "{:>16}", cell(&mode.costs, page, mode.safe.get(page).is_none_or(|safe| *safe)));
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if pages.len() > PAGES {
        let _ =
            writeln!(out, "and {} more: --html and --json list all pages, with their memory use", pages.len() - PAGES);
    }
    if modes.iter().any(|mode| mode.safe_routes() < report.routes.len()) {
        out.push_str("!: not safe there\n");
    }
}

fn of_mode(mode: &ModeReport, out: &mut String) {
    if let Some(why) = &mode.fails {
        let _ = writeln!(out, "\n{} mode does not run: {why}", mode.mode);
        return;
    }
    let routes = by_pages(mode.leaks());
    if !routes.is_empty() {
        let _ = writeln!(out, "\nLeaks in {} mode", mode.mode);
        for (route, leaks) in routes {
            let _ = writeln!(out, "  {route}");
            leaks.iter().take(SHOWN_PER_KIND).for_each(|finding| write_finding(finding, out));
            if leaks.len() > SHOWN_PER_KIND {
                let _ = writeln!(out, "      and {} more", leaks.len() - SHOWN_PER_KIND);
            }
        }
    }
    let notes: Vec<&Finding> = mode.findings.iter().filter(|finding| !finding.is_leak()).collect();
    if !notes.is_empty() {
        let _ = writeln!(out, "\nSeen in {} mode, without harm to visitors: {}", mode.mode, notes.len());
        notes.iter().take(SHOWN_PER_KIND).for_each(|finding| {
            let _ = writeln!(out, "      {} {}: {}, by {}", finding.kind, finding.name, finding.what, finding.route);
        });
        if notes.len() > SHOWN_PER_KIND {
            let _ = writeln!(out, "      and {} more", notes.len() - SHOWN_PER_KIND);
        }
    }
}

/// Appends `App\Cart::$items changed by GET /cart` and details of the finding.
fn write_finding(finding: &Finding, out: &mut String) {
    let what = match &finding.seen_on {
        Some(seen) => format!("changes the {} of {seen}", finding.name),
        None => match finding.kind.as_str() {
            "response" | "differs" | "token" => format!("{} differs from classic mode", finding.name),
            "memory" | "restart" | "probe" => finding.kind.clone(),
            kind => format!("{kind} {} changed by {}", finding.name, finding.route),
        },
    };
    let _ = writeln!(out, "      {what}\n          {}", finding.what);
    if let Some(file) = &finding.file {
        let _ = writeln!(out, "          in {file}");
    }
}
