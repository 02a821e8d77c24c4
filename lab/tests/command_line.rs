//! The binary from outside: its messages about bad input, its clean-up, and a small real measurement.

#![allow(clippy::unwrap_used, reason = "helpers of tests; only functions marked as tests are exempt by clippy.toml")]

mod bench;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bench::{Bench, LAB, has_generator, text};
use howdah_lab::record::{Outcome, ResultSet, Sample, SystemStatus};
use howdah_lab::report;
use howdah_skip::skip;

impl Bench {
    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Writes a user-defined system.
    fn system(&self, toml: &str) -> String {
        let path = self.path("system.toml");
        fs::write(&path, toml).unwrap();
        path.display().to_string()
    }

    /// PHP's built-in server: small, and part of every PHP.
    fn php_server(&self) -> String {
        self.system(
            "id = \"builtin\"\ntitle = \"PHP's built-in server\"\n\
             command = [\"php\", \"-d\", \"variables_order=EGPCS\", \"-S\", \"{address}\", \"-t\", \"{root}\"]\n\
             env = { PHP_CLI_SERVER_WORKERS = \"2\" }\ntuning = [\"two workers\"]\n",
        )
    }

    fn app(&self, script: &str) -> String {
        let dir = self.path("app");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("index.php"), script).unwrap();
        dir.display().to_string()
    }

    fn results(&self) -> ResultSet {
        report::json::read(&self.path("out")).unwrap().1
    }
}

fn failure(results: &ResultSet) -> (&str, &str, &[String]) {
    match &results.runs[0].outcome {
        Outcome::Failed { stage, message, log_tail } => (stage, message, log_tail),
        other => panic!("expected a failure: {other:?}"),
    }
}

