//! The runner with mock systems and generators, so that order, judgement and bookkeeping are exact.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use super::*;
use crate::cases::{App, Expect};
use crate::record::{CaseRecord, Errors, Latency, Role, Settings, SystemRecord};
use crate::systems::front::FrontWorker;
use crate::systems::{Script, Site, missing};
use crate::view::sample_results;

/// Sends the same text for every request, on a thread.
struct MockSystem {
    id: &'static str,
    status: u16,
    starts: bool,
    refuses: bool,
    /// From this request on, the response is a different one of the same size.
    wrong_from: usize,
}

impl MockSystem {
    fn good(id: &'static str) -> Self {
        Self { id, status: 200, starts: true, refuses: false, wrong_from: usize::MAX }
    }
}

impl System for MockSystem {
    fn id(&self) -> String {
        self.id.into()
    }

    fn title(&self) -> String {
        self.id.to_uppercase()
    }

    fn find(&self) -> SystemStatus {
        missing("not asked", "in these tests")
    }

    fn tuning(&self) -> Vec<String> {
        Vec::new()
    }

    fn refuses(&self, _case: &Case) -> Option<String> {
        self.refuses.then(|| "by design".into())
    }

    fn role(&self, _process: &str) -> Role {
        Role::Both
    }

    fn start(&self, site: &Site) -> Result<Running> {
        if !self.starts {
            bail!("the binary is broken");
        }
        let listener = TcpListener::bind(site.address)?;
        let (status, wrong_from) = (self.status, self.wrong_from);
        let mut count = 0;
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut request = [0; 1024];
                while stream.read(&mut request).unwrap_or(0) > 0 {
                    count += 1;
                    let body = if count < wrong_from { "Hello, world!" } else { "Sorry, world!" };
                    let reply =
                        format!("HTTP/1.1 {status} x\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n{body}");
                    if stream.write_all(reply.as_bytes()).is_err() {
                        break;
                    }
                }
            }
        });
        let log = site.write("mock.log", "first line\nlast line\n")?;
        Ok(Running { logs: vec![log], ..Running::default() })
    }
}

/// Reports prepared results, and records its calls.
#[derive(Default)]
struct MockLoad {
    asked: RefCell<Vec<String>>,
    errors: Errors,
    bytes_each: u64,
    raise_after: Option<(usize, Interrupt)>,
}

impl MockLoad {
    fn report(&self, what: String, rate: f64) -> LoadReport {
        self.asked.borrow_mut().push(what);
        if let Some((count, interrupt)) = &self.raise_after
            && self.asked.borrow().len() >= *count
        {
            interrupt.raise();
        }
        let requests = rate as u64;
        LoadReport {
            seconds: 1.0,
            requests,
            bytes: requests * self.bytes_each,
            errors: self.errors.clone(),
            latency: Latency { percentiles: vec![(99.0, 5.0)], ..Latency::default() },
            ..LoadReport::default()
        }
    }
}

impl Load for MockLoad {
    fn name(&self) -> String {
        "mock".into()
    }

    fn closed(&self, _target: &Target, shape: Shape, _interrupt: &Interrupt) -> Result<LoadReport> {
        Ok(self.report(format!("closed {} s", shape.seconds), 1000.0))
    }

    fn constant(&self, _target: &Target, _shape: Shape, rate: f64, _interrupt: &Interrupt) -> Result<LoadReport> {
        Ok(self.report(format!("constant {rate}"), rate))
    }
}

fn plan_of(systems: Vec<MockSystem>, rounds: u32, latency: bool) -> Plan {
    let found = SystemStatus::Found { versions: Default::default() };
    Plan {
        suite: "test".into(),
        systems: systems.into_iter().map(|system| (Box::new(system) as Box<dyn System>, found.clone())).collect(),
        cases: vec![Case::script(
            "hello",
            "hello",
            "",
            Expect::Exactly { media_type: "text/html", body: b"Hello, world!".to_vec() },
        )],
        rounds,
        seconds: 3.0,
        warmup: 0.0,
        skipped: Default::default(),
        latency,
        app: None,
    }
}

fn results_of(plan: &Plan) -> ResultSet {
    let cases: Vec<CaseRecord> = plan.cases.iter().map(Case::record).collect();
    let systems: Vec<SystemRecord> = Vec::new();
    let settings = Settings { rounds: plan.rounds, ..sample_results::results().settings };
    ResultSet { cases, systems, settings, runs: Vec::new(), floors: Vec::new(), ..sample_results::results() }
}

