//! Clients that send or read slowly: they may cost memory or disk, never a PHP process.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, scenario};

scenario!(
    slow_uploaders_hold_no_worker,
    |s| s.workers(1).php("up.php", "echo strlen(file_get_contents('php://input'));").php("fast.php", "echo 'fast';"),
    |site| {
        let mut slow: Vec<Conn> = (0..30)
            .map(|_| {
                let mut conn = site.conn();
                conn.send("POST /up.php HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400000\r\n\r\n");
                conn.send(vec![b'x'; 300_000]);
                conn
            })
            .collect();
        for _ in 0..5 {
            assert_eq!(site.get_ok("/fast.php"), "fast");
        }
        for conn in &mut slow {
            conn.send(vec![b'x'; 100_000]);
        }
        for conn in &mut slow {
            assert_eq!(conn.response("POST").expect(200).text(), "400000");
        }
    },
);

scenario!(
    slow_readers_hold_no_worker,
    |s| s.workers(1).php("big.php", "echo str_repeat('0123456789', 800000);").php("fast.php", "echo 'fast';"),
    |site| {
        let mut slow: Vec<Conn> = (0..10)
            .map(|_| {
                let mut conn = site.conn();
                conn.send(Request::get("/big.php").close().bytes());
                conn
            })
            .collect();
        for _ in 0..5 {
            assert_eq!(site.get_ok("/fast.php"), "fast");
        }
        for conn in &mut slow {
            let body = conn.response("GET").expect(200).body;
            assert_eq!(body.len(), 8_000_000);
            assert!(body.chunks(10).all(|c| c == b"0123456789"));
        }
    },
);

scenario!(
    a_reader_that_leaves_frees_everything,
    |s| s.workers(1).php("big.php", "echo str_repeat('x', 20000000);").php("fast.php", "echo 'fast';"),
    |site| {
        for _ in 0..5 {
            let mut conn = site.conn();
            conn.send(Request::get("/big.php").bytes());
            assert_eq!(conn.head("GET").status, 200);
            conn.reset();
            assert_eq!(site.get_ok("/fast.php"), "fast");
        }
    },
);

scenario!(
    an_uploader_that_leaves_frees_everything,
    |s| s.workers(1).php("up.php", "require 'gate.php'; mark('ran');").php("fast.php", "echo 'fast';"),
    |site| {
        for _ in 0..5 {
            let mut conn = site.conn();
            conn.send("POST /up.php HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n");
            conn.send(vec![b'x'; 2_000_000]);
            conn.reset();
        }
        assert_eq!(site.get_ok("/fast.php"), "fast");
        assert_eq!(site.marks("ran"), 0);
    },
);

scenario!(
    a_client_that_leaves_while_it_waits_is_not_served,
    howdah_only = "PHP-FPM runs requests of clients that have gone",
    |s| s
        .workers(1)
        .php("hold.php", "require 'gate.php'; gate('g'); echo 'held';")
        .php("mark.php", "require 'gate.php'; mark('ran'); echo 'ran';"),
    |site| {
        let gate = site.gate("g");
        let mut first = site.conn();
        first.send(Request::get("/hold.php").bytes());
        let held = gate.wait();
        let mut others: Vec<Conn> = (0..10)
            .map(|_| {
                let mut conn = site.conn();
                conn.send(Request::get("/mark.php").bytes());
                conn
            })
            .collect();
        let waiting = |number: usize| site.howdah().status()["pools"][0]["queued"] == number;
        // Otherwise a worker might be available only because the server has not seen the others yet.
        assert!(eventually(PATIENCE, || waiting(10)), "not all clients wait");
        let stays = others.pop();
        for conn in others {
            conn.reset();
        }
        assert!(eventually(PATIENCE, || waiting(1)), "clients that have left still wait");
        held.release();
        assert_eq!(first.response("GET").text(), "held");
        assert_eq!(stays.map(|mut c| c.response("GET").text()).as_deref(), Some("ran"));
        assert_eq!(site.marks("ran"), 1, "requests of clients that left ran");
    },
);

/// The largest response that goes to the socket directly from the worker's ring.
const IN_ONE_PIECE: usize = 100_000;

scenario!(
    slow_readers_of_answers_in_one_piece_hold_no_worker,
    |s| s
        .workers(1)
        .php("page.php", "header('Content-Type: application/pdf'); echo str_repeat($_GET['n'], 100000);")
        .php("fast.php", "echo 'fast';"),
    |site| {
        // More than the sockets' buffers hold.
        const EACH: usize = 90;
        let mut slow: Vec<Conn> = (0..4)
            .map(|_| {
                let mut conn = site.conn();
                for n in 1..=EACH {
                    let request = Request::get(&format!("/page.php?n={}", n % 10));
                    conn.send(if n < EACH { request.bytes() } else { request.close().bytes() });
                }
                conn
            })
            .collect();
        for _ in 0..20 {
            assert_eq!(site.get_ok("/fast.php"), "fast");
        }
        for conn in &mut slow {
            for n in 1..=EACH {
                let body = conn.response("GET").expect(200).body;
                assert!(
                    body.len() == IN_ONE_PIECE && body.iter().all(|byte| *byte == b'0' + (n % 10) as u8),
                    "answer {n}"
                );
            }
            assert!(conn.closed_by_server());
        }
    },
);

scenario!(
    a_reader_that_leaves_in_an_answer_in_one_piece_frees_everything,
    |s| s
        .workers(1)
        .php("page.php", "header('Content-Type: application/pdf'); echo str_repeat('x', 100000);")
        .php("fast.php", "echo 'fast';"),
    |site| {
        for round in 0..20 {
            let mut conn = site.conn();
            for _ in 0..60 {
                conn.send(Request::get("/page.php").bytes());
            }
            if round % 2 == 0 {
                assert_eq!(conn.head("GET").status, 200);
            }
            conn.reset();
            assert_eq!(site.get_ok("/fast.php"), "fast");
        }
    },
);
