//! Many concurrent requests: each gets its own response.

use howdah_tests::{Part, Request, multipart, php, script_scenario};

script_scenario!(
    a_hundred_at_once_get_their_own_answers,
    |s| { s.workers(4).php("m.php", php!("load/a_hundred_at_once_get_their_own_answers.php")) },
    |site| {
        let site = &*site;
        std::thread::scope(|scope| {
            for thread in 0..100 {
                scope.spawn(move || {
                    let mut conn = site.conn();
                    for n in 0..5 {
                        let m = format!("{thread}.{n}");
                        let target = format!("/m.php?m={m}");
                        let request =
                            if n % 2 == 0 { Request::get(&target) } else { Request::form(&target, &format!("m={m}")) };
                        let response = conn.exchange(&request.header("Cookie", &format!("m={m}"))).expect(200);
                        let post = if n % 2 == 0 { "" } else { m.as_str() };
                        assert_eq!(response.header("x-mark"), Some(m.as_str()));
                        assert_eq!(response.header("set-cookie"), Some(format!("mark={m}").as_str()));
                        assert!(response.text() == format!("{m} {post} {m} {}", m.repeat(3000)), "{m}");
                    }
                });
            }
        });
    },
);

script_scenario!(
    uploads_at_once_do_not_mix,
    |s| s.workers(4).php("u.php", php!("load/uploads_at_once_do_not_mix.php")),
    |site| {
        let site = &*site;
        std::thread::scope(|scope| {
            for thread in 0..20usize {
                scope.spawn(move || {
                    let mark = format!("mark-{thread:04}-");
                    let size = 10 * (2 + thread * 3000);
                    let content = mark.repeat(size / 10);
                    for _ in 0..3 {
                        let parts = [
                            Part { name: "m", file: None, content: mark.as_bytes() },
                            Part { name: "f", file: Some(("f.txt", "text/plain")), content: content.as_bytes() },
                        ];
                        let text = site.send(&multipart("/u.php", &parts)).expect(200).text();
                        assert_eq!(text, format!("{mark} {} {size}", mark.repeat(2)));
                    }
                });
            }
        });
    },
);

script_scenario!(
    a_slow_script_among_many_fast_ones_does_not_keep_those_that_were_put_behind_it,
    |s| s.workers(2).php("hold.php", "require 'gate.php'; gate('g'); echo 'held';").php("fast.php", "echo 'fast';"),
    |site| {
        let gate = site.gate("g");
        let mut conns: Vec<_> = (0..6).map(|_| site.conn()).collect();
        for _ in 0..3 {
            // So many that the server considers the requests short and queues several in one lane.
            for _ in 0..100 {
                assert_eq!(conns[0].exchange(&Request::get("/fast.php")).expect(200).text(), "fast");
            }
            let mut slow = site.conn();
            slow.send(Request::get("/hold.php").bytes());
            for conn in &mut conns {
                conn.send(Request::get("/fast.php").bytes());
            }
            let held = gate.wait();
            for conn in &mut conns {
                assert_eq!(conn.response("GET").expect(200).text(), "fast");
            }
            held.release();
            assert_eq!(slow.response("GET").expect(200).text(), "held");
        }
    },
);

script_scenario!(
    a_slow_script_does_not_hold_up_fast_ones,
    |s| s.workers(2).php("hold.php", "require 'gate.php'; gate('g'); echo 'held';").php("fast.php", "echo 'fast';"),
    |site| {
        let gate = site.gate("g");
        let mut slow = site.conn();
        slow.send(Request::get("/hold.php").bytes());
        let held = gate.wait();
        let site = &*site;
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        assert_eq!(site.get_ok("/fast.php"), "fast");
                    }
                });
            }
        });
        held.release();
        assert_eq!(slow.response("GET").expect(200).text(), "held");
    },
);

script_scenario!(
    long_answers_at_once_arrive_whole,
    |s| s.workers(2).php("l.php", php!("load/long_answers_at_once_arrive_whole.php")),
    |site| {
        let site = &*site;
        std::thread::scope(|scope| {
            for thread in 0..12_usize {
                scope.spawn(move || {
                    let mut conn = site.conn();
                    for n in 0..40_usize {
                        // Some are repeated (from the cache of compressed responses), most are unique.
                        let m = if n % 4 == 0 { "the same page".replace(' ', "_") } else { format!("{thread}.{n}") };
                        let size = if n % 4 == 0 { 50_000 } else { 1000 + (thread * 7919 + n * 4001) % 119_000 };
                        let (kind, coding) =
                            if n % 3 == 0 { ("application/pdf", "identity") } else { ("text/html", "gzip") };
                        let request = Request::get(&format!("/l.php?m={m}&s={size}&t={kind}"));
                        let response = conn.exchange(&request.header("Accept-Encoding", coding)).expect(200);
                        let expected = format!("{m}-").repeat(20_000);
                        let body = response.decoded();
                        assert!(
                            body.len() == size.min(expected.len()) && expected.as_bytes().starts_with(&body),
                            "{m}"
                        );
                    }
                });
            }
        });
    },
);