/// Runs a plan; returns the outcome, the results, and the number of times they were saved.
fn run(plan: &Plan, load: &MockLoad, interrupt: &Interrupt) -> (Result<()>, ResultSet, usize) {
    let stage = Stage::prepare(&plan.cases, None, &Interrupt::default()).unwrap();
    let saved = RefCell::new(0);
    let mut results = results_of(plan);
    let outcome = Runner {
        stage: &stage,
        load,
        interrupt,
        progress: &|_| {},
        save: &|_| {
            *saved.borrow_mut() += 1;
            Ok(())
        },
        threads: 1,
        rate_share: 0.5,
        fixed_rate: None,
        settles: false,
        floor: false,
        rounds_per_ms: 1000.0,
    }
    .run(plan, &mut results);
    (outcome, results, saved.into_inner())
}

fn load() -> MockLoad {
    // 83 bytes: the size that the mock system really sends.
    MockLoad { bytes_each: 83, ..MockLoad::default() }
}

fn order(results: &ResultSet) -> Vec<String> {
    results.runs.iter().map(|run| format!("{}{}", run.system, run.round)).collect()
}

fn failure(results: &ResultSet) -> (String, String, Vec<String>) {
    match &results.runs[0].outcome {
        Outcome::Failed { stage, message, log_tail } => (stage.clone(), message.clone(), log_tail.clone()),
        other => panic!("expected a failure: {other:?}"),
    }
}

#[test]
fn rounds_are_interleaved_and_the_order_rotates() {
    let plan = plan_of(vec![MockSystem::good("a"), MockSystem::good("b"), MockSystem::good("c")], 3, false);
    let (outcome, results, saved) = run(&plan, &load(), &Interrupt::default());
    outcome.unwrap();
    assert_eq!(order(&results), ["a1", "b1", "c1", "b2", "c2", "a2", "c3", "a3", "b3"]);
    assert_eq!(saved, 9);
    assert!(
        results.runs.iter().all(|run| matches!(&run.outcome, Outcome::Measured(sample) if sample.rate() == 1000.0))
    );
}

#[test]
fn latency_is_measured_at_half_of_the_slowest_rate() {
    let plan = plan_of(vec![MockSystem::good("a"), MockSystem::good("b")], 1, true);
    let load = load();
    let (outcome, results, _) = run(&plan, &load, &Interrupt::default());
    outcome.unwrap();
    assert_eq!(load.asked.borrow()[2..], ["constant 500", "constant 500"]);
    assert_eq!(results.runs.iter().filter(|run| run.kind == RunKind::Latency).count(), 2);
}

#[test]
fn an_answer_of_500_is_a_failure_with_the_log() {
    let broken = MockSystem { status: 500, ..MockSystem::good("a") };
    let (outcome, results, _) = run(&plan_of(vec![broken], 3, true), &load(), &Interrupt::default());
    outcome.unwrap();
    let (stage, message, log) = failure(&results);
    assert_eq!(stage, "check before the run");
    assert!(message.contains("status 500") && message.contains("/hello.php"), "{message}");
    assert!(log.iter().any(|line| line.contains("last line")), "{log:?}");
    assert_eq!(results.runs.len(), 1, "a system that fails a case is not asked again");
}

#[test]
fn a_system_that_does_not_start_fails_alone() {
    let broken = MockSystem { starts: false, ..MockSystem::good("a") };
    let (outcome, results, _) =
        run(&plan_of(vec![broken, MockSystem::good("b")], 2, false), &load(), &Interrupt::default());
    outcome.unwrap();
    assert_eq!(order(&results), ["a1", "b1", "b2"]);
    assert_eq!(failure(&results).0, "start");
}

#[test]
fn a_system_that_never_starts_fails() {
    let broken = MockSystem { starts: false, ..MockSystem::good("a") };
    let mut plan = plan_of(vec![broken], 1, false);
    let case = plan.cases[0].clone();
    plan.cases = (0..4).map(|n| Case { id: format!("case{n}"), ..case.clone() }).collect();
    let (_, results, _) = run(&plan, &load(), &Interrupt::default());
    let message = |run: &Run| match &run.outcome {
        Outcome::Failed { message, .. } => message.clone(),
        other => panic!("{other:?}"),
    };
    let tried: Vec<bool> = results.runs.iter().map(|run| !message(run).contains("not tried")).collect();
    assert_eq!(tried, [true, true, false, false]);
}

