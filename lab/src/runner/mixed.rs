//! Measures a mixed load: finds the capacity it refers to, reads the costs at the run's marks, and checks that the
//! result is meaningful.

use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{ResponseStats, Runner};
use crate::cases::mix::{Mix, Scope};
use crate::cases::{Case, Expect};
use crate::figures::time;
use crate::load::mixed::requests::Prepared;
use crate::load::mixed::{self, Mark, MixReport, Phases};
use crate::load::{Target, client};
use crate::record::{Errors, KindSample, Outcome, Response, ResultSet, Sample};
use crate::sample::{Reading, proc_tree};
use crate::stats::Summary;
use crate::systems::{Running, System};

/// Number of checks of each kind of response before a run.
const CHECKS: u32 = 3;

/// Maximum time until a system's responses are correct again after a load: after an overload it may still be serving
/// requests whose clients have left.
const RECOVERS_WITHIN: Duration = Duration::from_secs(120);

/// Minimum time for opening connections and settling the load.
const SETTLE: Duration = Duration::from_millis(500);

/// Maximum time to wait for responses after the measured period.
const TAIL: Duration = Duration::from_secs(5);

impl Runner<'_> {
    /// Runs a mixed load on a started system.
    #[allow(clippy::too_many_arguments, reason = "the facts of one run, used in one place")]
    pub(super) fn measure_mixed(
        &self,
        system: &dyn System,
        case: &Case,
        mix: &Mix,
        running: &Running,
        target: &Target,
        seconds: f64,
        warmup: f64,
        results: &ResultSet,
    ) -> Result<Sample, (&'static str, anyhow::Error)> {
        let load = resolve(mix, &system.id(), results)
            .and_then(|mix| Ok((Prepared::new(&mix, target.address, self.rounds_per_ms)?, mix.offered())));
        let (load, offered) = load.map_err(|error| ("capacity", error))?;
        let mut stats = ResponseStats::default();
        for _ in 0..CHECKS {
            check_each(case, &load, target, &mut stats).map_err(|error| ("check before the run", error))?;
        }
        let response = stats.last.clone();
        let phases = Phases {
            settle: if case.cold { Duration::ZERO } else { Duration::from_secs_f64(warmup).max(SETTLE) },
            measure: Duration::from_secs_f64(seconds),
            tail: TAIL,
        };
        let mut sample = self.marked_load(system, running, &load, phases).map_err(|error| ("load", error))?;
        let recovered = Instant::now() + RECOVERS_WITHIN;
        while let Err(error) = check_each(case, &load, target, &mut stats) {
            if Instant::now() > recovered {
                return Err(("check after the run", error));
            }
            self.interrupt.check().map_err(|error| ("check after the run", error))?;
            thread::sleep(Duration::from_millis(50));
        }
        judge(&sample, running).map_err(|error| ("load", error))?;
        sample.offered_rate = offered;
        sample.response = response;
        sample.encodings = stats.encodings;
        sample.command =
            vec!["built-in mixed load".into(), mix.description(), format!("seed {}", mix.seed), target.url()];
        Ok(sample)
    }

    /// Runs the load on a separate thread, so that this one can read the costs at the marks.
    fn marked_load(&self, system: &dyn System, running: &Running, load: &Prepared, phases: Phases) -> Result<Sample> {
        let roots = running.roots();
        let role = |name: &str| system.role(name);
        let services = self.stage.services.roots();
        let (sender, marks) = channel();
        let interrupt = self.interrupt;
        let (report, readings) = thread::scope(|scope| {
            let mut tell = move |mark: Mark| {
                // The receiver waits for both marks; it is gone only if it panicked.
                let _ = sender.send(mark);
            };
            let generator = scope.spawn(move || mixed::run(load, phases, &mut tell, interrupt));
            let mut readings = Vec::new();
            while marks.recv().is_ok() {
                readings.push((Reading::take(&roots, &role, &services), proc_tree::memory(&roots)));
            }
            let report = generator.join().map_err(|_| anyhow::anyhow!("the generator ended"));
            report.and_then(|report| report).map(|report| (report, readings))
        })?;
        let [(before, _), (after, memory)] = readings.as_slice() else { bail!("the run has no start and end time") };
        let mut cpu = after.cpu_since(before);
        cpu.generator = report.generator_cpu;
        let mut sample = from_report(report);
        sample.switches = after.switches_since(before);
        (sample.cpu, sample.memory) = (cpu, memory.clone());
        Ok(sample)
    }
}

/// Returns the mix with rates instead of shares of capacities that this run has measured before.
fn resolve(mix: &Mix, system: &str, results: &ResultSet) -> Result<Mix> {
    let Some((of, scope)) = mix.capacity_case() else { return Ok(mix.clone()) };
    let median = |system: &str| {
        let rates: Vec<f64> = results
            .runs
            .iter()
            .filter(|run| run.case == of && run.system == system)
            .filter_map(|run| match &run.outcome {
                Outcome::Measured(sample) => Some(sample.rate()),
                _ => None,
            })
            .collect();
        Summary::of(&rates).map(|summary| summary.median)
    };
    let capacity = match scope {
        Scope::Own => median(system),
        Scope::Slowest => results.runs.iter().filter_map(|run| median(&run.system)).reduce(f64::min),
    };
    let capacity = capacity.with_context(|| format!("{of} was not measured, so there is no rate"))?;
    Ok(mix.at_capacity(capacity))
}

