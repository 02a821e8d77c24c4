//! The data of a choice, as one file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::demands;
use crate::record::{Machine, ResultSet, SystemStatus};
use crate::reproduce::document::{SystemEntry, system};
use crate::reproduce::entry::{Cell, Figures, of_cell};
use crate::view::{self, State};
use crate::warn;

pub const KIND: &str = "choice";

/// Share of a machine's processors to plan with when machines are counted; the rest is reserve.
pub const FILLED: f64 = 0.7;

/// Below this share of busy processors, waiting limits throughput, not the processors.
const IDLE: f64 = 0.75;

/// The team's requirements.
#[derive(Debug, Clone)]
pub struct Requirements {
    pub need: f64,
    pub load: Option<f64>,
    /// Paths, and the relative frequency of each.
    pub shares: Vec<(String, f64)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Choice {
    /// [`KIND`].
    pub kind: String,
    pub application: String,
    pub started: String,
    pub finished: Option<String>,
    pub interrupted: bool,
    pub lab_version: String,
    pub command: Vec<String>,
    pub generator: String,
    pub machine: Machine,
    /// Conditions of all runs.
    pub conditions: String,
    /// Requests per second for which machines are counted.
    pub need: f64,
    /// Rate in requests per second at which latency was measured, by path.
    pub rates: BTreeMap<String, f64>,
    pub shares: Vec<(String, f64)>,
    pub warnings: Vec<String>,
    /// The verdict of `howdah doctor`, if it exists.
    pub doctor: Option<Vec<String>>,
    pub options: Vec<Candidate>,
}

/// One system as a candidate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Candidate {
    pub system: SystemEntry,
    pub demands: String,
    /// Results by path.
    pub cells: BTreeMap<String, Cell>,
    pub latency: BTreeMap<String, AtLoad>,
    /// Result over all paths; absent if one of them has no figure.
    pub whole: Option<Whole>,
}

/// Latency at a rate, counted from the time a request was due, in microseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct AtLoad {
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub errors: u64,
}

/// All paths together, weighted by their frequency.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Whole {
    /// Requests per second of the mix on this machine.
    pub rate: f64,
    /// Processor time of the system for one request, in microseconds.
    pub server_us: f64,
    pub pss_bytes: f64,
    /// Number of machines like this one.
    pub machines: u32,
    /// `true` if waiting limits the rate, not the processors.
    pub waits: bool,
}

impl Choice {
    pub fn of(app: &Path, requirements: &Requirements, results: &ResultSet, doctor: Option<Vec<String>>) -> Self {
        let views = view::cases(results);
        let mut rates = BTreeMap::new();
        let mut options = Vec::new();
        for (index, record) in results.systems.iter().enumerate() {
            let (mut cells, mut latency) = (BTreeMap::new(), BTreeMap::new());
            for view in &views {
                let state = &view.cells[index].state;
                cells.insert(view.case.id.clone(), of_cell(state));
                let State::Measured(measured) = state else { continue };
                let Some(sample) = measured.latency else { continue };
                rates.extend(sample.offered_rate.map(|rate| (view.case.id.clone(), rate)));
                let at = |percentile| sample.latency.at(percentile);
                let found = AtLoad { p50_us: at(50.0), p99_us: at(99.0), errors: sample.errors.total() };
                latency.insert(view.case.id.clone(), found);
            }
            options.push(Candidate {
                system: system(record),
                demands: demands::of(&record.id).to_owned(),
                whole: whole(&cells, requirements, results.machine.cores),
                cells,
                latency,
            });
        }
        Self {
            kind: KIND.to_owned(),
            application: app
                .file_name()
                .map_or_else(|| app.display().to_string(), |name| name.to_string_lossy().into_owned()),
            started: results.started.clone(),
            finished: results.finished.clone(),
            interrupted: results.interrupted,
            lab_version: results.lab_version.clone(),
            command: results.command.clone(),
            generator: results.settings.generator.clone(),
            machine: results.machine.clone(),
            conditions: results.cases.first().map(|case| case.load()).unwrap_or_default(),
            need: requirements.need,
            rates,
            shares: requirements.shares.clone(),
            warnings: warn::all(results).iter().map(warn::Warning::text).collect(),
            doctor,
            options,
        }
    }

