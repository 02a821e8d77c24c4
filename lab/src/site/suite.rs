//! The page of a suite, from its summary alone.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::record::Machine;
use crate::report::blocks::{Block, Cell, Item, Page, Table};
use crate::report::{bytes, number, time};
use crate::stats::Summary;

/// The parts of a kept summary that are read.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    suite: String,
    pub(super) started: String,
    command: Vec<String>,
    lab_version: String,
    pub(super) machine: Machine,
    warnings: Vec<String>,
    systems: BTreeMap<String, System>,
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
struct System {
    title: String,
    versions: Option<BTreeMap<String, String>>,
    php: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Case {
    title: String,
    load: String,
    systems: BTreeMap<String, Outcome>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Measured(Box<Figures>),
    Failed(String),
    Absent(String),
}

#[derive(Debug, Deserialize)]
struct Figures {
    requests_per_second: Summary,
    server_us: Summary,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    pss_bytes: f64,
    wire_bytes: u64,
    encoding: String,
    errors: u64,
    #[serde(default)]
    kinds: BTreeMap<String, Kind>,
}

#[derive(Debug, Deserialize)]
struct Kind {
    requests_per_second: f64,
    refused_per_second: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    errors: u64,
}

impl Document {
    /// Describes the extent of the measurement.
    pub(super) fn extent(&self) -> String {
        format!("{} cases, {} systems", self.cases.len(), self.systems.len())
    }

    fn title_of<'a>(&'a self, id: &'a str) -> &'a str {
        self.systems.get(id).map_or(id, |system| &system.title)
    }
}

/// Returns the suite, and the directory if its name adds information.
pub(super) fn title(document: &Document, place: &Path) -> String {
    match place.file_name().map(|name| name.to_string_lossy()) {
        Some(name) if name != document.suite.as_str() => format!("{name} (suite {})", document.suite),
        _ => document.suite.clone(),
    }
}

pub(super) fn page(document: &Document, place: &Path) -> Page {
    let machine = &document.machine;
    let mut blocks = Vec::new();
    if !document.warnings.is_empty() {
        let all = document.warnings.iter().map(Item::new).collect();
        blocks.push(Block::Details(format!("{} warnings", document.warnings.len()), vec![Block::List(all)]));
    }
    blocks.push(Block::Heading("Cases".into()));
    for case in &document.cases {
        blocks.push(Block::Smaller(case.title.clone()));
        blocks.push(Block::Text(format!("{}.", case.load)));
        blocks.push(Block::Table(figures(document, case)));
        if let Some(kinds) = kinds(document, case) {
            blocks.push(Block::Table(kinds));
        }
    }
    blocks.push(Block::Heading("Systems".into()));
    let systems = document.systems.values().map(|system| {
        let mut below: Vec<String> = match &system.versions {
            Some(versions) => versions.iter().map(|(part, version)| format!("{part}: {version}")).collect(),
            None => vec!["not on this machine".into()],
        };
        below.extend(system.php.iter().map(|php| format!("PHP {php} inside it")));
        Item { text: system.title.clone(), below }
    });
    blocks.push(Block::List(systems.collect()));
    blocks.push(Block::Text(format!("Command: {} (lab {}).", document.command.join(" "), document.lab_version)));
    Page {
        title: title(document, place),
        about: format!(
            "{}, {} with {} processors, {}, Linux {}.",
            document.started.replace('T', " ").replace('Z', " UTC"),
            machine.cpu,
            machine.cores,
            machine.os,
            machine.kernel
        ),
        blocks,
    }
}

fn spread(of: &Summary) -> String {
    if of.count > 1 { format!("{} to {}", number(of.min), number(of.max)) } else { String::new() }
}

fn latency(us: Option<f64>) -> Cell {
    us.map_or(Cell::absent("–"), |us| Cell::new(time(us)))
}

fn figures(document: &Document, case: &Case) -> Table {
    let head =
        ["system", "requests per second", "processor time for one", "p50", "p99", "memory (PSS)", "bytes on the wire"];
    let rows = case.systems.iter().map(|(id, outcome)| {
        let mut cells = vec![Cell::words(document.title_of(id))];
        match outcome {
            Outcome::Measured(figures) => {
                let errors = if figures.errors > 0 { format!(", {} errors", figures.errors) } else { String::new() };
                let how = if figures.encoding == "identity" { "" } else { &figures.encoding };
                cells.extend([
                    Cell::new(number(figures.requests_per_second.median))
                        .below(spread(&figures.requests_per_second) + &errors),
                    Cell::new(format!("{} µs", number(figures.server_us.median))).below(spread(&figures.server_us)),
                    latency(figures.p50_us),
                    latency(figures.p99_us),
                    Cell::new(bytes(figures.pss_bytes)),
                    Cell::new(bytes(figures.wire_bytes as f64)).below(how),
                ]);
            }
            Outcome::Failed(reason) => without(&mut cells, &format!("failed: {reason}"), head.len()),
            Outcome::Absent(reason) => without(&mut cells, reason, head.len()),
        }
        cells
    });
    Table { head: head.map(str::to_owned).to_vec(), rows: rows.collect() }
}

/// Adds words instead of a figure, and leaves the neighbouring cells empty.
fn without(cells: &mut Vec<Cell>, reason: &str, columns: usize) {
    cells.push(Cell { text: reason.to_owned(), class: "words absent", ..Cell::default() });
    while cells.len() < columns {
        cells.push(Cell::absent("–"));
    }
}

/// Returns the table of each kind of request of a mixed load.
fn kinds(document: &Document, case: &Case) -> Option<Table> {
    let mut rows = Vec::new();
    for (id, outcome) in &case.systems {
        let Outcome::Measured(figures) = outcome else { continue };
        for (kind, of) in &figures.kinds {
            let errors = if of.errors > 0 { format!("{} errors", of.errors) } else { String::new() };
            rows.push(vec![
                Cell::words(document.title_of(id)),
                Cell::words(kind.clone()),
                Cell::new(number(of.requests_per_second)).below(errors),
                Cell::new(number(of.refused_per_second)),
                latency(of.p50_us),
                latency(of.p99_us),
            ]);
        }
    }
    let head = ["system", "kind of request", "right answers per second", "refused per second", "p50", "p99"];
    (!rows.is_empty()).then(|| Table { head: head.map(str::to_owned).to_vec(), rows })
}
