//! Async mode: every kind of wait lets other requests run, and has the same result as in classic mode.

use howdah_skip::skip;
use howdah_tests::at_once::{
    CROWD, at_once, crowd_of, every_client_sees, every_client_sees_with, marker, meeting, only_own,
};
use howdah_tests::{Mode, Request, Setup, php, run};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Barrier};

/// The action of each request between two meetings takes time: all must have entered before the first one leaves.
fn all_wait_together(wait: &str) {
    // Counts the requests inside; none leaves the crowd before the last one is in. If the wait blocked the others, the
    // first one would wait for ever.
    every_client_sees(&php!("waits/all_wait_together.php", CROWD = CROWD, WAIT = wait), &format!("@{CROWD}"));
}

#[test]
fn fifty_sleeps_run_at_once() {
    let script = php!("waits/fifty_sleeps_run_at_once.php");
    run(
        Mode::Async,
        |s| crowd_of(s, 50).php("one.php", &meeting(script)),
        |site| {
            let answers = at_once(site, 50, |_, mark| Request::get(&format!("/one.php?m={mark}")));
            for (number, answer) in answers.iter().enumerate() {
                only_own(answer, number);
                assert_eq!(answer.text(), format!("{} 50", marker(number)), "all slept before one woke");
            }
        },
    );
}

#[test]
fn every_kind_of_sleep_lets_other_requests_run() {
    // A time in the past causes a warning, which is not the subject here.
    let until = "@time_sleep_until(microtime(true) + 0.3);";
    for wait in ["usleep(300000);", "sleep(1);", "time_nanosleep(0, 300000000);", until] {
        all_wait_together(wait);
    }
}

#[test]
fn invalid_sleeps_fail_as_in_classic_mode() {
    every_client_sees(php!("waits/invalid_sleeps_fail_as_in_classic_mode.php"), "VVVfalse@");
}

/// A server that responds to a connection's line only when `crowd` connections have sent theirs: no client gets its
/// response unless all of them wait concurrently. The response to `line` is `answer(line)`; then the connection closes.
fn meeting_server(crowd: usize, answer: fn(&str) -> Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let barrier = Arc::new(Barrier::new(crowd));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let barrier = barrier.clone();
            std::thread::spawn(move || serve_line(stream, &barrier, answer));
        }
    });
    port
}

fn serve_line(mut stream: TcpStream, barrier: &Barrier, answer: fn(&str) -> Vec<u8>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    // An HTTP request has more lines, and perhaps a body.
    if first.contains(" HTTP/1.") {
        let mut length = 0;
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        let mut body = vec![0; length];
        let _ = reader.read_exact(&mut body);
    }
    barrier.wait();
    let _ = stream.write_all(&answer(first.trim()));
}

fn echo_line(line: &str) -> Vec<u8> {
    format!("got {line}\n").into_bytes()
}

/// Answers `GET /MARK` with 200 and chunks of the mark.
fn http_answer(line: &str) -> Vec<u8> {
    let path = line.split(' ').nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
    let chunk = format!("{:x}\r\n{path} \r\n", path.len() + 1);
    format!(
        "HTTP/1.1 200 OK\r\nX-Path: {path}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{}0\r\n\r\n",
        chunk.repeat(3)
    )
    .into_bytes()
}

fn with_server(answer: fn(&str) -> Vec<u8>, script: &str, expected: &str) {
    let port = meeting_server(CROWD, answer);
    every_client_sees(&script.replace("PORT", &port.to_string()), expected);
}

#[test]
fn tcp_streams_wait_concurrently() {
    with_server(echo_line, php!("waits/tcp_streams_wait_concurrently.php"), "got @ end");
}

#[test]
fn fsockopen_waits_concurrently() {
    with_server(
        echo_line,
        "$s = fsockopen('localhost', PORT); fwrite($s, \"$m\\n\"); echo stream_get_contents($s);",
        "got @\n",
    );
}

#[test]
fn a_stream_timeout_is_reported() {
    let port = meeting_server(CROWD + 1, echo_line);
    every_client_sees(&php!("waits/a_stream_timeout_is_reported.php", PORT = port), "false timed out @");
}

