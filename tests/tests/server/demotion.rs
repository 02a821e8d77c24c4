//! A share of the responses of a pool that keeps state is compared with classic mode's in the background. Routes that
//! differ, or whose requests kill their workers, run in classic mode from then on; an operator can see and undo that.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Mode, Request, Setup, Site, php, run};
use serde_json::Value;

/// Every GET is compared while no other one is.
fn compared(setup: Setup) -> Setup {
    setup
        .more_processes(2)
        .setting("compare_one_in", "1")
        .setting("pool.plain.mode", "\"classic\"")
        .setting("pool.plain.workers", "1")
}

/// A script that is its own front controller: it loops in worker mode, and runs once in classic mode.
fn looping(setup: Setup) -> Setup {
    compared(setup).workers(1).script("index.php").php("index.php", php!("demotion/index.php"))
}

fn counted(site: &Site, result: &str) -> u64 {
    site.howdah().pool()["compared"][result].as_u64().unwrap_or(0)
}

/// Sends requests until this many more responses have been compared with this result.
fn ask_until_compared(site: &Site, path: &str, result: &str, times: u64) {
    let before = counted(site, result);
    let done = eventually(PATIENCE, || {
        assert_eq!(site.get(path).status, 200);
        counted(site, result) >= before + times
    });
    assert!(done, "{path}: {result} less than {times} times: {}", site.howdah().pool());
}

fn ask_until_demoted(site: &Site, path: &str) -> Value {
    let mut found = Value::Null;
    let done = eventually(PATIENCE, || {
        let _ = site.get(path);
        let demoted = site.howdah().pool()["demoted"].as_array().unwrap().clone();
        found = demoted.into_iter().find(|route| route["route"] == path).unwrap_or_default();
        !found.is_null()
    });
    assert!(done, "{path} is not demoted: {}\n{}", site.howdah().pool(), site.log());
    found
}

/// Mode of the request, sent such that it is never run again for a comparison.
fn mode(site: &Site) -> String {
    site.send(&Request::form("/mode", "")).text()
}

fn routes(site: &Site, arguments: &[&str]) -> (bool, String) {
    let out = site.howdah().command(&[&["routes"], arguments].concat());
    (out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr))
}

fn metrics(site: &Site) -> String {
    Conn::open(&site.howdah().admin()).exchange(&Request::get("/metrics").close()).expect(200).text()
}

#[test]
fn a_route_that_leaks_is_demoted_and_shown_and_restored() {
    run(Mode::Worker, looping, |site| {
        assert_eq!(mode(site), "worker");
        let demoted = ask_until_demoted(site, "/leak");
        let reason = demoted["reason"].as_str().unwrap();
        assert!(reason.contains("responses differed, latest: body: \"<p>visits: "), "{reason}");
        assert!(reason.ends_with("in classic mode \"<p>visits: 1</p>\""), "{reason}");
        for _ in 0..5 {
            assert_eq!(site.get_ok("/leak"), "<p>visits: 1</p>");
        }
        assert_eq!(site.get_ok("/leak?page=2"), "<p>visits: 1</p>", "the query does not count");
        assert_eq!(mode(site), "worker", "the other routes stay");
        let line = site.wait_for_log(&["WARN", "demoted", "/leak", "in the pool plain"]);
        assert!(line.contains("visits: "), "{line}");
        assert_eq!(site.log().matches("demoted:").count(), 1);

        let text = String::from_utf8(site.howdah().command(&["status"]).stdout).unwrap();
        assert!(text.contains("  compared with plain: ") && text.contains("IN CLASSIC MODE for "), "{text}");
        let (_, list) = routes(site, &[]);
        assert!(list.contains(": /leak: ") && list.contains("responses differed"), "{list}");
        let top = String::from_utf8(site.howdah().command(&["top", "--once"]).stdout).unwrap();
        let (_, classic) = top.split_once("\nIN CLASSIC MODE\n").unwrap_or_else(|| panic!("{top}"));
        assert!(classic.contains("/leak") && classic.contains("responses differed"), "{top}");
        let (_, list) = routes(site, &["--json"]);
        let list: Value = serde_json::from_str(&list).unwrap();
        assert_eq!(list[0]["demoted"][0]["route"], "/leak", "{list}");
        let page = metrics(site);
        assert!(page.contains("howdah_pool_demoted_routes{pool=\"default\"} 1\n"), "{page}");
        assert!(page.contains("howdah_pool_compared_total{pool=\"default\",result=\"differs\"} "), "{page}");

        let (done, said) = routes(site, &["--restore", "/other"]);
        assert!(!done && said.contains("no route was demoted for /other"), "{said}");
        let (done, said) = routes(site, &["--restore", "/leak"]);
        assert!(done && said.contains("one route runs in its pool again"), "{said}");
        let visits = site.get_ok("/leak");
        assert!(visits != "<p>visits: 1</p>", "{visits}");
        assert!(metrics(site).contains("howdah_pool_demoted_routes{pool=\"default\"} 0\n"));
        ask_until_demoted(site, "/leak");
        assert!(routes(site, &["--restore", "*"]).0);
        assert!(site.get_ok("/leak") != "<p>visits: 1</p>");
    });
}

