//! The HTML page: one file with its style, its drawings and one line of script, for light and dark.

use std::fmt::Write as _;

use super::chart::{self, Bar, Line, Part};
use super::frame::{self, COLOURS, escape};
use super::markdown::MIXED;
use super::{bytes, kinds, number, time};
use crate::explain;
use crate::record::{ResultSet, Role, SystemRecord, SystemStatus};
use crate::view::{self, CaseView, Measured, State};
use crate::warn;

pub const FILE: &str = "report.html";

/// Returns the colour of a system: its position among the lab's own systems, or one of the remaining colours.
fn colour(results: &ResultSet, system: &SystemRecord) -> usize {
    frame::colour(&system.id).unwrap_or_else(|| {
        let own = crate::systems::builtin_ids();
        let others = results.systems.iter().filter(|other| !own.contains(&other.id));
        let place = others.take_while(|other| other.id != system.id).count();
        (own.len() + place) % COLOURS
    })
}

/// Renders the whole page.
pub fn page(results: &ResultSet) -> String {
    let views = view::cases(results);
    let mut page = String::new();
    head(&mut page, results, &views);
    warnings(&mut page, results);
    overview_table(&mut page, results, &views);
    for view in &views {
        case(&mut page, results, view, &views);
    }
    systems(&mut page, results);
    method(&mut page, results);
    page.push_str(&frame::close());
    page
}

