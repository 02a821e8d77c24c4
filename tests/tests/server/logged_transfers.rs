//! The access log records how much of each response was sent, and which ones were cut off, in every version of HTTP.

use super::http3::{http3, run as ask_over_http_3};
use howdah_tests::h2;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Request, Site, scenario};

const BIG: usize = 30_000_000;

fn lines(site: &Site) -> String {
    std::fs::read_to_string(site.place().top.join("access.log")).unwrap_or_default()
}

/// Waits for the line of a target: its status, the bytes, and whether it was cut off.
fn logged(site: &Site, target: &str) -> (u16, u64, bool) {
    let mut found = None;
    let is_there = eventually(PATIENCE, || {
        let lines = lines(site);
        let line = lines.lines().find(|line| line.contains(&format!(" {target} HTTP/")));
        found = line.map(|line| {
            let mut numbers = line.split("\" ").nth(1).unwrap().split(' ');
            let status = numbers.next().unwrap().parse().unwrap();
            (status, numbers.next().unwrap().parse().unwrap(), line.ends_with(" cut_off=true"))
        });
        found.is_some()
    });
    assert!(is_there, "{target}:\n{}", lines(site));
    found.unwrap()
}

fn is_cut_off(site: &Site, target: &str) {
    let (status, bytes, cut_off) = logged(site, target);
    assert!(status == 200 && bytes < BIG as u64 && cut_off, "{target}: {status} {bytes} {cut_off}");
}

scenario!(
    each_transfer_is_logged_with_the_bytes_sent_in_every_version,
    howdah_only = "Debian's nginx has no HTTP/3",
    |s| http3(s)
        .http1("it sends requests in each version itself")
        .setting("log.access", "\"@TOP@/access.log\"")
        .file("small.bin", "x".repeat(1000))
        .file("big.bin", vec![b'x'; BIG])
        .php("page.php", "echo str_repeat('y', 500);")
        .php("wait.php", "require 'gate.php'; gate($_SERVER['QUERY_STRING']);"),
    |site| {
        let etag = site.get("/small.bin?all").header("etag").unwrap().to_owned();
        let _ = site.send(&Request::new("HEAD", "/small.bin?head")).expect(200);
        let _ = site.send(&Request::get("/small.bin?part").header("Range", "bytes=0-9")).expect(206);
        let _ = site.send(&Request::get("/small.bin?same").header("If-None-Match", &etag)).expect(304);
        let _ = site.send(&Request::get("/small.bin?none").header("Range", "bytes=5000-")).expect(416);
        let _ = site.get_ok("/page.php?1");
        let paths = ["/small.bin?2", "/page.php?2"].map(str::to_owned);
        let _ = h2::get_all(site.target(), &paths, |_| {});
        assert_eq!(ask_over_http_3(site, &["get", "/page.php?3"])["status"], 200);
        for (target, status, bytes) in [
            ("/small.bin?all", 200, 1000),
            ("/small.bin?head", 200, 0),
            ("/small.bin?part", 206, 10),
            ("/small.bin?same", 304, 0),
            ("/small.bin?none", 416, 0),
            ("/page.php?1", 200, 500),
            ("/small.bin?2", 200, 1000),
            ("/page.php?2", 200, 500),
            ("/page.php?3", 200, 500),
        ] {
            assert_eq!(logged(site, target), (status, bytes, false), "{target}");
        }
        let mut conn = site.conn();
        conn.send(Request::get("/big.bin?1").bytes());
        conn.head("GET");
        conn.reset();
        is_cut_off(site, "/big.bin?1");
        let mut conn = h2::ask_without_window(site.target(), "/big.bin?2", 1).unwrap();
        h2::read_until_a_response(&mut conn);
        conn.reset();
        is_cut_off(site, "/big.bin?2");
        let _ = ask_over_http_3(site, &["leave", "/big.bin?3"]);
        is_cut_off(site, "/big.bin?3");

        let gate = site.gate("1");
        let mut conn = site.conn();
        conn.send(Request::get("/wait.php?1").bytes());
        let held = gate.wait();
        conn.reset();
        assert_eq!(logged(site, "/wait.php?1"), (499, 0, false));
        held.release();
        let gate = site.gate("2");
        let conn = h2::ask_without_window(site.target(), "/wait.php?2", 1).unwrap();
        let held = gate.wait();
        conn.reset();
        assert_eq!(logged(site, "/wait.php?2"), (499, 0, false));
        held.release();
    },
);