#[test]
fn a_reload_gives_every_route_another_chance() {
    run(Mode::Worker, looping, |site| {
        ask_until_demoted(site, "/leak");
        let reload = site.howdah().command(&["reload"]);
        assert!(reload.status.success(), "{}", String::from_utf8_lossy(&reload.stderr));
        assert_eq!(site.howdah().pool()["demoted"].as_array().unwrap().len(), 0);
        let _ = site.get_ok("/leak");
        assert!(site.get_ok("/leak") != "<p>visits: 1</p>");
    });
}

#[test]
fn values_that_change_anyway_demote_nothing() {
    run(Mode::Worker, looping, |site| {
        ask_until_compared(site, "/fine", "same", 4);
        let pool = site.howdah().pool();
        // On a busy machine the route may also be suspected of being slower.
        let mut suspected = pool["suspected"].as_array().unwrap().iter();
        let differs = suspected.any(|route| route["differed"] != 0) || !pool["compared"]["differs"].is_null();
        assert!(pool["demoted"].as_array().unwrap().is_empty() && !differs, "{pool}");
    });
}

#[test]
fn a_token_that_is_the_same_for_all_visitors_demotes_its_route() {
    run(Mode::Worker, looping, |site| {
        let demoted = ask_until_demoted(site, "/token");
        let reason = demoted["reason"].as_str().unwrap();
        assert!(reason.contains("[a token of 32 characters] for two visitors"), "{reason}");
        assert!(site.get_ok("/token") != site.get_ok("/token"));
    });
}

#[test]
fn a_nonce_of_the_boot_demotes_its_route_in_snapshot_mode() {
    run(
        Mode::Snapshot,
        |s| {
            compared(s)
                .workers(1)
                .boot("boot.php")
                .php("boot.php", "define('AT_BOOT', bin2hex(random_bytes(16)));")
                .php("page.php", php!("demotion/page.php"))
        },
        |site| {
            assert_eq!(site.get_ok("/page.php"), site.get_ok("/page.php"));
            ask_until_demoted(site, "/page.php");
            assert!(site.get_ok("/page.php") != site.get_ok("/page.php"));
        },
    );
}

