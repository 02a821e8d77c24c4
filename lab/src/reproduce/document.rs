//! What a reproduction comes to: everything that its pages show, as one file that a repository keeps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::article::Article;
use super::counting::Counting;
use super::method::{self, Form};
use super::verdict::{self, Judged};
use crate::explain;
use crate::record::{Machine, ResultSet, Role, SystemStatus};
use crate::stats::Summary;
use crate::view::{self, CaseView, Measured, State};
use crate::warn;

/// What tells such a file from other summaries.
pub const KIND: &str = "reproduction";

/// A reproduction of one article.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Document {
    /// [`KIND`].
    pub kind: String,
    /// Name of the article.
    pub article: String,
    pub form: Form,
    pub started: String,
    pub finished: Option<String>,
    pub interrupted: bool,
    pub lab_version: String,
    pub command: Vec<String>,
    pub generator: String,
    pub machine: Machine,
    pub differences: Vec<String>,
    /// What else the reader has to know of the application that was measured.
    #[serde(default)]
    pub notes: Vec<String>,
    pub warnings: Vec<String>,
    pub systems: Vec<SystemEntry>,
    pub cases: Vec<CaseEntry>,
    pub conclusions: Vec<Judged>,
    #[serde(default)]
    pub counting: Option<Counting>,
}

/// A system, found or not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SystemEntry {
    pub id: String,
    pub title: String,
    pub status: SystemStatus,
    pub tuning: Vec<String>,
    #[serde(default)]
    pub php: Option<String>,
}

/// A row of the article's table in one set-up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CaseEntry {
    pub row: String,
    pub setup: String,
    pub title: String,
    pub load: String,
    pub cells: BTreeMap<String, Cell>,
    pub why: Vec<Why>,
}

/// Why two systems differ.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Why {
    pub headline: String,
    pub causes: Vec<String>,
}

/// What became of a system.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    Measured(Box<Figures>),
    Failed(String),
    Absent(String),
}

/// Medians of the rounds; times in microseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figures {
    pub rate: Summary,
    pub server_us: Summary,
    pub front_us: f64,
    pub php_us: f64,
    /// Processor time of MariaDB and Redis for one request.
    pub services_us: f64,
    pub mean_us: Option<f64>,
    pub p50_us: Option<f64>,
    pub p95_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub queries: Option<f64>,
    pub connections: Option<f64>,
    pub busy: f64,
    pub pss_bytes: f64,
    pub wire_bytes: u64,
    pub encoding: String,
    pub errors: u64,
}

impl Cell {
    pub fn figures(&self) -> Option<&Figures> {
        match self {
            Self::Measured(figures) => Some(figures),
            _ => None,
        }
    }

    /// The reason why there is no figure.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Measured(_) => None,
            Self::Failed(reason) | Self::Absent(reason) => Some(reason),
        }
    }
}

impl Document {
    /// From what was measured so far.
    pub fn of(article: &Article, form: Form, results: &ResultSet, notes: &[String]) -> Self {
        let views = view::cases(results);
        let mut cases = Vec::new();
        for setup in method::setups(article, form) {
            for row in method::rows(article, form) {
                let id = method::case_id(row, setup);
                let Some(view) = views.iter().find(|view| view.case.id == id) else { continue };
                cases.push(CaseEntry {
                    row: row.id.clone(),
                    setup: setup.id.word().to_owned(),
                    title: view.case.title.clone(),
                    load: view.case.load(),
                    cells: view.cells.iter().map(|cell| (cell.system.id.clone(), of_cell(&cell.state))).collect(),
                    why: why(article, view),
                });
            }
        }
        Self {
            kind: KIND.to_owned(),
            article: article.name.clone(),
            form,
            started: results.started.clone(),
            finished: results.finished.clone(),
            interrupted: results.interrupted,
            lab_version: results.lab_version.clone(),
            command: results.command.clone(),
            generator: results.settings.generator.clone(),
            machine: results.machine.clone(),
            differences: method::differences(article, form, &results.machine, &results.settings.generator),
            notes: notes.to_vec(),
            warnings: warn::all(results).iter().map(warn::Warning::text).collect(),
            systems: results.systems.iter().map(system).collect(),
            conclusions: verdict::all(article, &cases),
            counting: Counting::of(&views),
            cases,
        }
    }

    pub fn system(&self, id: &str) -> Option<&SystemEntry> {
        self.systems.iter().find(|system| system.id == id)
    }

    /// Name for people.
    pub fn title<'a>(&'a self, id: &'a str) -> &'a str {
        self.system(id).map_or(id, |system| &system.title)
    }

    /// Systems that were not there, with what was looked for and how to get it.
    pub fn missing(&self) -> Vec<(&str, &str, &str)> {
        let missing = |system| match system {
            &SystemEntry { ref title, status: SystemStatus::Missing { ref what, ref how }, .. } => {
                Some((title.as_str(), what.as_str(), how.as_str()))
            }
            _ => None,
        };
        self.systems.iter().filter_map(missing).collect()
    }
}

/// A system as it is kept.
pub fn system(record: &crate::record::SystemRecord) -> SystemEntry {
    SystemEntry {
        id: record.id.clone(),
        title: record.title.clone(),
        status: record.status.clone(),
        tuning: record.tuning.clone(),
        php: record.php.as_ref().map(|php| php.version.clone()),
    }
}

/// The article's pair, and each other system beside the base.
fn why(article: &Article, view: &CaseView<'_>) -> Vec<Why> {
    let others = article.systems.iter().map(|system| &system.id).filter(|id| **id != article.base);
    others
        .filter_map(|other| explain::between(view, &article.base, other))
        .map(|found| Why { headline: found.headline, causes: found.causes })
        .collect()
}

/// What became of a system on a case, as it is kept.
pub fn of_cell(state: &State<'_>) -> Cell {
    match state {
        State::Measured(measured) => Cell::Measured(Box::new(of_runs(measured))),
        State::Failed { stage, message, .. } => Cell::Failed(format!("{stage}: {message}")),
        State::Skipped(reason) => Cell::Absent((*reason).to_owned()),
        State::Missing(what) => Cell::Absent(format!("not installed ({what})")),
        State::NotRun => Cell::Absent("not measured: the run was stopped before".to_owned()),
    }
}

/// The figures of one system on one case.
pub fn of_runs(measured: &Measured<'_>) -> Figures {
    let known = |value: f64| value.is_finite().then(|| tenth(value));
    let at = |percentile| known(measured.median(|sample| sample.latency.at(percentile).unwrap_or(f64::NAN)));
    let all =
        |of: Summary| Summary { count: of.count, min: tenth(of.min), median: tenth(of.median), max: tenth(of.max) };
    Figures {
        rate: all(measured.rate),
        server_us: all(measured.server_us),
        front_us: tenth(measured.role_us(Role::Front)),
        php_us: tenth(measured.role_us(Role::Php)),
        services_us: tenth(
            measured
                .median(|sample| sample.cpu.services.values().sum::<f64>() * 1e6 / (sample.requests as f64).max(1.0)),
        ),
        mean_us: known(measured.median(|sample| sample.latency.mean)),
        p50_us: at(50.0),
        p95_us: at(95.0),
        p99_us: at(99.0),
        queries: measured.queries_per_request().map(hundredth),
        connections: measured.connections_per_request().map(hundredth),
        busy: hundredth(measured.busy()),
        pss_bytes: measured.pss_bytes(),
        wire_bytes: measured.wire_bytes(),
        encoding: measured.encoding().to_owned(),
        errors: measured.errors(),
    }
}

/// A tenth of a microsecond is below what two runs of one build differ by.
fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn hundredth(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
