//! `vegeta`, for comparisons that were made with it: without a rate a closed loop, with one an open loop in which
//! latency counts from the time of sending.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{Load, LoadReport, Shape, Target, client, program};
use crate::interrupt::Interrupt;
use crate::record::{Errors, Latency};

/// Where `scripts/setup.sh bench` builds it, relative to the lab's own binary.
const BUILT: [&str; 2] = ["../tools/vegeta", "../../tools/vegeta"];

/// A `vegeta` on this machine.
#[derive(Debug)]
pub struct Vegeta {
    program: PathBuf,
    version: String,
}

#[derive(Debug, Deserialize)]
struct Report {
    latencies: Latencies,
    /// Nanoseconds from the first request to the last one, and from there to the last response.
    duration: f64,
    wait: f64,
    requests: u64,
    status_codes: BTreeMap<String, u64>,
}

#[derive(Debug, Deserialize)]
struct Latencies {
    mean: f64,
    max: f64,
    #[serde(rename = "50th")]
    p50: f64,
    #[serde(rename = "90th")]
    p90: f64,
    #[serde(rename = "95th")]
    p95: f64,
    #[serde(rename = "99th")]
    p99: f64,
}

impl Vegeta {
    /// Finds it: `$VEGETA`, else in `PATH`, else where the set-up script builds it.
    pub fn find() -> Option<Self> {
        let program = match std::env::var_os("VEGETA") {
            Some(path) => Some(PathBuf::from(path)).filter(|path| path.is_file()),
            None => crate::programs::program("vegeta").or_else(built),
        }?;
        let output = Command::new(&program).arg("-version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().find_map(|line| line.strip_prefix("Version:")).map_or("", str::trim).to_owned();
        Some(Self { program, version: format!("vegeta {version}").trim().to_owned() })
    }

    fn attack(&self, target: &Target, shape: Shape, rate: Option<f64>, interrupt: &Interrupt) -> Result<LoadReport> {
        let mut targets = tempfile::Builder::new().prefix("howdah-lab-").suffix(".targets").tempfile()?;
        writeln!(targets, "GET {}\nAccept-Encoding: {}", target.url(), target.accept_encoding)?;
        let mut arguments = vec![
            "attack".to_owned(),
            format!("-targets={}", targets.path().display()),
            format!("-duration={}s", shape.seconds),
            "-timeout=30s".into(),
            // Bodies are checked separately; keeping them would fill the memory.
            "-max-body=0".into(),
        ];
        match rate {
            None => arguments.extend([
                "-rate=0".into(),
                format!("-workers={}", shape.connections),
                format!("-max-workers={}", shape.connections),
                format!("-connections={}", shape.connections),
            ]),
            Some(rate) => arguments.push(format!("-rate={}/1s", rate.round().max(1.0))),
        }
        let (_, wire) = client::ask(target, Duration::from_secs(30)).map(|(response, _)| ((), response.wire_bytes))?;
        let mut attack = Command::new(&self.program);
        attack.args(&arguments);
        let mut report = Command::new(&self.program);
        report.args(["report", "-type=json"]);
        let limit = Duration::from_secs_f64(shape.seconds + 90.0);
        let ended = program::run(&mut [attack, report], limit, interrupt)?;
        let command = std::iter::once("vegeta".to_owned()).chain(arguments).collect();
        Ok(LoadReport { generator_cpu: ended.cpu, command, ..parse(&ended.text, wire)? })
    }
}

fn built() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let dir: &Path = own.parent()?;
    BUILT.into_iter().map(|path| dir.join(path)).find(|path| path.is_file())
}

impl Load for Vegeta {
    fn name(&self) -> String {
        self.version.clone()
    }

    fn closed(&self, target: &Target, shape: Shape, interrupt: &Interrupt) -> Result<LoadReport> {
        self.attack(target, shape, None, interrupt)
    }

    fn constant(&self, target: &Target, shape: Shape, rate: f64, interrupt: &Interrupt) -> Result<LoadReport> {
        self.attack(target, shape, Some(rate), interrupt)
    }
}

/// Without bodies it counts no bytes, so the size of a checked response is used.
fn parse(text: &str, wire_bytes: u64) -> Result<LoadReport> {
    let line = text.lines().find(|line| line.starts_with('{')).context("vegeta printed no report")?;
    let report: Report = serde_json::from_str(line).context("vegeta printed a report that cannot be read")?;
    let mut statuses = BTreeMap::new();
    let mut errors = Errors::default();
    for (code, count) in &report.status_codes {
        match code.parse::<u16>() {
            Ok(0) | Err(_) => errors.connect += count,
            Ok(status) => {
                statuses.insert(status, *count);
                if !(200..300).contains(&status) {
                    errors.status += count;
                }
            }
        }
    }
    let answered = report.requests.saturating_sub(errors.connect);
    let us = |nanoseconds: f64| nanoseconds / 1000.0;
    let of = &report.latencies;
    Ok(LoadReport {
        seconds: ((report.duration + report.wait) / 1e9).max(1e-9),
        requests: answered,
        bytes: answered * wire_bytes,
        errors,
        statuses,
        latency: Latency {
            mean: us(of.mean),
            max: us(of.max),
            percentiles: vec![
                (50.0, us(of.p50)),
                (90.0, us(of.p90)),
                (95.0, us(of.p95)),
                (99.0, us(of.p99)),
                (100.0, us(of.max)),
            ],
            ..Latency::default()
        },
        ..LoadReport::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_failures_and_latencies_are_read() {
        let text = r#"{"latencies":{"total":1,"mean":1500000,"50th":1000000,"90th":2000000,"95th":3000000,"99th":4000000,"max":5000000,
            "min":1},"duration":1900000000,"wait":100000000,"requests":110,"status_codes":{"0":3,"200":100,"502":7}}"#;
        let report = parse(&text.replace('\n', ""), 200).unwrap();
        assert_eq!((report.requests, report.errors.connect, report.errors.status), (107, 3, 7));
        assert_eq!(report.latency.at(99.0), Some(4000.0));
        assert!((report.seconds - 2.0).abs() < 1e-9);
        assert!(parse("no such file", 1).is_err());
    }
}
