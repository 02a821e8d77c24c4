//! `howdah-lab load`: sends a mixed load to a server that the lab has not started, for a quick test. Nothing is saved.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::apps;
use crate::cases::mix::Mix;
use crate::cases::{mix_file, mixed as catalogue};
use crate::descriptors;
use crate::figures::time;
use crate::interrupt::Interrupt;
use crate::load::mixed::requests::Prepared;
use crate::load::mixed::{self, MixReport, Phases};
use crate::names::nearest;
use crate::runner::mixed::kind_lines;

/// The arguments.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// A case of suite `mixed` (its scripts are in lab/apps/bench), or a file: see lab/README.md
    #[arg(long, value_name = "NAME|FILE")]
    mix: String,
    /// Address of the server, as http://ADDRESS:PORT
    url: String,
    /// Seconds that are measured
    #[arg(long, default_value_t = 4.0, value_name = "SECONDS")]
    duration: f64,
    /// Seconds of the same load before
    #[arg(long, default_value_t = 0.5, value_name = "SECONDS")]
    settle: f64,
    /// Requests per second that a share of a capacity refers to; measured first, when absent
    #[arg(long, value_name = "RATE")]
    capacity: Option<f64>,
    /// Number of runs
    #[arg(long, default_value_t = 1)]
    rounds: u32,
}

/// Sends the load and prints the results.
pub fn main(args: &LoadArgs) -> Result<u8> {
    if !(args.duration > 0.0 && args.duration < 1e6 && args.settle >= 0.0 && args.settle < 1e6) {
        bail!("--duration must be above 0, --settle at least 0, and both below a million seconds");
    }
    let address = address(&args.url)?;
    let mix = find(&args.mix)?;
    let interrupt = Interrupt::on_signals()?;
    let speed = if mix.computes() { apps::work_rounds_per_ms()? } else { f64::NAN };
    let one = |mix: &Mix| {
        descriptors::make_room(mix.connections())?;
        let phases = Phases {
            settle: Duration::from_secs_f64(args.settle),
            measure: Duration::from_secs_f64(args.duration),
            tail: Duration::from_secs(5),
        };
        mixed::run(&Prepared::new(mix, address, speed)?, phases, &mut |_| {}, &interrupt)
    };
    let mix = match (mix.capacity_case(), args.capacity) {
        (Some(_), Some(capacity)) => mix.at_capacity(capacity),
        (Some((of, _)), None) => {
            let report = one(&find(of)?)?;
            let capacity = report.kinds.iter().map(|kind| kind.good).sum::<u64>() as f64 / report.seconds;
            println!("{of}: {capacity:.1} requests/s");
            mix.at_capacity(capacity)
        }
        (None, _) => mix,
    };
    println!("{}", mix.description());
    for _ in 0..args.rounds {
        print(&one(&mix)?);
    }
    Ok(0)
}

fn print(report: &MixReport) {
    for line in kind_lines(&report.kinds, report.seconds) {
        println!("  {line}");
    }
    for kind in report.kinds.iter().filter(|kind| kind.wrong > 0) {
        println!("  WRONG: {} responses to {} had another body", kind.wrong, kind.name);
    }
    let late = report
        .lateness
        .at(99.0)
        .map_or(String::new(), |late| format!(", 99 % sent within {} of when they were due", time(late)));
    println!(
        "  (generator: {:.1} us of processor time for each response, {} connections opened{late})",
        report.generator_cpu * 1e6 / (report.responses as f64).max(1.0),
        report.opened
    );
}

fn find(name: &str) -> Result<Mix> {
    if let Some(case) = catalogue::cases().into_iter().find(|case| case.id == name) {
        return case.mix.context("it has no mix");
    }
    let file = PathBuf::from(name);
    if file.is_file() {
        return mix_file::read(Path::new(name));
    }
    match nearest(name, catalogue::IDS.iter().copied()) {
        Some(known) => bail!("{name:?} is neither a mixed load nor a file; did you mean {known:?}?"),
        None => bail!("{name:?} is neither a mixed load nor a file; known are: {}", catalogue::IDS.join(", ")),
    }
}

/// Returns the address in a URL.
fn address(url: &str) -> Result<SocketAddr> {
    let rest = url.strip_prefix("http://").with_context(|| format!("{url:?} does not start with http://"))?;
    let place = rest.split('/').next().unwrap_or(rest);
    let with_port = if place.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok()) {
        place.to_owned()
    } else {
        format!("{place}:80")
    };
    with_port
        .to_socket_addrs()
        .with_context(|| format!("{url:?} has no address"))?
        .next()
        .with_context(|| format!("{url:?} has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_urls() {
        let text = |url: &str| address(url).map(|address| address.to_string());
        assert_eq!(text("http://127.0.0.1:8080/x").unwrap(), "127.0.0.1:8080");
        assert_eq!(text("http://127.0.0.1").unwrap(), "127.0.0.1:80");
        assert_eq!(text("http://[::1]:81").unwrap(), "[::1]:81");
        assert!(text("127.0.0.1:8080").is_err());
        assert!(text("http://").is_err());
    }

    #[test]
    fn unknown_loads_get_the_nearest_known() {
        assert!(find("mix-sleep-1").is_ok());
        assert!(find("mix-slep-1").unwrap_err().to_string().contains("did you mean \"mix-sleep-1\"?"));
    }
}
