//! The results in the form that reports need: one cell for each system and case, with medians over the rounds.

use std::collections::BTreeMap;

use crate::record::{
    CaseRecord, Floor, KindSample, Outcome, ResultSet, Role, RunKind, Sample, SystemRecord, SystemStatus,
};
use crate::stats::Summary;

/// One system on one case.
#[derive(Debug)]
pub struct Cell<'a> {
    pub system: &'a SystemRecord,
    /// The results.
    pub state: State<'a>,
}

/// Results of a system on a case.
#[derive(Debug)]
pub enum State<'a> {
    /// Figures.
    Measured(Box<Measured<'a>>),
    /// No figure: every run failed.
    Failed {
        /// The lab's step at that time.
        stage: &'a str,
        /// The error.
        message: &'a str,
        /// The end of the log.
        log_tail: &'a [String],
    },
    /// The system cannot do this by design.
    Skipped(&'a str),
    /// The system is not on this machine.
    Missing(&'a str),
    /// The measurement was stopped before it.
    NotRun,
}

/// Medians over the rounds, and their samples.
#[derive(Debug)]
pub struct Measured<'a> {
    /// The throughput runs.
    pub samples: Vec<&'a Sample>,
    /// The constant-rate run, if it succeeded.
    pub latency: Option<&'a Sample>,
    /// Messages of runs that failed while others succeeded.
    pub failures: Vec<&'a str>,
    /// Successful requests per second.
    pub rate: Summary,
    /// Processor time of the system for one request, in microseconds.
    pub server_us: Summary,
}

impl Measured<'_> {
    /// Returns the median of any figure over the throughput runs.
    pub fn median(&self, figure: impl Fn(&Sample) -> f64) -> f64 {
        let values: Vec<f64> = self.samples.iter().map(|sample| figure(sample)).collect();
        Summary::of(&values).map_or(f64::NAN, |summary| summary.median)
    }

    /// Returns the processor time of one role for one request, in microseconds.
    pub fn role_us(&self, role: Role) -> f64 {
        self.median(|sample| sample.role_us(role))
    }

    /// Returns the processor time of all processes that took part in one request, including the generator and the
    /// services.
    pub fn everything_us(&self) -> f64 {
        self.median(|sample| {
            let known = sample.cpu.system_seconds() + sample.cpu.generator + sample.cpu.services.values().sum::<f64>();
            known * 1e6 / (sample.requests as f64).max(1.0)
        })
    }

    /// Returns the share of all processors that was busy.
    pub fn busy(&self) -> f64 {
        self.median(|sample| sample.cpu.machine_busy / sample.cpu.machine_total.max(1e-9))
    }

    /// Returns the share of all processors that the system itself used.
    pub fn system_share(&self) -> f64 {
        self.median(|sample| sample.cpu.system_seconds() / sample.cpu.machine_total.max(1e-9))
    }

    /// Returns the new MariaDB connections for one request.
    pub fn connections_per_request(&self) -> Option<f64> {
        self.per_request(|work| work.connections)
    }

    /// Returns the statements for one request.
    pub fn queries_per_request(&self) -> Option<f64> {
        self.per_request(|work| work.questions)
    }

    /// Returns the maximum number of simultaneous connections to MySQL in all runs.
    pub fn mysql_most_open(&self) -> Option<f64> {
        self.samples
            .iter()
            .filter_map(|sample| sample.mysql.as_ref())
            .map(|work| work.most_open as f64)
            .reduce(f64::max)
    }

    fn per_request(&self, count: impl Fn(&crate::record::MysqlWork) -> u64) -> Option<f64> {
        let values: Vec<f64> = self
            .samples
            .iter()
            .filter_map(|sample| {
                sample.mysql.as_ref().map(|work| count(work) as f64 / (sample.requests as f64).max(1.0))
            })
            .collect();
        Summary::of(&values).map(|summary| summary.median)
    }

    /// Returns the errors of all runs together.
    pub fn errors(&self) -> u64 {
        self.samples.iter().chain(&self.latency).map(|sample| sample.errors.total()).sum()
    }

    /// Returns `true` if the response was compressed.
    pub fn compressed(&self) -> bool {
        self.encoding() != "identity"
    }

    /// Returns the encoding of most of the checked responses.
    pub fn encoding(&self) -> &str {
        self.encodings().into_iter().max_by_key(|(_, count)| *count).map_or("identity", |(encoding, _)| encoding)
    }

    /// Returns every observed encoding with its count.
    pub fn encodings(&self) -> BTreeMap<&str, u64> {
        let mut all = BTreeMap::new();
        for (encoding, count) in self.samples.iter().flat_map(|sample| &sample.encodings) {
            *all.entry(encoding.as_str()).or_default() += count;
        }
        all
    }

    /// Returns the mean size of the responses on the wire, under load.
    pub fn wire_bytes(&self) -> u64 {
        self.median(|sample| sample.bytes as f64 / (sample.requests as f64).max(1.0)).round() as u64
    }

    /// Returns the proportional set size.
    pub fn pss_bytes(&self) -> f64 {
        self.median(|sample| sample.memory.pss_bytes as f64)
    }

    /// Returns the throughput of every run.
    pub fn rates(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.rate()).collect()
    }
}

