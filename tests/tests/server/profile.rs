//! `howdah profile`: samples of where a pool's PHP code spends its time.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, Site, php, scenario, script_scenario};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::collections::BTreeMap;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

const SPENDS: &str = php!("profile/spends.php");
const WAITS: &str = php!("profile/waits.php");

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Stacks, outermost function first, with the number of samples of each.
fn profile(site: &Site, seconds: u32) -> BTreeMap<String, u64> {
    let seconds = seconds.to_string();
    let arguments = ["profile", "--seconds", &seconds, "--format", "folded", "-o", "-"];
    let output = site.howdah().command(&arguments);
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| line.rsplit_once(' ').unwrap());
    lines.map(|(stack, times)| (stack.to_owned(), times.parse().unwrap())).collect()
}

fn with(stacks: &BTreeMap<String, u64>, function: &str) -> u64 {
    let has = |stack: &str| stack.split(';').any(|name| name == function);
    stacks.iter().filter(|(stack, _)| has(stack)).map(|(_, times)| times).sum()
}

script_scenario!(
    a_profile_shows_functions_that_compute,
    howdah_only = "the reference has no profiler",
    |s| s.workers(2).php("spends.php", SPENDS),
    |site| {
        let stop = site.file("stop");
        let stacks = std::thread::scope(|scope| {
            let request = scope.spawn(|| site.get_ok("/spends.php"));
            // Before the request has begun there is nothing to sample.
            let seen = (0..20).map(|_| profile(site, 2)).find(|stacks| with(stacks, "profile_spends") > 0);
            std::fs::write(&stop, "now").unwrap();
            assert_eq!(request.join().unwrap(), "spent");
            seen.expect("nothing was seen")
        });
        let (much, little) = (with(&stacks, "profile_much"), with(&stacks, "profile_little"));
        // The expected ratio is eight to one.
        assert!(much > little, "{much} {little} {stacks:#?}");
        let inner = stacks.keys().find(|stack| stack.contains("profile_spends;profile_much;profile_computes"));
        assert!(inner.is_some(), "{stacks:#?}");
    }
);

script_scenario!(
    a_profile_shows_functions_that_wait,
    howdah_only = "the reference has no profiler",
    |s| s.workers(2).php("waits.php", WAITS).php("fast.php", "echo 'fast';"),
    |site| {
        let gate = site.gate("profile");
        std::thread::scope(|scope| {
            let request = scope.spawn(|| site.get_ok("/waits.php"));
            let held = gate.wait();
            let stacks = profile(site, 1);
            assert_eq!(site.get_ok("/fast.php"), "fast");
            held.release();
            assert_eq!(request.join().unwrap(), "waited");
            assert!(with(&stacks, "profile_waits") > 0, "{stacks:#?}");
        });
    }
);

scenario!(
    killing_workers_during_a_profile_is_harmless,
    howdah_only = "the reference has no profiler",
    |s| s.workers(2).php("fast.php", "echo 'fast';").allow_log("killed by a signal").setting("replay", "2"),
    |site| {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (site, over) = (&*site, &over);
            let kills = scope.spawn(move || {
                let mut killed = 0;
                while !over.load(Ordering::Relaxed) {
                    let admin = site.howdah().admin();
                    let status = Conn::open(&admin).exchange(&Request::get("/status").close()).json();
                    let workers = status["pools"][0]["workers"].as_array().unwrap().clone();
                    let serving = workers.iter().find(|worker| worker["phase"] == "serving");
                    if let Some(pid) = serving.and_then(|worker| Pid::from_raw(worker["pid"].as_i64()? as i32)) {
                        killed += usize::from(kill_process(pid, Signal::KILL).is_ok());
                        // It must be gone before the next check.
                        assert!(eventually(PATIENCE, || test_kill_process(pid).is_err()));
                    }
                    assert_eq!(site.get_ok("/fast.php"), "fast");
                }
                killed
            });
            let _ = profile(site, 2);
            over.store(true, Ordering::Relaxed);
            assert!(kills.join().unwrap() > 0);
        });
        assert_eq!(site.get_ok("/fast.php"), "fast");
    }
);

scenario!(
    a_profile_is_written_in_the_format_that_its_file_is_named_after,
    howdah_only = "the reference has no profiler",
    |s| s.workers(1).php("waits.php", WAITS),
    |site| {
        let gate = site.gate("profile");
        std::thread::scope(|scope| {
            let request = scope.spawn(|| site.get_ok("/waits.php"));
            let held = gate.wait();
            let read = |name: &str| {
                let path = site.place().run.join(name);
                let output = site.howdah().command(&["profile", "--seconds", "1", "-o", &path.display().to_string()]);
                assert!(output.status.success(), "{}", said(&output));
                assert!(said(&output).contains("samples of pool default in 1 s at 99 Hz"), "{}", said(&output));
                std::fs::read(path).unwrap()
            };
            let svg = String::from_utf8(read("p.svg")).unwrap();
            assert!(svg.starts_with("<?xml") && svg.contains("data-n=\"profile_waits\""), "{svg}");
            let folded = String::from_utf8(read("p.txt")).unwrap();
            assert!(folded.lines().any(|line| line.contains("profile_waits")), "{folded}");
            held.release();
            assert_eq!(request.join().unwrap(), "waited");
        });
    }
);

scenario!(
    an_unknown_pool_is_a_clear_error,
    howdah_only = "the reference has no profiler",
    |s| s.workers(1).php("fast.php", "echo 'fast';"),
    |site| {
        let file = site.place().run.join("p.svg").display().to_string();
        let output = site.howdah().command(&["profile", "--pool", "shop", "--seconds", "1", "-o", &file]);
        let said = said(&output);
        assert!(!output.status.success() && said.contains("unknown pool shop; configured pools: default"), "{said}");
        assert!(!std::path::Path::new(&file).exists());
        for wrong in [["--seconds", "0"], ["--rate", "5000"], ["--format", "png"]] {
            let output = site.howdah().command(&["profile", wrong[0], wrong[1], "-o", &file]);
            assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        }
        assert_eq!(site.get_ok("/fast.php"), "fast");
    }
);
