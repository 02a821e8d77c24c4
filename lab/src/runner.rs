//! The measurement itself: start, warm up, check the response, measure, check again, stop; in rounds.
//!
//! One system runs at a time, freshly started for each run, so that no idle neighbour shares its memory or processors.
//! Rounds are interleaved: in each round every system is measured once on a case before the next round begins, and the
//! order of the systems rotates, so that a drift of the machine does not favour one of them. Mixed loads:
//! `runner/mixed.rs`.

pub mod mixed;
mod settle;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::apps;
use crate::cases::{Case, Transport};
use crate::clock;
use crate::interrupt::{Interrupt, Interrupted};
use crate::load::{Load, LoadReport, Shape, Target, client, floor};
use crate::plan::Plan;
use crate::record::{
    Floor, LoopCost, Outcome, PhpFacts, Response, ResultSet, Role, Run, RunKind, Sample, SystemStatus,
};
use crate::sample::{Reading, proc_tree};
use crate::stage::Stage;
use crate::stats::Summary;
use crate::systems::{Running, System, free_address, require_free, wait_until_ready};

/// Number of checks of the response before a run; the first requests also fill caches.
const CHECKS_BEFORE: u32 = 10;

/// Number of checks after a run.
const CHECKS_AFTER: u32 = 3;

/// The stage of a run that was skipped because the application has no script for the system, or its PHP has no JIT.
const APPLICATION_STAGE: &str = "application";

/// Number of cases on which a system fails to start before it is skipped on the others.
const MAX_START_FAILURES: usize = 2;

/// The runner's context.
pub struct Runner<'a> {
    /// The applications and services.
    pub stage: &'a Stage,
    /// The generator.
    pub load: &'a dyn Load,
    /// Checked before every step.
    pub interrupt: &'a Interrupt,
    /// Called with every step.
    pub progress: &'a dyn Fn(&str),
    /// Called after every run, so that no measurement is lost.
    pub save: &'a dyn Fn(&ResultSet) -> Result<()>,
    /// Threads of the closed-loop generator.
    pub threads: u32,
    /// Share of the slowest system's throughput that the constant-rate run offers.
    pub rate_share: f64,
    /// The rate of the constant-rate run in requests per second; replaces `rate_share`.
    pub fixed_rate: Option<f64>,
    /// `true` if the runner waits for the system to finish the rest of a load.
    pub settles: bool,
    /// True if the generator's own limit is measured for each case.
    pub floor: bool,
    /// Rounds of `work.php` per millisecond, for mixed loads that compute.
    pub rounds_per_ms: f64,
}

impl<'a> Runner<'a> {
    /// A runner that prints its steps and measures throughput alone.
    pub fn new(
        stage: &'a Stage,
        load: &'a dyn Load,
        interrupt: &'a Interrupt,
        save: &'a dyn Fn(&ResultSet) -> Result<()>,
    ) -> Self {
        Self {
            stage,
            load,
            interrupt,
            progress: &print,
            save,
            threads: 2,
            rate_share: 0.0,
            fixed_rate: None,
            settles: false,
            floor: false,
            rounds_per_ms: f64::NAN,
        }
    }
}

fn print(line: &str) {
    eprintln!("{line}");
}

impl std::fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

/// A failure during a run.
struct RunFailure {
    stage: &'static str,
    error: anyhow::Error,
    log_tail: Vec<String>,
}

