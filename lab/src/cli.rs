//! The command line.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Parser, Subcommand};

use crate::apps;
use crate::cases::mix::Mix;
use crate::cases::{catalogue, suites};
use crate::choose;
use crate::clock;
use crate::counts;
use crate::goals;
use crate::guard;
use crate::interrupt::{Interrupt, Interrupted};
use crate::load::{Load, RealLoad, floor};
use crate::outset;
use crate::plan::{Request, plan};
use crate::record::{Outcome, ResultSet, SystemStatus};
use crate::report;
use crate::reproduce;
use crate::runner::Runner;
use crate::site;
use crate::stage::Stage;
use crate::systems;
use crate::{doctor, quick, view, warn};

/// Everything was measured.
const EXIT_DONE: u8 = 0;
/// A run failed, or the request was wrong.
const EXIT_FAILED: u8 = 1;
/// A goal was missed.
const EXIT_MISSED: u8 = 2;
/// Stopped by a signal.
const EXIT_INTERRUPTED: u8 = 130;

#[derive(Debug, Parser)]
#[command(name = "howdah-lab", version, about = "Measures PHP runtimes side by side and explains their differences")]
struct Cli {
    #[command(subcommand)]
    command: Sub,
}

#[derive(Debug, Subcommand)]
enum Sub {
    /// Show suites, cases and systems
    List,
    /// List what is missing on this machine, and install what apt has
    Doctor {
        /// Install what apt has (asks for root where needed)
        #[arg(long)]
        install: bool,
    },
    /// Measure
    Run(Box<RunArgs>),
    /// Count what one request costs: system calls, instructions, allocations; compare with lab/counts.toml
    Counts(counts::CountsArgs),
    /// Send a mixed load to a running server, and print the results
    Load(quick::LoadArgs),
    /// Repeat a published comparison with its method, and show both results side by side
    Reproduce(reproduce::ReproduceArgs),
    /// Measure an application's own paths over all systems and modes, for a decision
    Choose(Box<choose::ChooseArgs>),
    /// Make a static site of all summaries in a repository
    Site(site::SiteArgs),
    /// Make the reports again, or compare two result sets
    Report {
        /// A result.json, or the directory that holds it
        result: PathBuf,
        /// Compare with this earlier result.json
        #[arg(long, value_name = "RESULT")]
        against: Option<PathBuf>,
        /// Check these goals; the exit code is 2 when one is missed
        #[arg(long, value_name = "FILE")]
        goals: Option<PathBuf>,
    },
    /// Write the files for a repository: summary.json and report.md
    Summarise {
        /// A result.json, or the directory that holds it
        result: PathBuf,
        /// Their directory [default: that of the result]
        into: Option<PathBuf>,
    },
    #[command(name = guard::SUBCOMMAND, hide = true)]
    Guard {
        log: PathBuf,
        #[arg(last = true)]
        command: Vec<String>,
    },
    #[command(name = floor::SUBCOMMAND, hide = true)]
    StandIn { address: SocketAddr, bytes: usize },
}

