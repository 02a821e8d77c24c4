//! The results of one case in a reproduction.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::Role;
use crate::stats::Summary;
use crate::view::{Measured, State};

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

/// Causes of the difference between two systems.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Why {
    pub headline: String,
    pub causes: Vec<String>,
}

/// Result of a system.
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

    /// Returns the reason why there is no figure.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Measured(_) => None,
            Self::Failed(reason) | Self::Absent(reason) => Some(reason),
        }
    }
}

/// Returns the kept result of a system on a case.
pub fn of_cell(state: &State<'_>) -> Cell {
    match state {
        State::Measured(measured) => Cell::Measured(Box::new(of_runs(measured))),
        State::Failed { stage, message, .. } => Cell::Failed(format!("{stage}: {message}")),
        State::Skipped(reason) => Cell::Absent((*reason).to_owned()),
        State::Missing(what) => Cell::Absent(format!("not installed ({what})")),
        State::NotRun => Cell::Absent("not measured: the run was stopped before".to_owned()),
    }
}

/// Returns the figures of one system on one case.
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

/// Rounds to a tenth of a microsecond, which is less than the difference of two runs of one build.
fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn hundredth(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