impl Runner<'_> {
    /// Measures the whole plan into `results`. Failed runs are recorded; only an interrupt or a full disk ends it
    /// early.
    pub fn run(&self, plan: &Plan, results: &mut ResultSet) -> Result<()> {
        for case in &plan.cases {
            let mut given_up = BTreeSet::new();
            for round in 1..=plan.rounds {
                self.round(plan, case, round, RunKind::Throughput, None, &mut given_up, results)?;
            }
            if plan.latency
                && case.mix.is_none()
                && case.transport.has_constant_rate()
                && let Some(rate) = self.fixed_rate.or_else(|| self.common_rate(results, &case.id))
            {
                self.round(plan, case, 1, RunKind::Latency, Some(rate), &mut given_up, results)?;
            }
            if self.floor && case.mix.is_none() && case.transport == Transport::Plain {
                self.measure_floor(case, plan, results)?;
            }
            self.measure_loop(case, plan, results)?;
        }
        Ok(())
    }

    /// Measures the generator on this case against a stand-in that sends as many bytes and computes nothing.
    fn measure_floor(&self, case: &Case, plan: &Plan, results: &mut ResultSet) -> Result<()> {
        self.interrupt.check()?;
        let Some(bytes) = response_bytes(results, &case.id) else { return Ok(()) };
        let address = free_address()?;
        let mut running = Running::default();
        let site = self.stage.site(case, address)?;
        let (address_text, bytes_text) = (address.to_string(), bytes.to_string());
        let binary = crate::guard::binary()?;
        running.spawn(&site.launch("stand-in", binary, &[floor::SUBCOMMAND, &address_text, &bytes_text]))?;
        let target = self.stage.target(case, address, case.path.clone());
        wait_until_ready(&running, &target, self.interrupt)?;
        let roots = running.roots();
        let before = Reading::take(&roots, &|_| Role::Front, &[]);
        let seconds = plan.seconds.min(3.0);
        let shape = Shape { connections: case.connections, threads: self.threads, seconds };
        let report = self.load.closed(&target, shape, self.interrupt)?;
        let cpu = Reading::take(&roots, &|_| Role::Front, &[]).cpu_since(&before);
        running.stop()?;
        self.stage.discard(&site);
        let requests = (report.requests as f64).max(1.0);
        let floor = Floor {
            case: case.id.clone(),
            requests_per_second: report.requests as f64 / report.seconds,
            generator_us: report.generator_cpu * 1e6 / requests,
            server_us: cpu.system_seconds() * 1e6 / requests,
        };
        (self.progress)(&format!(
            "{:<14} {:<18} {:<10} {:>9.0} req/s",
            case.id, "(no PHP at all)", "floor", floor.requests_per_second
        ));
        results.floors.push(floor);
        (self.save)(results)
    }

    /// Measures the application's cost without a server, if it has a script for that.
    fn measure_loop(&self, case: &Case, plan: &Plan, results: &mut ResultSet) -> Result<()> {
        let Some(script) = self.stage.loop_script(case) else { return Ok(()) };
        let mut us = Vec::new();
        for _ in 0..plan.rounds {
            self.interrupt.check()?;
            us.push(apps::loop_cost(&script, &case.path, case.jit)?);
        }
        let median = Summary::of(&us).map_or(f64::NAN, |summary| summary.median);
        (self.progress)(&format!(
            "{:<14} {:<18} {:<10} {median:>26.1} us CPU/req",
            case.id, "(no server at all)", "loop"
        ));
        results.loops.push(LoopCost { case: case.id.clone(), us });
        (self.save)(results)
    }

    /// Returns a rate that every system with results for the case can sustain: a share of the slowest median.
    fn common_rate(&self, results: &ResultSet, case: &str) -> Option<f64> {
        let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for run in results.runs.iter().filter(|run| run.case == case && run.kind == RunKind::Throughput) {
            if let Outcome::Measured(sample) = &run.outcome {
                rates.entry(&run.system).or_default().push(sample.rate());
            }
        }
        rates
            .values()
            .filter_map(|rates| Summary::of(rates))
            .map(|summary| summary.median * self.rate_share)
            .filter(|rate| *rate >= 1.0)
            .min_by(f64::total_cmp)
    }

    #[allow(clippy::too_many_arguments, reason = "one call site per kind of round; a struct would only rename them")]
    fn round(
        &self,
        plan: &Plan,
        case: &Case,
        round: u32,
        kind: RunKind,
        rate: Option<f64>,
        given_up: &mut BTreeSet<String>,
        results: &mut ResultSet,
    ) -> Result<()> {
        let present: Vec<&dyn System> = plan
            .systems
            .iter()
            .filter(|(_, status)| matches!(status, SystemStatus::Found { .. }))
            .map(|(system, _)| system.as_ref())
            .collect();
        let count = present.len();
        for offset in 0..count {
            let system = present[(offset + round as usize - 1) % count];
            let id = system.id();
            if given_up.contains(&id) {
                continue;
            }
            self.interrupt.check()?;
            let started = clock::now();
            let left_out = plan.skipped.contains(&(id.clone(), case.id.clone()));
            let outcome = if left_out {
                given_up.insert(id.clone());
                Outcome::Skipped { reason: "left out of this run (--skip)".into() }
            } else if let Some(reason) = system.refuses(case).or_else(|| unsupported_reason(system, case)) {
                given_up.insert(id.clone());
                Outcome::Skipped { reason }
            } else if let Some(message) = never_started(results, &id) {
                given_up.insert(id.clone());
                Outcome::Failed { stage: "start".into(), message, log_tail: Vec::new() }
            } else {
                let shape = Shape { connections: case.connections, threads: self.threads, seconds: plan.seconds };
                match self.one(system, case, shape, plan.warmup, rate, results) {
                    Ok(sample) => Outcome::Measured(Box::new(sample)),
                    Err(run_failure) if run_failure.error.is::<Interrupted>() => return Err(run_failure.error),
                    Err(run_failure) if run_failure.stage == APPLICATION_STAGE => {
                        given_up.insert(id.clone());
                        Outcome::Skipped { reason: run_failure.error.to_string() }
                    }
                    Err(run_failure) => {
                        given_up.insert(id.clone());
                        Outcome::Failed {
                            stage: run_failure.stage.into(),
                            message: format!("{:#}", run_failure.error),
                            log_tail: run_failure.log_tail,
                        }
                    }
                }
            };
            (self.progress)(&progress_line(plan, case, &id, round, kind, &outcome));
            if let Outcome::Measured(sample) = &outcome {
                for line in mixed::kind_lines(&sample.kinds, sample.seconds) {
                    (self.progress)(&format!("    {line}"));
                }
            }
            results.runs.push(Run { system: id, case: case.id.clone(), round, kind, started, outcome });
            (self.save)(results)?;
        }
        Ok(())
    }

    /// Makes one run of one system from start to stop.
    fn one(
        &self,
        system: &dyn System,
        case: &Case,
        shape: Shape,
        warmup: f64,
        rate: Option<f64>,
        results: &mut ResultSet,
    ) -> Result<Sample, RunFailure> {
        let run_failure = |stage, error| RunFailure { stage, error, log_tail: Vec::new() };
        let address =
            system.fixed_address().map_or_else(free_address, Ok).map_err(|error| run_failure("start", error))?;
        require_free(address).map_err(|error| run_failure("start", error))?;
        let site = self.stage.site(case, address).map_err(|error| run_failure("start", error))?;
        if let Some(lack) = system.script().unsupported_reason(&site) {
            self.stage.discard(&site);
            return Err(run_failure(APPLICATION_STAGE, anyhow::Error::msg(lack)));
        }
        let running = system.start(&site).map_err(|error| run_failure("start", error))?;
        let target = self.stage.target(case, address, system.path(case));
        let measured = self.measure(system, case, &running, &target, shape, warmup, rate, results);
        let measured = measured.map_err(|(stage, error)| {
            let error = match running.ended() {
                Some(how) if !error.is::<Interrupted>() => error.context(how),
                _ => error,
            };
            RunFailure { stage, error, log_tail: running.log_tail(15) }
        });
        let stopped = running.stop();
        self.stage.discard(&site);
        let sample = measured?;
        stopped.map_err(|error| run_failure("stop", error))?;
        Ok(sample)
    }

    #[allow(clippy::too_many_arguments, reason = "the facts of one run, used in one place")]
    fn measure(
        &self,
        system: &dyn System,
        case: &Case,
        running: &Running,
        target: &Target,
        shape: Shape,
        warmup: f64,
        rate: Option<f64>,
        results: &mut ResultSet,
    ) -> Result<Sample, (&'static str, anyhow::Error)> {
        wait_until_ready(running, target, self.interrupt).map_err(|error| ("start", error))?;
        self.describe(system, case, running, target, results);
        confirm_jit(case, target)?;
        if let Some(mix) = &case.mix {
            return self.measure_mixed(system, case, mix, running, target, shape.seconds, warmup, results);
        }
        let mut stats = ResponseStats::default();
        stats.check(case, target, CHECKS_BEFORE).map_err(|error| ("check before the run", error))?;
        let response = stats.last.clone();
        if warmup >= 1.0 {
            let warm = Shape { seconds: warmup, ..shape };
            self.load.closed(target, warm, self.interrupt).map_err(|error| ("warm-up", error))?;
            self.settle(running).map_err(|error| ("warm-up", error))?;
        }
        let mut sample = self
            .observed_load(system, case, running, target, shape, rate, &mut stats)
            .map_err(|error| ("load", error))?;
        self.settle(running).map_err(|error| ("load", error))?;
        stats.check(case, target, CHECKS_AFTER).map_err(|error| ("check after the run", error))?;
        judge(&sample, &stats, running).map_err(|error| ("load", error))?;
        sample.response = response;
        sample.encodings = stats.encodings;
        Ok(sample)
    }

    fn settle(&self, running: &Running) -> Result<()> {
        if self.settles { settle::wait(&running.roots(), self.interrupt) } else { Ok(()) }
    }

    /// Runs the load while an observer occasionally checks a response: the generator itself does not check bodies.
    #[allow(clippy::too_many_arguments, reason = "the facts of one run, used in one place")]
    fn observed_load(
        &self,
        system: &dyn System,
        case: &Case,
        running: &Running,
        target: &Target,
        shape: Shape,
        rate: Option<f64>,
        stats: &mut ResponseStats,
    ) -> Result<Sample> {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let observer = scope.spawn(|| observe(case, target, &over));
            let sample = self.sampled_load(system, running, target, shape, rate);
            over.store(true, Ordering::Relaxed);
            let observed = observer.join().map_err(|_| anyhow::anyhow!("the observer ended"))??;
            stats.add(observed);
            sample
        })
    }

    fn sampled_load(
        &self,
        system: &dyn System,
        running: &Running,
        target: &Target,
        shape: Shape,
        rate: Option<f64>,
    ) -> Result<Sample> {
        let roots = running.roots();
        let role = |name: &str| system.role(name);
        let services = self.stage.services.roots();
        let counters_before = self.stage.services.counters()?;
        let before = Reading::take(&roots, &role, &services);
        let report = match rate {
            None => self.load.closed(target, shape, self.interrupt)?,
            Some(rate) => self.load.constant(target, shape, rate, self.interrupt)?,
        };
        let after = Reading::take(&roots, &role, &services);
        let memory = proc_tree::memory(&roots);
        let mysql = match (counters_before, self.stage.services.counters()?) {
            (Some(before), Some(after)) => Some(after.since(&before, &self.stage.services.reading_cost())),
            _ => None,
        };
        let mut cpu = after.cpu_since(&before);
        cpu.generator = report.generator_cpu;
        let mut sample = from_report(report, rate);
        sample.switches = after.switches_since(&before);
        (sample.cpu, sample.memory, sample.mysql) = (cpu, memory, mysql);
        Ok(sample)
    }

    /// Records the system's configuration, and PHP's report from inside it.
    fn describe(&self, system: &dyn System, case: &Case, running: &Running, target: &Target, results: &mut ResultSet) {
        let Some(record) = results.systems.iter_mut().find(|record| record.id == system.id()) else { return };
        record.config_files = running.config_files.clone();
        record.commands = running.processes.iter().map(|process| process.line.clone()).collect();
        if record.php.is_none() && !case.jit {
            record.php = php_facts(case, target);
        }
    }
}