#[test]
fn a_refused_connection_is_reported() {
    let port = howdah_tests::site::free_port();
    every_client_sees(
        &php!("waits/a_refused_connection_is_reported.php", PORT = port),
        "false 111 Connection refused @",
    );
}

#[test]
fn http_streams_wait_concurrently() {
    with_server(http_answer, php!("waits/http_streams_wait_concurrently.php"), "@ @ @ X-Path: @");
}

#[test]
fn unix_and_datagram_sockets_wait_concurrently() {
    every_client_sees(php!("waits/unix_and_datagram_sockets_wait_concurrently.php"), "@@");
}

#[test]
fn a_server_and_its_client_run_in_one_request() {
    every_client_sees(php!("waits/a_server_and_its_client_run_in_one_request.php"), "hello @");
}

#[test]
fn stream_select_waits_for_others() {
    let script = php!("waits/stream_select_waits_for_others.php");
    every_client_sees(script, "1y@ 101 00 12");
}

#[test]
fn a_stream_closed_by_another_coroutine_wakes_its_reader() {
    every_client_sees(php!("waits/a_stream_closed_by_another_coroutine_wakes_its_reader.php"), "false@");
}

#[test]
fn the_sockets_extension_waits_concurrently() {
    every_client_sees(php!("waits/the_sockets_extension_waits_concurrently.php"), "@@");
}

#[test]
fn curl_easy_waits_concurrently() {
    with_server(http_answer, php!("waits/curl_easy_waits_concurrently.php"), "@ @ @ X-Path: @200");
}

#[test]
fn curl_posts_wait_concurrently() {
    with_server(http_answer, php!("waits/curl_posts_wait_concurrently.php"), "@ @ @ ");
}

#[test]
fn curl_multi_waits_concurrently() {
    let port = meeting_server(CROWD * 2, http_answer);
    every_client_sees(&php!("waits/curl_multi_waits_concurrently.php", PORT = port), "@ @ @ @ @ @ ");
}

#[test]
fn curl_failures_and_exceptions_reach_the_script() {
    let port = meeting_server(CROWD, http_answer);
    let closed = howdah_tests::site::free_port();
    every_client_sees(
        &php!("waits/curl_failures_and_exceptions_reach_the_script.php", CLOSED = closed, PORT = port),
        "false7@",
    );
}

#[test]
fn a_curl_timeout_is_enforced() {
    let port = meeting_server(CROWD + 1, http_answer);
    every_client_sees(&php!("waits/a_curl_timeout_is_enforced.php", PORT = port), "false28@");
}

#[test]
fn names_are_resolved_while_other_requests_run() {
    every_client_sees_with(
        // Without a DNS server that responds, unknown names take seconds each.
        |s| s.env("RES_OPTIONS", "timeout:1 attempts:1"),
        php!("waits/names_are_resolved_while_other_requests_run.php"),
        "127.0.0.1 127.0.0.1 [\"127.0.0.1\"] no such name false@ [false,0,true]",
    );
}

#[test]
fn child_processes_return_output_and_status() {
    let script = php!("waits/child_processes_return_output_and_status.php");
    every_client_sees(script, "@3 sh @ sys @\nraw04 5 @0");
}

#[test]
fn child_processes_run_at_once() {
    // Each child waits for a file that the last request creates.
    let script = php!("waits/child_processes_run_at_once.php");
    every_client_sees(script, "@\n");
}

#[test]
fn large_data_passes_through_pipes_in_both_directions() {
    let script = php!("waits/large_data_passes_through_pipes_in_both_directions.php");
    every_client_sees(script, "same0@");
}

#[test]
fn child_processes_can_sleep() {
    every_client_sees("meet('a'); echo trim(shell_exec('php -n -r \"usleep(1000); echo 7;\" 2>&1')), $m;", "7@");
}

#[test]
fn file_locks_exclude_other_requests() {
    let script = php!("waits/file_locks_exclude_other_requests.php");
    every_client_sees(script, &format!("false1 {CROWD}@"));
}

#[test]
fn appends_under_a_lock_lose_nothing() {
    let script = php!("waits/appends_under_a_lock_lose_nothing.php");
    every_client_sees(script, &format!("20 {}@", CROWD * 20));
}

