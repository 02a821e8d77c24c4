//! A run: the tests in their order, then the failed ones again.

use crate::load::{INTERVAL, Load};
use crate::report::{self, Report};
use crate::test::{Outcome, Place, Running, take_ended};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// With more failures than this, none is retried: they are not random.
const MAX_RETRIED: usize = 20;

/// Number of times that a failed test is run again, alone. It must pass each time to count as flaky.
const RETRIES: usize = 2;

/// Runs these tests; true if none has failed.
pub(crate) fn run(place: &Place<'_>, names: Vec<String>, threads: Option<usize>) -> io::Result<bool> {
    let times = place.directory.with_extension("times");
    let before = report::read_times(&times);
    let names = slowest_first(names, &before);
    let began = Instant::now();
    println!("\nrunning {} tests", names.len());
    let threads = if place.nocapture { Some(1) } else { threads };
    let mut report = Report::new(names.len());
    run_all(place, &names, threads, &mut report)?;
    let failed = report.failed();
    if !failed.is_empty() && failed.len() <= MAX_RETRIED {
        println!("running {} failed tests again, {RETRIES} times each, alone", failed.len());
        retry(place, &failed, &mut report)?;
    }
    report.write_times(&times, before)?;
    report.print(began.elapsed(), &place.directory)?;
    let _ = fs::remove_dir(&place.directory);
    Ok(report.failed().is_empty())
}

/// Puts the slowest tests first: one that starts last makes the whole run wait. Tests without a known time count as two
/// seconds.
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
        for outcome in take_ended(&mut running)? {
            report.add(outcome);
        }
    }
    Ok(())
}

/// Runs each failed test again, [`RETRIES`] times, one after the other.
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
        if let Some(outcome) = take_ended(&mut running)?.pop() {
            return Ok(outcome.passed);
        }
    }
}
