//! Snapshot mode when files read by the boot change: `Howdah\boot_again()` runs the request on a worker that has booted
//! later, and the client does not notice.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::site::replace_file;
use howdah_tests::{Mode, Part, Request, Setup, Site, multipart, php, run};
use std::collections::HashSet;

/// The boot stores a file's content; each request compares it.
const BOOT: &str = php!("boot_again/boot.php");

/// Bodies as their first byte and the number of its repetitions at the start, compared with their length.
const REQUEST: &str = php!("boot_again/request.php");

fn booted(setup: Setup, boot: &str) -> Setup {
    setup.workers(4).ini("opcache.file_update_protection", "0").boot("boot.php").php("boot.php", boot)
}

fn following(setup: Setup) -> Setup {
    booted(setup, BOOT).file("said.txt", "0").php("index.php", REQUEST).php("pid.php", "echo getmypid();")
}

fn say(site: &Site, what: &str) {
    replace_file(&site.place().root.join("said.txt"), what);
}

fn no_request_sees_the_old_boot(way: &str) {
    let setup = |s: Setup| if way.is_empty() { following(s) } else { following(s.env("HOWDAH_SNAPSHOT_PAGES", way)) };
    run(Mode::Snapshot, setup, |site| {
        assert!(site.get_ok("/").starts_with("0 GET"));
        for n in 1..=5 {
            say(site, &n.to_string());
            for _ in 0..12 {
                let answer = site.get_ok("/");
                assert!(answer.starts_with(&format!("{n} GET")), "{n}: {answer}");
            }
        }
        let _ = site.wait_for_log(&["worker replaced: the boot is outdated: said.txt"]);
    });
}

#[test]
fn requests_after_a_change_never_see_the_old_boot() {
    no_request_sees_the_old_boot("");
}

#[test]
fn requests_after_a_change_never_see_the_old_boot_with_a_process_per_request() {
    no_request_sees_the_old_boot("fork");
}

#[test]
fn bodies_of_returned_requests_arrive_whole() {
    run(Mode::Snapshot, following, |site| {
        let large = "b".repeat(300_000);
        let upload = "u".repeat(200_000);
        for n in 1..=3 {
            say(site, &(3 * n).to_string());
            let answer = site.send(&Request::form("/", "a=short")).expect(200).text();
            assert_eq!(answer, format!("{} POST 7:a1 0:0 short", 3 * n));
            say(site, &(3 * n + 1).to_string());
            let answer = site.send(&Request::post("/", "text/plain", &large)).expect(200).text();
            assert_eq!(answer, format!("{} POST 300000:b300000 0:0 -", 3 * n + 1));
            say(site, &(3 * n + 2).to_string());
            let parts = [
                Part { name: "a", file: None, content: b"part" },
                Part { name: "f", file: Some(("f.txt", "text/plain")), content: upload.as_bytes() },
            ];
            let answer = site.send(&multipart("/", &parts)).expect(200).text();
            assert_eq!(answer, format!("{} POST 0:0 200000:u200000 part", 3 * n + 2));
        }
        let left = || -> Vec<_> {
            let left = std::fs::read_dir(&site.place().tmp).unwrap().flatten().map(|e| e.file_name());
            left.filter(|n| n.to_string_lossy().starts_with("php")).collect()
        };
        // The last request may end after its response.
        assert!(eventually(PATIENCE, || left().is_empty()), "uploaded files were left behind: {:?}", left());
    });
}

#[test]
fn requests_at_once_are_all_answered_while_the_boot_changes() {
    run(Mode::Snapshot, following, |site| {
        let site: &Site = site;
        std::thread::scope(|scope| {
            for client in 0..6 {
                scope.spawn(move || {
                    let mut conn = site.conn();
                    let mut last = 0;
                    for _ in 0..80 {
                        let answer = conn.exchange(&Request::form("/", "a=1")).expect(200).text();
                        let said: usize = answer.split(' ').next().unwrap().parse().unwrap();
                        assert!(said >= last, "client {client}: {said} after {last}");
                        last = said;
                    }
                });
            }
            for n in 1..=15 {
                say(site, &n.to_string());
                assert!(site.get_ok("/").starts_with(&n.to_string()));
            }
        });
    });
}

#[test]
fn a_boot_that_is_always_outdated_answers_all_the_same() {
    let setup = |s| {
        booted(s, "Howdah\\on_restore(function () { $GLOBALS['kept'] = Howdah\\boot_again(); });")
            .php("index.php", "var_export($kept); echo ' ', getmypid();")
    };
    run(Mode::Snapshot, setup, |site| {
        let mut seen = HashSet::new();
        for _ in 0..8 {
            let answer = site.get_ok("/");
            assert!(answer.starts_with("false "), "{answer}");
            assert!(seen.insert(answer.clone()), "no boot since the request before: {answer}");
        }
    });
}

#[test]
fn boot_again_does_nothing_where_it_cannot() {
    let setup = |s| {
        booted(s, "$at_boot = Howdah\\boot_again();").workers(1).php(
            "index.php",
            "echo json_encode([$at_boot, getmypid()]); flush(); echo json_encode(Howdah\\boot_again('too late'));",
        )
    };
    run(Mode::Snapshot, setup, |site| {
        let first = site.get_ok("/");
        assert!(first.starts_with("[false,") && first.ends_with("]false"), "{first}");
        assert_eq!(site.get_ok("/"), first, "the worker was replaced");
    });
    run(
        Mode::Snapshot,
        |s| s.php("index.php", "var_export(Howdah\\boot_again());"),
        |site| assert_eq!(site.get_ok("/"), "false"),
    );
}
