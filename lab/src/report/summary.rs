//! `summary.json`: the figures of a result set without its single runs, for a repository. `result.json`, from which it
//! is computed, has every run, log and configuration file and is too large for that.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

use super::markdown;
use crate::record::{Machine, ResultSet, Role, Settings, SystemStatus};
use crate::stats::Summary;
use crate::view::{self, Cell, Measured, State};
use crate::warn;

pub const FILE: &str = "summary.json";

/// The kept part of a result set.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    suite: &'a str,
    started: &'a str,
    finished: Option<&'a str>,
    lab_version: &'a str,
    command: &'a [String],
    settings: &'a Settings,
    machine: &'a Machine,
    warnings: Vec<String>,
    systems: BTreeMap<&'a str, SystemSummary<'a>>,
    cases: Vec<CaseSummary<'a>>,
}

#[derive(Debug, Serialize)]
struct SystemSummary<'a> {
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    php: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct CaseSummary<'a> {
    id: &'a str,
    title: &'a str,
    load: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    generator_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loop_us: Option<f64>,
    systems: BTreeMap<&'a str, Figures>,
}

/// Result of one system on one case.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Figures {
    Measured(Box<MeasuredFigures>),
    Failed(String),
    Absent(String),
}

/// Medians over the rounds; times in microseconds.
#[derive(Debug, Serialize)]
struct MeasuredFigures {
    requests_per_second: Summary,
    server_us: Summary,
    front_us: f64,
    php_us: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    machine_busy: f64,
    pss_bytes: f64,
    wire_bytes: u64,
    encoding: String,
    errors: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kinds: BTreeMap<String, KindFigures>,
}

#[derive(Debug, Serialize)]
struct KindFigures {
    requests_per_second: f64,
    refused_per_second: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    errors: u64,
}

/// Writes the summary and the Markdown page into `into`.
pub fn write(into: &Path, results: &ResultSet) -> Result<()> {
    fs::create_dir_all(into).with_context(|| format!("cannot create {}", into.display()))?;
    let summary = text(&serde_json::to_value(of(results))?);
    for (name, content) in [(FILE, summary), (markdown::FILE, markdown::page(results))] {
        let path = into.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Formats a summary for the repository.
pub fn text(summary: &Value) -> String {
    let mut text = String::new();
    render(summary, 0, &mut text);
    text.push('\n');
    text
}

/// Depth of the values that stay on one line, however long: the figures of one system on one case.
const ONE_LINE: usize = 4;
/// Maximum length of a value that always stays on one line.
const SHORT: usize = 100;

/// Formats JSON with a line for each value that can change independently, so that it is short and can be compared line
/// by line.
fn render(value: &Value, depth: usize, text: &mut String) {
    let short = value.to_string();
    let parts: Vec<(Option<&String>, &Value)> = match value {
        Value::Object(entries) if depth < ONE_LINE && short.len() > SHORT => {
            entries.iter().map(|(key, value)| (Some(key), value)).collect()
        }
        Value::Array(items) if depth < ONE_LINE && short.len() > SHORT => {
            items.iter().map(|item| (None, item)).collect()
        }
        _ => return text.push_str(&short),
    };
    let (open, close) = if value.is_object() { ('{', '}') } else { ('[', ']') };
    text.push(open);
    for (at, (key, part)) in parts.iter().enumerate() {
        text.push_str(if at == 0 { "\n" } else { ",\n" });
        text.push_str(&"  ".repeat(depth + 1));
        if let Some(key) = key {
            text.push_str(&format!("{}: ", Value::from(key.as_str())));
        }
        render(part, depth + 1, text);
    }
    text.push_str(&format!("\n{}{close}", "  ".repeat(depth)));
}

pub fn of(results: &ResultSet) -> Document<'_> {
    let systems = results.systems.iter().map(|system| {
        let versions = match &system.status {
            SystemStatus::Found { versions } => Some(versions),
            SystemStatus::Missing { .. } => None,
        };
        let php = system.php.as_ref().map(|php| php.version.as_str());
        (system.id.as_str(), SystemSummary { title: &system.title, versions, php })
    });
    let cases = view::cases(results).into_iter().map(|view| CaseSummary {
        id: &view.case.id,
        title: &view.case.title,
        load: view.case.load(),
        generator_us: view.floor.map(|floor| rounded(floor.generator_us)),
        loop_us: view.loop_us.map(rounded),
        systems: view.cells.iter().map(|cell| (cell.system.id.as_str(), figures(cell, &view.kinds()))).collect(),
    });
    Document {
        suite: &results.suite,
        started: &results.started,
        finished: results.finished.as_deref(),
        lab_version: &results.lab_version,
        command: &results.command,
        settings: &results.settings,
        machine: &results.machine,
        warnings: warn::all(results).iter().map(warn::Warning::text).collect(),
        systems: systems.collect(),
        cases: cases.collect(),
    }
}

fn figures(cell: &Cell<'_>, kinds: &[&str]) -> Figures {
    match &cell.state {
        State::Measured(measured) => Figures::Measured(Box::new(measured_figures(measured, kinds))),
        State::Failed { stage, message, .. } => Figures::Failed(format!("{stage}: {message}")),
        State::Skipped(reason) | State::Missing(reason) => Figures::Absent((*reason).to_owned()),
        State::NotRun => Figures::Absent("not run".to_owned()),
    }
}

fn measured_figures(measured: &Measured<'_>, kinds: &[&str]) -> MeasuredFigures {
    let percentile = |at| known(measured.median(|sample| sample.latency.at(at).unwrap_or(f64::NAN)));
    let kinds = kinds.iter().filter_map(|name| {
        let kind = measured.kind(name)?;
        let figures = KindFigures {
            requests_per_second: rounded(kind.rate()),
            refused_per_second: rounded(kind.refused_rate()),
            p50_us: known(kind.percentile_us(50.0)),
            p99_us: known(kind.percentile_us(99.0)),
            errors: kind.errors(),
        };
        Some(((*name).to_owned(), figures))
    });
    MeasuredFigures {
        requests_per_second: rounded_all(measured.rate),
        server_us: rounded_all(measured.server_us),
        front_us: rounded(measured.role_us(Role::Front)),
        php_us: rounded(measured.role_us(Role::Php)),
        p50_us: percentile(50.0),
        p99_us: percentile(99.0),
        machine_busy: (measured.busy() * 1000.0).round() / 1000.0,
        pss_bytes: measured.pss_bytes(),
        wire_bytes: measured.wire_bytes(),
        encoding: measured.encoding().to_owned(),
        errors: measured.errors(),
        kinds: kinds.collect(),
    }
}

/// Rounds to a tenth of a microsecond, which is less than the difference of two runs of one build.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn rounded_all(of: Summary) -> Summary {
    Summary { count: of.count, min: rounded(of.min), median: rounded(of.median), max: rounded(of.max) }
}

