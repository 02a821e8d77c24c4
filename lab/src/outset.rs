//! The state before the first run: an empty result set, its directory, and the plan.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cases::Case;
use crate::clock;
use crate::descriptors;
use crate::plan::Plan;
use crate::record::{ResultSet, SCHEMA, Settings, SystemRecord, SystemStatus};
use crate::report;
use crate::sample::machine;

/// Returns a result set without results. `rate_share` is that of [`Runner`](crate::runner::Runner).
pub fn results(plan: &Plan, generator: String, load_threads: u32, rate_share: f64) -> ResultSet {
    ResultSet {
        schema: SCHEMA,
        suite: plan.suite.clone(),
        started: clock::now(),
        finished: None,
        interrupted: false,
        command: std::env::args().collect(),
        lab_version: env!("CARGO_PKG_VERSION").into(),
        settings: Settings {
            rounds: plan.rounds,
            seconds: plan.seconds,
            warmup_seconds: plan.warmup,
            load_threads,
            generator,
            rate_share,
            work_rounds_per_ms: None,
        },
        machine: machine::facts(),
        systems: plan
            .systems
            .iter()
            .map(|(system, status)| SystemRecord {
                id: system.id(),
                title: system.title(),
                status: status.clone(),
                tuning: system.tuning(),
                config_files: Default::default(),
                commands: Vec::new(),
                php: None,
            })
            .collect(),
        cases: plan.cases.iter().map(Case::record).collect(),
        floors: Vec::new(),
        loops: Vec::new(),
        runs: Vec::new(),
    }
}

/// Makes the directory for results and prints the plan. Returns the directory.
pub fn begin(plan: &Plan, results: &ResultSet, out: Option<&Path>) -> Result<PathBuf> {
    let out = out.map_or_else(|| directory(results), Path::to_owned);
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    announce(plan, &out);
    report::json::write(&out, results)?;
    descriptors::make_room(plan.cases.iter().map(|case| case.connections).max().unwrap_or(0))?;
    Ok(out)
}

/// Returns the default directory for results.
fn directory(results: &ResultSet) -> PathBuf {
    let parent = if Path::new("lab/Cargo.toml").is_file() { "lab/raw" } else { "howdah-lab-results" };
    let date = results.started.split('T').next().unwrap_or("undated");
    Path::new(parent).join(format!("{date}-{}", machine::host_class(&results.machine))).join(&results.suite)
}

/// Prints the missing systems, and the duration of the rest.
fn announce(plan: &Plan, out: &Path) {
    let mut present = 0;
    for (system, status) in &plan.systems {
        match status {
            SystemStatus::Found { .. } => present += 1,
            SystemStatus::Missing { what, .. } => {
                eprintln!("not measured: {} ({what} is missing; see doctor)", system.title())
            }
        }
    }
    let pairs = plan.cases.len() as f64 * f64::from(present) - plan.skipped.len() as f64;
    let runs = f64::from(plan.rounds + u32::from(plan.latency)) * pairs;
    let minutes = runs * (plan.seconds + plan.warmup + 0.7) / 60.0;
    eprintln!(
        "suite {}: {} cases on {present} systems, {} rounds of {} s, about {:.0} minutes; results go to {}\n",
        plan.suite,
        plan.cases.len(),
        plan.rounds,
        plan.seconds,
        minutes.ceil(),
        out.display()
    );
}
