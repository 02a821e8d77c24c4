//! The Markdown page.

use std::fmt::Write as _;

use super::{bytes, kinds, number, time};
use crate::explain;
use crate::record::{ResultSet, SystemStatus};
use crate::view::{self, CaseView, Measured, State};
use crate::warn;

pub const FILE: &str = "report.md";

/// The method for mixed loads.
pub(super) const MIXED: &str = "Mixed loads: the lab's own generator, one thread, compares every response with its body. Rates count the correct \
    responses that arrived in the measured time. Percentiles are over the requests that were due in it, whenever their response arrived; one \
    without a response counts with the time until the end. In an open loop latency counts from the time a request was due.";

/// Renders the whole page.
pub fn page(results: &ResultSet) -> String {
    let mut page = String::new();
    let views = view::cases(results);
    let _ = writeln!(page, "# {}: {}\n", results.suite, results.started.split('T').next().unwrap_or(""));
    overview(&mut page, results, &views);
    warnings(&mut page, results);
    for view in &views {
        case(&mut page, view, &views);
    }
    systems(&mut page, results);
    method(&mut page, results);
    page
}

/// Escapes text that would end a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn overview(page: &mut String, results: &ResultSet, views: &[CaseView<'_>]) {
    let _ = writeln!(
        page,
        "Requests per second / processor time of the whole system for one request, in microseconds. Medians.\n"
    );
    let titles: Vec<String> = results.systems.iter().map(|system| cell(&system.title)).collect();
    let _ = writeln!(page, "| case | {} |", titles.join(" | "));
    let _ = writeln!(page, "|---|{}", "---:|".repeat(titles.len()));
    for view in views {
        let cells: Vec<String> = view
            .cells
            .iter()
            .map(|cell| match &cell.state {
                State::Measured(m) => format!("{} / {}", number(m.rate.median), number(m.server_us.median)),
                State::Failed { .. } => "failed".into(),
                State::Skipped(_) => "does not apply".into(),
                State::Missing(_) => "not installed".into(),
                State::NotRun => "not run".into(),
            })
            .collect();
        let _ = writeln!(page, "| {} | {} |", cell(&view.case.title), cells.join(" | "));
    }
    page.push('\n');
}

fn warnings(page: &mut String, results: &ResultSet) {
    let warnings = warn::all(results);
    if warnings.is_empty() {
        return;
    }
    page.push_str("## Read this first\n\n");
    for warning in warnings {
        let _ = writeln!(page, "- {}", warning.text());
    }
    page.push('\n');
}

fn case(page: &mut String, view: &CaseView<'_>, all: &[CaseView<'_>]) {
    let record = view.case;
    let _ = writeln!(
        page,
        "## {}\n\n{}. {}, `Accept-Encoding: {}`.\n",
        record.title,
        record.about,
        record.load(),
        record.accept_encoding
    );
    page.push_str(&kinds::markdown(view));
    let mysql = view.measured().any(|(_, m)| m.queries_per_request().is_some());
    let extra = if mysql { " MySQL conn. / queries per request, open at once |" } else { "" };
    let _ = writeln!(
        page,
        "| system | req/s | spread | server µs | front / PHP µs | machine busy | p50 | p99 | p50 at {} | p99 | max | PSS | switches | response |{extra}",
        view.measured()
            .find_map(|(_, m)| m.latency.and_then(|s| s.offered_rate))
            .map_or("a rate".into(), |r| format!("{r:.0}/s")),
    );
    let _ = writeln!(page, "|---|{}{}", "---:|".repeat(13), if mysql { "---:|" } else { "" });
    for item in &view.cells {
        let name = cell(&item.system.title);
        match &item.state {
            State::Measured(m) => {
                let _ =
                    writeln!(page, "| {name} | {} |{}", measured(m), if mysql { mysql_cell(m) } else { String::new() });
            }
            State::Failed { stage, message, .. } => {
                let _ = writeln!(page, "| {name} | **failed** ({stage}): {} |", cell(message));
            }
            State::Skipped(reason) => {
                let _ = writeln!(page, "| {name} | does not apply: {} |", cell(reason));
            }
            State::Missing(what) => {
                let _ = writeln!(page, "| {name} | not installed ({}) |", cell(what));
            }
            State::NotRun => {
                let _ = writeln!(page, "| {name} | not run |");
            }
        }
    }
    page.push('\n');
    for explanation in explain::case(view) {
        let _ = writeln!(page, "- {}", explanation.headline);
        for cause in explanation.causes {
            let _ = writeln!(page, "  - {cause}");
        }
    }
    for note in explain::general(view).into_iter().chain(explain::gains_by_jit(view, all)) {
        let _ = writeln!(page, "- {note}");
    }
    page.push('\n');
    for item in &view.cells {
        if let State::Failed { log_tail, .. } = &item.state
            && !log_tail.is_empty()
        {
            let _ = writeln!(page, "End of the log of {}:\n\n```\n{}\n```\n", item.system.title, log_tail.join("\n"));
        }
    }
}

