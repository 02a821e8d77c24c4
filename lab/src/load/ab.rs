//! `ab`, for comparisons that were made with it: a closed loop in one thread with a new connection for each request.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::wrk::whole_seconds;
use super::{Load, LoadReport, PERCENTILES, Shape, Target, constant_rate, program};
use crate::interrupt::Interrupt;
use crate::programs::version_line;
use crate::record::{Errors, Latency};

/// Maximum requests of a run with a duration: ab keeps a record of each.
const MAX_REQUESTS: u64 = 3_000_000;

/// An `ab` on this machine.
#[derive(Debug)]
pub struct Ab {
    version: String,
    /// Number of requests, instead of a duration.
    requests: Option<u64>,
}

impl Ab {
    /// Finds the program.
    pub fn find(requests: Option<u64>) -> Option<Self> {
        let line = version_line(crate::programs::program("ab")?, &["-V"])?;
        let version = line.split_once("Version ").map_or("", |(_, rest)| rest.split(' ').next().unwrap_or(""));
        Some(Self { version: format!("ab {version}"), requests })
    }
}

impl Load for Ab {
    fn name(&self) -> String {
        self.version.clone()
    }

    fn closed(&self, target: &Target, shape: Shape, interrupt: &Interrupt) -> Result<LoadReport> {
        let table = tempfile::Builder::new().prefix("howdah-lab-").suffix(".csv").tempfile()?;
        let mut arguments = vec!["-q".to_owned(), "-l".into(), "-r".into(), format!("-c{}", shape.connections)];
        match self.requests {
            Some(requests) => arguments.push(format!("-n{}", requests.max(u64::from(shape.connections)))),
            None => arguments.extend([format!("-t{}", whole_seconds(shape.seconds)), format!("-n{MAX_REQUESTS}")]),
        }
        arguments.extend([
            "-H".into(),
            format!("Accept-Encoding: {}", target.accept_encoding),
            "-e".into(),
            table.path().display().to_string(),
            target.url(),
        ]);
        let mut command = Command::new("ab");
        command.args(&arguments);
        // A fixed number of requests takes an unknown time.
        let limit = Duration::from_secs_f64(shape.seconds + if self.requests.is_some() { 600.0 } else { 60.0 });
        let ended = program::run(&mut [command], limit, interrupt)?;
        let report = parse(&ended.text, &fs::read_to_string(table.path()).unwrap_or_default(), shape.connections)?;
        let command = std::iter::once("ab".to_owned()).chain(arguments).collect();
        Ok(LoadReport { generator_cpu: ended.cpu, command, ..report })
    }

    fn constant(&self, target: &Target, shape: Shape, rate: f64, interrupt: &Interrupt) -> Result<LoadReport> {
        constant_rate::run(target, shape, rate, interrupt)
    }
}

/// Returns the number after a label.
fn number(text: &str, label: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the number after a word such as `Connect:` in ab's list of failures.
fn failures(text: &str, kind: &str) -> u64 {
    let at = text.find("(Connect:").map(|at| &text[at..]).unwrap_or_default();
    let rest = at.split_once(kind).map(|(_, rest)| rest.trim_start()).unwrap_or_default();
    rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn parse(text: &str, table: &str, connections: u32) -> Result<LoadReport> {
    let need = |label: &str| number(text, label).with_context(|| format!("ab printed no {label:?}: {}", text.trim()));
    let (seconds, requests) = (need("Time taken for tests:")?, need("Complete requests:")?);
    let rows: Vec<(f64, f64)> = table
        .lines()
        .filter_map(|line| line.split_once(','))
        .filter_map(|(percent, ms)| Some((percent.trim().parse().ok()?, ms.trim().parse::<f64>().ok()? * 1000.0)))
        .collect();
    let longest = number(text, " 100%").map(|ms| ms * 1000.0);
    let longest = longest.or_else(|| {
        let total = text.lines().find_map(|line| line.strip_prefix("Total:"))?;
        total.split_whitespace().last()?.parse::<f64>().ok().map(|ms| ms * 1000.0)
    });
    let mut percentiles: Vec<(f64, f64)> =
        PERCENTILES.iter().filter_map(|wanted| rows.iter().find(|(at, _)| at == wanted).copied()).collect();
    percentiles.extend(longest.map(|us| (100.0, us)));
    let errors = Errors {
        connect: failures(text, "Connect:"),
        read: failures(text, "Receive:") + failures(text, "Exceptions:"),
        status: number(text, "Non-2xx responses:").unwrap_or(0.0) as u64,
        ..Errors::default()
    };
    Ok(LoadReport {
        seconds,
        requests: requests as u64,
        bytes: need("Total transferred:")? as u64,
        errors,
        latency: Latency {
            mean: f64::from(connections) * seconds * 1e6 / requests.max(1.0),
            max: longest.unwrap_or(f64::NAN),
            percentiles,
            ..Latency::default()
        },
        ..LoadReport::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "Concurrency Level:      10\nTime taken for tests:   2.000 seconds\nComplete requests:      400\n\
        Failed requests:        7\n   (Connect: 1, Receive: 2, Length: 0, Exceptions: 4)\nNon-2xx responses:      5\n\
        Total transferred:      84000 bytes\nTotal:          1    3   0.4      3      9\n";

    #[test]
    fn totals_and_percentiles_are_read() {
        let table = "Percentage served,Time in ms\n0,1.000\n50,2.500\n95,4.000\n99,8.250\n";
        let report = parse(PRINTED, table, 10).unwrap();
        assert_eq!((report.requests, report.bytes), (400, 84_000));
        assert_eq!((report.errors.connect, report.errors.read, report.errors.status), (1, 6, 5));
        assert_eq!(report.latency.at(50.0), Some(2500.0));
        assert_eq!(report.latency.at(99.0), Some(8250.0));
        assert_eq!(report.latency.at(100.0), Some(9000.0));
        assert!((report.latency.mean - 50_000.0).abs() < 1e-6);
    }

    #[test]
    fn missing_totals_are_an_error_that_shows_the_output() {
        let error = parse("apr_socket_connect(): Connection refused (111)", "", 1).unwrap_err().to_string();
        assert!(error.contains("Connection refused"), "{error}");
    }
}
