//! A running test: its process, its output, its end.

use crate::{interrupt, limit, processes};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// First port for tests. The harness gives each test a separate range through `HOWDAH_TEST_PORTS`, so that concurrent
/// tests do not collide. The ranges are below the system's ephemeral ports, and are reused after 120 tests.
const FIRST_PORT: usize = 20_000;
const PORTS_OF_A_TEST: usize = 100;
const PORT_WINDOWS: usize = 120;

/// Directory for the output of this run's tests, and their binary.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) directory: PathBuf,
    /// Output goes directly to the terminal.
    pub(crate) nocapture: bool,
    /// Multiplies time limits: more than 1 on a machine that is disturbed on purpose.
    pub(crate) slowness: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) passed: bool,
    pub(crate) wall: Duration,
    /// Processor time of the test and of its servers.
    pub(crate) processor: Duration,
    /// Empty for a test that passed.
    pub(crate) output: String,
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) name: String,
    child: Child,
    output: PathBuf,
    began: Instant,
    slowness: u32,
    /// Its output is in the file.
    captured: bool,
    expired: bool,
}

impl Running {
    /// Starts the `number`th test of this run, through `wrapper` (such as `nice`) if it is not empty.
    pub(crate) fn start(place: &Place<'_>, name: &str, number: usize, wrapper: &[&str]) -> io::Result<Self> {
        let output = place.directory.join(format!("{}.{number}", name.replace("::", ".")));
        let file = File::create(&output)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(wrapper).arg(place.binary);
        command.args(["--exact", name, "--nocapture", "--test-threads", "1"]);
        let port = FIRST_PORT + number % PORT_WINDOWS * PORTS_OF_A_TEST;
        command.env("HOWDAH_TEST_PORTS", port.to_string());
        // Python would write next to its sources, into the repository.
        command.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null()).process_group(0);
        if !place.nocapture {
            command.stdout(file.try_clone()?).stderr(file);
        }
        let child = {
            let _the_run_goes_on = interrupt::starting();
            command.spawn()?
        };
        let (slowness, captured) = (place.slowness, !place.nocapture);
        Ok(Self { name: name.to_owned(), child, output, began: Instant::now(), slowness, captured, expired: false })
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    /// The outcome, once the test has ended. Ends one that has exceeded its limit.
    pub(crate) fn outcome(&mut self) -> io::Result<Option<Outcome>> {
        let ended = self.has_ended();
        if !ended && self.began.elapsed() < limit::DEFAULT * self.slowness {
            return Ok(None);
        }
        if !ended {
            let limit = limit::of_output(&self.output()) * self.slowness;
            if self.began.elapsed() < limit {
                return Ok(None);
            }
            self.expired = true;
            limit::end(self.pid(), &self.output, limit);
        }
        let wall = self.began.elapsed();
        // Must precede the wait, which removes the process.
        let processor = processes::processor_time(self.pid());
        let status = self.child.wait()?;
        if let Some(group) = Pid::from_raw(self.pid()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let output = self.output();
        // Libtest exits with 0 if no test matches.
        let ran = !self.captured || output.contains("test result: ok. 1 passed");
        let passed = status.success() && !self.expired && ran;
        fs::remove_file(&self.output)?;
        let output = if passed { String::new() } else { output };
        Ok(Some(Outcome { name: self.name.clone(), passed, wall, processor, output }))
    }

    fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).unwrap_or_default()).into_owned()
    }

    /// True once the process has ended; leaves it a zombie, whose times can still be read.
    fn has_ended(&self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid()) else { return true };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
    }
}

/// Takes the tests that have ended out of `running`.
pub(crate) fn take_ended(running: &mut Vec<Running>) -> io::Result<Vec<Outcome>> {
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
