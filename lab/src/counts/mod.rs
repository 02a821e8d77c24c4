//! `howdah-lab counts`: what one request costs in things that can be counted: system calls, instructions and allocations
//! of the server, system calls of PHP. Unlike times they hardly depend on how busy the machine is, so they are compared
//! with a table that is kept in the repository.
//!
//! Each case has one connection and one worker, and is run twice: under strace(1), and with the server under callgrind.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::interrupt::{Interrupt, Interrupted};
use crate::systems::howdah::Mode;
use table::{Figures, Table};

mod callgrind;
mod client;
mod server;
mod strace;
mod table;

/// More than this above the table fails, as a part of the figure. Compilers and C libraries differ a little.
const TOLERANCE: f64 = 0.04;
/// Calls per request that a case may have more than the table: on a busy machine a side is woken, or sleeps, now and then
/// where it otherwise would not. A call that is made for each request is seen anyway.
const SLACK: f64 = 0.75;
/// Requests before anything is counted: caches are warm, estimates known.
const WARM: u32 = 300;
/// Requests that are counted.
const COUNTED: u32 = 1_000;

/// The arguments.
#[derive(Debug, Args)]
pub struct CountsArgs {
    /// What each request may cost
    #[arg(long, value_name = "FILE", default_value = "lab/counts.toml")]
    table: PathBuf,
    /// Write the table anew with what was counted; say in `why` what has changed
    #[arg(long)]
    update: bool,
    /// Only the cases whose names contain this
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
}

/// One kind of request.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    mode: Mode,
    path: &'static str,
    /// Fields of the request beside `Host`.
    fields: &'static str,
}

const SETTLED: Duration = Duration::from_millis(2_100);
const HOUR: Duration = Duration::from_secs(3600);

/// What is served, in the case's directory.
const ROOT: &str = "bench";

const GZIP: &str = "Accept-Encoding: gzip\r\n";

const CASES: [Case; 8] = [
    Case { name: "hello classic", mode: Mode::Classic, path: "/hello.php", fields: "" },
    Case { name: "hello worker", mode: Mode::Worker, path: "/hello.php", fields: "" },
    Case { name: "hello snapshot", mode: Mode::Snapshot, path: "/hello.php", fields: "" },
    Case { name: "hello async", mode: Mode::Async, path: "/hello.php", fields: "" },
    Case { name: "html worker", mode: Mode::Worker, path: "/html.php", fields: "" },
    Case { name: "html worker gzip", mode: Mode::Worker, path: "/html.php", fields: GZIP },
    Case { name: "file", mode: Mode::Classic, path: "/file.txt", fields: "" },
    Case { name: "file gzip accepted", mode: Mode::Classic, path: "/file.txt", fields: GZIP },
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
        "{:<20} {:>12} {:>12} {:>12} {:>12}",
        "per request", "instructions", "allocations", "server calls", "PHP calls"
    );
    for case in cases {
        if interrupt.is_raised() {
            return Err(Interrupted.into());
        }
        let (figures, names) = count(case, app.path()).with_context(|| format!("case {}", case.name))?;
        println!(
            "{:<20} {:>12.0} {:>12.1} {:>12.2} {:>12.2}",
            case.name, figures.instructions, figures.allocations, figures.server_calls, figures.php_calls
        );
        names.iter().for_each(|line| println!("    {line}"));
        failed.extend(table.above(case.name, &figures));
        counted.insert(case.name, figures);
    }
    if args.update {
        counted.into_iter().for_each(|(name, figures)| table.set(name, figures));
        table.write(&args.table)?;
        println!("written: {}", args.table.display());
        return Ok(0);
    }
    if failed.is_empty() {
        println!("no request costs more than {} says", args.table.display());
        return Ok(0);
    }
    failed.iter().for_each(|line| println!("{line}"));
    bail!(
        "a request costs more than {} says: make it cheaper, or change the table (--update) and say why in it",
        args.table.display()
    )
}

/// What a request of the case costs, and which calls of which process they are.
fn count(case: &Case, app: &Path) -> Result<(Figures, Vec<String>)> {
    let (calls, names) = strace::count(case, app)?;
    let (instructions, allocations) = callgrind::count(case, app)?;
    Ok((Figures { instructions, allocations, server_calls: calls.server, php_calls: calls.php }, names))
}

/// The lab's scripts, and a file of half a megabyte that would compress well.
fn bench_app() -> Result<tempfile::TempDir> {
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("apps/bench");
    let root = directory.path().join(ROOT);
    fs::create_dir(&root)?;
    for name in ["hello.php", "html.php", "worker.php", "async.php"] {
        let copy = if name == "async.php" { directory.path().join(name) } else { root.join(name) };
        fs::copy(scripts.join(name), &copy).with_context(|| format!("cannot copy {name}"))?;
        // OPcache keeps no file that is younger than two seconds (`opcache.file_update_protection`).
        File::options().write(true).open(copy)?.set_modified(SystemTime::now() - HOUR)?;
    }
    // Where services are that no case here asks.
    fs::write(directory.path().join("environment.php"), "<?php return ['mysql' => '', 'redis' => ''];\n")?;
    fs::write(root.join("file.txt"), "A line of a file that compresses well.\n".repeat(13_000))?;
    // Files that were written to a moment ago are not known by their identity.
    std::thread::sleep(SETTLED);
    Ok(directory)
}