/// Sends one request of each kind and compares its response.
fn check_each(case: &Case, load: &Prepared, target: &Target, stats: &mut ResponseStats) -> Result<()> {
    for request in load.one_of_each() {
        let one = Target { path: request.path.clone(), ..target.clone() };
        let (response, body) = client::ask(&one, Duration::from_secs(30))?;
        right(case, request.body.as_deref(), &response, &body)
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("wrong response to GET {}", request.path))?;
        stats.take(response);
    }
    Ok(())
}

fn right(case: &Case, wanted: Option<&[u8]>, response: &Response, body: &[u8]) -> Result<(), String> {
    match (&case.expect, wanted) {
        (Expect::Exactly { media_type, .. }, Some(wanted)) => {
            Expect::Exactly { media_type, body: wanted.to_vec() }.check(response, body)
        }
        _ => Expect::Success.check(response, body),
    }
}

/// Rejects runs whose result would be meaningless. Refused requests are no reason: under overload they are part of the
/// result.
fn judge(sample: &Sample, running: &Running) -> Result<()> {
    if let Some(how) = running.ended() {
        bail!("{how} during the run");
    }
    if let Some(kind) = sample.kinds.iter().find(|kind| kind.wrong > 0) {
        bail!("{} responses to requests of kind {} had the wrong body", kind.wrong, kind.name);
    }
    if sample.succeeded == 0 {
        bail!("not one request succeeded: {:?}", sample.kinds);
    }
    Ok(())
}

fn from_report(report: MixReport) -> Sample {
    let mut errors = Errors::default();
    for kind in &report.kinds {
        errors.connect += kind.errors.connect;
        errors.read += kind.errors.read;
        errors.timeout += kind.errors.timeout;
        errors.status += kind.errors.status;
    }
    Sample {
        seconds: report.seconds,
        requests: report.responses,
        succeeded: report.kinds.iter().map(|kind| kind.good).sum(),
        errors,
        bytes: report.bytes,
        latency: report.latency,
        lateness: Some(report.lateness).filter(|lateness| !lateness.percentiles.is_empty()),
        kinds: report.kinds,
        ..Sample::default()
    }
}

/// Returns a line for each kind of request.
pub fn kind_lines(kinds: &[KindSample], seconds: f64) -> Vec<String> {
    let at = |latency: &crate::record::Latency| {
        let values: Vec<String> = [50.0, 90.0, 99.0].iter().filter_map(|p| latency.at(*p)).map(time).collect();
        values.join(" / ")
    };
    kinds
        .iter()
        .map(|kind| {
            let mut line =
                format!("{:<12} {:>9.1}/s  p50/90/99 {:<28}", kind.name, kind.good as f64 / seconds, at(&kind.latency));
            if kind.refused > 0 {
                let latency = at(&kind.refused_latency);
                line.push_str(&format!("  refused {:.0}/s, {latency}", kind.refused as f64 / seconds));
            }
            if kind.unanswered > 0 {
                line.push_str(&format!("  {} of {} unanswered", kind.unanswered, kind.due));
            }
            if kind.errors.total() > 0 {
                line.push_str(&format!("  {} errors", kind.errors.total()));
            }
            if let Some((least, most)) = kind.per_connection.filter(|(_, most)| *most > 0) {
                line.push_str(&format!("  {least} to {most} per connection"));
            }
            line.trim_end().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::mix::{Clients, Rhythm, Work};
    use crate::view::sample_results;

    fn share(share: f64, scope: Scope) -> Mix {
        Mix::of([Clients::closed("x", 1, Work::Hello).rhythm(Rhythm::PoissonShare { share, of: "hello", scope })])
    }

    #[test]
    fn a_share_refers_to_the_slowest_or_to_its_own_capacity() {
        let results = sample_results::results();
        let rate = |mix: Mix, system: &str| resolve(&mix, system, &results).map(|mix| mix.offered().unwrap().round());
        assert_eq!(rate(share(0.5, Scope::Own), "fast").unwrap(), 15_001.0);
        assert_eq!(rate(share(10.0, Scope::Own), "slow").unwrap(), 100_025.0);
        assert_eq!(rate(share(0.5, Scope::Slowest), "fast").unwrap(), 5_001.0);
        assert_eq!(rate(share(0.5, Scope::Slowest), "slow").unwrap(), 5_001.0);
        let error = rate(share(0.5, Scope::Own), "gone").unwrap_err().to_string();
        assert!(error.contains("hello was not measured"), "{error}");
    }

    #[test]
    fn refusals_are_a_result_and_wrong_answers_are_not() {
        let kind = KindSample { name: "x".into(), good: 10, refused: 1000, ..KindSample::default() };
        let sample = from_report(MixReport { kinds: vec![kind.clone()], responses: 1010, ..MixReport::default() });
        assert_eq!((sample.succeeded, sample.requests, sample.errors.total()), (10, 1010, 0));
        let running = Running::default();
        assert!(judge(&sample, &running).is_ok());
        let wrong = Sample { kinds: vec![KindSample { wrong: 1, ..kind.clone() }], ..sample.clone() };
        assert!(judge(&wrong, &running).unwrap_err().to_string().contains("wrong body"));
        let none = Sample { succeeded: 0, ..sample };
        assert!(judge(&none, &running).unwrap_err().to_string().contains("not one request"));
    }

    #[test]
    fn lines_of_kinds_have_rates_refusals_and_unanswered_requests() {
        let kind = KindSample {
            name: "x".into(),
            due: 50,
            good: 10,
            refused: 20,
            unanswered: 5,
            per_connection: Some((1, 4)),
            ..KindSample::default()
        };
        let line = kind_lines(&[kind], 2.0).remove(0);
        for part in ["5.0/s", "refused 10/s", "5 of 50 unanswered", "1 to 4 per connection"] {
            assert!(line.contains(part), "{line}");
        }
    }
}
