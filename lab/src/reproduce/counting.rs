//! Shows how ab, wrk and vegeta count latency where that changes the result: on a script that waits, with more requests
//! than its workers can serve.

use serde::{Deserialize, Serialize};

use super::entry::{Figures, of_runs};
use crate::cases::{Case, catalogue};
use crate::interrupt::Interrupt;
use crate::load::{Load, LoadReport, Shape, Target};
use crate::record::{Outcome, ResultSet};
use crate::view::{CaseView, State};

/// Beginning of the ids of its cases.
pub const PREFIX: &str = "counting.";

/// Offered rates, as shares of a closed loop's throughput. The last is more than can be served.
pub const OFFERED: [f64; 2] = [0.8, 1.3];

/// The same work, counted in several ways.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Counting {
    pub system: String,
    pub load: String,
    pub wait_ms: f64,
    pub ways: Vec<CountingMethod>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountingMethod {
    pub title: String,
    pub how: String,
    pub figures: Option<Figures>,
    /// Reason why there are no figures.
    pub reason: Option<String>,
}

/// Returns the case of one way, on the script that waits.
pub fn case(method: &str, title: &str, how: &str) -> Option<Case> {
    let base = catalogue::all().into_iter().find(|case| case.id == "usleep")?;
    Some(Case { id: format!("{PREFIX}{method}"), title: title.into(), about: how.into(), ..base })
}

/// Returns the requests per second of the first closed loop.
pub fn reached(results: &ResultSet) -> Option<f64> {
    results.runs.iter().filter(|run| run.case.starts_with(PREFIX)).find_map(|run| match &run.outcome {
        Outcome::Measured(sample) => Some(sample.rate()),
        _ => None,
    })
}

impl Counting {
    /// Collects the results, if there are any.
    pub fn of(views: &[CaseView<'_>]) -> Option<Self> {
        let mine: Vec<&CaseView<'_>> = views.iter().filter(|view| view.case.id.starts_with(PREFIX)).collect();
        let first = mine.first()?;
        let ran = |view: &CaseView<'_>| {
            view.cells.iter().position(|cell| matches!(cell.state, State::Measured(_) | State::Failed { .. }))
        };
        let system = mine.iter().find_map(|view| ran(view))?;
        let ways = mine.iter().map(|view| {
            let (figures, reason) = match &view.cells[system].state {
                State::Measured(measured) => (Some(of_runs(measured)), None),
                State::Failed { message, .. } => (None, Some((*message).to_owned())),
                _ => (None, Some("not measured".to_owned())),
            };
            CountingMethod { title: view.case.title.clone(), how: view.case.about.clone(), figures, reason }
        });
        Some(Self {
            system: first.cells[system].system.title.clone(),
            load: first.case.load(),
            wait_ms: first.case.wait_ms,
            ways: ways.collect(),
        })
    }
}

/// Runs a generator at a fixed rate instead of in a closed loop.
pub struct AtRate<'a> {
    pub inner: &'a dyn Load,
    pub rate: f64,
}

impl Load for AtRate<'_> {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn closed(&self, target: &Target, shape: Shape, interrupt: &Interrupt) -> anyhow::Result<LoadReport> {
        self.inner.constant(target, shape, self.rate, interrupt)
    }

    fn constant(&self, target: &Target, shape: Shape, rate: f64, interrupt: &Interrupt) -> anyhow::Result<LoadReport> {
        self.inner.constant(target, shape, rate, interrupt)
    }
}