#[test]
fn sqlite_writers_wait_for_each_other() {
    let script = php!("waits/sqlite_writers_wait_for_each_other.php");
    every_client_sees(script, &format!("1 {CROWD}@"));
}

#[test]
fn callbacks_may_wait() {
    let script = php!("waits/callbacks_may_wait.php");
    every_client_sees(script, "123456789 a@b@ @ @2312 6,2,4");
}

#[test]
fn serialisation_may_wait() {
    let library = php!("waits/serialisation_may_wait_library.php");
    every_client_sees_with(
        |s| s.library("slow.php", library),
        php!("waits/serialisation_may_wait_script.php"),
        "@@@[[\"@\"],\"@\"]",
    );
}

#[test]
fn generators_iterators_and_fibers_may_wait() {
    let script = php!("waits/generators_iterators_and_fibers_may_wait.php");
    every_client_sees(script, "0@1@2@r 0@1@2@9r f@y z1 @");
}

#[test]
fn an_autoloader_that_waits_serves_all_requests() {
    every_client_sees_with(
        |s| s.library("Lazy.php", "class Lazy { public static function get($m) { usleep(300); return $m; } }"),
        php!("waits/an_autoloader_that_waits_serves_all_requests.php"),
        "@1",
    );
}

#[test]
fn destructors_may_wait() {
    let library = php!("waits/destructors_may_wait_library.php");
    every_client_sees_with(
        |s| s.library("ends.php", library),
        php!("waits/destructors_may_wait_script.php"),
        "~@.~@~@~@",
    );
}

#[test]
fn tls_servers_and_clients_wait_concurrently() {
    // Each request has both ends of a connection; the certificate is created once and verified by the client.
    let script = php!("waits/tls_servers_and_clients_wait_concurrently.php");
    run(
        Mode::Async,
        |s| crowd_of(s, CROWD).php("one.php", &meeting(script)),
        |site| {
            make_certificate(&site.place().top.join("marks"));
            let answers = at_once(site, CROWD, |number, mark| {
                Request::get(&format!("/one.php?m={mark}{}", if number % 3 == 2 { "&bad" } else { "" }))
            });
            for (number, answer) in answers.iter().enumerate() {
                only_own(answer, number);
                let mark = marker(number);
                let expected = if number % 3 == 2 { format!("refused {mark}") } else { format!("hello {mark} tls") };
                assert_eq!(answer.text(), expected);
            }
        },
    );
}

fn make_certificate(directory: &std::path::Path) {
    let pem = directory.join("cert.pem");
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=async.test"])
        .args(["-addext", "subjectAltName=DNS:async.test", "-keyout", "-", "-out", "-"])
        .output()
        .unwrap_or_else(|e| panic!("openssl: {e}"));
    assert!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
    std::fs::write(pem, made.stdout).unwrap();
}

/// Many coroutines in one request, concurrent with other requests.
#[test]
fn ten_thousand_coroutines_give_their_memory_back() {
    let script = php!("waits/ten_thousand_coroutines_give_their_memory_back.php");
    run(
        Mode::Async,
        |s: Setup| crowd_of(s.measures_memory(), CROWD).ini("memory_limit", "512M").php("one.php", &meeting(script)),
        |site| {
            let numbers = |text: &str| text.split(' ').skip(1).map(|n| n.parse().unwrap()).collect::<Vec<u64>>();
            let before = numbers(&site.get_ok("/one.php?m=mark1end&n=10"));
            for (number, answer) in
                at_once(site, 10, |_, mark| Request::get(&format!("/one.php?m={mark}&n=1000"))).iter().enumerate()
            {
                assert_eq!(answer.status, 200, "{}", answer.text());
                only_own(answer, number);
            }
            // Freed at the end of their requests at the latest.
            let after = numbers(&site.get_ok("/one.php?m=mark1end&n=10"));
            assert!(after[0] < before[0] + 60_000, "KiB resident: {} before, {} after", before[0], after[0]);
            assert!(after[1] < before[1] + 3_000_000, "bytes of PHP: {} before, {} after", before[1], after[1]);
        },
    );
}