    /// Returns the candidates with a figure for every path, those with the fewest machines first.
    pub fn ranked(&self) -> Vec<(&Candidate, Whole)> {
        let mut ranked: Vec<_> = self.options.iter().filter_map(|option| Some((option, option.whole?))).collect();
        ranked.sort_by(|(_, a), (_, b)| {
            (a.machines, a.server_us).partial_cmp(&(b.machines, b.server_us)).unwrap_or(std::cmp::Ordering::Equal)
        });
        ranked
    }

    /// Returns the systems without any figures, with the reason.
    pub fn absent(&self) -> Vec<(&str, String)> {
        let without = self.options.iter().filter(|option| option.whole.is_none());
        let reason = |option: &Candidate| match &option.system.status {
            SystemStatus::Missing { what, how } => format!("not on this machine ({what}). To get it: {how}"),
            SystemStatus::Found { .. } => {
                option.cells.values().find_map(Cell::reason).unwrap_or("not every path was measured").to_owned()
            }
        };
        without.map(|option| (option.system.title.as_str(), reason(option))).collect()
    }
}

fn whole(cells: &BTreeMap<String, Cell>, requirements: &Requirements, cores: u32) -> Option<Whole> {
    let all: f64 = requirements.shares.iter().map(|(_, share)| share).sum();
    let mut of = Vec::new();
    for (path, share) in &requirements.shares {
        of.push((cells.get(path)?.figures()?, share / all));
    }
    let mean =
        |figure: &dyn Fn(&Figures) -> f64| of.iter().map(|(figures, share)| figure(figures) * share).sum::<f64>();
    // Times per request can be averaged, rates cannot.
    let rate = 1.0 / mean(&|figures| 1.0 / figures.rate.median.max(1e-9));
    let server_us = mean(&|figures| figures.server_us.median);
    let waits = mean(&|figures| figures.busy) < IDLE;
    let by_processors = requirements.need * server_us / 1e6 / (f64::from(cores.max(1)) * FILLED);
    let by_throughput = requirements.need / (rate * FILLED);
    let machines = if waits { by_processors.max(by_throughput) } else { by_processors };
    Some(Whole {
        rate: (rate * 10.0).round() / 10.0,
        server_us: (server_us * 10.0).round() / 10.0,
        pss_bytes: of.iter().map(|(figures, _)| figures.pss_bytes).fold(0.0, f64::max),
        machines: machines.ceil().clamp(1.0, 1e9) as u32,
        waits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::sample_results;

    fn choice(need: f64) -> Choice {
        let requirements = Requirements { need, load: None, shares: vec![("hello".into(), 1.0)] };
        Choice::of(Path::new("/srv/shop"), &requirements, &sample_results::results(), None)
    }

    #[test]
    fn machines_follow_from_processor_time() {
        // 30 µs on two cores filled to 70 %: 46,667 a second on one machine.
        let machines = |need: f64| choice(need).ranked().iter().map(|(_, whole)| whole.machines).collect::<Vec<_>>();
        assert_eq!(machines(40_000.0), [1, 3]);
        assert_eq!(machines(50_000.0), [2, 4]);
    }

    #[test]
    fn a_missing_measurement_is_named_and_has_no_figure() {
        let choice = choice(1000.0);
        assert_eq!(choice.application, "shop");
        let absent = choice.absent();
        assert_eq!(absent.len(), 1);
        assert!(absent[0].0 == "GONE" && absent[0].1.contains("To get it: get it"), "{absent:?}");
    }
}
