//! A run: which tests, in which order, and the failed ones once more.

use crate::arguments::Arguments;
use crate::load::{INTERVAL, Load};
use crate::report::{self, Report};
use crate::stress;
use crate::test::{Outcome, Place, Running};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// More failures than this are not by chance: nothing is run again.
const MAX_RETRIED: usize = 20;

/// Times that a failed test is run again, alone. It must pass each time to count as flaky.
const RETRIES: usize = 2;

/// Runs the selected tests; true if none has failed.
pub(crate) fn run(binary: &Path, arguments: &Arguments) -> io::Result<bool> {
    let names: Vec<String> = list(binary)?.into_iter().filter(|name| arguments.select(name)).collect();
    let directory = directory(binary);
    fs::create_dir_all(&directory)?;
    let times = directory.with_extension("times");
    let mut place = Place { binary, directory, nocapture: arguments.nocapture, slowness: 1 };
    if let Some(times) = stress::wanted() {
        place.slowness = stress::SLOWNESS;
        return stress::run(&place, &names, times, arguments);
    }
    let before = report::read_times(&times);
    let names = slowest_first(names, &before);
    let began = Instant::now();
    println!("\nrunning {} tests", names.len());
    let threads = if arguments.nocapture { Some(1) } else { arguments.threads };
    let mut report = Report::new(names.len());
    run_all(&place, &names, threads, &mut report)?;
    let failed = report.failed();
    if !failed.is_empty() && failed.len() <= MAX_RETRIED {
        println!("running {} failed tests again, {RETRIES} times each, alone", failed.len());
        retry(&place, &failed, &mut report)?;
    }
    report.write_times(&times, before)?;
    report.print(began.elapsed(), &place.directory)?;
    let _ = fs::remove_dir(&place.directory);
    Ok(report.failed().is_empty())
}

/// `target/test-run/NAME` for the binary `target/debug/deps/NAME-HASH`.
fn directory(binary: &Path) -> PathBuf {
    let stem = binary.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = stem.rsplit_once('-').map_or(stem.as_str(), |(name, _)| name);
    let target = binary.ancestors().nth(3).unwrap_or(Path::new("."));
    target.join("test-run").join(name)
}

fn list(binary: &Path) -> io::Result<Vec<String>> {
    let output = Command::new(binary).args(["--list", "--format", "terse"]).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{} --list: {}", binary.display(), output.status)));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    Ok(lines.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// A slow test that starts last makes everybody wait for it. Tests that have not run yet come in between: they count as
/// two seconds.
fn slowest_first(mut names: Vec<String>, before: &BTreeMap<String, Duration>) -> Vec<String> {
    let time = |name: &String| before.get(name).copied().unwrap_or(Duration::from_secs(2));
    names.sort_by_key(|name| std::cmp::Reverse(time(name)));
    names
}

fn run_all(place: &Place<'_>, names: &[String], threads: Option<usize>, report: &mut Report) -> io::Result<()> {
    let mut load = Load::new(threads);
    let mut waiting: VecDeque<&String> = names.iter().collect();
    let mut running: Vec<Running> = Vec::new();
    let mut number = 0;
    while !(waiting.is_empty() && running.is_empty()) {
        while !waiting.is_empty() && load.admit(running.len()) {
            if let Some(name) = waiting.pop_front() {
                running.push(Running::start(place, name, number, &[])?);
                number += 1;
            }
        }
        std::thread::sleep(INTERVAL);
        for outcome in ended(&mut running)? {
            report.add(outcome);
        }
    }
    Ok(())
}

/// Takes the tests that have ended out of `running`.
pub(crate) fn ended(running: &mut Vec<Running>) -> io::Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    let mut index = 0;
    while let Some(test) = running.get_mut(index) {
        match test.outcome()? {
            Some(outcome) => {
                running.swap_remove(index);
                outcomes.push(outcome);
            }
            None => index += 1,
        }
    }
    Ok(outcomes)
}

/// Runs failed tests again, one after the other, until they fail once more.
fn retry(place: &Place<'_>, failed: &[Outcome], report: &mut Report) -> io::Result<()> {
    for (number, first) in failed.iter().enumerate() {
        let passed = (0..RETRIES).map(|_| alone(place, &first.name, number)).collect::<io::Result<Vec<bool>>>()?;
        report.again(&first.name, passed.iter().all(|passed| *passed));
    }
    Ok(())
}

fn alone(place: &Place<'_>, name: &str, number: usize) -> io::Result<bool> {
    let mut running = vec![Running::start(place, name, number, &[])?];
    loop {
        std::thread::sleep(INTERVAL);
        if let Some(outcome) = ended(&mut running)?.pop() {
            return Ok(outcome.passed);
        }
    }
}
