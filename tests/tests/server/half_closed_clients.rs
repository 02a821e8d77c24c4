//! Clients that close their sending side after a request. One that only sends nothing more must get its response; one
//! that has left must be detected. Both look alike at first.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, Site, scenario};

/// Waits until this many requests are queued. False if that takes too long.
fn holds(site: &Site, requests: u64) -> bool {
    eventually(PATIENCE, || {
        let status = site.howdah().status();
        status["pools"][0]["queued"] == requests
    })
}

const SLOW: &str = "require 'gate.php'; mark('began'); gate($_GET['g']); echo 'answer';";

scenario!(
    a_client_that_sends_nothing_more_gets_its_answer,
    howdah_only = "nginx takes such a client for one that has left",
    |s| s.http1("a half-closed connection is HTTP/1's").unix_listener().php("slow.php", SLOW).file("f.txt", "static"),
    |site| {
        for (name, target) in [("tcp", site.target().clone()), ("unix", site.unix())] {
            for (version, request) in [
                ("1", Request::get(&format!("/slow.php?g={name}1")).bytes()),
                ("0", format!("GET /slow.php?g={name}0 HTTP/1.0\r\n\r\n").into_bytes()),
                ("p", Request::form(&format!("/slow.php?g={name}p"), "a=b").bytes()),
            ] {
                let gate = site.gate(&format!("{name}{version}"));
                let before = site.marks("began");
                let mut conn = Conn::open(&target);
                conn.send(request);
                conn.half_close();
                site.wait_for_mark("began", before + 1);
                gate.release();
                assert_eq!(conn.response("GET").expect(200).text(), "answer", "{name} {version}");
                assert!(conn.closed_by_server());
            }
            let mut conn = Conn::open(&target);
            conn.send(Request::get("/f.txt").bytes());
            conn.half_close();
            assert_eq!(conn.response("GET").expect(200).text(), "static");
            assert!(conn.closed_by_server());
        }
    },
);

scenario!(
    requests_pipelined_before_a_half_close_are_answered,
    howdah_only = "nginx takes such a client for one that has left",
    |s| s.php("n.php", "echo $_GET['n'];"),
    |site| {
        let mut conn = site.conn();
        conn.send((0..5).flat_map(|n| Request::get(&format!("/n.php?n={n}")).bytes()).collect::<Vec<_>>());
        conn.half_close();
        for n in 0..5 {
            assert_eq!(conn.response("GET").expect(200).text(), n.to_string());
        }
        assert!(conn.closed_by_server());
    },
);

scenario!(
    a_half_closed_client_is_probed_once,
    howdah_only = "nginx takes such a client for one that has left",
    |s| s.http1("a half-closed connection is HTTP/1's").php("slow.php", SLOW),
    |site| {
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send(Request::get("/slow.php?g=g").bytes());
        conn.half_close();
        assert_eq!(conn.next_head().status, 102);
        gate.release();
        let answer = conn.response("GET").expect(200);
        assert_eq!((answer.text().as_str(), answer.interim.len()), ("answer", 0));
    },
);

scenario!(
    a_client_that_leaves_the_queue_is_noticed,
    howdah_only = "PHP-FPM's queue is the kernel's, which keeps clients that have left",
    |s| s.workers(1).unix_listener().php("slow.php", SLOW).php("late.php", "require 'gate.php'; mark('late');"),
    |site| {
        let gate = site.gate("g");
        let mut first = site.conn();
        first.send(Request::get("/slow.php?g=g").bytes());
        site.wait_for_mark("began", 1);
        let second = site.gate("h");
        let mut blocked = site.conn();
        blocked.send(Request::get("/slow.php?g=h").bytes());
        let leaving: Vec<_> = [site.target().clone(), site.unix()]
            .iter()
            .map(|target| {
                let mut conn = Conn::open(target);
                conn.send(Request::get("/late.php").bytes());
                conn
            })
            .collect();
        assert!(holds(site, 3));
        drop(leaving);
        assert!(holds(site, 1));
        gate.release();
        second.release();
        assert_eq!(first.response("GET").expect(200).text(), "answer");
        assert_eq!(blocked.response("GET").expect(200).text(), "answer");
        assert_eq!(site.marks("late"), 0);
    },
);

scenario!(
    a_full_queue_gives_up_clients_that_may_have_left,
    howdah_only = "PHP-FPM's queue is the kernel's, which keeps clients that have left",
    |s| s
        .http1("a half-closed connection is HTTP/1's")
        .workers(1)
        .setting("queue", "3")
        .php("slow.php", SLOW)
        .php("quick.php", "echo 'quick';"),
    |site| {
        let (gate, second) = (site.gate("g"), site.gate("h"));
        let mut first = site.conn();
        first.send(Request::get("/slow.php?g=g").bytes());
        site.wait_for_mark("began", 1);
        let mut behind = site.conn();
        behind.send(Request::get("/slow.php?g=h").bytes());
        assert!(holds(site, 1));
        let mut silent = Vec::new();
        for requests in 2..4 {
            let mut conn = site.conn();
            conn.send(Request::get("/quick.php").bytes());
            conn.half_close();
            assert!(holds(site, requests));
            // Probed: the server has detected that the client sends nothing more.
            assert_eq!(conn.next_head().status, 102);
            silent.push(conn);
        }
        let mut present: Vec<_> = (0..2)
            .map(|_| {
                let mut conn = site.conn();
                conn.send(Request::get("/quick.php").bytes());
                conn
            })
            .collect();
        // Each replaces one of the waiting requests; for a third there are only live clients.
        for conn in &mut silent {
            assert_eq!(conn.response("GET").status, 503);
        }
        assert_eq!(site.get("/quick.php").status, 503);
        gate.release();
        second.release();
        for conn in [&mut first, &mut behind] {
            assert_eq!(conn.response("GET").expect(200).text(), "answer");
        }
        for conn in &mut present {
            assert_eq!(conn.response("GET").expect(200).text(), "quick");
        }
    },
);
