//! All waiting data has a budget. Clients that do not read, that send slowly, or that come in crowds must not use more
//! of the server than that; other clients are served meanwhile, and nothing remains afterwards.

use howdah_tests::h2::{ask_without_window, give_window};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, Site, repetitions, scenario, script_scenario, time_limit};
use std::os::linux::fs::MetadataExt;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Number of concurrent clients, limited by the available descriptors.
fn crowd(usual: u64) -> usize {
    let wanted = usize::try_from(repetitions("HOWDAH_SLOW_CLIENTS", usual, 20)).unwrap_or(usize::MAX);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    wanted.min(usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(200))
}

fn status(site: &Site) -> serde_json::Value {
    Conn::open(&site.howdah().admin()).exchange(&Request::get("/status").close()).json()
}

/// For each budget: used, available, number of refusals.
fn budgets(site: &Site) -> [(u64, u64, u64); 2] {
    let status = status(site);
    ["memory", "spool"].map(|name| {
        let all = status["budgets"].as_array().unwrap();
        let budget = all.iter().find(|budget| budget["name"] == name).unwrap();
        let number = |key: &str| budget[key].as_u64().unwrap();
        (number("used"), number("limit"), number("refused"))
    })
}

fn none_is_used(site: &Site) {
    let mut last = budgets(site);
    let none = eventually(PATIENCE, || {
        last = budgets(site);
        last.iter().all(|budget| budget.0 == 0)
    });
    assert!(none, "still in use: {last:?}");
}

