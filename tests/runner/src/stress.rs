//! Checks that a race is gone: runs tests many times on a deliberately disturbed machine. Busy loops take every core,
//! every second test runs with a low priority, and processes of the tests are stopped for a moment now and then.

use crate::load::INTERVAL;
use crate::processes::{descendants, is_stopped, signal};
use crate::test::{Outcome, Place, Running, take_ended};
use rustix::process::Signal;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Factor for time limits.
pub(crate) const SLOWNESS: u32 = 10;

/// Interval between stops of a process, and their length.
const STOP_EVERY: Duration = Duration::from_millis(400);
const STOPPED_FOR: Duration = Duration::from_millis(60);

/// Interval between progress reports.
const REPORT_EVERY: Duration = Duration::from_secs(30);

/// `HOWDAH_TEST_STRESS=N`: N runs of each selected test.
pub(crate) fn wanted() -> Option<usize> {
    std::env::var("HOWDAH_TEST_STRESS").ok()?.parse().ok().filter(|times| *times > 0)
}

/// Busy loops on all cores, until this is dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn start() -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let spin = || {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL", "--", "sh", "-c", "while :; do :; done"]);
            command.stdin(Stdio::null()).spawn()
        };
        Ok(Self((0..cores).map(|_| spin()).collect::<io::Result<_>>()?))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs each test `times` times; true if none has failed.
pub(crate) fn run(place: &Place<'_>, names: &[String], times: usize, threads: Option<usize>) -> io::Result<bool> {
    let busy = Busy::start()?;
    println!("stress: {} tests, {times} runs each, with {} busy loops", names.len(), busy.0.len());
    let at_once = threads.unwrap_or(2 * busy.0.len());
    let mut runs = (0..times).flat_map(|_| names).enumerate();
    let mut running: Vec<Running> = Vec::new();
    let mut outcomes: Vec<Outcome> = Vec::new();
    let (mut last_stop, mut last_report) = (Instant::now(), Instant::now());
    let mut seed = 1;
    loop {
        while running.len() < at_once {
            let Some((number, name)) = runs.next() else { break };
            let wrapper: &[&str] = if number % 2 == 0 { &[] } else { &["nice", "-n", "10"] };
            running.push(Running::start(place, name, number, wrapper)?);
        }
        if running.is_empty() {
            break;
        }
        std::thread::sleep(INTERVAL);
        if last_stop.elapsed() > STOP_EVERY {
            stop_one(&running, &mut seed);
            last_stop = Instant::now();
        }
        if last_report.elapsed() > REPORT_EVERY {
            println!("stress: {} of {} runs", outcomes.len(), times * names.len());
            last_report = Instant::now();
        }
        for outcome in take_ended(&mut running)? {
            if !outcome.passed {
                println!("test {} ... FAILED\n{}", outcome.name, outcome.output);
            }
            outcomes.push(outcome);
        }
    }
    let failed = |name: &str| outcomes.iter().filter(|it| it.name == name && !it.passed).count();
    names.iter().for_each(|name| println!("stress: {name}: {} of {times} failed", failed(name)));
    Ok(outcomes.iter().all(|outcome| outcome.passed))
}

/// Stops one process of a test for a moment. A counter selects it, so that a run can be repeated.
fn stop_one(running: &[Running], seed: &mut usize) {
    *seed = seed.wrapping_mul(31).wrapping_add(7);
    let Some(test) = running.get(*seed % running.len().max(1)) else { return };
    let processes = descendants(test.pid());
    // Skips processes that the scenario itself has stopped: it expects them to stay stopped.
    if let Some(&process) = processes.get(*seed % processes.len().max(1))
        && !is_stopped(process)
    {
        signal(process, Signal::STOP);
        std::thread::sleep(STOPPED_FOR);
        signal(process, Signal::CONT);
    }
}