/// One kind of request of a mixed load on one system.
#[derive(Debug)]
pub struct KindView<'a> {
    /// Samples of every run, and its length.
    samples: Vec<(&'a KindSample, f64)>,
}

impl<'a> Measured<'a> {
    /// Returns that kind of request, if the runs had it.
    pub fn kind(&self, name: &str) -> Option<KindView<'a>> {
        let of =
            |sample: &&'a Sample| sample.kinds.iter().find(|kind| kind.name == name).map(|kind| (kind, sample.seconds));
        let samples: Vec<_> = self.samples.iter().filter_map(of).collect();
        (!samples.is_empty()).then_some(KindView { samples })
    }

    /// Returns the requests per second that the throughput runs offered, unless the responses decided the rate.
    pub fn offered(&self) -> Option<f64> {
        let rates: Vec<f64> = self.samples.iter().filter_map(|sample| sample.offered_rate).collect();
        Summary::of(&rates).map(|summary| summary.median)
    }
}

impl KindView<'_> {
    fn median(&self, figure: impl Fn(&KindSample, f64) -> Option<f64>) -> f64 {
        let values: Vec<f64> = self.samples.iter().filter_map(|(kind, seconds)| figure(kind, *seconds)).collect();
        Summary::of(&values).map_or(f64::NAN, |summary| summary.median)
    }

    /// Returns the correct responses per second.
    pub fn rate(&self) -> f64 {
        self.median(|kind, seconds| Some(kind.good as f64 / seconds))
    }

    /// Returns a percentile of their latency, in microseconds.
    pub fn percentile_us(&self, percentile: f64) -> f64 {
        self.median(|kind, _| kind.latency.at(percentile))
    }

    /// Returns the refusals per second.
    pub fn refused_rate(&self) -> f64 {
        self.median(|kind, seconds| Some(kind.refused as f64 / seconds))
    }

    /// Returns a percentile of the latency of refusals, in microseconds.
    pub fn refused_percentile_us(&self, percentile: f64) -> f64 {
        self.median(|kind, _| kind.refused_latency.at(percentile))
    }

    /// Returns the share of the requests without a response at the end of the run.
    pub fn unanswered_share(&self) -> f64 {
        self.median(|kind, _| Some(kind.unanswered as f64 / (kind.due as f64).max(1.0)))
    }

    /// Returns other failures, in all runs together.
    pub fn errors(&self) -> u64 {
        self.samples.iter().map(|(kind, _)| kind.errors.total()).sum()
    }

    /// Returns the correct responses per second on the connection that got fewest and on the one that got most.
    pub fn per_connection(&self) -> Option<(f64, f64)> {
        let of = |pick: fn((u64, u64)) -> u64| {
            self.median(|kind, seconds| Some(pick(kind.per_connection?) as f64 / seconds))
        };
        Some((of(|pair| pair.0), of(|pair| pair.1))).filter(|(least, most)| least.is_finite() && *most > 0.0)
    }
}

/// One case with all systems.
#[derive(Debug)]
pub struct CaseView<'a> {
    pub case: &'a CaseRecord,
    /// A cell for each system, in the order of the result set.
    pub cells: Vec<Cell<'a>>,
    /// Results of the generator without PHP.
    pub floor: Option<&'a Floor>,
    /// Cost of the application without any server, in microseconds of processor time.
    pub loop_us: Option<f64>,
}

impl<'a> CaseView<'a> {
    /// Returns the kinds of requests of a mixed load, in the order of the load.
    pub fn kinds(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for cell in &self.cells {
            let State::Measured(measured) = &cell.state else { continue };
            for kind in measured.samples.iter().flat_map(|sample| &sample.kinds) {
                if !names.contains(&kind.name.as_str()) {
                    names.push(&kind.name);
                }
            }
        }
        names
    }

