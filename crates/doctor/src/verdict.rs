//! The results of a run and the conclusions: the safe mode for each route, and the settings for that.

use crate::cost::Cost;
use crate::findings::Finding;
use crate::mode::Mode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Minimum speed relative to classic mode for another mode to be recommended.
const MIN_GAIN: f64 = 1.3;

/// Name of the worker script that the doctor tests if the application has none.
pub(crate) const LOOP: &str = "howdah-loop.php";

/// Results of a run. Defines the JSON format too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this format.
    pub version: u32,
    pub application: String,
    /// The document root.
    pub root: String,
    pub visitors: usize,
    /// The tested requests: `GET /cart`.
    pub routes: Vec<String>,
    pub classic: Vec<Cost>,
    pub modes: Vec<ModeReport>,
    pub advice: Advice,
    /// Notes for the reader.
    pub remarks: Vec<String>,
    /// Leaks that the earlier report does not have, if there was one to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_leaks: Option<Vec<Finding>>,
}

/// Results for one mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModeReport {
    pub mode: Mode,
    /// The script or boot file of the workers.
    pub script: String,
    /// The recipe that booted the application instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// Reason why the mode does not work at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fails: Option<String>,
    /// `true` for each safe route, in the order of `Report::routes`.
    pub safe: Vec<bool>,
    pub costs: Vec<Cost>,
    pub findings: Vec<Finding>,
}

impl ModeReport {
    /// Number of routes that are safe in this mode.
    pub fn safe_routes(&self) -> usize {
        self.safe.iter().filter(|safe| **safe).count()
    }

    /// Findings that make the mode unsafe for a route.
    pub fn leaks(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.is_leak())
    }
}

/// The recommended settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    pub mode: Mode,
    /// Routes that stay in classic mode.
    pub classic_routes: Vec<String>,
    /// Settings to add to `howdah.toml`.
    pub settings: String,
    /// Speed of all pages together, relative to classic mode.
    pub faster: f64,
}

/// A route is safe in a mode if it causes no leak there; showing another route's leak does not count.
pub(crate) fn safe(routes: &[String], findings: &[Finding]) -> Vec<bool> {
    let unsafe_routes: BTreeSet<&str> =
        findings.iter().filter(|finding| finding.is_leak()).map(|finding| finding.route.as_str()).collect();
    routes.iter().map(|route| !unsafe_routes.contains(route.as_str())).collect()
}

/// Chooses the fastest of the modes that are safe for the most pages; unsafe paths stay in classic mode. A mode that is
/// unsafe for more than half of the pages is not recommended.
pub(crate) fn advice(routes: &[String], classic: &[Cost], modes: &[ModeReport], worker_script: Option<&str>) -> Advice {
    let alone: f64 = classic.iter().map(|cost| cost.ms).sum();
    let mut best: Option<(&ModeReport, Vec<String>, f64)> = None;
    let run = || modes.iter().filter(|mode| mode.fails.is_none());
    let safest = run().map(ModeReport::safe_routes).max().unwrap_or_default();
    for mode in run().filter(|mode| mode.safe_routes() == safest && safest * 2 >= routes.len()) {
        let unsafe_paths: BTreeSet<&str> =
            routes.iter().zip(&mode.safe).filter(|(_, safe)| !**safe).map(|(route, _)| path(route)).collect();
        let time = |(at, route): (usize, &String)| {
            let costs = if unsafe_paths.contains(path(route)) { classic } else { &mode.costs };
            costs.get(at).map_or(0.0, |cost| cost.ms)
        };
        let total: f64 = routes.iter().enumerate().map(time).sum();
        if total * MIN_GAIN <= alone && best.as_ref().is_none_or(|(_, _, least)| total < *least) {
            best = Some((mode, unsafe_paths.into_iter().map(str::to_owned).collect(), total));
        }
    }
    let Some((mode, classic_routes, total)) = best else {
        let settings = "mode = \"classic\"\n".to_owned();
        return Advice { mode: Mode::Classic, classic_routes: Vec::new(), settings, faster: 1.0 };
    };
    let settings = settings(mode, &classic_routes, worker_script);
    Advice { mode: mode.mode, classic_routes, settings, faster: alone / total.max(f64::MIN_POSITIVE) }
}

