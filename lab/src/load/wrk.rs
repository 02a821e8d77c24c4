//! The closed-loop generator: `wrk`, with a script that prints its totals as JSON.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{LoadReport, Shape, Target, program};
use crate::interrupt::Interrupt;
use crate::record::{Errors, Latency};

const SCRIPT: &str = include_str!("wrk.lua");
const MARK: &str = "HOWDAH-LAB ";

/// A `wrk` on this machine.
#[derive(Debug)]
pub struct Wrk {
    pub version: String,
    script: tempfile::NamedTempFile,
}

#[derive(Debug, Deserialize)]
struct Totals {
    duration_us: u64,
    requests: u64,
    bytes: u64,
    connect: u64,
    read: u64,
    write: u64,
    timeout: u64,
    status: u64,
    mean: f64,
    stdev: f64,
    max: f64,
    percentiles: Vec<(f64, f64)>,
}

impl Wrk {
    /// Finds `wrk` and writes its script to a temporary file.
    pub fn find() -> Result<Self> {
        let output = Command::new("wrk")
            .arg("--version")
            .output()
            .context("wrk is not installed; `howdah-lab doctor --install` installs it (apt: wrk)")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let version =
            text.lines().next().unwrap_or("wrk").split(" Copyright").next().unwrap_or("wrk").trim().to_owned();
        let mut script = tempfile::Builder::new().prefix("howdah-lab-").suffix(".lua").tempfile()?;
        script.write_all(SCRIPT.as_bytes())?;
        Ok(Self { version, script })
    }

    pub fn run(&self, target: &Target, shape: Shape, interrupt: &Interrupt) -> Result<LoadReport> {
        let threads = shape.threads.clamp(1, shape.connections.max(1));
        let arguments = vec![
            format!("-t{threads}"),
            format!("-c{}", shape.connections),
            format!("-d{}s", whole_seconds(shape.seconds)),
            "--timeout".into(),
            "10s".into(),
            "-H".into(),
            format!("Accept-Encoding: {}", target.accept_encoding),
            "-s".into(),
            self.script.path().display().to_string(),
            target.url(),
        ];
        let mut command = Command::new("wrk");
        command.args(&arguments);
        let limit = Duration::from_secs_f64(shape.seconds + 30.0);
        let ended = program::run(&mut [command], limit, interrupt)?;
        let command = std::iter::once("wrk".to_owned()).chain(arguments).collect();
        Ok(LoadReport { generator_cpu: ended.cpu, command, ..parse(&ended.text)? })
    }
}

/// wrk accepts whole seconds only.
pub fn whole_seconds(seconds: f64) -> u64 {
    seconds.round().max(1.0) as u64
}

fn parse(text: &str) -> Result<LoadReport> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(MARK))
        .with_context(|| format!("wrk printed no totals: {}", text.trim()))?;
    let totals: Totals = serde_json::from_str(line).context("wrk printed totals that cannot be read")?;
    Ok(LoadReport {
        seconds: totals.duration_us as f64 / 1e6,
        requests: totals.requests,
        bytes: totals.bytes,
        errors: Errors {
            connect: totals.connect,
            read: totals.read,
            write: totals.write,
            timeout: totals.timeout,
            status: totals.status,
        },
        latency: Latency { mean: totals.mean, stdev: totals.stdev, max: totals.max, percentiles: totals.percentiles },
        ..LoadReport::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_found_among_other_output() {
        let text = "Running 1s test\n  2 threads\nHOWDAH-LAB {\"duration_us\":1000100,\"requests\":500,\"bytes\":9000,\
                    \"connect\":1,\"read\":2,\"write\":3,\"timeout\":4,\"status\":5,\"mean\":10.5,\"stdev\":2.0,\
                    \"max\":99,\"percentiles\":[[50.00,10],[99.00,42]]}\n";
        let report = parse(text).unwrap();
        assert_eq!(report.requests, 500);
        assert_eq!(report.errors, Errors { connect: 1, read: 2, write: 3, timeout: 4, status: 5 });
        assert_eq!(report.latency.at(99.0), Some(42.0));
    }

    #[test]
    fn missing_totals_are_an_error_that_shows_the_output() {
        let error = parse("unable to connect to 127.0.0.1:1").unwrap_err();
        assert!(error.to_string().contains("unable to connect"), "{error}");
    }
}
