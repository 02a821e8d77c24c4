//! Many concurrent requests in one async worker, each with its own marker: the pattern of the async scenarios.
//!
//! Scripts get their marker as `$_GET['m']` (`mark7end`) and meet in `meet('name')`, which returns only when all of
//! them have arrived, and so never on a server that runs them one after another. So the tests assert the structure of
//! the run, not its duration.

use crate::scripts::filled;
use crate::{Mode, Request, Response, Setup, Site, php};
use std::collections::BTreeSet;

/// Default number of requests that meet.
pub const CROWD: usize = 12;

/// The scripts' side. The counters are statics, which all requests of a worker share.
const MEETING: &str = php!("meeting.php");

/// A setup for one async worker in which `crowd` requests meet.
pub fn crowd_of(setup: Setup, crowd: usize) -> Setup {
    setup
        .workers(1)
        .setting("concurrency", &(crowd + 10).to_string())
        .library("meeting.php", &filled(MEETING, "CROWD", &crowd))
        .ini("display_errors", "1")
        .ini("output_buffering", "0")
        .ini("html_errors", "0")
}

/// A script that may call `meet()` and `pause()`; its marker is in `$m`.
pub fn meeting(code: &str) -> String {
    format!("require_once __DIR__ . '/meeting.php'; $m = $_GET['m']; {code}")
}

/// The marker of the request with this number.
pub fn marker(number: usize) -> String {
    format!("mark{number}end")
}

/// The numbers of all markers in the text.
fn markers_in(text: &str) -> BTreeSet<usize> {
    let pieces = text.split("mark").skip(1);
    pieces.filter_map(|piece| piece.split_once("end")?.0.parse().ok()).collect()
}

/// Fails if the headers or the body contain any marker but the response's own, or not even that.
pub fn only_own(response: &Response, number: usize) {
    let headers: Vec<String> = response.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let text = format!("{}\n\n{}", headers.join("\n"), response.text());
    assert_eq!(markers_in(&text), BTreeSet::from([number]), "markers of request {number}: {} {text}", response.status);
}

/// Sends `count` requests before reading the first response; returns the responses in the requests' order.
pub fn at_once(site: &Site, count: usize, request: impl Fn(usize, &str) -> Request) -> Vec<Response> {
    let mut open = Vec::new();
    for number in 0..count {
        let request = request(number, &marker(number)).close();
        let mut conn = site.conn();
        conn.send(request.bytes());
        open.push((request, conn));
    }
    open.into_iter().map(|(request, mut conn)| conn.response(request.method())).collect()
}

/// Requests one script concurrently from the whole crowd. Every response must have status 200 and exactly this body,
/// with its own marker for `@` and no other marker.
pub fn every_client_sees(script: &str, expected: &str) {
    every_client_sees_with(|setup| setup, script, expected);
}

/// As `every_client_sees`, with additional setup.
pub fn every_client_sees_with(setup: impl Fn(Setup) -> Setup, script: &str, expected: &str) {
    crate::run(
        Mode::Async,
        |s| setup(crowd_of(s, CROWD)).php("one.php", &meeting(script)),
        |site| {
            let answers = at_once(site, CROWD, |_, mark| Request::get(&format!("/one.php?m={mark}")));
            for (number, answer) in answers.iter().enumerate() {
                assert_eq!((answer.status, answer.text()), (200, expected.replace('@', &marker(number))));
                only_own(answer, number);
            }
        },
    );
}