/// Path of a route, without method and query: the server's routes are paths.
fn path(route: &str) -> &str {
    let path = route.split_once(' ').map_or(route, |(_, path)| path);
    path.split('?').next().unwrap_or(path)
}

fn settings(mode: &ModeReport, classic_routes: &[String], worker_script: Option<&str>) -> String {
    let mut text = format!("mode = \"{}\"\n", mode.mode);
    let key = if mode.mode == Mode::Snapshot && worker_script.is_none() { "boot" } else { "script" };
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    if mode.recipe.is_none() && mode.script == LOOP {
        let _ = writeln!(text, "# To create it: howdah doctor --loop {LOOP}");
    }
    let _ = match &mode.recipe {
        Some(recipe) => writeln!(text, "app = {}", quoted(recipe)),
        None => writeln!(text, "{key} = {}", quoted(&mode.script)),
    };
    if !classic_routes.is_empty() {
        let _ = writeln!(text, "\n# In {} mode, later requests see state that these routes leave.", mode.mode);
        text.push_str("[pool.classic]\nmode = \"classic\"\nscript = \"\"\nboot = \"\"\n");
    }
    for route in classic_routes {
        let _ = write!(text, "\n[[rule]]\npath = {}\npool = \"classic\"\n", quoted(route));
    }
    text
}

/// Leaks of this run that the earlier one does not have.
pub(crate) fn new_leaks(now: &Report, last: &Report) -> Vec<Finding> {
    let all = |report: &Report| report.modes.iter().flat_map(ModeReport::leaks).cloned().collect::<Vec<_>>();
    let before = all(last);
    all(now).into_iter().filter(|leak| !before.iter().any(|old| old.same() == leak.same())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(ms: f64) -> Vec<Cost> {
        vec![Cost { ms, ..Cost::default() }; 4]
    }

    fn tried(mode: Mode, safe: [bool; 4], ms: f64) -> ModeReport {
        ModeReport {
            mode,
            script: "worker.php".to_owned(),
            recipe: None,
            fails: None,
            safe: safe.to_vec(),
            costs: cost(ms),
            findings: Vec::new(),
        }
    }

    fn advised_of(modes: &[ModeReport]) -> Advice {
        let routes = ["GET /", "GET /a?x=1", "GET /a?x=2", "GET /b"].map(str::to_owned);
        advice(&routes, &cost(10.0), modes, Some("worker.php"))
    }

    fn advised(safe: [bool; 4], ms: f64) -> Advice {
        advised_of(&[tried(Mode::Worker, safe, ms)])
    }

    #[test]
    fn a_path_stays_in_classic_mode_if_one_of_its_pages_is_not_safe() {
        let advice = advised([true, false, true, true], 1.0);
        assert_eq!((advice.mode, advice.classic_routes), (Mode::Worker, vec!["/a".to_owned()]));
        assert!(advice.settings.contains("path = \"/a\"\npool = \"classic\""), "{}", advice.settings);
        assert!((advice.faster - 40.0 / 22.0).abs() < 0.01);
    }

    #[test]
    fn a_mode_that_leaks_mostly_or_gains_nothing_is_not_advised() {
        assert_eq!(advised([true, false, false, false], 1.0).mode, Mode::Classic);
        assert_eq!(advised([true; 4], 9.9).mode, Mode::Classic);
        assert_eq!(advised([true; 4], 8.0).mode, Mode::Classic, "1.25 times is not worth it");
        assert_eq!(advised([true; 4], 7.0).mode, Mode::Worker);
    }

    #[test]
    fn the_mode_that_leaks_less_is_advised() {
        let worker = tried(Mode::Worker, [true, true, true, false], 1.0);
        let snapshot = |ms| tried(Mode::Snapshot, [true; 4], ms);
        assert_eq!(advised_of(&[worker.clone(), snapshot(3.0)]).mode, Mode::Snapshot);
        assert_eq!(advised_of(&[worker, snapshot(9.0)]).mode, Mode::Classic);
    }

    #[test]
    fn settings_explain_how_to_create_a_missing_script() {
        let made = ModeReport { script: LOOP.to_owned(), ..tried(Mode::Worker, [true; 4], 1.0) };
        let settings = advised_of(&[made]).settings;
        assert!(settings.contains("# To create it: howdah doctor --loop howdah-loop.php\nscript"), "{settings}");
    }
}