/// Maps NaN to `None`: JSON cannot represent it.
fn known(value: f64) -> Option<f64> {
    value.is_finite().then(|| rounded(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::sample_results;

    #[test]
    fn the_summary_has_the_medians_of_every_system_and_no_single_run() {
        let results = sample_results::results();
        let summary = serde_json::to_value(of(&results)).unwrap();
        let cell = &view::cases(&results)[0].cells[0];
        let State::Measured(measured) = &cell.state else { panic!("the sample has figures") };
        let figures = &summary["cases"][0]["systems"][&cell.system.id]["measured"];
        assert_eq!(figures["requests_per_second"]["median"], rounded(measured.rate.median));
        assert_eq!(figures["server_us"]["median"], rounded(measured.server_us.median));
        assert!(summary.get("runs").is_none());
        let all = summary["cases"][0]["systems"].as_object().unwrap();
        assert_eq!(all.len(), results.systems.len());
    }

    #[test]
    fn a_mixed_load_keeps_the_figures_of_each_kind() {
        let results = sample_results::mixed();
        let summary = serde_json::to_value(of(&results)).unwrap();
        let kinds = view::cases(&results)[0].kinds().len();
        let systems = summary["cases"][0]["systems"].as_object().unwrap();
        let found: Vec<_> = systems.values().filter_map(|figures| figures["measured"]["kinds"].as_object()).collect();
        assert!(!found.is_empty() && found.iter().all(|all| all.len() == kinds), "{summary}");
    }

    #[test]
    fn a_summary_and_a_page_are_written_where_they_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kept/suite");
        write(&kept, &sample_results::results()).unwrap();
        let text = fs::read_to_string(kept.join(FILE)).unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, serde_json::to_value(of(&sample_results::results())).unwrap());
        assert!(text.lines().count() < 60, "{text}");
        assert!(kept.join(markdown::FILE).is_file());
    }
}
