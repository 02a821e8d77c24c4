//! Failures behind a web server that uses FastCGI: killed processes, web servers that are slow or disconnect, and large
//! numbers of connections.

use super::fastcgi::{asked, begin, connect, record, request, response};
use howdah_skip::skip;
use howdah_tests::fpm::{Fpm, front, howdah_fpm, is_root, open_directory, php_fpm};
use howdah_tests::fronts::Front;
use howdah_tests::nginx::Nginx;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Mode, Request, Setup, Target, php, run};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;

const POOL: &str = "[global]\npid = fpm.pid\nerror_log = error.log\ndaemonize = no\n[a]\nuser = www-data\nlisten = a.sock\n\
    listen.mode = 0666\npm = static\npm.max_children = 1\n";

/// Every web server, each in front of a directory's pool.
struct Fronts {
    nginx: Nginx,
    others: [(&'static str, Front); 2],
}

impl Fronts {
    fn start(top: &Path, root: &Path) -> Self {
        let socket = top.join("a.sock");
        let others = [("Apache", Front::apache(root, &socket)), ("HAProxy", Front::haproxy(root, &socket))];
        Self { nginx: front(top, &["a"], root), others }
    }

    /// New connections, each with its web server's name.
    fn connections(&self) -> impl Iterator<Item = (&'static str, Conn)> + '_ {
        let nginx = Conn::open(&Target::Tcp(([127, 0, 0, 1], self.nginx.port(0)).into()));
        [("nginx", nginx)].into_iter().chain(self.others.iter().map(|(name, front)| (*name, front.conn())))
    }

    /// The status of a POST through each of them.
    fn statuses(&self, target: &str) -> Vec<(&'static str, u16)> {
        let post = |mut conn: Conn| conn.exchange(&Request::form(target, "a=b").close()).status;
        self.connections().map(|(name, conn)| (name, post(conn))).collect()
    }
}

#[test]
fn web_servers_report_killed_processes_as_behind_php_fpm() {
    if !is_root() {
        return;
    }
    let Some((php_fpm, _)) = php_fpm() else { skip!("php-fpm", "the server to compare with") };
    let (mine, truth, root) = (open_directory(), open_directory(), open_directory());
    fs::create_dir(root.path().join("a")).unwrap();
    for (name, code) in [
        ("die.php", "posix_kill(getmypid(), 9); sleep(9);"),
        ("ok.php", "echo 'fine';"),
        ("pid.php", "file_put_contents($_POST['file'], getmypid()); sleep(30);"),
    ] {
        fs::write(root.path().join("a").join(name), format!("<?php {code}")).unwrap();
    }
    let start = |program: &Path, top: &Path| {
        fs::write(top.join("php-fpm.conf"), POOL).unwrap();
        let fpm = Fpm::start(program, top, &["a.sock"]);
        (fpm, Fronts::start(top, root.path()))
    };
    let [ours, theirs] = [(howdah_fpm(mine.path()), mine.path()), (php_fpm, truth.path())].map(|(program, top)| {
        let (mut fpm, fronts) = start(&program, top);
        let serves = || fronts.statuses("/a/ok.php").iter().all(|(_, status)| *status == 200);
        assert!(eventually(PATIENCE, serves), "{}", fpm.log());
        let worker = fronts.statuses("/a/die.php");
        assert!(eventually(PATIENCE, serves), "{}", fpm.log());
        // The server is killed while it has a request from each web server. PHP-FPM's workers continue theirs, so it
        // has no such request.
        let is_howdah = top == mine.path();
        let waiting: Vec<(&str, Conn)> = if is_howdah { fronts.connections().collect() } else { Vec::new() };
        let file = top.join("begun");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        let mut waiting: Vec<(&str, Conn)> = waiting
            .into_iter()
            .map(|(name, mut conn)| {
                conn.send(Request::form("/a/pid.php", &format!("file={}", file.display())).close().bytes());
                (name, conn)
            })
            .collect();
        if is_howdah {
            assert!(eventually(PATIENCE, || !fs::read_to_string(&file).unwrap().is_empty()), "{}", fpm.log());
        }
        if is_howdah {
            fpm.process.kill().unwrap();
            let _ = fpm.process.wait();
        } else {
            // Its workers would outlive it.
            fpm.end();
            return (worker, Vec::new());
        }
        let cut = waiting.iter_mut().map(|(name, conn)| (*name, conn.response("POST").status)).collect::<Vec<_>>();
        (worker, cut)
    });
    // PHP-FPM drops the connection, which Apache reports as 503. Here the request gets a status.
    assert_eq!(theirs.0, [("nginx", 502), ("Apache", 503), ("HAProxy", 502)]);
    assert_eq!(ours.0, [("nginx", 502), ("Apache", 502), ("HAProxy", 502)]);
    // A killed server drops connections as a killed PHP-FPM process does.
    assert_eq!(ours.1, theirs.0);
}

#[test]
fn a_slow_web_server_holds_no_worker_and_half_a_request_runs_nothing() {
    let setup = |s: Setup| {
        s.behind_nginx()
            .workers(1)
            .php("v.php", php!("fastcgi/variables.php"))
            .php("large.php", "echo str_repeat('x', 5_000_000);")
            .php("mark.php", "require 'gate.php'; mark('ran'); echo 'ran';")
    };
    run(Mode::Classic, setup, |site| {
        let variables = [("QUERY_STRING", "REMOTE_ADDR"), ("REMOTE_ADDR", "192.0.2.7")];
        let mut slow = connect(site);
        slow.write_all(&request(site, 1, 0, "/large.php", &[])).unwrap();
        // Its response exceeds any socket buffer, and the only worker serves the next one.
        for _ in 0..5 {
            assert!(asked(site, &request(site, 1, 0, "/v.php", &variables)).ends_with("192.0.2.7"));
        }
        assert!(response(&mut slow).0.len() > 5_000_000);
        let posted = [("REQUEST_METHOD", "POST"), ("CONTENT_LENGTH", "100"), ("CONTENT_TYPE", "text/plain")];
        let whole = request(site, 1, 0, "/mark.php", &posted);
        // Without the empty record at its end.
        let begun = &whole[..whole.len() - 8];
        let half_a_body = [begun, &record(5, 1, &[b'x'; 50])].concat();
        for bytes in [&whole[..5], &whole[..40], &whole[..whole.len() - 12], &half_a_body] {
            let mut leaving = connect(site);
            leaving.write_all(bytes).unwrap();
            leaving.shutdown(std::net::Shutdown::Write).unwrap();
            let mut said = Vec::new();
            let _ = leaving.read_to_end(&mut said);
        }
        // Aborted with the protocol's own record, within the body.
        let mut aborted = connect(site);
        aborted.write_all(&[&half_a_body, &record(2, 1, b"")[..]].concat()).unwrap();
        assert_eq!(response(&mut aborted).2, [0]);
        assert!(asked(site, &request(site, 1, 0, "/v.php", &variables)).ends_with("192.0.2.7"));
        assert_eq!(site.marks("ran"), 0);
    });
}

#[test]
fn a_thousand_kept_connections_share_two_workers() {
    let connections: usize = std::env::var("HOWDAH_TEST_CONNECTIONS").map_or(1000, |text| text.parse().unwrap());
    // By default the server closes idle connections beyond half of its descriptors.
    let all_descriptors = |s: Setup| s.setting("http.max_connections", "0");
    let setup = |s: Setup| all_descriptors(s.behind_nginx().workers(2).php("v.php", php!("fastcgi/variables.php")));
    run(Mode::Classic, setup, |site| {
        let mut kept: Vec<_> = (0..connections).map(|_| connect(site)).collect();
        for round in 0..2 {
            for (number, stream) in kept.iter_mut().enumerate() {
                let number = (round * connections + number).to_string();
                let variables = [("QUERY_STRING", "NUMBER"), ("NUMBER", &*number)];
                stream.write_all(&request(site, 1, 1, "/v.php", &variables)).unwrap();
            }
            for (number, stream) in kept.iter_mut().enumerate() {
                let (out, error, ends) = response(stream);
                assert!(out.ends_with(&format!("\r\n\r\n{}", round * connections + number)), "{out} {error}");
                assert_eq!(ends, [0]);
            }
        }
    });
}

#[test]
fn an_abandoned_request_leaves_no_state_for_the_next_one() {
    let setup = |s: Setup| {
        s.behind_nginx().workers(1).php("large.php", "echo str_repeat('x', 1_500_000);").php(
            "input.php",
            "stream_set_blocking(fopen('php://stdin', 'r'), false); echo 'read ', ini_get('precision');",
        )
    };
    run(Mode::Classic, setup, |site| {
        let settings = [("PHP_VALUE", "precision=3")];
        let mut leaving = connect(site);
        leaving.write_all(&request(site, 1, 0, "/large.php", &settings)).unwrap();
        leaving.read_exact(&mut [0; 10]).unwrap();
        leaving.shutdown(std::net::Shutdown::Both).unwrap();
        let whole = asked(site, &request(site, 1, 0, "/large.php", &settings));
        assert_eq!(whole.split_once("\r\n\r\n").unwrap().1.len(), 1_500_000);
        for _ in 0..2 {
            assert!(asked(site, &request(site, 1, 0, "/input.php", &settings)).ends_with("\r\n\r\nread 3"));
            assert!(asked(site, &request(site, 1, 0, "/input.php", &[])).ends_with("\r\n\r\nread 14"));
        }
    });
}

#[test]
fn queries_for_the_servers_parameters_are_answered_between_requests() {
    let setup = |s: Setup| s.behind_nginx().php("v.php", php!("fastcgi/variables.php"));
    run(Mode::Classic, setup, |site| {
        let mut stream = connect(site);
        let names: Vec<u8> = ["FCGI_MAX_CONNS", "FCGI_MAX_REQS", "FCGI_MPXS_CONNS", "OTHER"]
            .iter()
            .flat_map(|name| [&[name.len() as u8, 0], name.as_bytes()].concat())
            .collect();
        let question = record(9, 0, &names);
        for _ in 0..2 {
            stream.write_all(&question).unwrap();
            let mut header = [0; 8];
            stream.read_exact(&mut header).unwrap();
            assert_eq!((header[1], header[3]), (10, 0), "FCGI_GET_VALUES_RESULT");
            let mut content = vec![0; usize::from(u16::from_be_bytes([header[4], header[5]])) + usize::from(header[6])];
            stream.read_exact(&mut content).unwrap();
            let text = String::from_utf8_lossy(&content).into_owned();
            assert!(text.contains("FCGI_MAX_CONNS") && text.contains("FCGI_MPXS_CONNS0"), "{text}");
            assert!(text.contains("FCGI_MAX_REQS") && !text.contains("OTHER"), "{text}");
            let variables = [("QUERY_STRING", "NUMBER"), ("NUMBER", "7")];
            stream.write_all(&request(site, 1, 1, "/v.php", &variables)).unwrap();
            assert!(response(&mut stream).0.ends_with("\r\n\r\n7"));
        }
        // An application record of unknown type.
        stream.write_all(&record(77, 0, b"")).unwrap();
        let mut unknown = [0; 16];
        stream.read_exact(&mut unknown).unwrap();
        assert_eq!((unknown[1], unknown[8]), (11, 77), "FCGI_UNKNOWN_TYPE");
    });
}

#[test]
fn a_web_server_that_reads_no_responses_is_not_read() {
    let setup = |s: Setup| {
        s.behind_nginx()
            .workers(1)
            .php("ok.php", "echo 'fine';")
            .php("wait.php", "while (!is_file(__DIR__ . '/end')) { usleep(10_000); clearstatcache(); }")
    };
    run(Mode::Classic, setup, |site| {
        let waiting = request(site, 1, 0, "/wait.php", &[]);
        let refused: Vec<u8> = (0..2000).flat_map(|_| begin(2, 0)).collect();
        // While the body is incomplete, and while the script runs.
        for begun in [&waiting[..waiting.len() - 8], &waiting] {
            let mut stream = connect(site);
            stream.set_write_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
            stream.write_all(begun).unwrap();
            // Up to 32 MB of records, each of which gets an answer of the same size.
            assert!((0..1000).any(|_| stream.write_all(&refused).is_err()), "the server read everything");
            stream.shutdown(std::net::Shutdown::Both).unwrap();
        }
        fs::write(site.file("end"), "").unwrap();
        assert!(asked(site, &request(site, 1, 0, "/ok.php", &[])).ends_with("\r\n\r\nfine"));
    });
}

#[test]
fn a_web_server_may_end_the_body_after_the_response() {
    run(
        Mode::Classic,
        |s: Setup| s.behind_nginx().php("ok.php", "echo 'fine';"),
        |site| {
            let whole = request(site, 1, 0, "/ok.php", &[("CONTENT_LENGTH", "0")]);
            let (most, end) = whole.split_at(whole.len() - 8);
            let mut stream = connect(site);
            stream.write_all(most).unwrap();
            assert!(response(&mut stream).0.ends_with("\r\n\r\nfine"));
            assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the response has ended");
            stream.write_all(end).expect("the server still reads");
        },
    );
}