/// Regression: the process had waited for a lock that another of its requests held, in a destructor.
#[test]
fn destructors_wait_for_locks_of_other_requests() {
    every_client_sees_with(
        |s| s.library("locks.php", php!("waits/destructors_wait_for_locks_of_other_requests.php")),
        "require_once __DIR__ . '/locks.php'; $l = new Locks($m); meet('a'); unset($l); echo '.';",
        "locked @.",
    );
}

/// If a call cannot yield, it could never get a lock that another request of the same process holds: the call fails.
#[test]
fn a_lock_held_by_another_request_fails_in_an_autoloader() {
    run(
        Mode::Async,
        |s| {
            crowd_of(s, CROWD)
                .php("hold.php", php!("waits/a_lock_held_by_another_request_fails_in_an_autoloader_hold.php"))
                .php("want.php", php!("waits/a_lock_held_by_another_request_fails_in_an_autoloader_want.php"))
        },
        |site| {
            let gate = site.gate("g");
            let mut holder = site.conn();
            holder.send(Request::get("/hold.php").bytes());
            let held = gate.wait();
            assert_eq!(site.get_ok("/want.php"), "falsetrue");
            held.release();
            assert_eq!(holder.response("GET").text(), "held");
            assert_eq!(site.get_ok("/want.php"), "truetrue");
        },
    );
}

/// Same behaviour and message as in stock PHP.
#[test]
fn select_refuses_high_descriptors() {
    let script = php!("waits/select_refuses_high_descriptors.php");
    // The system's limit, which the server inherits.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let all = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, all).unwrap();
    if limit.maximum.is_some_and(|n| n < 1200) {
        skip!("descriptors", "the limit is too low here");
    }
    let mut said = Vec::new();
    for mode in [Mode::Classic, Mode::Async] {
        run(mode, |s| s.workers(1).php("one.php", script), |site| said.push(site.get_ok("/one.php")));
    }
    assert_eq!(said[0], said[1]);
    assert!(said[0].contains("FD_SETSIZE"), "{}", said[0]);
}

#[test]
fn the_audit_names_the_line_of_a_blocking_call() {
    run(
        Mode::Async,
        |s| {
            crowd_of(s, CROWD)
                .ini("howdah.audit", "1")
                .php("one.php", php!("waits/the_audit_names_the_line_of_a_blocking_call.php"))
        },
        |site| {
            for name in ["first", "second"] {
                assert_eq!(site.get_ok(&format!("/one.php?name={name}")), "ok");
                // The worker's lines arrive in order, after its earlier ones.
                let _ = site.wait_for_log(&[&format!("the {name} request ends")]);
            }
            let log = site.log();
            assert_eq!(log.matches("a call may block the process").count(), 1, "{log}");
            assert!(log.contains("/one.php:3"), "{log}");
        },
    );
}

/// The script determines the duration; the test asserts that it is detected, and where.
#[test]
fn the_audit_names_the_code_that_blocked_the_process() {
    run(
        Mode::Async,
        |s| {
            crowd_of(s, CROWD)
                .ini("howdah.audit", "1")
                .php("one.php", php!("waits/the_audit_names_the_code_that_blocked_the_process.php"))
        },
        |site| {
            let lines = |what: &str, from: &str, to: &str| -> Vec<String> {
                let places = (format!("/{from} and "), format!("/{to} "));
                let log = site.log();
                let found = log.lines().filter(|l| l.contains("audit: the process") && l.contains(what));
                found.filter(|l| l.contains(&places.0) && l.contains(&places.1)).map(str::to_owned).collect()
            };
            let held = [("stood still", "one.php:2", "one.php:8"), ("computed", "one.php:8", "one.php:12")];
            // A computing request may have to wait for a page and then for the processor, which counts as blocking too.
            let seen = (0..20).any(|_| {
                assert_eq!(site.get_ok("/one.php"), "ok");
                held.iter().all(|(what, from, to)| !lines(what, from, to).is_empty())
            });
            assert!(seen, "{}", site.log());
            assert_eq!(site.get_ok("/one.php"), "ok");
            for (what, from, to) in held {
                let lines = lines(what, from, to);
                assert_eq!(lines.len(), 1, "{lines:?}");
                assert!(lines[0].ends_with("label=\"GET /one.php\""), "{lines:?}");
            }
        },
    );
}