#[test]
fn an_application_without_the_right_script_is_skipped() {
    let site = |worker| Site {
        app: App::User,
        jit: false,
        root: "/srv".into(),
        front_controller: true,
        worker_script: worker,
        swoole_script: None,
        async_script: None,
        boot_file: None,
        recipe: None,
        front_worker: None,
        path: "/".into(),
        workers: 1,
        processes: None,
        setup: Default::default(),
        pool: Default::default(),
        connections: 1,
        certificate: None,
        protocol: crate::cases::Protocol::Http1,
        upstream: None,
        address: free_address().unwrap(),
        dir: "/tmp".into(),
    };
    assert_eq!(Script::Any.unsupported_reason(&site(None)), None);
    for script in [Script::Worker, Script::WorkerOrRecipe, Script::WorkerOrBoot] {
        assert!(script.unsupported_reason(&site(None)).unwrap().contains("worker.php"), "{script:?}");
    }
    let symfony = Site { recipe: Some("symfony"), front_worker: Some(FrontWorker::Alone), ..site(None) };
    for script in [Script::Worker, Script::WorkerOrRecipe, Script::WorkerOrBoot] {
        assert_eq!(script.unsupported_reason(&symfony), None, "{script:?}");
    }
    let wordpress = Site { app: App::WordPress, recipe: Some("wordpress"), ..site(None) };
    assert!(Script::WorkerOrRecipe.unsupported_reason(&wordpress).is_some(), "its recipe is for snapshots only");
    assert_eq!(Script::Worker.unsupported_reason(&site(Some("/srv/worker.php".into()))), None);
    assert!(Script::Swoole.unsupported_reason(&site(None)).is_some());
}

#[test]
fn a_case_that_does_not_apply_is_skipped_once() {
    let unable = MockSystem { refuses: true, ..MockSystem::good("a") };
    let (_, results, _) = run(&plan_of(vec![unable], 3, false), &load(), &Interrupt::default());
    assert_eq!(results.runs.len(), 1);
    assert!(matches!(&results.runs[0].outcome, Outcome::Skipped { reason } if reason == "by design"));
}

#[test]
fn failed_requests_do_not_count_and_no_success_is_a_failure() {
    let half = MockLoad { errors: Errors { status: 400, ..Errors::default() }, ..load() };
    let (_, results, _) = run(&plan_of(vec![MockSystem::good("a")], 1, false), &half, &Interrupt::default());
    assert!(matches!(&results.runs[0].outcome, Outcome::Measured(sample) if sample.rate() == 600.0));
    let all = MockLoad { errors: Errors { status: 1000, ..Errors::default() }, ..load() };
    let (_, results, _) = run(&plan_of(vec![MockSystem::good("a")], 1, false), &all, &Interrupt::default());
    assert!(failure(&results).1.contains("not one request succeeded"));
}

#[test]
fn answers_of_another_size_under_load_are_a_failure() {
    let redirects = MockLoad { bytes_each: 2000, ..MockLoad::default() };
    let (_, results, _) = run(&plan_of(vec![MockSystem::good("a")], 1, false), &redirects, &Interrupt::default());
    assert!(failure(&results).1.contains("2000 bytes on average"), "{:?}", failure(&results));
}

#[test]
fn a_wrong_answer_under_load_is_a_failure() {
    // One request to test whether it is ready, ten checks before the run; then the observer's requests.
    let broken = MockSystem { wrong_from: 12, ..MockSystem::good("a") };
    let (_, results, _) = run(&plan_of(vec![broken], 1, false), &load(), &Interrupt::default());
    let (stage, message, _) = failure(&results);
    assert_eq!(stage, "load");
    assert!(message.contains("under load") && message.contains("differs at byte 0"), "{message}");
}

#[test]
fn encodings_of_all_checked_answers_are_counted() {
    let (_, results, _) = run(&plan_of(vec![MockSystem::good("a")], 1, false), &load(), &Interrupt::default());
    let Outcome::Measured(sample) = &results.runs[0].outcome else { panic!("{:?}", results.runs) };
    assert!(sample.encodings["identity"] >= 13, "{:?}", sample.encodings);
}

#[test]
fn an_interrupt_keeps_measured_results() {
    let interrupt = Interrupt::default();
    let load = MockLoad { raise_after: Some((2, interrupt.clone())), ..load() };
    let plan = plan_of(vec![MockSystem::good("a"), MockSystem::good("b")], 4, true);
    let (outcome, results, _) = run(&plan, &load, &interrupt);
    assert!(outcome.unwrap_err().is::<Interrupted>());
    assert_eq!(results.runs.len(), 2);
}