    /// Returns the cells with figures.
    pub fn measured(&self) -> impl Iterator<Item = (&'a SystemRecord, &Measured<'a>)> {
        self.cells.iter().filter_map(|cell| match &cell.state {
            State::Measured(measured) => Some((cell.system, measured.as_ref())),
            _ => None,
        })
    }
}

/// Returns all cases of a result set.
pub fn cases(results: &ResultSet) -> Vec<CaseView<'_>> {
    results
        .cases
        .iter()
        .map(|case| CaseView {
            case,
            cells: results
                .systems
                .iter()
                .map(|system| Cell { system, state: state(results, system, &case.id) })
                .collect(),
            floor: results.floors.iter().find(|floor| floor.case == case.id),
            loop_us: results
                .loops
                .iter()
                .find(|cost| cost.case == case.id)
                .and_then(|cost| Summary::of(&cost.us))
                .map(|summary| summary.median),
        })
        .collect()
}

fn state<'a>(results: &'a ResultSet, system: &'a SystemRecord, case: &str) -> State<'a> {
    if let SystemStatus::Missing { what, .. } = &system.status {
        return State::Missing(what);
    }
    let (mut samples, mut latency, mut failures, mut failed, mut skipped) = (Vec::new(), None, Vec::new(), None, None);
    for run in results.runs.iter().filter(|run| run.system == system.id && run.case == case) {
        match (&run.outcome, run.kind) {
            (Outcome::Measured(sample), RunKind::Throughput) => samples.push(sample.as_ref()),
            (Outcome::Measured(sample), RunKind::Latency) => latency = Some(sample.as_ref()),
            (Outcome::Failed { stage, message, log_tail }, _) => {
                failures.push(message.as_str());
                failed = Some(State::Failed { stage, message, log_tail });
            }
            (Outcome::Skipped { reason }, _) => skipped = Some(State::Skipped(reason)),
        }
    }
    let rates: Vec<f64> = samples.iter().map(|sample| sample.rate()).collect();
    let costs: Vec<f64> = samples.iter().map(|sample| sample.server_us()).collect();
    match (Summary::of(&rates), Summary::of(&costs)) {
        (Some(rate), Some(server_us)) => {
            State::Measured(Box::new(Measured { samples, latency, failures, rate, server_us }))
        }
        _ => failed.or(skipped).unwrap_or(State::NotRun),
    }
}

/// Result sets written by hand, for tests of computed values.
#[cfg(test)]
pub(crate) mod sample_results {
    use crate::record::*;

    pub(crate) fn sample(rate: f64, server_us: f64) -> Sample {
        let requests = (rate * 2.0) as u64;
        let percentiles = crate::load::PERCENTILES.iter().map(|p| (*p, 100.0 + p * 10.0)).collect();
        Sample {
            seconds: 2.0,
            requests,
            succeeded: requests,
            bytes: requests * 200,
            statuses: [(200, requests)].into(),
            latency: Latency { mean: 500.0, stdev: 50.0, max: 1100.0, percentiles },
            response: Response {
                status: 200,
                content_type: "text/html".into(),
                encoding: "identity".into(),
                body_bytes: 13,
                wire_bytes: 200,
                hash: "00".into(),
            },
            encodings: [("identity".to_owned(), 14)].into(),
            cpu: Cpu {
                by_role: [(Role::Both, server_us * requests as f64 / 1e6)].into(),
                generator: 0.4,
                machine_busy: 3.9,
                machine_total: 4.0,
                ..Cpu::default()
            },
            memory: Memory { pss_bytes: 20 << 20, rss_bytes: 50 << 20, processes: 5, threads: 5 },
            switches: Switches { voluntary: requests, involuntary: 10 },
            ..Sample::default()
        }
    }

    pub(crate) fn run(system: &str, case: &str, round: u32, sample: Sample) -> Run {
        Run {
            system: system.into(),
            case: case.into(),
            round,
            kind: RunKind::Throughput,
            started: "2026-01-01T00:00:00Z".into(),
            outcome: Outcome::Measured(Box::new(sample)),
        }
    }