#[test]
fn a_streamed_response_is_compared_and_a_long_one_is_not() {
    run(Mode::Worker, looping, |site| {
        assert_eq!(site.get_ok("/long").len(), 700_000);
        ask_until_demoted(site, "/streamed");
        assert_eq!(site.get_ok("/streamed"), "begin there");
        assert_eq!(site.howdah().pool()["demoted"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn a_route_that_takes_longer_than_in_classic_mode_is_demoted() {
    run(Mode::Worker, looping, |site| {
        let demoted = ask_until_demoted(site, "/slow");
        let reason = demoted["reason"].as_str().unwrap();
        assert!(reason.contains("requests took longer than in classic mode, latest: "), "{reason}");
        assert!(counted(site, "slower") >= 8 && counted(site, "differs") == 0, "{}", site.howdah().pool());
        assert_eq!((site.get_ok("/slow").as_str(), mode(site).as_str()), ("the same", "worker"));
        let text = String::from_utf8(site.howdah().command(&["status"]).stdout).unwrap();
        assert!(text.contains(" took longer"), "{text}");
    });
}

#[test]
fn requests_with_possible_side_effects_run_once() {
    run(Mode::Worker, looping, |site| {
        let private: &[&dyn Fn() -> Request] = &[
            &|| Request::form("/count", "a=b"),
            &|| Request::get("/count").header("Cookie", "a=b"),
            &|| Request::get("/count").header("Authorization", "Bearer token"),
            &|| Request::new("HEAD", "/count"),
            &|| Request::new("DELETE", "/count"),
            &|| Request::get("/count").body("a body"),
            &|| Request::get("/count").header("X-Api-Key", "key"),
            &|| Request::get("/count").header("X-Requested-With", "XMLHttpRequest"),
            &|| Request::get("/count?confirm=9f86d081884c7d659a2feaa0c55ad015"),
            &|| Request::get("/count?key=aB3dE5fG7hI9"),
        ];
        for request in private {
            for _ in 0..3 {
                assert_eq!(site.send(&request()).status, 200);
            }
        }
        // Comparisons are sequential, so the earlier ones are done.
        ask_until_compared(site, "/fine", "same", 1);
        let mut asked = 3 * private.len() as u64;
        assert_eq!(site.marks("count"), asked);
        let run_again = eventually(PATIENCE, || {
            asked += 1;
            let browser =
                Request::get("/count?page=2").header("Accept-Language", "de").header("Sec-Fetch-Mode", "navigate");
            let _ = site.send(&browser).expect(200);
            site.marks("count") > asked
        });
        assert!(run_again, "other requests are compared: {}", site.howdah().pool());
    });
}

#[test]
fn classic_modes_own_failure_demotes_nothing() {
    run(Mode::Worker, looping, |site| {
        ask_until_compared(site, "/fails", "inconclusive", 4);
        assert_eq!(site.get_ok("/fails"), "worker");
        assert_eq!(counted(site, "differs"), 0, "{}", site.howdah().pool());
    });
}

#[test]
fn a_route_whose_requests_kill_their_workers_is_demoted() {
    run(
        Mode::Worker,
        |s| looping(s).expect_log("worker_died"),
        |site| {
            assert_eq!(site.get("/kill").status, 502);
            let _ = site.wait_for_log(&["WARN", "demoted", "/kill", "its requests have killed 3 workers"]);
            assert_eq!(site.get_ok("/kill"), "alive");
            assert_eq!(site.howdah().pool()["demoted"][0]["route"], "/kill");
            assert!(eventually(PATIENCE, || mode(site) == "worker"));
        },
    );
}

#[test]
fn a_pool_to_compare_with_is_checked() {
    run(
        Mode::Classic,
        |s| s,
        |site| {
            let check = |lines: &str| {
                let file = site.place().top.join("other.toml");
                std::fs::write(&file, format!("root = \"root\"\n{lines}")).unwrap();
                let out = std::process::Command::new(howdah_tests::howdah::program())
                    .args(["check", "--config"])
                    .arg(&file)
                    .env("HOWDAH_ALLOW_ROOT", "true")
                    .output()
                    .unwrap();
                String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
            };
            let booted = "mode = \"snapshot\"\nboot = \"root/ready.txt\"\ncompare_one_in = 5\n";
            let said = check(booted);
            assert!(said.contains("needs a pool in mode \"classic\""), "{said}");
            let said = check(&format!("{booted}[pool.x]\nworkers = 1\n"));
            assert!(said.contains("needs a pool in mode \"classic\""), "{said}");
            let said = check(&format!("{booted}[pool.x]\nmode = \"classic\"\n"));
            assert!(said.contains("compare_one_in = 5  ") && !said.contains("compare_one_in: "), "{said}");
        },
    );
}