fn head(page: &mut String, results: &ResultSet, views: &[CaseView<'_>]) {
    let machine = &results.machine;
    let date = results.started.replace('T', " ").replace('Z', " UTC");
    let about = format!(
        "{date} · {cpu}, {cores} processors · {os}, Linux {kernel} · {rounds} rounds of {seconds} s",
        date = escape(&date),
        cpu = escape(&machine.cpu),
        cores = machine.cores,
        os = escape(&machine.os),
        kernel = escape(&machine.kernel),
        rounds = results.settings.rounds,
        seconds = results.settings.seconds,
    );
    let suite = escape(&results.suite);
    let title = format!("{suite}: PHP runtimes side by side");
    page.push_str(&frame::open(&title, &format!("PHP runtimes side by side: {suite}"), &about));
    page.push_str("<nav>");
    for view in views {
        let _ = write!(page, "<a href=\"#{}\">{}</a>", anchor(&view.case.id), escape(&view.case.title));
    }
    page.push_str("<a href=\"#systems\">Systems</a><a href=\"#method\">Method</a></nav>");
}

fn anchor(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn warnings(page: &mut String, results: &ResultSet) {
    let warnings = warn::all(results);
    if warnings.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<details class=\"card note\"{}><summary>Read this first: {} warnings</summary><ul>",
        if warnings.len() <= 6 { " open" } else { "" },
        warnings.len()
    );
    for warning in warnings {
        let _ = write!(page, "<li>{}</li>", escape(&warning.text()));
    }
    page.push_str("</ul></details>");
}

fn overview_table(page: &mut String, results: &ResultSet, views: &[CaseView<'_>]) {
    page.push_str(
        "<h2>At a glance</h2><p class=\"soft\">Requests per second; below it the processor time of the whole system for one request. \
         The line shows the share of the best in its row.</p><div class=\"card scroll\"><table><thead><tr><th>case</th>",
    );
    for system in &results.systems {
        let _ = write!(page, "<th>{}</th>", escape(&system.title));
    }
    page.push_str("</tr></thead><tbody>");
    for view in views {
        let _ = write!(page, "<tr><td><a href=\"#{}\">{}</a></td>", anchor(&view.case.id), escape(&view.case.title));
        let best = view.measured().map(|(_, m)| m.rate.median).fold(0.0, f64::max);
        for cell in &view.cells {
            match &cell.state {
                State::Measured(m) => {
                    let share = m.rate.median / best * 100.0;
                    let _ = write!(
                        page,
                        "<td{}>{}<span class=\"sub\">{} µs</span><span class=\"meter\"><i class=\"b{}\" style=\"width:{share:.0}%\"></i></span></td>",
                        if share > 99.99 { " class=\"best\"" } else { "" },
                        number(m.rate.median),
                        number(m.server_us.median),
                        colour(results, cell.system),
                    );
                }
                other => {
                    let _ = write!(page, "<td class=\"{}\">{}</td>", absent_class(other), absent(other));
                }
            }
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div>");
}

fn absent(state: &State<'_>) -> &'static str {
    match state {
        State::Failed { .. } => "failed",
        State::Skipped(_) => "does not apply",
        State::Missing(_) => "not installed",
        State::NotRun | State::Measured(_) => "not run",
    }
}

fn absent_class(state: &State<'_>) -> &'static str {
    if matches!(state, State::Failed { .. }) { "bad" } else { "absent" }
}

fn case(page: &mut String, results: &ResultSet, view: &CaseView<'_>, all: &[CaseView<'_>]) {
    let record = view.case;
    let _ = write!(
        page,
        "<section id=\"{}\"><h2>{}</h2><p class=\"soft\">{}. {}, <code>Accept-Encoding: {}</code>.</p>",
        anchor(&record.id),
        escape(&record.title),
        escape(&record.about),
        record.load(),
        escape(&record.accept_encoding),
    );
    let _ = write!(
        page,
        "<div class=\"pair\"><div class=\"card\"><h3>Requests per second</h3>{}</div>\
         <div class=\"card\"><h3>Processor time per request, µs <span class=\"soft\">(lighter: front, full: PHP)</span></h3>{}</div></div>",
        chart::bars("requests per second", &rate_bars(results, view)),
        chart::bars("processor time per request", &cost_bars(results, view)),
    );
    page.push_str(&kinds::html(view));
    latency(page, results, view);
    why(page, view, all);
    details(page, view);
    page.push_str("</section>");
}

fn row(results: &ResultSet, cell: &view::Cell<'_>) -> Bar {
    Bar {
        label: cell.system.title.clone(),
        colour: colour(results, cell.system),
        text: absent(&cell.state).to_owned(),
        hint: match &cell.state {
            State::Failed { message, .. } => (*message).to_owned(),
            State::Skipped(reason) | State::Missing(reason) => (*reason).to_owned(),
            _ => String::new(),
        },
        ..Bar::default()
    }
}

fn rate_bars(results: &ResultSet, view: &CaseView<'_>) -> Vec<Bar> {
    let draw = |cell: &view::Cell<'_>| match &cell.state {
        State::Measured(m) => Bar {
            parts: vec![Part { length: m.rate.median, light: false }],
            range: Some((m.rate.min, m.rate.max)),
            text: number(m.rate.median),
            hint: format!(
                "{}: median {} of {} runs, from {} to {}",
                cell.system.title,
                number(m.rate.median),
                m.rate.count,
                number(m.rate.min),
                number(m.rate.max)
            ),
            ..row(results, cell)
        },
        _ => row(results, cell),
    };
    view.cells.iter().map(draw).collect()
}

fn cost_bars(results: &ResultSet, view: &CaseView<'_>) -> Vec<Bar> {
    let draw = |cell: &view::Cell<'_>| match &cell.state {
        State::Measured(m) => {
            let front = m.role_us(Role::Front);
            let rest = (m.server_us.median - front).max(0.0);
            let parts = [(front, true), (rest, false)];
            Bar {
                parts: parts
                    .iter()
                    .filter(|(us, _)| *us > 0.0)
                    .map(|(length, light)| Part { length: *length, light: *light })
                    .collect(),
                range: Some((m.server_us.min, m.server_us.max)),
                text: format!("{} µs", number(m.server_us.median)),
                hint: format!(
                    "{}: {} µs in the front, {} µs in PHP, {} µs in processes that do both",
                    cell.system.title,
                    number(front),
                    number(m.role_us(Role::Php)),
                    number(m.role_us(Role::Both))
                ),
                ..row(results, cell)
            }
        }
        _ => row(results, cell),
    };
    view.cells.iter().map(draw).collect()
}

fn latency(page: &mut String, results: &ResultSet, view: &CaseView<'_>) {
    let lines: Vec<Line> = view
        .measured()
        .filter_map(|(system, m)| m.latency.map(|sample| (system, sample)))
        .map(|(system, sample)| Line {
            label: system.title.clone(),
            colour: colour(results, system),
            points: sample.latency.percentiles.clone(),
        })
        .collect();
    let Some(rate) = view.measured().find_map(|(_, m)| m.latency.and_then(|sample| sample.offered_rate)) else {
        return;
    };
    let _ = write!(
        page,
        "<div class=\"card\"><h3>Latency at {} requests per second <span class=\"soft\">(the same for all, counted from the time a request was \
         due)</span></h3>{}</div>",
        number(rate),
        chart::latency("latency over percentiles", &lines),
    );
}

/// Number of explanations that are visible at first.
const SHOWN: usize = 4;

fn why(page: &mut String, view: &CaseView<'_>, all: &[CaseView<'_>]) {
    let explanations = explain::case(view);
    let mut general = explain::general(view);
    general.extend(explain::gains_by_jit(view, all));
    if explanations.is_empty() && general.is_empty() {
        return;
    }
    page.push_str("<ul class=\"why\">");
    for (index, explanation) in explanations.iter().enumerate() {
        if index == SHOWN {
            let more = explanations.len() - SHOWN;
            let _ = write!(page, "<li><details><summary>and {more} more</summary><ul class=\"why\">");
        }
        let _ = write!(page, "<li><strong>{}</strong><ul>", escape(&explanation.headline));
        for cause in &explanation.causes {
            let _ = write!(page, "<li>{}</li>", escape(cause));
        }
        page.push_str("</ul></li>");
    }
    if explanations.len() > SHOWN {
        page.push_str("</ul></details></li>");
    }
    for note in general {
        let _ = write!(page, "<li>{}</li>", escape(&note));
    }
    page.push_str("</ul>");
}

fn details(page: &mut String, view: &CaseView<'_>) {
    page.push_str(
        "<details><summary>All figures</summary><div class=\"card scroll\"><table><thead><tr><th>system</th><th>req/s</th><th>spread</th>\
         <th>received/s</th><th>mean</th><th>p50</th><th>p75</th><th>p90</th><th>p95</th><th>p99</th><th>max</th><th>errors</th>\
         <th>system's share of the machine</th><th>machine busy</th><th>PSS</th><th>processes</th><th>switches / request</th>\
         <th>bytes on the wire</th><th>MySQL conn. / queries, open at once</th></tr></thead><tbody>",
    );
    for cell in &view.cells {
        let _ = write!(page, "<tr><td>{}</td>", escape(&cell.system.title));
        match &cell.state {
            State::Measured(m) => page.push_str(&figures(m)),
            State::Failed { stage, message, .. } => {
                let _ = write!(
                    page,
                    "<td class=\"bad\" colspan=\"18\" style=\"text-align:left\">failed ({}): {}</td>",
                    escape(stage),
                    escape(message)
                );
            }
            State::Skipped(reason) | State::Missing(reason) => {
                let _ = write!(
                    page,
                    "<td class=\"absent\" colspan=\"18\" style=\"text-align:left\">{}: {}</td>",
                    absent(&cell.state),
                    escape(reason)
                );
            }
            State::NotRun => {
                page.push_str("<td class=\"absent\" colspan=\"18\" style=\"text-align:left\">not run</td>")
            }
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div></details>");
    for cell in &view.cells {
        if let State::Failed { log_tail, .. } = &cell.state
            && !log_tail.is_empty()
        {
            let _ = write!(
                page,
                "<details><summary>End of the log of {}</summary><pre>{}</pre></details>",
                escape(&cell.system.title),
                escape(&log_tail.join("\n"))
            );
        }
    }
}

fn figures(m: &Measured<'_>) -> String {
    let at = |percentile| time(m.median(|sample| sample.latency.at(percentile).unwrap_or(f64::NAN)));
    let mysql = match (m.connections_per_request(), m.queries_per_request(), m.mysql_most_open()) {
        (Some(connections), Some(queries), Some(open)) => format!("{connections:.2} / {queries:.2}, {open}"),
        _ => "–".into(),
    };
    let cells = [
        number(m.rate.median),
        format!("{:.1} %", m.rate.spread() * 100.0),
        bytes(m.median(|sample| sample.bytes_per_second())),
        time(m.median(|sample| sample.latency.mean)),
        at(50.0),
        at(75.0),
        at(90.0),
        at(95.0),
        at(99.0),
        at(100.0),
        m.errors().to_string(),
        format!("{:.0} %", m.system_share() * 100.0),
        format!("{:.0} %", m.busy() * 100.0),
        bytes(m.pss_bytes()),
        format!("{:.0}", m.median(|sample| f64::from(sample.memory.processes))),
        format!("{:.2}", m.median(|sample| sample.switches_per_request())),
        format!("{} {}", bytes(m.wire_bytes() as f64), escape(m.encoding())),
        mysql,
    ];
    cells.iter().map(|cell| format!("<td>{cell}</td>")).collect()
}

fn systems(page: &mut String, results: &ResultSet) {
    page.push_str("<h2 id=\"systems\">Systems</h2><div class=\"pair\">");
    for system in &results.systems {
        let _ = write!(page, "<div class=\"card\"><h3>{}</h3>", escape(&system.title));
        match &system.status {
            SystemStatus::Missing { what, how } => {
                let _ = write!(
                    page,
                    "<p class=\"soft\">Not on this machine: {}.</p><p class=\"soft\">To get it: {}</p>",
                    escape(what),
                    escape(how)
                );
            }
            SystemStatus::Found { versions } => found(page, system, versions),
        }
        page.push_str("</div>");
    }
    page.push_str("</div>");
}

fn found(page: &mut String, system: &SystemRecord, versions: &std::collections::BTreeMap<String, String>) {
    let parts: Vec<String> =
        versions.iter().map(|(part, version)| format!("{}: {}", escape(part), escape(version))).collect();
    let _ = write!(page, "<p class=\"soft\">{}</p><ul>", parts.join("<br>"));
    for note in &system.tuning {
        let _ = write!(page, "<li>{}</li>", escape(note));
    }
    if let Some(php) = &system.php {
        let _ = write!(
            page,
            "<li>PHP {} as {}{}, OPcache {}, JIT {}, {} extensions</li>",
            escape(&php.version),
            escape(&php.sapi),
            if php.zts { ", thread-safe" } else { "" },
            if php.opcache { "on" } else { "off" },
            if php.jit { "on" } else { "off" },
            php.extensions
        );
    }
    page.push_str("</ul>");
    if !system.commands.is_empty() {
        let _ = write!(
            page,
            "<details><summary>Command lines</summary><pre>{}</pre></details>",
            escape(&system.commands.join("\n\n"))
        );
    }
    for (name, content) in &system.config_files {
        let _ = write!(page, "<details><summary>{}</summary><pre>{}</pre></details>", escape(name), escape(content));
    }
}

fn method(page: &mut String, results: &ResultSet) {
    let (settings, machine) = (&results.settings, &results.machine);
    let _ = write!(
        page,
        "<h2 id=\"method\">Method</h2><ul><li>{}, {} processors, {} memory, {}, Linux {}; virtualisation: {}; TCP congestion \
         control: {}; load average before the first run: {:.2}.</li><li>{} rounds of {} s after {} s of warm-up, interleaved between the systems in changing order. One system runs at a time and is \
         started anew for each run. Bars show medians, whiskers the smallest and largest run.</li><li>Throughput: {}, {} threads, closed loop. A request \
         counts when its status means success.</li>",
        escape(&machine.cpu),
        machine.cores,
        bytes(machine.memory_bytes as f64),
        escape(&machine.os),
        escape(&machine.kernel),
        escape(&machine.virtualisation),
        escape(&machine.congestion_control),
        machine.load_average,
        settings.rounds,
        settings.seconds,
        settings.warmup_seconds,
        escape(&settings.generator),
        settings.load_threads,
    );
    if settings.rate_share > 0.0 {
        let _ = write!(
            page,
            "<li>Latency: every system gets the same rate, {:.0} % of what the slowest one serves. The generator does not wait for answers (open loop); \
             latency counts from the time a request was due, so the wait behind a slow answer is part of it.</li>",
            settings.rate_share * 100.0
        );
    }
    if results.cases.iter().any(|case| !case.clients.is_empty()) {
        let _ = write!(page, "<li>{MIXED}</li>");
    }
    let _ = write!(
        page,
        "<li>Each answer is checked before and after each run: status, type, and the body's bytes or pattern. A failed run is shown as failed.</li>\
         <li>PSS: memory of all processes of a system after the run, with shared pages counted once.</li>\
         <li>Command: <code>{}</code>, lab {}. Every run is in <code>result.json</code>, with command lines and configuration files.</li></ul>",
        escape(&results.command.join(" ")),
        escape(&results.lab_version),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::sample_results;

    #[test]
    fn the_page_is_self_contained_and_well_formed() {
        for results in [sample_results::results(), sample_results::mixed()] {
            assert_well_formed(&page(&results));
        }
    }

    fn assert_well_formed(page: &str) {
        for outside in ["src=", "@import", "url(", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
        for tag in ["div", "svg", "table", "section", "details", "ul", "li", "main", "h2", "pre", "g", "tr", "td"] {
            let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(page.contains("not installed") && page.contains("30 002"));
    }

    #[test]
    fn text_from_outside_is_escaped() {
        let mut results = sample_results::results();
        results.suite = "<script>alert(1)</script>".into();
        let page = page(&results);
        assert!(!page.contains("<script>alert"));
        assert!(page.contains("a &lt;b&gt; &amp; c"));
    }
}
