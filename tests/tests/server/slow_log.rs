//! The slow log: slow requests are recorded with their PHP location, whatever PHP is doing, and continue undisturbed.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::servers::Server;
use howdah_tests::{Conn, Mode, Request, Setup, Site, php, run, scenario, script_scenario};
use rustix::process::Signal;
use serde_json::Value;

/// Waits at a gate, in a function.
const HELD: &str = php!("slow_log/held.php");
/// Computes until it is ordered to end.
const COMPUTES: &str = php!("slow_log/computes.php");

fn noted(s: Setup, format: &str) -> Setup {
    s.setting("slow_log_after", "\"200ms\"")
        .setting("slow_log", "\"@TOP@/run/slow.log\"")
        .setting("log.format", &format!("\"{format}\""))
}

fn slow_log(site: &Site) -> String {
    std::fs::read_to_string(site.place().run.join("slow.log")).unwrap_or_default()
}

fn wait_for_entry(site: &Site, parts: &[&str]) -> String {
    let there = || parts.iter().all(|part| slow_log(site).contains(part));
    assert!(eventually(PATIENCE, there), "{parts:?} are not in the slow log:\n{}\n{}", slow_log(site), site.log());
    slow_log(site)
}

fn entries(site: &Site) -> Vec<Value> {
    slow_log(site).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The functions of an entry's stacks.
fn functions(entry: &Value) -> Vec<String> {
    let stacks = entry["stacks"].as_array().unwrap().iter();
    let frames = stacks.flat_map(|stack| stack["frames"].as_array().unwrap());
    frames.map(|frame| frame["function"].as_str().unwrap().to_owned()).collect()
}

script_scenario!(
    a_request_that_waits_is_noted_with_its_stack,
    howdah_only = "the slow log's form is Howdah's",
    |s| noted(s.workers(2).php("held.php", HELD).php("fast.php", "echo 'fast';"), "text"),
    |site| {
        let gate = site.gate("slow_log");
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| site.get_ok("/held.php?who=%22me"));
            let held = gate.wait();
            assert_eq!(site.get_ok("/fast.php"), "fast");
            let text = wait_for_entry(site, &["slow request", "slow_log_waits", "/held.php:"]);
            assert!(text.contains("pool=default") && text.contains("\"GET /held.php?who=%22me\""), "{text}");
            let inner = text.lines().find(|line| line.trim_start().starts_with("#0 "));
            assert!(inner.is_some_and(|line| line.ends_with("[internal]")), "{text}");
            assert!(!text.contains("no stack"), "{text}");
            held.release();
            assert_eq!(slow.join().unwrap(), "waited");
        });
        assert_eq!(site.get_ok("/fast.php"), "fast");
        assert_eq!(slow_log(site).matches("slow request").count(), 1, "{}", slow_log(site));
    }
);

script_scenario!(
    a_request_that_computes_is_noted_with_its_stack,
    howdah_only = "the slow log's form is Howdah's",
    |s| noted(s.workers(2).php("computes.php", COMPUTES), "json"),
    |site| {
        let stop = site.file("stop");
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| site.get_ok("/computes.php"));
            wait_for_entry(site, &["slow_log_computes"]);
            std::fs::write(&stop, "now").unwrap();
            assert_eq!(slow.join().unwrap(), "computed");
        });
        let entry = &entries(site)[0];
        let names = functions(entry);
        let outer = names.iter().position(|name| name == "slow_log_outer");
        let inner = names.iter().position(|name| name == "slow_log_computes");
        assert!(inner < outer && inner.is_some(), "{names:?}");
        assert_eq!((&entry["target"], &entry["pool"]), (&Value::from("/computes.php"), &Value::from("default")));
        assert!(entry["elapsed_ms"].as_u64() >= Some(200) && entry["memory"].as_u64() > Some(0), "{entry}");
        if site.mode() != Some(Mode::Async) {
            assert!(entry["cpu_ms"].as_u64() > Some(0), "{entry}");
        }
    }
);

#[test]
fn coroutines_of_a_request_are_distinguished() {
    let setup = |s: Setup| noted(s.workers(1).php("many.php", php!("slow_log/many.php")), "json");
    run(Mode::Async, setup, |site| {
        let gate = site.gate("slow_log");
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| site.get_ok("/many.php"));
            let held = gate.wait();
            wait_for_entry(site, &["slow_log_parent", "slow_log_child"]);
            held.release();
            assert_eq!(slow.join().unwrap(), "both");
        });
        let entry = &entries(site)[0];
        let stacks = entry["stacks"].as_array().unwrap();
        let with = |name: &str| {
            let has = |stack: &&Value| stack["frames"].as_array().unwrap().iter().any(|at| at["function"] == *name);
            stacks.iter().find(has).unwrap_or_else(|| panic!("{name} is not in {entry}"))["coroutine"].clone()
        };
        assert_ne!(with("slow_log_parent"), with("slow_log_child"), "{entry}");
    });
}

