//! A reload reads all settings again: its effects, its output, and that an error changes nothing.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::site::Port;
use howdah_tests::{Conn, Request, Setup, Site, Target, php, repetitions, scenario, script_scenario};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const WHO: &str = php!("sites/who.php");

const ADDED: &str = r#"
hosts = "new.example"
root = "../../new"

[pool]
mode = "classic"
workers = 1
env = { POOL = "added" }
"#;

const RULE: &str = "\n[[rule]]\npath = \"/secret/*\"\ndeny = true\n";

/// A separate site for the harness's own requests, so that other sites may be added and removed.
fn beside_others(setup: Setup) -> Setup {
    setup
        .file("../run/conf.d/30-local.toml", "hosts = \"localhost\"\nroot = \"../../root\"\n")
        .file("../new/index.php", format!("<?php\n{WHO}"))
        .file("../new/a.txt", "of the new site")
        .file("../new/secret/a.txt", "a secret")
        .php("v.php", "echo getmypid();")
        .allow_log("no site has this host")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Reloads, which must succeed; returns the output.
fn reloaded(site: &Site) -> String {
    let output = site.howdah().command(&["reload"]);
    let said = text(&output);
    assert!(output.status.success(), "{said}{}", site.log());
    said
}

/// Reloads, which must fail; returns the reason.
fn refused(site: &Site) -> String {
    let output = site.howdah().command(&["reload"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(output.stdout.is_empty(), "{}", text(&output));
    text(&output)
}

fn of(site: &Site, host: &str, path: &str) -> (u16, String) {
    let mut conn = Conn::open(site.target());
    conn.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    let response = conn.response("GET");
    (response.status, response.text())
}

fn file(site: &Site, name: &str) -> PathBuf {
    site.place().run.join("conf.d").join(name)
}

fn status(site: &Site) -> serde_json::Value {
    Conn::open(&site.howdah().admin()).exchange(&Request::get("/status")).expect(200).json()
}

fn metrics(site: &Site) -> String {
    Conn::open(&site.howdah().admin()).exchange(&Request::get("/metrics")).expect(200).text()
}

/// The value of a metric with these labels; 0 if it is absent.
fn metric(site: &Site, name: &str) -> f64 {
    let found = metrics(site).lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    found.unwrap_or_default()
}

script_scenario!(
    sites_rules_pools_and_workers_come_and_go,
    howdah_only = "reload is Howdah's command",
    beside_others,
    |site| {
        let local = site.get_ok("/v.php");
        let before = site.howdah().processes().len();
        assert_eq!(of(site, "new.example", "/a.txt").0, 421);

        fs::write(file(site, "40-new.toml"), ADDED).unwrap();
        let said = reloaded(site);
        for line in ["site new.example: added\n", "pool new.example: added\n", "pool default: new workers\n"] {
            assert!(said.contains(line), "{line} {said}");
        }
        assert_eq!(of(site, "new.example", "/a.txt"), (200, "of the new site".to_owned()));
        let who: serde_json::Value = serde_json::from_str(&of(site, "new.example", "/").1).unwrap();
        assert_eq!(who["pool"], "added");
        assert_eq!(of(site, "new.example", "/secret/a.txt"), (200, "a secret".to_owned()));
        assert_ne!(site.get_ok("/v.php"), local, "all workers are new");
        assert!(metrics(site).contains("howdah_pool_workers{pool=\"new.example\"} 1\n"), "{}", metrics(site));

        fs::write(file(site, "40-new.toml"), ADDED.to_owned() + RULE).unwrap();
        let said = reloaded(site);
        assert!(said.contains("site new.example: rules changed\n"), "{said}");
        assert_eq!(of(site, "new.example", "/secret/a.txt").0, 403);
        assert_eq!(of(site, "new.example", "/a.txt").0, 200);

        fs::write(file(site, "40-new.toml"), ADDED.replace("workers = 1", "workers = 2")).unwrap();
        let said = reloaded(site);
        assert!(said.contains("pool new.example: workers 1 -> 2\n"), "{said}");
        assert!(said.contains("site new.example: rules changed\n"), "{said}");
        let pool = &status(site)["pools"][1];
        assert_eq!((&pool["name"], &pool["workers_max"]), (&"new.example".into(), &2.into()), "{pool}");
        assert_eq!(of(site, "new.example", "/secret/a.txt").0, 200);

        fs::remove_file(file(site, "40-new.toml")).unwrap();
        let said = reloaded(site);
        for line in ["site new.example: removed\n", "pool new.example: removed\n"] {
            assert!(said.contains(line), "{line} {said}");
        }
        assert_eq!(of(site, "new.example", "/a.txt").0, 421);
        assert_eq!(status(site)["pools"].as_array().unwrap().len(), 1);
        assert!(!metrics(site).contains("pool=\"new.example\""), "{}", metrics(site));
        let gone = eventually(PATIENCE, || site.howdah().processes().len() == before);
        assert!(gone, "{:?}", site.howdah().processes());
    },
);

script_scenario!(
    invalid_input_changes_nothing,
    howdah_only = "reload is Howdah's command",
    |s| beside_others(s).allow_log("reload failed").allow_log("broken now").allow_log("ended before it"),
    |site| {
        fs::write(file(site, "40-new.toml"), ADDED).unwrap();
        reloaded(site);
        let (known, generation) = (site.howdah().processes(), status(site)["pools"][0]["generation"].clone());

        // An unknown key, with its position.
        fs::write(file(site, "40-new.toml"), ADDED.replace("workers", "wrokers")).unwrap();
        let why = refused(site);
        assert!(why.contains("40-new.toml:7") && why.contains("wrokers"), "{why}");
        // An invalid rule.
        fs::write(file(site, "40-new.toml"), ADDED.to_owned() + "\n[[rule]]\npath = \"/x\"\ndney = true\n").unwrap();
        assert!(refused(site).contains("dney"));
        // A missing root.
        fs::write(file(site, "40-new.toml"), ADDED.replace("../../new", "../../none")).unwrap();
        assert!(refused(site).contains("none"));
        // A log that cannot be opened.
        let log = ADDED.to_owned() + "\n[log]\naccess = \"../none/access.log\"\n";
        fs::write(file(site, "40-new.toml"), log).unwrap();
        assert!(refused(site).contains("access.log"));
        // Workers that do not start, while those of other pools would.
        fs::write(site.place().top.join("new/broken.php"), "<?php throw new Exception('broken now');").unwrap();
        let broken = ADDED.replace("mode = \"classic\"", "mode = \"worker\"\nscript = \"../../new/broken.php\"");
        fs::write(file(site, "40-new.toml"), broken + RULE).unwrap();
        let why = refused(site);
        assert!(why.contains("pool new.example"), "{why}");

        assert_eq!(of(site, "new.example", "/secret/a.txt"), (200, "a secret".to_owned()));
        assert_eq!(status(site)["pools"][0]["generation"], generation);
        // Processes that were ending may have gone since.
        let still = eventually(PATIENCE, || site.howdah().processes().is_subset(&known));
        assert!(still, "{known:?} {:?}", site.howdah().processes());
        assert_eq!(site.get("/v.php").status, 200);
        fs::remove_file(file(site, "40-new.toml")).unwrap();
        reloaded(site);
    },
);

scenario!(a_dry_run_lists_changes_and_makes_none, howdah_only = "reload is Howdah's command", beside_others, |site| {
    let worker = site.get_ok("/v.php");
    let look = || site.howdah().command(&["reload", "--dry-run"]);
    fs::write(file(site, "40-new.toml"), ADDED).unwrap();
    let said = text(&look());
    assert!(said.starts_with("nothing was changed") && said.contains("pool new.example: added\n"), "{said}");
    assert_eq!(of(site, "new.example", "/a.txt").0, 421);
    fs::write(file(site, "40-new.toml"), "hosts = 7").unwrap();
    let output = look();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("40-new.toml:1"), "{}", text(&output));
    assert_eq!(site.get_ok("/v.php"), worker);
    assert_eq!(status(site)["pools"][0]["reloads"], 0);
});

scenario!(
    settings_that_need_a_restart_are_named_and_the_rest_applied,
    howdah_only = "reload is Howdah's command",
    beside_others,
    |site| {
        let toml = site.place().run.join("howdah.toml");
        let before = fs::read_to_string(&toml).unwrap();
        let more = "http.memory = \"77M\"\nhttp.probes = true\nlog.level = \"debug\"\n";
        fs::write(&toml, more.to_owned() + &before).unwrap();
        for _ in 0..2 {
            let said = reloaded(site);
            for name in ["http.memory: ", "log.level: "] {
                let line = said.lines().find(|line| line.starts_with(name)).unwrap_or_default();
                assert!(line.contains("needs a restart"), "{name} {said}");
            }
        }
        assert_ne!(status(site)["budgets"][0]["limit"], 77 << 20);
        assert_eq!(of(site, "localhost", "/livez").0, 200);
        fs::write(&toml, before).unwrap();
        assert!(reloaded(site).contains("http.probes: true -> false\n"));
        assert_eq!(of(site, "localhost", "/livez").0, 404);
    },
);

scenario!(a_hangup_rereads_all_settings, howdah_only = "signals are Howdah's own", beside_others, |site| {
    fs::write(file(site, "40-new.toml"), ADDED).unwrap();
    site.howdah().signal(Signal::HUP);
    let served = eventually(PATIENCE, || of(site, "new.example", "/a.txt").0 == 200);
    assert!(served, "{}", site.log());
    let _ = site.wait_for_log(&["INFO", "site new.example: added"]);
    fs::remove_file(file(site, "40-new.toml")).unwrap();
    site.howdah().signal(Signal::HUP);
    assert!(eventually(PATIENCE, || of(site, "new.example", "/a.txt").0 == 421), "{}", site.log());
});

scenario!(
    a_hangup_with_wrong_settings_changes_nothing,
    howdah_only = "signals are Howdah's own",
    |s| beside_others(s).expect_log("reload failed").expect_log("nonsense"),
    |site| {
        fs::write(file(site, "40-new.toml"), "nonsense = 1").unwrap();
        site.howdah().signal(Signal::HUP);
        let _ = site.wait_for_log(&["ERROR", "reload failed", "nonsense"]);
        assert_eq!(site.get("/v.php").status, 200);
    },
);

scenario!(
    a_request_ends_on_the_pool_and_the_site_that_it_began_with,
    howdah_only = "reload is Howdah's command",
    |s| beside_others(s)
        .file("../new/hold.php", "<?php require '../root/gate.php'; gate('g'); echo getenv('POOL'), ' is done';"),
    |site| {
        fs::write(file(site, "40-new.toml"), ADDED.replace("workers = 1", "workers = 2")).unwrap();
        reloaded(site);
        let gate = site.gate("g");
        let mut held_conn = site.conn();
        held_conn.send("GET /hold.php HTTP/1.1\r\nHost: new.example\r\nConnection: close\r\n\r\n");
        let held = gate.wait();
        // A request whose body is incomplete has no worker yet.
        let mut slow = site.conn();
        slow.send("POST /index.php HTTP/1.1\r\nHost: new.example\r\nContent-Length: 3\r\nConnection: close\r\n\r\na");
        let begun = eventually(PATIENCE, || metric(site, "howdah_connections_open") >= 2.0);
        assert!(begun, "{}", metrics(site));
        // The head has been read once another request on the same thread was served.
        assert_eq!(of(site, "new.example", "/a.txt").0, 200);
        fs::remove_file(file(site, "40-new.toml")).unwrap();
        reloaded(site);
        assert_eq!(of(site, "new.example", "/a.txt").0, 421);
        slow.send("=1");
        assert!(slow.response("POST").expect(200).text().contains("\"pool\":\"added\""));
        held.release();
        assert_eq!(held_conn.response("GET").expect(200).text(), "added is done");
    },
);

scenario!(counts_never_go_back, howdah_only = "reload is Howdah's command", beside_others, |site| {
    let names = [
        "howdah_requests_total{front=\"php\",status=\"2xx\"}",
        "howdah_pool_php_duration_seconds_count{pool=\"default\"}",
        "howdah_connections_accepted_total",
    ];
    let mut last = [0.0; 3];
    let mut served = 0;
    for round in 1..4 {
        for _ in 0..5 {
            let _ = site.get_ok("/v.php");
        }
        reloaded(site);
        let now = names.map(|name| metric(site, name));
        assert!(now.iter().zip(last).all(|(now, last)| *now >= last + 5.0), "{last:?} {now:?}");
        last = now;
        let pool = &status(site)["pools"][0];
        let now = pool["requests"].as_u64().unwrap();
        assert!(now >= served + 5, "{pool}");
        served = now;
        assert_eq!(pool["reloads"], round, "{pool}");
        assert_eq!(pool["generation"], round + 1, "{pool}");
    }
});

/// A server whose addresses are only in its `howdah.toml`, because a reload cannot change flags.
struct FileConfigured {
    site: Site,
    ports: [Port; 2],
}

impl FileConfigured {
    fn target(&self, number: usize) -> Target {
        Target::Tcp(([127, 0, 0, 1], self.ports[number].number).into())
    }

    fn listens(&self, number: usize) -> bool {
        Conn::try_open(&self.target(number)).is_ok()
    }
}

fn listens_on(addresses: &[String]) -> String {
    format!("listen = [{}]\n", addresses.iter().map(|a| format!("\"{a}\"")).collect::<Vec<_>>().join(", "))
}

#[test]
fn addresses_are_opened_and_closed() {
    let ports = [Port::hold(), Port::hold()];
    let address = |number: usize| format!("127.0.0.1:{}", ports[number].number);
    let setup = beside_others(Setup::default()).addresses_in_file().never_https().allow_log("reload failed");
    let site = Site::start(howdah_tests::Mode::Classic, &setup);
    let (toml, first) = (site.place().run.join("howdah.toml"), format!("127.0.0.1:{}", site.port()));
    let rest = fs::read_to_string(&toml).unwrap();
    let rest = rest.lines().filter(|line| !line.starts_with("listen = ")).collect::<Vec<_>>().join("\n");
    let write = |addresses: &[String]| fs::write(&toml, listens_on(addresses) + &rest).unwrap();
    let [second, third] = [address(0), address(1)];
    let own = FileConfigured { site, ports };
    let mut idle = own.site.conn();
    assert_eq!(idle.exchange(&Request::get("/ready.txt")).status, 200);

    write(&[first.clone(), second.clone()]);
    let said = reloaded(&own.site);
    assert!(said.contains(&format!("address {second}: opened\n")), "{said}");
    assert_eq!(Conn::open(&own.target(0)).exchange(&Request::get("/ready.txt")).status, 200);

    // An address that is in use: nothing changes, not even the pools.
    let taken = std::net::TcpListener::bind(("127.0.0.1", own.ports[1].number)).unwrap();
    write(&[first.clone(), third.clone()]);
    let why = refused(&own.site);
    assert!(why.contains(&format!("cannot listen on {third}")), "{why}");
    assert!(own.listens(0));
    drop(taken);
    // A process that another test is starting has a copy of that listener for a moment.
    let free = || std::net::TcpListener::bind(("127.0.0.1", own.ports[1].number)).is_ok();
    assert!(eventually(PATIENCE, free));

    let said = reloaded(&own.site);
    assert!(said.contains(&format!("address {second}: closed\n")), "{said}");
    assert!(eventually(PATIENCE, || !own.listens(0) && own.listens(1)));
    let socket = own.site.place().run.join("web.sock");
    write(&[first.clone(), format!("unix:{}", socket.display())]);
    reloaded(&own.site);
    assert_eq!(Conn::open(&Target::Unix(socket.clone())).exchange(&Request::get("/ready.txt")).status, 200);
    write(&[first]);
    reloaded(&own.site);
    assert!(eventually(PATIENCE, || !own.listens(1) && !socket.exists()));
    assert_eq!(idle.exchange(&Request::get("/ready.txt")).status, 200, "a connection opened before the reloads stays");
    drop(idle);
    own.site.finish();
}

/// Pause between two requests of a client under load.
const PAUSE: Duration = Duration::from_millis(1);

fn reloads() -> u64 {
    repetitions("HOWDAH_RELOADS", 12, 2)
}

script_scenario!(
    reloads_of_everything_under_load_lose_nothing,
    howdah_only = "reload is Howdah's command",
    |s| beside_others(s.workers(2)),
    |site| {
        fs::write(file(site, "40-new.toml"), ADDED).unwrap();
        reloaded(site);
        let (stop, served) = (AtomicBool::new(false), AtomicU64::new(0));
        let site = &*site;
        std::thread::scope(|scope| {
            for client in 0..4 {
                let (stop, served) = (&stop, &served);
                scope.spawn(move || {
                    let mut conn = site.conn();
                    while !stop.load(Ordering::Relaxed) {
                        if client == 0 {
                            conn = site.conn();
                        }
                        match client {
                            // A POST is never retried.
                            0 | 1 => drop(conn.exchange(&Request::form("/v.php", "a=1")).expect(200)),
                            2 => assert_eq!(conn.exchange(&Request::get("/ready.txt")).expect(200).text(), "ready\n"),
                            _ => {
                                conn.send("GET / HTTP/1.1\r\nHost: new.example\r\n\r\n");
                                assert!(conn.response("GET").expect(200).text().contains("\"pool\":\"added\""));
                            }
                        }
                        served.fetch_add(1, Ordering::Relaxed);
                        // Clients without a pause would take the processors that the new workers need to start.
                        std::thread::sleep(PAUSE);
                    }
                });
            }
            let reloads = scope.spawn(|| {
                for number in 0..reloads() {
                    let enough = served.load(Ordering::Relaxed) + 20;
                    assert!(eventually(PATIENCE, || served.load(Ordering::Relaxed) >= enough), "no client is served");
                    let changed = ADDED.replace("workers = 1", ["workers = 2", "workers = 1"][number as usize % 2]);
                    let rule = if number % 3 == 0 { RULE } else { "" };
                    fs::write(file(site, "40-new.toml"), changed + rule).unwrap();
                    reloaded(site);
                }
            });
            let outcome = reloads.join();
            stop.store(true, Ordering::Relaxed);
            outcome.unwrap();
        });
        fs::remove_file(file(site, "40-new.toml")).unwrap();
        reloaded(site);
    },
);