#[test]
fn unknown_names_end_with_the_nearest_known_one() {
    let bench = Bench::new();
    let output = bench.run(&["run", "--cases", "helo"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("did you mean \"hello\"?"), "{}", text(&output));
    assert!(!bench.path("out").exists());
}

#[test]
fn a_system_that_does_not_start_is_a_failure_that_shows_its_log() {
    if !has_generator() {
        skip!("wrk", "nothing is measured without it");
    }
    let bench = Bench::new();
    let file = bench.system("id = \"broken\"\ncommand = [\"sh\", \"-c\", \"echo no such setting: speed; exit 3\"]\n");
    let app = bench.app("<?php echo 'fine';");
    let output =
        bench.run(&["run", "--system-file", &file, "--systems", "broken", "--app", &app, "--out", &bench.out()]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let results = bench.results();
    let (stage, message, log) = failure(&results);
    assert_eq!(stage, "start");
    assert!(message.contains("ended with code 3"), "{message}");
    assert!(log.iter().any(|line| line.contains("no such setting")), "{log:?}");
    assert!(fs::read_to_string(bench.path("out/report.md")).unwrap().contains("no such setting"));
    bench.assert_clean();
}

#[test]
fn a_taken_port_is_a_failure_that_names_it() {
    if !has_generator() {
        skip!("wrk", "nothing is measured without it");
    }
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let file = bench.system(&format!("id = \"fixed\"\naddress = \"{address}\"\ncommand = [\"sleep\", \"60\"]\n"));
    let app = bench.app("<?php echo 'fine';");
    let output =
        bench.run(&["run", "--system-file", &file, "--systems", "fixed", "--app", &app, "--out", &bench.out()]);
    assert_eq!(output.status.code(), Some(1));
    let results = bench.results();
    let (_, message, _) = failure(&results);
    assert!(message.contains(&address.to_string()) && message.contains("taken"), "{message}");
    bench.assert_clean();
}

#[test]
fn an_application_that_answers_500_is_a_failure() {
    if !has_generator() {
        skip!("wrk", "nothing is measured without it");
    }
    let bench = Bench::new();
    let file = bench.php_server();
    let app = bench.app("<?php http_response_code(500); error_log('database is on fire'); echo 'oops';");
    let output =
        bench.run(&["run", "--system-file", &file, "--systems", "builtin", "--app", &app, "--out", &bench.out()]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let results = bench.results();
    let (stage, message, log) = failure(&results);
    assert_eq!(stage, "check before the run");
    assert!(message.contains("status 500") && message.contains("oops"), "{message}");
    assert!(log.iter().any(|line| line.contains("database is on fire")), "{log:?}");
    bench.assert_clean();
}

/// A lab that measures for a minute unless it is stopped.
fn long_run(bench: &Bench) -> Child {
    let file = bench.php_server();
    let app = bench.app("<?php echo 'fine';");
    let out = bench.out();
    let arguments = ["run", "--system-file", &file, "--systems", "builtin", "--app", &app, "--out", &out];
    let mut command = bench.command(&arguments);
    command.args(["--duration", "1", "--rounds", "60", "--no-latency"]).process_group(0);
    let child = command.stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(240);
    let done = || report::json::read(&bench.path("out")).is_ok_and(|(_, results)| !results.runs.is_empty());
    while !done() {
        assert!(Instant::now() < deadline, "not one run within four minutes");
        thread::sleep(Duration::from_millis(50));
    }
    child
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn an_interrupt_keeps_the_results_and_leaves_nothing() {
    if !has_generator() {
        skip!("wrk", "nothing is measured without it");
    }
    let bench = Bench::new();
    let mut child = long_run(&bench);
    signal(&child, rustix::process::Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let results = bench.results();
    assert!(results.interrupted && results.finished.is_some());
    assert!(results.runs.iter().any(|run| matches!(run.outcome, Outcome::Measured(_))), "{:?}", results.runs);
    assert!(bench.path("out/report.html").is_file());
    bench.assert_clean();
}

#[test]
fn a_guard_ends_its_tree_even_if_the_lab_died_before_it_could_report() {
    let bench = Bench::new();
    let dir = bench.path("tmp/howdah-lab-test");
    fs::create_dir(&dir).unwrap();
    let log = dir.join("log");
    let script = format!("sleep 300 & echo {} >/dev/null; wait", bench.dir.path().display());
    let mut guard = Command::new(LAB)
        .args(["guard", &log.display().to_string(), "--", "sh", "-c", &script])
        .current_dir(&dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The state of both pipes when the lab is killed right after it has started a guard.
    drop(guard.stdout.take());
    drop(guard.stdin.take());
    assert!(guard.wait().unwrap().success());
    bench.assert_clean();
}

#[test]
fn everything_dies_with_a_lab_that_is_killed() {
    if !has_generator() {
        skip!("wrk", "nothing is measured without it");
    }
    let bench = Bench::new();
    let mut child = long_run(&bench);
    signal(&child, rustix::process::Signal::KILL);
    child.wait().unwrap();
    bench.assert_clean();
}

/// Returns the wanted systems that are on this machine, and records the others as skipped.
fn systems_here(wanted: &[&str]) -> Vec<String> {
    let systems = howdah_lab::systems::builtin();
    let here: Vec<String> = systems
        .iter()
        .filter(|system| matches!(system.find(), SystemStatus::Found { .. }))
        .map(|system| system.id())
        .filter(|id| wanted.contains(&id.as_str()))
        .collect();
    for lack in wanted.iter().filter(|id| !here.iter().any(|it| it == *id)) {
        howdah_skip::record(lack, "nothing is measured with it");
    }
    here
}

#[test]
fn smoke() {
    let systems = systems_here(&["nginx-fpm", "apache", "howdah-classic"]);
    if !has_generator() || systems.is_empty() {
        skip!("wrk", "or none of the systems is here: {systems:?}");
    }
    let bench = Bench::new();
    let output = bench.run(&[
        "run",
        "--systems",
        &systems.join(","),
        "--cases",
        "hello,html,static",
        "--rounds",
        "1",
        "--duration",
        "1",
        "--warmup",
        "0",
        "--out",
        &bench.out(),
    ]);
    assert!(output.status.success(), "{}", text(&output));
    let results = bench.results();
    for run in &results.runs {
        let Outcome::Measured(sample) = &run.outcome else { panic!("{run:?}") };
        assert!(sample.rate() > 10.0 && sample.server_us() > 0.5 && sample.memory.pss_bytes > 1 << 20, "{run:?}");
        assert_eq!(sample.errors.total(), 0, "{run:?}");
    }
    assert_eq!(results.runs.len(), systems.len() * 3 * 2);
    for system in &results.systems {
        let php = system.php.as_ref().unwrap_or_else(|| panic!("{} did not answer the probe", system.id));
        assert!(php.opcache, "{}: OPcache is off", system.id);
    }
    open_in_browser(&bench.path("out/report.html"), systems.len() * 3);
    bench.assert_clean();
}

#[test]
fn a_mixed_load_is_measured_by_kind_and_an_open_loop_follows_a_capacity() {
    let systems: Vec<String> = systems_here(&["nginx-fpm", "howdah-classic"]);
    if !has_generator() || systems.is_empty() {
        skip!("wrk", "or none of the systems is here: {systems:?}");
    }
    let bench = Bench::new();
    let systems = systems.join(",");
    let out = bench.out();
    let arguments = [
        "run",
        "--suite",
        "mixed",
        "--systems",
        &systems,
        "--cases",
        "mix-sleep-1,open-80",
        "--rounds",
        "1",
        "--out",
        &out,
    ];
    let output = bench.command(&arguments).args(["--duration", "1", "--warmup", "0"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let results = bench.results();
    let ids: Vec<&str> = results.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["mix-sleep-1", "open-capacity", "open-80"]);
    let samples = |case: &str| -> Vec<Sample> {
        let of_case = results.runs.iter().filter(|run| run.case == case);
        of_case
            .map(|run| match &run.outcome {
                Outcome::Measured(sample) => sample.as_ref().clone(),
                other => panic!("{}: {other:?}", run.system),
            })
            .collect()
    };
    for sample in samples("mix-sleep-1") {
        let [fast, slow] = sample.kinds.as_slice() else { panic!("{sample:?}") };
        assert_eq!((fast.name.as_str(), slow.name.as_str()), ("fast", "slow"));
        assert!(fast.good > 0 && slow.good > 0 && slow.good <= 51, "{sample:?}");
        assert!(slow.latency.at(50.0).unwrap() >= 20_000.0, "{sample:?}");
        assert!(sample.cpu.generator > 0.0 && sample.server_us() > 0.5 && sample.errors.total() == 0, "{sample:?}");
    }
    // The same rate for all: 0.8 times the throughput of the slowest system.
    let slowest = samples("open-capacity").iter().map(Sample::rate).fold(f64::MAX, f64::min);
    for sample in samples("open-80") {
        assert!((sample.offered_rate.unwrap() / slowest / 0.8 - 1.0).abs() < 1e-9, "{sample:?}");
        assert_eq!(sample.kinds.len(), 3);
    }
    assert!(text(&output).contains("good/s"), "{}", text(&output));
    let report = fs::read_to_string(bench.path("out/report.md")).unwrap();
    assert!(report.contains("| slow | ") && report.contains("- hello on 7 connections"), "{report}");
    bench.assert_clean();
}

#[test]
fn cases_over_tls_and_through_a_proxy_are_measured_with_every_protocol() {
    let systems: Vec<String> = systems_here(&["nginx-fpm", "apache", "howdah-classic"]);
    if !has_generator() || systems.is_empty() {
        skip!("wrk", "or none of the systems is here: {systems:?}");
    }
    let bench = Bench::new();
    let (systems, out) = (systems.join(","), bench.out());
    let arguments = [
        "run",
        "--suite",
        "tls",
        "--systems",
        &systems,
        "--rounds",
        "1",
        "--duration",
        "1",
        "--warmup",
        "0",
        "--out",
        &out,
    ];
    let output = bench.command(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let results = bench.results();
    let mut measured = 0;
    for run in &results.runs {
        match &run.outcome {
            Outcome::Measured(sample) => {
                measured += 1;
                assert!(sample.server_us() > 0.5 && sample.cpu.generator > 0.0, "{run:?}");
                assert_eq!(sample.errors.total(), 0, "{run:?}");
            }
            // Howdah serves all of them.
            Outcome::Skipped { reason } => {
                let is_unsupported = reason.contains("does not") || reason.contains("cannot");
                assert!(!run.system.starts_with("howdah") && is_unsupported, "{run:?}");
            }
            Outcome::Failed { .. } => panic!("{run:?}"),
        }
    }
    assert!(measured >= results.cases.len(), "{}", text(&output));
    let sample = results.runs.iter().find_map(|run| match &run.outcome {
        Outcome::Measured(sample) if run.case == "proxy" => Some(sample),
        _ => None,
    });
    assert!(sample.is_some_and(|sample| sample.cpu.services.contains_key("upstream")), "{sample:?}");
    let report = fs::read_to_string(bench.path("out/report.md")).unwrap();
    assert!(report.contains("HTTP/1.1 over TLS, a resumed handshake for each request"), "{report}");
    bench.assert_clean();
}

#[test]
fn a_load_from_a_file_is_sent_to_a_server_that_already_runs() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut request = [0; 1024];
                while stream.read(&mut request).is_ok_and(|count| count > 0) {
                    if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                        return;
                    }
                }
            });
        }
    });
    let file = bench.path("mix.toml");
    let group =
        |kind: &str, rest: &str| format!("[[clients]]\nkind = {kind:?}\npath = \"/\"\nconnections = 2\n{rest}\n");
    fs::write(&file, group("loop", "body = \"ok\"") + &group("odd", "rate = 50\nbody = \"no\"")).unwrap();
    let output =
        bench.run(&["load", "--mix", &file.display().to_string(), &url, "--duration", "0.5", "--settle", "0.1"]);
    assert!(output.status.success(), "{}", text(&output));
    let printed = text(&output);
    assert!(
        printed.contains("  loop ") && printed.contains("p50/90/99") && printed.contains("generator: "),
        "{printed}"
    );
    assert!(printed.contains("WRONG") && printed.contains("responses to odd had another body"), "{printed}");
    let output = bench.run(&["load", "--mix", "mix-slep-1", &url]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("did you mean \"mix-sleep-1\"?"), "{}", text(&output));
}

/// If a Chromium is installed, it must show the page without errors.
fn open_in_browser(page: &Path, cells: usize) {
    let Some(browser) =
        ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(howdah_lab::systems::program)
    else {
        skip!("chromium", "the page was not opened");
    };
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(dom.matches("<rect ").count() >= 2 * cells, "{} bars", dom.matches("<rect ").count());
    assert!(dom.contains("class=\"line "), "no latency chart");
    let complaints: String =
        String::from_utf8_lossy(&output.stderr).lines().filter(|line| line.contains("CONSOLE")).collect();
    assert_eq!(complaints, "");
}