fn measured(m: &Measured<'_>) -> String {
    use crate::record::Role;
    let split = match (m.role_us(Role::Front), m.role_us(Role::Php)) {
        (front, php) if front > 0.05 || php > 0.05 => format!("{} / {}", number(front), number(php)),
        _ => "in one".into(),
    };
    let at = |sample: Option<&crate::record::Sample>, percentile| {
        sample.and_then(|sample| sample.latency.at(percentile)).map_or("–".into(), time)
    };
    let latency = |percentile| time(m.median(|sample| sample.latency.at(percentile).unwrap_or(f64::NAN)));
    [
        number(m.rate.median),
        format!("{:.1} %", m.rate.spread() * 100.0),
        number(m.server_us.median),
        split,
        format!("{:.0} %", m.busy() * 100.0),
        latency(50.0),
        latency(99.0),
        at(m.latency, 50.0),
        at(m.latency, 99.0),
        at(m.latency, 100.0),
        bytes(m.pss_bytes()),
        format!("{:.1}", m.median(|sample| sample.switches_per_request())),
        format!("{} {}", bytes(m.wire_bytes() as f64), if m.compressed() { m.encoding() } else { "" })
            .trim()
            .to_owned(),
    ]
    .join(" | ")
}

fn mysql_cell(m: &Measured<'_>) -> String {
    match (m.connections_per_request(), m.queries_per_request(), m.mysql_most_open()) {
        (Some(connections), Some(queries), Some(open)) => format!(" {connections:.2} / {queries:.2}, {open} |"),
        _ => " – |".into(),
    }
}

fn systems(page: &mut String, results: &ResultSet) {
    page.push_str("## Systems\n\n");
    for system in &results.systems {
        match &system.status {
            SystemStatus::Found { versions } => {
                let versions: Vec<String> =
                    versions.iter().map(|(part, version)| format!("{part}: {version}")).collect();
                let _ = writeln!(page, "### {}\n\n{}\n", system.title, versions.join("; "));
                for note in &system.tuning {
                    let _ = writeln!(page, "- {note}");
                }
                if let Some(php) = &system.php {
                    let _ = writeln!(
                        page,
                        "- PHP {} ({}{}), OPcache {}, JIT {}, {} extensions",
                        php.version,
                        php.sapi,
                        if php.zts { ", ZTS" } else { "" },
                        if php.opcache { "on" } else { "off" },
                        if php.jit { "on" } else { "off" },
                        php.extensions
                    );
                }
                page.push('\n');
            }
            SystemStatus::Missing { what, how } => {
                let _ = writeln!(page, "### {}\n\nNot on this machine: {what}. To get it: {how}\n", system.title);
            }
        }
    }
}

fn method(page: &mut String, results: &ResultSet) {
    let (settings, machine) = (&results.settings, &results.machine);
    let _ = writeln!(
        page,
        "## Method\n\n\
         - Machine: {}, {} processors, {} memory, {}, Linux {}, virtualisation: {}; TCP congestion control: {}; load average \
         before: {:.2}.\n\
         - {} rounds of {} s after {} s of warm-up, interleaved; one system runs at a time, restarted for each run. Medians; \
         spread is the distance between the extremes as a share of the median.\n\
         - Throughput: {}, {} threads, closed loop. A request counts when its status means success.",
        machine.cpu,
        machine.cores,
        bytes(machine.memory_bytes as f64),
        machine.os,
        machine.kernel,
        machine.virtualisation,
        machine.congestion_control,
        machine.load_average,
        settings.rounds,
        settings.seconds,
        settings.warmup_seconds,
        settings.generator,
        settings.load_threads,
    );
    if settings.rate_share > 0.0 {
        let _ = writeln!(
            page,
            "- Latency at a rate: the same rate for all systems, {:.0} % of what the slowest one serves; open loop, latency counted \
             from the time a request was due.",
            settings.rate_share * 100.0
        );
    }
    if results.cases.iter().any(|case| !case.clients.is_empty()) {
        let _ = writeln!(page, "- {MIXED}");
    }
    let _ = writeln!(
        page,
        "- Every response was checked before and after each run. PSS is the memory of all processes of a system after the run, shared \
         pages counted once.\n- Command: `{}`. Raw data with every run, command line and configuration file: `result.json`.",
        results.command.join(" ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::sample_results;

    #[test]
    fn the_page_has_figures_for_measured_cells_and_words_for_others() {
        let page = page(&sample_results::results());
        assert!(page.contains("| hello | 30 002 / 30 | 10 002 / 90 | not installed |"), "{page}");
        assert!(page.contains("FAST serves 3.00 times as many requests as SLOW."));
        assert!(page.contains("Not on this machine: gone. To get it: get it"));
        assert!(!page.contains("| 0 |"));
    }
}