/// Returns the reason why the lab cannot set up a system for a case.
fn unsupported_reason(system: &dyn System, case: &Case) -> Option<String> {
    if let Transport::Tls(protocol, _) = case.transport
        && !system.supports_protocol(protocol)
    {
        return Some(format!("it does not support {} here, or the lab cannot configure it", protocol.description()));
    }
    if case.is_proxied() && !system.proxies() {
        return Some("the lab cannot configure it as a proxy".into());
    }
    let needs = case.pool.min_workers.is_some() || case.pool.max_requests.is_some();
    (needs && !system.shapes_pool()).then(|| "the lab cannot configure such a pool for it".into())
}

/// Returns PHP's report about itself, if the application has a page for that.
fn php_facts(case: &Case, target: &Target) -> Option<PhpFacts> {
    let path = case.app.probe()?.to_owned();
    let probe = Target { path, accept_encoding: "identity".into(), ..target.clone() };
    let (response, body) = client::ask(&probe, Duration::from_secs(10)).ok()?;
    (response.status == 200).then(|| serde_json::from_slice(&body).ok())?
}

/// Fails if the JIT should be on and PHP reports that it is not.
fn confirm_jit(case: &Case, target: &Target) -> Result<(), (&'static str, anyhow::Error)> {
    let facts = if case.jit { php_facts(case, target) } else { None };
    let Some(facts) = facts.filter(|facts| !facts.jit) else { return Ok(()) };
    // A PHP without a JIT does not know its settings.
    if facts.ini.get("opcache.jit_buffer_size").is_none_or(String::is_empty) {
        return Err((APPLICATION_STAGE, anyhow::anyhow!("its PHP {} was built without a JIT", facts.version)));
    }
    let why = "OPcache is off, or an extension replaces the executor";
    Err(("start", anyhow::anyhow!("PHP {} reports that the requested JIT is off: {why}", facts.version)))
}

