//! `howdah-lab counts`: the countable cost of one request: system calls, instructions and allocations of the server,
//! system calls of PHP. Unlike times they hardly depend on the machine's load, so they are compared with a table in the
//! repository.
//!
//! Each case has one connection and one worker, and is run twice: under strace(1), and with the server under callgrind.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::interrupt::{Interrupt, Interrupted};
use crate::systems::howdah::Mode;
use table::{Figures, Table};

mod callgrind;
mod client;
mod server;
mod strace;
mod table;

/// Maximum excess over the table, as a share of the figure. Compilers and C libraries differ a little.
const TOLERANCE: f64 = 0.04;
/// Maximum excess in calls per request: on a busy machine a process occasionally sleeps or is woken where it otherwise
/// would not. An additional call in each request is still detected.
const SLACK: f64 = 0.75;
/// Requests before counting starts, to warm caches and estimates.
const WARM: u32 = 300;
/// Requests that are counted.
const COUNTED: u32 = 1_000;

/// The arguments.
#[derive(Debug, Args)]
pub struct CountsArgs {
    /// Table of the maximum cost of each request
    #[arg(long, value_name = "FILE", default_value = "lab/counts.toml")]
    table: PathBuf,
    /// Rewrite the table with the counted figures; explain the change in `why`
    #[arg(long)]
    update: bool,
    /// The profile that the server is built with: its instructions have a separate column
    #[arg(long, value_enum, default_value = "release")]
    build: Build,
    /// Only the cases whose names contain this
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
}

/// Cargo profiles whose instructions the table has. `release` is close to what users run; the tests build `quick` only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Build {
    Release,
    Quick,
}

/// One kind of request.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    mode: Mode,
    path: &'static str,
    /// Request headers in addition to `Host`.
    fields: &'static str,
    /// Arguments of `howdah serve`.
    flags: &'static [&'static str],
}

const SETTLED: Duration = Duration::from_millis(2_100);
const HOUR: Duration = Duration::from_secs(3600);

/// Directory of the case that is served.
const ROOT: &str = "bench";

const NONE: &[&str] = &[];
/// The settings of most sites that come from Apache.
const SITE: &[&str] = &["--access-log", "access.log", "--htaccess"];

const GZIP: &str = "Accept-Encoding: gzip\r\n";

const CASES: [Case; 9] = [
    Case { name: "hello classic", mode: Mode::Classic, path: "/hello.php", fields: "", flags: NONE },
    Case { name: "hello, log, .htaccess", mode: Mode::Classic, path: "/hello.php", fields: "", flags: SITE },
    Case { name: "hello worker", mode: Mode::Worker, path: "/hello.php", fields: "", flags: NONE },
    Case { name: "hello snapshot", mode: Mode::Snapshot, path: "/hello.php", fields: "", flags: NONE },
    Case { name: "hello async", mode: Mode::Async, path: "/hello.php", fields: "", flags: NONE },
    Case { name: "html worker", mode: Mode::Worker, path: "/html.php", fields: "", flags: NONE },
    Case { name: "html worker gzip", mode: Mode::Worker, path: "/html.php", fields: GZIP, flags: NONE },
    Case { name: "file", mode: Mode::Classic, path: "/file.txt", fields: "", flags: NONE },
    Case { name: "file gzip accepted", mode: Mode::Classic, path: "/file.txt", fields: GZIP, flags: NONE },
];

/// Counts, prints, and compares with the table.
pub fn main(args: &CountsArgs) -> Result<u8> {
    let wanted = |case: &&Case| args.case.as_ref().is_none_or(|part| case.name.contains(part.as_str()));
    let cases: Vec<_> = CASES.iter().filter(wanted).collect();
    if cases.is_empty() {
        bail!("no such case; there are: {}", CASES.map(|case| case.name).join(", "));
    }
    let mut table = Table::read(&args.table)?;
    let interrupt = Interrupt::on_signals()?;
    let app = bench_app()?;
    let (mut failed, mut counted) = (Vec::new(), BTreeMap::new());
    println!(
        "{:<22} {:>12} {:>12} {:>12} {:>12}",
        "per request", "instructions", "allocations", "server calls", "PHP calls"
    );
    for case in cases {
        if interrupt.is_raised() {
            return Err(Interrupted.into());
        }
        let (figures, names) = count(case, app.path()).with_context(|| format!("case {}", case.name))?;
        println!(
            "{:<22} {:>12.0} {:>12.1} {:>12.2} {:>12.2}",
            case.name, figures.instructions, figures.allocations, figures.server_calls, figures.php_calls
        );
        names.iter().for_each(|line| println!("    {line}"));
        failed.extend(table.above(case.name, &figures, args.build));
        counted.insert(case.name, figures);
    }
    if args.update {
        counted.into_iter().for_each(|(name, figures)| table.set(name, figures, args.build));
        table.write(&args.table)?;
        println!("written: {}", args.table.display());
        return Ok(0);
    }
    if failed.is_empty() {
        println!("no request costs more than {} allows", args.table.display());
        return Ok(0);
    }
    failed.iter().for_each(|line| println!("{line}"));
    bail!(
        "a request costs more than {} allows: make it cheaper, or update the table (--update) and explain why in it",
        args.table.display()
    )
}

/// Returns the cost of a request of the case, and the calls of each process.
fn count(case: &Case, app: &Path) -> Result<(Figures, Vec<String>)> {
    let (calls, names) = strace::count(case, app)?;
    let (instructions, allocations) = callgrind::count(case, app)?;
    Ok((Figures { instructions, allocations, server_calls: calls.server, php_calls: calls.php }, names))
}

/// Creates a directory with the lab's scripts and a compressible file of half a megabyte.
fn bench_app() -> Result<tempfile::TempDir> {
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("apps/bench");
    let root = directory.path().join(ROOT);
    fs::create_dir(&root)?;
    for name in ["hello.php", "html.php", "worker.php", "async.php"] {
        let copy = if name == "async.php" { directory.path().join(name) } else { root.join(name) };
        fs::copy(scripts.join(name), &copy).with_context(|| format!("cannot copy {name}"))?;
        // OPcache does not cache a file younger than two seconds (`opcache.file_update_protection`).
        File::options().write(true).open(copy)?.set_modified(SystemTime::now() - HOUR)?;
    }
    // Addresses of services; no case here uses them.
    fs::write(directory.path().join("environment.php"), "<?php return ['mysql' => '', 'redis' => ''];\n")?;
    fs::write(root.join("file.txt"), "A line of a file that compresses well.\n".repeat(13_000))?;
    // The server does not cache by identity files that were written a moment ago.
    std::thread::sleep(SETTLED);
    Ok(directory)
}
