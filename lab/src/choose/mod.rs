//! `howdah-lab choose --app DIR`: measures a team's own paths on every system and mode that can serve them, and writes
//! one page for a decision.

pub mod demands;
pub mod doctor;
pub mod document;
pub mod page;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::clock;
use crate::interrupt::{Interrupt, Interrupted};
use crate::load::{Load, RealLoad};
use crate::outset;
use crate::plan::{Request, plan};
use crate::record::ResultSet;
use crate::report;
use crate::runner::Runner;
use crate::stage::Stage;
use document::{Choice, Requirements};

#[derive(Debug, Args)]
pub struct ChooseArgs {
    /// The application (its public/, if it has one, is served)
    #[arg(long, value_name = "DIR")]
    app: PathBuf,
    /// A path of the application; may be given several times
    #[arg(long = "path", value_name = "/PATH")]
    paths: Vec<String>,
    /// A file with a path on each line, optionally followed by its relative frequency: `/cart 3`
    #[arg(long = "paths", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Requests per second at which latency is measured; half of the slowest system's throughput when absent
    #[arg(long, value_name = "RATE")]
    load: Option<f64>,
    /// Requests per second for which machines are counted
    #[arg(long, value_name = "RATE", default_value_t = 1000.0)]
    need: f64,
    /// Only these systems
    #[arg(long, value_delimiter = ',')]
    systems: Vec<String>,
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Seconds of each measured run
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    duration: f64,
    /// Seconds of load before each measured run
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    warmup: f64,
    #[arg(long, default_value_t = 16)]
    connections: u32,
    /// PHP workers of each system
    #[arg(long)]
    workers: Option<u32>,
    /// Do not run `howdah doctor`
    #[arg(long)]
    no_doctor: bool,
    /// Directory for the results; `lab/raw/<date>-<host class>/app` when absent
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Returns the paths with their relative frequency.
fn paths(args: &ChooseArgs) -> Result<Vec<(String, f64)>> {
    let mut paths: Vec<(String, f64)> = args.paths.iter().map(|path| (path.clone(), 1.0)).collect();
    if let Some(file) = &args.file {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (path, share) = line.split_once(char::is_whitespace).unwrap_or((line, "1"));
            let share = share.trim().parse::<f64>().ok().filter(|share| *share > 0.0 && share.is_finite());
            let share = share.with_context(|| {
                format!("{}, line {}: {line:?} must be /PATH or /PATH SHARE", file.display(), number + 1)
            })?;
            paths.push((path.to_owned(), share));
        }
    }
    if paths.is_empty() {
        paths.push(("/".to_owned(), 1.0));
    }
    let mut seen = std::collections::BTreeSet::new();
    if let Some((path, _)) = paths.iter().find(|(path, _)| !seen.insert(path.clone())) {
        bail!("path {path:?} is named twice");
    }
    Ok(paths)
}

/// Share of the slowest system's throughput at which latency is measured, unless a load is given.
const RATE_SHARE: f64 = 0.5;

/// Measures, and writes the page.
pub fn main(args: &ChooseArgs) -> Result<u8> {
    if !(args.need > 0.0 && args.load.is_none_or(|load| load >= 1.0)) {
        bail!("--need must be above 0, and --load at least 1");
    }
    let paths = paths(args)?;
    let workers = args.workers.unwrap_or_else(|| 2 * cores());
    let plan = plan(&Request {
        systems: args.systems.clone(),
        rounds: Some(args.rounds),
        seconds: Some(args.duration),
        warmup: Some(args.warmup),
        workers: Some(workers),
        connections: Some(args.connections),
        app: Some(args.app.clone()),
        paths: paths.iter().map(|(path, _)| path.clone()).collect(),
        ..Request::default()
    })?;
    let load = RealLoad::find()?;
    let interrupt = Interrupt::on_signals()?;
    let mut results = outset::results(&plan, load.name(), 2, RATE_SHARE);
    let out = outset::begin(&plan, &results, args.out.as_deref())?;
    let doctor = if args.no_doctor { None } else { doctor::ask(&args.app, &out) };
    let measured = Stage::prepare(&plan.cases, plan.app.as_deref(), &interrupt).and_then(|stage| {
        let save = |results: &ResultSet| report::json::write(&out, results);
        let runner = Runner::new(&stage, &load, &interrupt, &save);
        Runner { rate_share: RATE_SHARE, fixed_rate: args.load, settles: true, ..runner }.run(&plan, &mut results)
    });
    results.interrupted = interrupt.is_raised();
    results.finished = Some(clock::now());
    report::json::write(&out, &results)?;
    let requirements = Requirements { need: args.need, load: args.load, shares: paths };
    let choice = Choice::of(&args.app, &requirements, &results, doctor);
    page::of(&choice).write(&out, &choice)?;
    print!("{}", page::lines(&choice));
    eprintln!("\nresults in {}", out.display());
    match measured {
        Err(_) if results.interrupted => Err(Interrupted.into()),
        measured => measured.map(|()| 0),
    }
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1))
}