/// The statement that a request waits for in a database is logged, without its values.
fn a_query_is_logged(mode: Mode) {
    let server = Server::mariadb();
    let asks = php!("slow_log/asks.php", PORT = server.port);
    let setup = |s: Setup| noted(s.workers(2).php("asks.php", &asks), "json");
    run(mode, setup, |site| {
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| site.get_ok("/asks.php"));
            wait_for_entry(site, &["slow_log_asks", "SELECT SLEEP(?)"]);
            server.run("KILL QUERY USER tester");
            assert_eq!(slow.join().unwrap(), "asked");
        });
        let entry = &entries(site)[0];
        let queries = entry["stacks"].as_array().unwrap().iter().filter_map(|stack| stack["query"].as_str());
        assert_eq!(queries.collect::<Vec<_>>(), ["SELECT SLEEP(?), ? "], "{entry}");
        assert!(!slow_log(site).contains("secret"), "{}", slow_log(site));
    });
}

#[test]
fn a_query_that_a_request_waits_for_is_logged_classic() {
    a_query_is_logged(Mode::Classic);
}

#[test]
fn a_query_that_a_request_waits_for_is_logged_async() {
    a_query_is_logged(Mode::Async);
}

scenario!(
    a_pool_logs_only_requests_above_its_own_limit,
    howdah_only = "the reference's slow log is different",
    |s| s
        .workers(2)
        .php("held.php", HELD)
        .php("other.php", HELD)
        .setting("slow_log", "\"@TOP@/run/slow.log\"")
        .setting("pool.noted.slow_log_after", "\"100ms\"")
        .setting("rule", "[{ path = \"/held.php\", pool = \"noted\" }]"),
    |site| {
        let gate = site.gate("slow_log");
        std::thread::scope(|scope| {
            let other = scope.spawn(|| site.get_ok("/other.php"));
            let held_other = gate.wait();
            let gate = site.gate("slow_log_2");
            let slow = scope.spawn(|| site.get_ok("/held.php?gate=slow_log_2"));
            let held = gate.wait();
            wait_for_entry(site, &["GET /held.php"]);
            held.release();
            held_other.release();
            assert_eq!((slow.join().unwrap(), other.join().unwrap()), ("waited".to_owned(), "waited".to_owned()));
        });
        assert!(!slow_log(site).contains("other.php"), "{}", slow_log(site));
    }
);

scenario!(
    killing_a_worker_while_its_stack_is_read_is_harmless,
    howdah_only = "the reference's slow log is different",
    |s| noted(s.workers(2).php("held.php", HELD).php("fast.php", "echo 'fast';").setting("replay", "0"), "text")
        .allow_log("killed by a signal")
        .allow_log("worker_died"),
    |site| {
        for round in 0..5 {
            let name = format!("slow_log_{round}");
            let gate = site.gate(&name);
            std::thread::scope(|scope| {
                let slow = scope.spawn(|| site.send(&Request::get(&format!("/held.php?gate={name}"))).status);
                let held = gate.wait();
                let admin = site.howdah().admin();
                let status = Conn::open(&admin).exchange(&Request::get("/status").close()).json();
                let busy =
                    status["pools"][0]["workers"].as_array().unwrap().iter().find(|w| w["busy"] == true).unwrap();
                let pid = rustix::process::Pid::from_raw(busy["pid"].as_i64().unwrap() as i32).unwrap();
                // At, before and after the moment of the check.
                std::thread::sleep(std::time::Duration::from_millis(150 + 40 * round));
                let _ = rustix::process::kill_process(pid, Signal::KILL);
                assert_eq!(slow.join().unwrap(), 502);
                drop(held);
            });
            assert_eq!(site.get_ok("/fast.php"), "fast");
        }
    }
);

scenario!(
    the_slow_log_is_reopened_after_rotation,
    howdah_only = "the reference's slow log is different",
    |s| noted(s.workers(1).php("held.php", HELD), "text"),
    |site| {
        let slow = |name: &str| {
            let gate = site.gate(name);
            std::thread::scope(|scope| {
                let slow = scope.spawn(|| site.get_ok(&format!("/held.php?gate={name}")));
                let held = gate.wait();
                wait_for_entry(site, &[name]);
                held.release();
                assert_eq!(slow.join().unwrap(), "waited");
            });
        };
        slow("first");
        let (log, old) = (site.place().run.join("slow.log"), site.place().run.join("old.log"));
        std::fs::rename(&log, &old).unwrap();
        site.howdah().signal(Signal::USR1);
        let _ = site.wait_for_log(&["logs reopened"]);
        slow("second");
        assert!(!slow_log(site).contains("first") && std::fs::read_to_string(&old).unwrap().contains("first"));
    }
);