/// Checked responses.
#[derive(Debug, Default)]
struct ResponseStats {
    last: Response,
    encodings: BTreeMap<String, u64>,
    /// Minimum and maximum size on the wire.
    wire: Option<(u64, u64)>,
}

impl ResponseStats {
    fn take(&mut self, response: Response) {
        *self.encodings.entry(response.encoding.clone()).or_default() += 1;
        let (low, high) = self.wire.unwrap_or((response.wire_bytes, response.wire_bytes));
        self.wire = Some((low.min(response.wire_bytes), high.max(response.wire_bytes)));
        self.last = response;
    }

    fn add(&mut self, other: Self) {
        for (encoding, count) in other.encodings {
            *self.encodings.entry(encoding).or_default() += count;
        }
        self.wire = match (self.wire, other.wire) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
    }

    /// Requests the page and compares it with the correct response.
    fn check(&mut self, case: &Case, target: &Target, times: u32) -> Result<()> {
        for _ in 0..times {
            let (response, body) = client::ask(target, Duration::from_secs(30))?;
            check_response(case, target, &response, &body)?;
            self.take(response);
        }
        Ok(())
    }
}

fn check_response(case: &Case, target: &Target, response: &Response, body: &[u8]) -> Result<()> {
    case.expect
        .check(response, body)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("wrong response to GET {}", target.path))
}