/// The server's memory in bytes: current, or its peak.
fn memory(site: &Site, which: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", site.howdah().pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(which)).unwrap();
    line.trim_matches([':', '\t', ' ']).trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Disk space of the server's temporary files.
fn disk(site: &Site) -> u64 {
    let fds = std::fs::read_dir(format!("/proc/{}/fd", site.howdah().pid())).unwrap();
    let temporary = fds.flatten().filter(|fd| {
        let name = std::fs::read_link(fd.path()).unwrap_or_default();
        name.starts_with(&site.place().tmp) && name.to_string_lossy().ends_with("(deleted)")
    });
    temporary.filter_map(|fd| std::fs::metadata(fd.path()).ok()).map(|found| found.st_blocks() * 512).sum()
}

/// Retries for a limited time until a request is not refused for lack of room.
fn served_in_the_end(site: &Site) {
    let served = eventually(PATIENCE, || {
        let answer = site.get("/fast.php");
        if answer.status == 503 {
            assert_eq!(answer.header("retry-after"), Some("1"));
            return false;
        }
        assert_eq!(answer.expect(200).text(), "fast");
        true
    });
    assert!(served, "other clients are not served");
}

/// Runs `crowd` and checks its cost: at most `each` for every client in addition to the budget.
fn bounded<C>(site: &Site, each: u64, crowd: impl FnOnce() -> Vec<C>) {
    let before = memory(site, "VmRSS");
    let all = crowd();
    served_in_the_end(site);
    let [memory_budget, spool] = budgets(site);
    assert!(memory_budget.0 <= memory_budget.1 && spool.0 <= spool.1, "{memory_budget:?} {spool:?}");
    served_in_the_end(site);
    assert!(disk(site) <= spool.1 + MIB, "{} bytes of temporary files", disk(site));
    // An allocator keeps some of the freed memory.
    let allowed = before + memory_budget.1 + memory_budget.1 / 2 + 24 * MIB + all.len() as u64 * each;
    let most = memory(site, "VmHWM");
    assert!(most <= allowed, "peak memory of {most} bytes, more than {allowed}; {before} before");
    drop(all);
    none_is_used(site);
}

script_scenario!(
    a_response_that_the_disk_does_not_take_arrives_whole,
    howdah_only = "under nginx the response ends early",
    not_async = "an async worker cannot wait for one client, so the response is cut off",
    |s| s.workers(1).php("long.php", "for ($i = 0; $i < 300; $i++) { echo str_repeat('x', 100000); }"),
    |site| {
        let (tmp, gone) = (site.place().tmp.clone(), site.place().tmp.with_extension("gone"));
        std::fs::rename(&tmp, &gone).unwrap();
        let mut conn = Conn::open(site.target());
        conn.send("GET /long.php HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        // Meanwhile the server has taken what it keeps in memory.
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(conn.response("GET").expect(200).body.len(), 30_000_000);
        std::fs::rename(&gone, &tmp).unwrap();
        none_is_used(site);
    },
);

script_scenario!(
    streams_without_a_window_take_their_budget_and_no_more,
    howdah_only = "budgets are Howdah's",
    |s| s
        .workers(2)
        .setting("http.memory", "\"8M\"")
        .setting("http.spool", "\"8M\"")
        .php("page.php", "echo str_repeat('x', 500000);")
        .php("fast.php", "echo 'fast';"),
    |site| {
        time_limit(120, "500 streams wait for their time limit");
        // Without a limit these take 250 MB.
        bounded(site, 2 * MIB, || {
            (0..5).filter_map(|_| ask_without_window(site.target(), "/page.php", 100).ok()).collect()
        });
    },
);

scenario!(
    ten_thousand_streams_without_a_window_do_not_keep_others_out,
    howdah_only = "budgets are Howdah's",
    |s| s
        .workers(2)
        .setting("http.memory", "\"16M\"")
        .setting("http.spool", "\"16M\"")
        .file("page.txt", vec![b'x'; 2_000_000])
        .php("page.php", "echo str_repeat('x', 30000);")
        .php("fast.php", "echo 'fast';"),
    |site| {
        bounded(site, 2 * MIB, || {
            let path = |n| if n % 2 == 0 { "/page.txt" } else { "/page.php" };
            (0..crowd(1000) / 100).filter_map(|n| ask_without_window(site.target(), path(n), 100).ok()).collect()
        });
    },
);

script_scenario!(
    clients_that_read_nothing_stay_within_the_budget,
    howdah_only = "budgets are Howdah's",
    |s| s
        .workers(2)
        .setting("http.memory", "\"4M\"")
        .setting("http.spool", "\"4M\"")
        .php("page.php", "echo str_repeat('x', 400000);")
        .php("fast.php", "echo 'fast';"),
    |site| {
        bounded(site, 96 * 1024, || {
            let come = (0..crowd(120)).filter_map(|_| {
                let mut conn = Conn::try_open(site.target()).ok()?;
                conn.shrink_receive_buffer();
                conn.try_send(&Request::get("/page.php").bytes()).ok()?;
                Some(conn)
            });
            come.collect()
        });
    },
);

scenario!(
    clients_with_endless_headers_stay_within_the_budget,
    howdah_only = "budgets are Howdah's",
    |s| s.workers(1).setting("http.memory", "\"4M\"").php("fast.php", "echo 'fast';"),
    |site| {
        bounded(site, 24 * 1024, || {
            let head = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(60_000));
            let come = (0..crowd(300)).filter_map(|_| {
                let mut conn = Conn::try_open(site.target()).ok()?;
                conn.try_send(head.as_bytes()).ok()?;
                Some(conn)
            });
            come.collect()
        });
    },
);

script_scenario!(
    uploads_beyond_the_budget_get_503_with_retry_after,
    howdah_only = "budgets are Howdah's",
    |s| s
        .workers(1)
        .setting("http.memory", "\"4M\"")
        .setting("http.spool", "\"8M\"")
        .php("up.php", "echo strlen(file_get_contents('php://input'));")
        .php("fast.php", "echo 'fast';"),
    |site| {
        // A body that can never fit is refused before it is sent.
        let mut large = site.conn();
        large.send("POST /up.php HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 8000000\r\n\r\n");
        let refused = large.response("POST").expect(503);
        assert!(refused.interim.is_empty(), "the server sent 100 Continue");
        assert_eq!(refused.header("retry-after"), Some("1"));
        // Announcing a length reserves nothing: these leave room for others.
        let announced: Vec<Conn> = (0..20)
            .map(|_| {
                let mut conn = site.conn();
                conn.send("POST /up.php HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n");
                conn.send(vec![b'x'; 1000]);
                conn
            })
            .collect();
        let whole = Request::post("/up.php", "text/plain", vec![b'x'; 1_000_000]);
        assert_eq!(site.send(&whole).expect(200).text(), "1000000");
        // Too many clients that do send: some are refused in the middle, and then cost nothing.
        bounded(site, 300 * 1024, || {
            let come = (0..20).map(|_| {
                let mut conn = site.conn();
                conn.send("POST /up.php HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n");
                // The server may have refused it already.
                let _ = conn.try_send(&vec![b'x'; 1_500_000]);
                conn
            });
            let all: Vec<Conn> = come.collect();
            assert!(eventually(PATIENCE, || budgets(site)[1].2 > 0), "nothing was refused");
            drop(announced);
            all
        });
        assert_eq!(site.send(&whole).expect(200).text(), "1000000");
    },
);

script_scenario!(
    answers_larger_than_all_budgets_reach_a_client_that_reads,
    howdah_only = "budgets are Howdah's",
    not_async = "an async worker cannot wait for one client, so the response is cut off",
    |s| s
        .workers(1)
        .setting("http.memory", "\"1M\"")
        .setting("http.spool", "\"1M\"")
        .php("page.php", "for ($i = 0; $i < 200; $i++) { echo str_repeat(chr(65 + $i % 26), 100000); }"),
    |site| {
        let mut conn = site.conn();
        conn.send(Request::get("/page.php").close().bytes());
        // Read only once the budget is exhausted.
        assert!(eventually(PATIENCE, || budgets(site)[1].2 > 0), "nothing was refused");
        let body = conn.response("GET").expect(200).body;
        assert_eq!(body.len(), 20_000_000);
        assert!(body.chunks(100_000).enumerate().all(|(i, part)| part.iter().all(|b| *b == b'A' + (i % 26) as u8)));
        none_is_used(site);
    },
);

scenario!(
    a_client_that_reads_a_byte_now_and_then_is_disconnected,
    howdah_only = "min_rate is Howdah's",
    |s| s.workers(1).setting("http.client_timeout", "\"2s\"").php("page.php", "echo str_repeat('x', 400000);"),
    |site| {
        let mut conn = ask_without_window(site.target(), "/page.php", 2).unwrap();
        assert!(eventually(PATIENCE, || budgets(site)[0].0 > 400_000), "no response waits");
        // Both streams stay in use: neither the connection nor one of the responses is idle.
        let let_go = eventually(PATIENCE, || {
            let gone = give_window(&mut conn, 1, 1).and_then(|()| give_window(&mut conn, 3, 1)).is_err();
            std::thread::sleep(Duration::from_millis(50));
            gone || budgets(site)[0].0 == 0
        });
        assert!(let_go, "the client keeps its connection and responses");
    },
);

scenario!(
    an_upload_that_trickles_is_cut_off_and_a_slow_one_is_not,
    howdah_only = "min_rate is Howdah's",
    |s| s
        .workers(1)
        .setting("http.client_timeout", "\"2s\"")
        .php("up.php", "echo strlen(file_get_contents('php://input'));"),
    |site| {
        let head = |length: usize| format!("POST /up.php HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
        let (mut trickles, mut slow) = (site.conn(), site.conn());
        trickles.send(head(100_000));
        slow.send(head(40 * 500));
        let mut sent = 0;
        let ended = eventually(PATIENCE, || {
            let gone = trickles.try_send(b"x").is_err() || status(site)["connections"]["open"] == 1;
            if sent < 39 {
                slow.send(vec![b'x'; 500]);
                sent += 1;
            }
            std::thread::sleep(Duration::from_millis(100));
            gone
        });
        assert!(ended, "the client may keep sending");
        slow.send(vec![b'x'; (40 - sent) * 500]);
        assert_eq!(slow.response("POST").expect(200).text(), "20000");
    },
);

scenario!(
    idle_connections_make_room_the_oldest_first,
    howdah_only = "http.max_connections is Howdah's",
    |s| s
        .workers(1)
        .setting("http.max_connections", "4")
        .file("a.txt", "a")
        .php("hold.php", "require 'gate.php'; gate('g'); echo 'held';"),
    |site| {
        let gate = site.gate("g");
        let mut busy = site.conn();
        busy.send(Request::get("/hold.php").bytes());
        let held = gate.wait();
        let mut used: Vec<Conn> = (0..4)
            .map(|_| {
                let mut conn = site.conn();
                let _ = conn.exchange(&Request::get("/a.txt")).expect(200);
                conn
            })
            .collect();
        assert!(used[0].closed_by_server(), "the oldest one makes room");
        for conn in &mut used[1..] {
            let _ = conn.exchange(&Request::get("/a.txt")).expect(200);
        }
        assert_eq!(status(site)["connections"]["displaced"], 1);
        held.release();
        assert_eq!(busy.response("GET").expect(200).text(), "held");
    },
);

scenario!(
    connections_that_are_slow_with_their_header_make_room_too,
    howdah_only = "http.max_connections is Howdah's",
    |s| s
        .workers(1)
        .setting("http.max_connections", "3")
        .time("http.header_timeout", "10m")
        .php("fast.php", "echo 'fast';"),
    |site| {
        let mut slow: Vec<Conn> = (0..3)
            .map(|_| {
                let mut conn = site.conn();
                conn.send("GET /fast.php HTTP/1.1\r\nHo");
                conn
            })
            .collect();
        assert_eq!(site.get_ok("/fast.php"), "fast");
        let answered = slow.iter_mut().any(|conn| {
            conn.try_send(b"st: h\r\n\r\n").is_err()
                || conn.try_response("GET").is_none_or(|answer| answer.status == 408)
        });
        assert!(answered, "no slow connection was closed");
    },
);

scenario!(
    a_body_that_is_too_large_is_refused_with_the_name_of_the_setting_in_the_log,
    howdah_only = "the log is Howdah's",
    |s| s.workers(1).php("up.php", "echo 'never';"),
    |site| {
        let mut conn = site.conn();
        conn.send("POST /up.php?a HTTP/1.1\r\nHost: h\r\nContent-Length: 8388609\r\n\r\n");
        assert_eq!(conn.response("POST").status, 413);
        let mut conn = site.conn();
        conn.send("POST /up.php?b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        let chunk = [b"100000\r\n".to_vec(), vec![b'x'; 1 << 20], b"\r\n".to_vec()].concat();
        // More than permitted; the server may close before it has received everything.
        let _ = (0..9).try_for_each(|_| conn.try_send(&chunk));
        for path in ["/up.php?a", "/up.php?b"] {
            let _ = site.wait_for_log(&["exceeds 8388608", path]);
        }
    },
);