    /// The same systems on a load of two kinds, of which the slow one has refusals and requests without a response.
    pub(crate) fn mixed() -> ResultSet {
        let mut results = results();
        results.cases[0].clients = vec!["many at once".into()];
        for run in &mut results.runs {
            let Outcome::Measured(sample) = &mut run.outcome else { continue };
            let slow = run.system == "slow";
            let percentiles = |from: f64| crate::load::PERCENTILES.iter().map(|p| (*p, from + p * 10.0)).collect();
            let latency = |from| Latency { percentiles: percentiles(from), ..Latency::default() };
            let good = if slow { 2000 } else { 6000 };
            let quick = KindSample {
                name: "quick".into(),
                due: good,
                good,
                latency: latency(if slow { 500.0 } else { 100.0 }),
                ..KindSample::default()
            };
            let long = KindSample {
                name: "long".into(),
                due: good / 10,
                good: good / 10,
                refused: if slow { 100 } else { 0 },
                unanswered: if slow { good / 100 } else { 0 },
                latency: latency(20_000.0),
                refused_latency: latency(10.0),
                per_connection: Some((good / 40, good / 20)),
                ..KindSample::default()
            };
            sample.kinds = vec![quick, long];
        }
        results
    }

    fn system(id: &str, status: SystemStatus) -> SystemRecord {
        SystemRecord {
            id: id.into(),
            title: id.to_uppercase(),
            status,
            tuning: vec!["as it comes".into()],
            config_files: [("x.conf".to_owned(), "a <b> & c\n".to_owned())].into(),
            commands: vec!["x --serve".into()],
            php: None,
        }
    }

    /// `fast` and `slow` on case `hello` in four rounds, and `gone`, which is missing.
    pub(crate) fn results() -> ResultSet {
        let found = SystemStatus::Found { versions: [("x".to_owned(), "1.0".to_owned())].into() };
        let gone = SystemStatus::Missing { what: "gone".into(), how: "get it".into() };
        let mut runs = Vec::new();
        for round in 1..=4 {
            runs.push(run("fast", "hello", round, sample(30_000.0 + f64::from(round), 30.0)));
            runs.push(run("slow", "hello", round, sample(10_000.0 + f64::from(round), 90.0)));
        }
        ResultSet {
            schema: SCHEMA,
            suite: "test".into(),
            started: "2026-01-01T00:00:00Z".into(),
            finished: Some("2026-01-01T00:01:00Z".into()),
            interrupted: false,
            command: vec!["howdah-lab".into(), "run".into()],
            lab_version: "0.0.0".into(),
            settings: Settings {
                rounds: 4,
                seconds: 2.0,
                warmup_seconds: 1.0,
                load_threads: 2,
                generator: "wrk test".into(),
                rate_share: 0.5,
                work_rounds_per_ms: None,
            },
            machine: Machine { cpu: "Test CPU".into(), cores: 2, arch: "x86_64".into(), ..Machine::default() },
            systems: vec![system("fast", found.clone()), system("slow", found), system("gone", gone)],
            cases: vec![CaseRecord {
                id: "hello".into(),
                title: "hello".into(),
                about: "echo".into(),
                connections: 8,
                workers: 4,
                accept_encoding: "gzip".into(),
                wait_ms: 0.0,
                jit: false,
                way: String::new(),
                clients: Vec::new(),
                pool: Vec::new(),
            }],
            floors: vec![Floor {
                case: "hello".into(),
                requests_per_second: 100_000.0,
                generator_us: 8.0,
                server_us: 5.0,
            }],
            loops: vec![LoopCost { case: "hello".into(), us: vec![21.0, 20.0, 25.0] }],
            runs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_has_a_cell_and_missing_is_never_zero() {
        let results = sample_results::results();
        let views = cases(&results);
        assert_eq!(views.len(), 1);
        assert_eq!(views[0].measured().count(), 2);
        assert!(matches!(views[0].cells[2].state, State::Missing("gone")));
        let (_, fast) = views[0].measured().next().unwrap();
        assert!((fast.rate.median - 30_002.5).abs() < 1.0);
        assert!((fast.server_us.median - 30.0).abs() < 0.1);
    }

    #[test]
    fn a_failed_run_beside_good_ones_is_kept_visible() {
        let mut results = sample_results::results();
        results.runs[0].outcome =
            Outcome::Failed { stage: "load".into(), message: "it broke".into(), log_tail: Vec::new() };
        let views = cases(&results);
        let (_, fast) = views[0].measured().next().unwrap();
        assert_eq!(fast.samples.len(), 3);
        assert_eq!(fast.failures, ["it broke"]);
    }

    #[test]
    fn only_failures_give_no_number() {
        let mut results = sample_results::results();
        for run in results.runs.iter_mut().filter(|run| run.system == "slow") {
            run.outcome = Outcome::Failed { stage: "start".into(), message: "no".into(), log_tail: Vec::new() };
        }
        let views = cases(&results);
        assert!(matches!(views[0].cells[1].state, State::Failed { stage: "start", .. }));
    }
}
