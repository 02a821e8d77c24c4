//! The end of the doctor as a proxy: by a terminal, by signals, and without a chance to do anything.

use super::{ENOUGH, Shadow, shop, url};
use howdah_tests::process::{self, Identity, PATIENCE, eventually, signal, wait_for_exit};
use howdah_tests::{Backend, Conn, Request, Setup, Site, Upstream};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

/// A page that Howdah finishes only once the file `go` exists, unless the query asks for a quick one.
const SLOW: &str = "while (ini_get('precision') === '5' && $_SERVER['QUERY_STRING'] !== 'quick' && !file_exists(__DIR__ . '/go')) { usleep(5000); } echo 'page';";

fn wait_until_gone(processes: &BTreeSet<Identity>) {
    let left = || processes.iter().filter(|process| process::alive(**process)).count();
    assert!(eventually(PATIENCE, || left() == 0), "{processes:?}");
}

/// The doctor in front of nginx and PHP-FPM, with one compared request, and another one running at Howdah.
fn busy(top: &Path, old: &Site) -> (Shadow, BTreeSet<Identity>) {
    let shadow = Shadow::start(top, &url(old), &["--pages", "1"]);
    let mut conn = Conn::open(&shadow.target);
    for query in ["quick", "slow"] {
        assert_eq!(conn.exchange(&Request::get(&format!("/page.php?{query}"))).text(), "page");
    }
    shadow.wait_for(ENOUGH);
    let processes = process::tree(shadow.child.id());
    assert!(processes.len() > 3, "doctor, server, zygote, workers: {processes:?}");
    (shadow, processes)
}

fn is_empty(top: &Path) -> bool {
    fs::read_dir(top).unwrap().flatten().all(|entry| entry.file_name() == "shop")
}

#[test]
fn a_terminals_interrupt_prints_a_report_without_the_differences_that_it_causes() {
    let old = Site::start(Backend::Reference, &Setup::default().php("page.php", SLOW));
    let top = shop(&format!("root = \"{}\"\n[php.ini]\nprecision = \"5\"\n", old.place().root.display()));
    for ending in [Signal::INT, Signal::HUP] {
        let (shadow, processes) = busy(top.path(), &old);
        // Both the doctor and its server get it.
        let group = Pid::from_raw(i32::try_from(shadow.child.id()).unwrap()).unwrap();
        kill_process_group(group, ending).unwrap();
        let (code, report) = shadow.report();
        assert_eq!((code, &report["pages"]), (Some(0), &1.into()), "{report:#}");
        assert_eq!(report["traffic"]["skipped"], serde_json::json!({"ended": 1}), "{report:#}");
        wait_until_gone(&processes);
        assert!(is_empty(top.path()));
    }
    old.finish();
}

#[test]
fn a_killed_doctor_leaves_no_process() {
    let old = Site::start(Backend::Reference, &Setup::default().php("page.php", SLOW));
    let top = shop(&format!("root = \"{}\"\n[php.ini]\nprecision = \"5\"\n", old.place().root.display()));
    let (mut shadow, processes) = busy(top.path(), &old);
    signal(shadow.child.id(), Signal::KILL);
    let status = wait_for_exit(&mut shadow.child, PATIENCE).unwrap();
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
    wait_until_gone(&processes);
    old.finish();
}

#[test]
fn running_requests_are_finished_at_the_end_and_a_second_interrupt_does_not_wait_for_them() {
    let old = Upstream::start(|peer| {
        while let Some(head) = peer.head() {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
            if head.starts_with("POST /endless") {
                peer.wait_for_end();
                return;
            }
            // The rest comes once the client has seen that the proxy accepts nothing more.
            assert_eq!(peer.bytes(1), b"x");
            peer.send("-last");
        }
    });
    let top = shop("root = \".\"\n");
    fs::write(top.path().join("shop/index.php"), "<?php echo 'home';").unwrap();
    for is_endless in [false, true] {
        let mut shadow = Shadow::start(top.path(), &old.url(), &[]);
        let processes = process::tree(shadow.child.id());
        let mut conn = Conn::open(&shadow.target);
        let path = if is_endless { "/endless" } else { "/" };
        conn.send(format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n"));
        assert_eq!(conn.head("POST").status, 200);
        assert_eq!(conn.read_some().unwrap(), b"first");
        signal(shadow.child.id(), Signal::INT);
        assert!(
            eventually(PATIENCE, || Conn::try_open(&shadow.target).is_err()),
            "the doctor still accepts connections"
        );
        if is_endless {
            signal(shadow.child.id(), Signal::INT);
        } else {
            conn.send("x");
            assert_eq!(conn.read_rest(), b"-last");
        }
        let status = wait_for_exit(&mut shadow.child, PATIENCE).expect("the doctor does not end");
        assert_eq!(status.code(), Some(if is_endless { 130 } else { 2 }), "nothing was compared");
        wait_until_gone(&processes);
        assert!(is_empty(top.path()));
    }
}
