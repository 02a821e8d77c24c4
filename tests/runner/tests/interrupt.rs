//! A run that is ended by a signal leaves no process behind.

use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Variable with the file to which the test below writes the processes that it has started.
const STARTED: &str = "HOWDAH_TEST_RUNNER_STARTED";

/// Run by the runner that [`no_process_survives_a_signal`] starts: leaves a process whose parent has ended, and
/// hangs.
#[test]
fn starts_processes_and_hangs() {
    let Some(file) = std::env::var_os(STARTED) else { return };
    let script =
        "setsid sleep 1000 & echo $! > \"$0.part\"; sleep 1000 & echo $! >> \"$0.part\"; mv \"$0.part\" \"$0\"; wait";
    let mut shell = Command::new("setsid").args(["sh", "-c", script]).arg(file).spawn().expect("sh");
    let _ = shell.wait();
}

#[test]
fn no_process_survives_a_signal() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let directory = tempfile::tempdir().expect("a directory");
        let started = directory.path().join("started");
        // The runner keeps its files near the program, and must not overwrite those of the outer run.
        let program = directory.path().join("debug/deps/tests-1");
        std::fs::create_dir_all(program.parent().expect("it has one")).expect("a directory");
        std::fs::copy(std::env::current_exe().expect("this program"), &program).expect("a copy");
        let mut runner = Command::new(env!("CARGO_BIN_EXE_howdah-test-runner"))
            .arg(&program)
            .args(["--exact", "starts_processes_and_hangs"])
            .env(STARTED, &started)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the runner");
        let processes = until(|| read(&started));
        assert_eq!(processes.len(), 2);
        assert!(processes.iter().all(runs));
        kill_process(Pid::from_child(&runner), signal).expect("the runner runs");
        assert_eq!(runner.wait().expect("the runner has ended").code(), Some(130));
        assert!(!processes.iter().any(runs));
    }
}

/// True while the process exists and is not a zombie.
fn runs(pid: &Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn read(file: &Path) -> Option<Vec<Pid>> {
    let text = std::fs::read_to_string(file).ok()?;
    Some(text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect())
}

/// Waits for a value, at most 20 seconds.
fn until<T>(mut value: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "waited without success");
        std::thread::sleep(Duration::from_millis(10));
    }
}