#[derive(Debug, Args)]
struct RunArgs {
    /// A named set of cases (see `list`); `smoke` when nothing is named
    #[arg(long)]
    suite: Option<String>,
    /// Only these systems
    #[arg(long, value_delimiter = ',')]
    systems: Vec<String>,
    /// Only these cases
    #[arg(long, value_delimiter = ',')]
    cases: Vec<String>,
    /// Number of rounds
    #[arg(long)]
    rounds: Option<u32>,
    /// Seconds of each measured run
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// Seconds of load before each measured run; below 1: none [default: the suite's, at most 10]
    #[arg(long, value_name = "SECONDS")]
    warmup: Option<f64>,
    /// PHP workers for every case
    #[arg(long)]
    workers: Option<u32>,
    /// Connections for every case
    #[arg(long)]
    connections: Option<u32>,
    /// PHP's tracing JIT in every case and system (cases that end in -jit have it anyway)
    #[arg(long)]
    jit: bool,
    /// Threads of the load generator
    #[arg(long, default_value_t = 2)]
    threads: u32,
    /// Measure throughput only
    #[arg(long)]
    no_latency: bool,
    /// Offer this share of the slowest system's throughput when latency is measured
    #[arg(long, default_value_t = 0.5, value_name = "SHARE")]
    rate: f64,
    /// Do not measure the load generator's own limit
    #[arg(long)]
    no_floor: bool,
    /// Serve this directory (its public/, if it has one) instead of the lab's own scripts
    #[arg(long, value_name = "DIR")]
    app: Option<PathBuf>,
    /// A path of that application; may be given several times
    #[arg(long = "path", value_name = "/PATH")]
    paths: Vec<String>,
    /// Leave out a pair, as SYSTEM:CASE; `*` stands for any part of a name; may be given several times
    #[arg(long, value_name = "SYSTEM:CASE", value_delimiter = ',')]
    skip: Vec<String>,
    /// A user-defined system, described in TOML; may be given several times
    #[arg(long = "system-file", value_name = "FILE")]
    system_files: Vec<PathBuf>,
    /// Check these goals against the results; the exit code is 2 when one is missed
    #[arg(long, value_name = "FILE")]
    goals: Option<PathBuf>,
    /// Directory for the results; `lab/raw/<date>-<host class>/<suite>` when absent
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    let code = match Cli::parse().command {
        Sub::Guard { log, command } => {
            return ExitCode::from(u8::try_from(guard::guard_main(&log, &command)).unwrap_or(1));
        }
        Sub::StandIn { address, bytes } => floor::serve(address, bytes).map(|()| EXIT_DONE).map_err(Into::into),
        Sub::List => {
            print!("{}", list());
            Ok(EXIT_DONE)
        }
        Sub::Doctor { install } => doctor::main(install),
        Sub::Run(args) => run(&args),
        Sub::Counts(args) => counts::main(&args),
        Sub::Load(args) => quick::main(&args),
        Sub::Choose(args) => choose::main(&args),
        Sub::Site(args) => site::main(&args),
        Sub::Reproduce(args) => reproduce::main(&args),
        Sub::Report { result, against, goals } => render(&result, against.as_deref(), goals.as_deref()),
        Sub::Summarise { result, into } => summarise(&result, into),
    };
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) if error.is::<Interrupted>() => ExitCode::from(EXIT_INTERRUPTED),
        Err(error) => {
            eprintln!("howdah-lab: {error:#}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}

fn list() -> String {
    let mut text = String::from("Suites\n");
    for suite in suites::ALL {
        text.push_str(&format!("  {:<20} {}\n", suite.name, suite.about));
        if !suite.cases.is_empty() {
            text.push_str(&format!("  {:<20}   {}\n", "", suite.cases.join(", ")));
        }
    }
    text.push_str("\nCases\n");
    for case in catalogue::all() {
        text.push_str(&format!(
            "  {:<20} {} ({} connections, {} workers)\n",
            case.id, case.about, case.connections, case.workers
        ));
    }
    text.push_str("\nSystems\n");
    for system in systems::builtin() {
        let state = match system.find() {
            SystemStatus::Found { versions } => versions.into_values().collect::<Vec<_>>().join(", "),
            SystemStatus::Missing { what, .. } => format!("missing: {what}"),
        };
        text.push_str(&format!("  {:<20} {:<20} {state}\n", system.id(), system.title()));
    }
    text
}

fn run(args: &RunArgs) -> Result<u8> {
    if !(args.rate > 0.0 && args.rate <= 1.0) {
        bail!("--rate must be above 0 and at most 1");
    }
    let plan = plan(&Request {
        suite: args.suite.clone(),
        systems: args.systems.clone(),
        cases: args.cases.clone(),
        rounds: args.rounds,
        seconds: args.duration,
        warmup: args.warmup,
        jit: args.jit,
        no_latency: args.no_latency,
        workers: args.workers,
        connections: args.connections,
        app: args.app.clone(),
        paths: args.paths.clone(),
        skip: args.skip.clone(),
        system_files: args.system_files.clone(),
    })?;
    let goals = args.goals.as_deref().map(goals::read).transpose()?;
    let load = RealLoad::find()?;
    let interrupt = Interrupt::on_signals()?;
    let mut results = outset::results(&plan, load.name(), args.threads, if plan.latency { args.rate } else { 0.0 });
    let out = outset::begin(&plan, &results, args.out.as_deref())?;
    let save = |results: &ResultSet| report::json::write(&out, results);
    let rounds_per_ms = if plan.cases.iter().filter_map(|case| case.mix.as_ref()).any(Mix::computes) {
        apps::work_rounds_per_ms()?
    } else {
        f64::NAN
    };
    results.settings.work_rounds_per_ms = Some(rounds_per_ms).filter(|rounds| rounds.is_finite());
    let stage = Stage::prepare(&plan.cases, plan.app.as_deref(), &interrupt)?;
    let measured = Runner {
        threads: args.threads,
        rate_share: args.rate,
        floor: !args.no_floor,
        rounds_per_ms,
        ..Runner::new(&stage, &load, &interrupt, &save)
    }
    .run(&plan, &mut results);
    drop(stage);
    results.interrupted = interrupt.is_raised();
    results.finished = Some(clock::now());
    report::write_all(&out, &results)?;
    for view in view::cases(&results) {
        print!("{}", report::kinds::text(&view));
    }
    eprintln!("\nresults in {}", out.display());
    for warning in warn::all(&results) {
        eprintln!("warning: {}", warning.text());
    }
    measured?;
    let failed = results.runs.iter().filter(|run| matches!(run.outcome, Outcome::Failed { .. })).count();
    if failed > 0 {
        eprintln!("{failed} runs failed; the reports show them with the end of the system's log");
        return Ok(EXIT_FAILED);
    }
    Ok(goals.map_or(EXIT_DONE, |goals| judge(&goals, &results)))
}

/// Prints the verdicts on the goals, and returns the exit code.
fn judge(wanted: &[goals::Goal], results: &ResultSet) -> u8 {
    let verdicts = goals::judge(wanted, results);
    print!("\nGoals\n{}", goals::lines(&verdicts));
    if verdicts.iter().all(|verdict| verdict.met) { EXIT_DONE } else { EXIT_MISSED }
}

fn render(result: &Path, against: Option<&Path>, wanted: Option<&Path>) -> Result<u8> {
    let (dir, results) = report::json::read(result)?;
    if let Some(wanted) = wanted {
        return Ok(judge(&goals::read(wanted)?, &results));
    }
    if let Some(against) = against {
        let (_, earlier) = report::json::read(against)?;
        let text = report::compare::markdown(&earlier, &results);
        let path = dir.join("compare.md");
        fs::write(&path, &text)?;
        print!("{text}");
        eprintln!("written to {}", path.display());
        return Ok(EXIT_DONE);
    }
    report::write_all(&dir, &results)?;
    eprintln!("written: {}", report::FILES.map(|name| dir.join(name).display().to_string()).join(", "));
    Ok(EXIT_DONE)
}

fn summarise(result: &Path, into: Option<PathBuf>) -> Result<u8> {
    let (dir, results) = report::json::read(result)?;
    let into = into.unwrap_or(dir);
    report::summary::write(&into, &results)?;
    eprintln!("written to {}", into.display());
    Ok(EXIT_DONE)
}