/// Checks responses while the load runs, rarely enough not to be part of it. The generator counts refused and failed
/// requests; a successful response with wrong content is invisible to it, and fails the run.
fn observe(case: &Case, target: &Target, over: &AtomicBool) -> Result<ResponseStats> {
    let mut stats = ResponseStats::default();
    loop {
        let asked = Instant::now();
        if let Ok((response, body)) = client::ask(target, Duration::from_secs(10))
            && (200..300).contains(&response.status)
        {
            check_response(case, target, &response, &body).context("under load")?;
            stats.take(response);
        }
        let until = Instant::now() + (asked.elapsed() * 20).max(Duration::from_millis(100));
        while Instant::now() < until {
            if over.load(Ordering::Relaxed) {
                return Ok(stats);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Returns the reason not to try a system again: it never started.
fn never_started(results: &ResultSet, system: &str) -> Option<String> {
    let mut failures = 0;
    for run in results.runs.iter().filter(|run| run.system == system) {
        match &run.outcome {
            Outcome::Measured(_) => return None,
            Outcome::Failed { stage, .. } if stage == "start" => failures += 1,
            _ => {}
        }
    }
    (failures >= MAX_START_FAILURES)
        .then(|| format!("not tried: it did not start on {MAX_START_FAILURES} cases before"))
}

/// Returns the size on the wire of this case's response, from the first successful run.
fn response_bytes(results: &ResultSet, case: &str) -> Option<u64> {
    results.runs.iter().filter(|run| run.case == case).find_map(|run| match &run.outcome {
        Outcome::Measured(sample) => Some(sample.response.wire_bytes),
        _ => None,
    })
}

fn from_report(report: LoadReport, rate: Option<f64>) -> Sample {
    Sample {
        seconds: report.seconds,
        requests: report.requests,
        succeeded: report.requests.saturating_sub(report.errors.status),
        errors: report.errors,
        statuses: report.statuses,
        bytes: report.bytes,
        latency: report.latency,
        offered_rate: rate,
        command: report.command,
        ..Sample::default()
    }
}

/// Rejects runs whose result would be meaningless.
fn judge(sample: &Sample, stats: &ResponseStats, running: &Running) -> Result<()> {
    if let Some(how) = running.ended() {
        bail!("{how} during the run");
    }
    if sample.succeeded == 0 {
        bail!("not one request succeeded: {:?}", sample.errors);
    }
    // The generator does not check bodies; their mean size shows redirects and truncated pages, which are not errors to
    // it.
    let mean = sample.bytes as f64 / sample.requests as f64;
    let (low, high) = stats.wire.map_or((0.0, f64::MAX), |(low, high)| (low as f64, high as f64));
    let fits = mean >= low * 0.95 - 200.0 && mean <= high * 1.05 + 200.0;
    if sample.errors.status == 0 && !fits {
        bail!("responses under load had {mean:.0} bytes on average, checked ones {low:.0} to {high:.0}");
    }
    Ok(())
}

fn progress_line(plan: &Plan, case: &Case, system: &str, round: u32, kind: RunKind, outcome: &Outcome) -> String {
    let place = match kind {
        RunKind::Throughput => format!("round {round}/{}", plan.rounds),
        RunKind::Latency => "latency".to_owned(),
    };
    let result = match outcome {
        Outcome::Measured(sample) => format!(
            "{:>9.0} req/s  {:>7.1} us CPU/req  p99 {:>8.2} ms{}",
            sample.rate(),
            sample.server_us(),
            sample.latency.at(99.0).unwrap_or(f64::NAN) / 1000.0,
            match sample.errors.total() {
                0 => String::new(),
                errors => format!("  {errors} errors"),
            }
        ),
        Outcome::Failed { stage, message, .. } => format!("FAILED ({stage}): {message}"),
        Outcome::Skipped { reason } => format!("skipped: {reason}"),
    };
    format!("{:<14} {system:<18} {place:<10} {result}", case.id)
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
