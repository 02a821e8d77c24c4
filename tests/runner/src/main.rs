//! Runs the tests of a libtest binary, each in its own process: `howdah-test-runner BINARY [ARGUMENTS…]`, where the
//! arguments are libtest's. Cargo calls it in place of the binary (`target.….runner`), see the Makefile.
//!
//! Libtest runs as many tests at once as there are cores, so a test that waits for a timer leaves a core idle, and one
//! that hangs blocks the run forever. This runner
//!
//! - starts tests while the cores have room for them ([`load`]);
//! - ends a test that exceeds its time limit, with the stacks of its processes ([`limit`]);
//! - ends everything that tests have started if it is ended itself ([`interrupt`]);
//! - runs a failed test twice more, alone, and reports it as flaky if it passes both times;
//! - ends with the slowest tests, the time of each area, the flaky tests and the totals ([`report`]).
//!
//! `HOWDAH_TEST_STRESS=N` runs each selected test N times under disturbance instead ([`stress`]).

#![forbid(unsafe_code)]

mod arguments;
mod interrupt;
mod limit;
mod load;
mod processes;
mod report;
mod run;
mod selection;
mod stress;
mod test;

use arguments::Arguments;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use test::Place;

fn main() -> ExitCode {
    let mut given = std::env::args_os().skip(1);
    let Some(binary) = given.next() else {
        eprintln!(
            "usage: howdah-test-runner BINARY [FILTER…] [--skip FILTER] [--exact] [--nocapture] [--test-threads N]"
        );
        return ExitCode::FAILURE;
    };
    let given: Vec<_> = given.collect();
    let Some(arguments) = Arguments::parse(&given) else {
        // `--list`, `--help` and other options of libtest that this runner does not know.
        eprintln!("{}", Command::new(binary).args(given).exec());
        return ExitCode::FAILURE;
    };
    match run(binary.as_ref(), &arguments) {
        Ok(true) => ExitCode::SUCCESS,
        // The exit status that libtest uses.
        Ok(false) => ExitCode::from(101),
        Err(error) => {
            eprintln!("howdah-test-runner: {error}");
            ExitCode::FAILURE
        }
    }
}

/// True if no test has failed.
fn run(binary: &Path, arguments: &Arguments) -> io::Result<bool> {
    interrupt::watch()?;
    let names = selection::names(binary, arguments)?;
    let directory = selection::directory(binary);
    std::fs::create_dir_all(&directory)?;
    let repeated = stress::wanted();
    let slowness = if repeated.is_some() { stress::SLOWNESS } else { 1 };
    let place = Place { binary, directory, nocapture: arguments.nocapture, slowness };
    match repeated {
        Some(times) => stress::run(&place, &names, times, arguments.threads),
        None => run::run(&place, names, arguments.threads),
    }
}
