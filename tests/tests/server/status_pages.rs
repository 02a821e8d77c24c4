//! Pages through which operators and monitoring see a server: PHP-FPM's status and ping pages, and probes.

use howdah_tests::{Conn, Site, php, scenario, script_scenario};
use serde_json::Value;

const HELD: &str = php!("status_pages/held.php");

const FORMATS: [(&str, &str); 5] = [
    ("", "text/plain;charset=UTF-8"),
    ("json", "application/json"),
    ("xml", "text/xml;charset=UTF-8"),
    ("html", "text/html;charset=UTF-8"),
    ("openmetrics", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
];

/// The fields of the JSON page in their order, with the type of each.
fn fields(object: &str) -> Vec<(String, char)> {
    let kind = |rest: &str| if rest.starts_with('"') { 't' } else { 'n' };
    let keys = object.split(['{', ',']).filter_map(|part| part.trim().strip_prefix('"')?.split_once("\":"));
    keys.map(|(key, value)| (key.to_owned(), kind(value))).collect()
}

const POOL: [&str; 14] = [
    "pool",
    "process manager",
    "start time",
    "start since",
    "accepted conn",
    "listen queue",
    "max listen queue",
    "listen queue len",
    "idle processes",
    "active processes",
    "total processes",
    "max active processes",
    "max children reached",
    "slow requests",
];

const PROCESS: [&str; 13] = [
    "pid",
    "state",
    "start time",
    "start since",
    "requests",
    "request duration",
    "request method",
    "request uri",
    "content length",
    "user",
    "script",
    "last request cpu",
    "last request memory",
];

fn process_of<'a>(page: &'a Value, uri: &str) -> &'a Value {
    let processes = page["processes"].as_array().unwrap();
    processes.iter().find(|process| process["request uri"] == uri).unwrap_or_else(|| panic!("no {uri} in {page}"))
}

// The reference determines the expectations; the two differ in how they count the page's own request.
scenario!(
    a_pool_has_the_status_page_of_php_fpm,
    |s| s.workers(3).php("held.php", HELD).setting("status_path", "\"/fpm-status\""),
    |site| {
        let _ = site.get_ok("/held.php?go");
        let gate = site.gate("status_pages");
        let mut waiting = site.conn();
        waiting.send("POST /held.php?a=1&b=%3C HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc");
        let held = gate.wait();

        for (query, media_type) in FORMATS {
            for target in [format!("/fpm-status?{query}"), format!("/fpm-status?{query}&full")] {
                let page = site.get(&target).expect(200);
                assert_eq!(page.header("content-type"), Some(media_type), "{target}");
                assert_eq!(page.header("expires"), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
                assert_eq!(page.header("cache-control"), Some("no-cache, no-store, must-revalidate, max-age=0"));
            }
        }

        let page = site.get("/fpm-status?json&full").expect(200);
        let (text, page) = (page.text(), page.json());
        let (of_pool, of_processes) = text.split_once("\"processes\":[").unwrap();
        let found = fields(of_pool);
        assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), POOL, "{text}");
        assert!(found.iter().skip(2).all(|(_, kind)| *kind == 'n'), "{text}");
        let first = of_processes.split('}').next().unwrap();
        let found = fields(first);
        assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), PROCESS, "{text}");
        let kinds: String = found.iter().map(|(_, kind)| *kind).collect();
        assert_eq!(kinds, "ntnnnnttnttnn", "{text}");

        assert_eq!(page["process manager"], "static");
        let number = |name: &str| page[name].as_u64().unwrap_or_else(|| panic!("{name} in {text}"));
        assert!(number("accepted conn") >= 2, "{text}");
        assert_eq!(number("idle processes") + number("active processes"), number("total processes"));
        // PHP-FPM does not count a process that is between two requests.
        assert!((1..=3).contains(&number("total processes")), "{text}");
        assert!((1..=3).contains(&number("active processes")) && number("max active processes") >= 1, "{text}");
        assert!(number("start time") > 1_700_000_000, "{text}");
        let running = process_of(&page, "/held.php?a=1&b=%3C");
        assert_eq!(running["state"], "Running");
        assert_eq!((&running["request method"], &running["content length"]), (&"POST".into(), &3.into()));
        assert_eq!(running["script"], format!("{}/held.php", site.place().root.display()));
        assert_eq!(running["user"], "-");
        assert!(running["requests"].as_u64().unwrap() >= 1 && running["request duration"].as_u64().unwrap() > 0);

        let words = site.get_ok("/fpm-status?full");
        let names: Vec<&str> = words.lines().filter_map(|line| line.split_once(": ").map(|(name, _)| name)).collect();
        assert_eq!(names[..14], POOL);
        let process: Vec<_> =
            PROCESS.iter().map(|name| if *name == "request uri" { "request URI" } else { name }).collect();
        assert_eq!(names[14..27], process, "{words}");
        // Values are aligned in one column.
        assert!(words.lines().filter(|line| line.contains(": ")).all(|line| line.as_bytes()[22] != b' '), "{words}");
        let xml = site.get_ok("/fpm-status?xml&full");
        assert!(xml.contains("<request-uri>/held.php?a=1&amp;b=%3C</request-uri>"), "{xml}");
        assert!(
            xml.starts_with("<?xml version=\"1.0\" ?>\n<status>\n<pool>") && xml.ends_with("</processes>\n</status>")
        );
        let html = site.get_ok("/fpm-status?html&full");
        assert!(html.contains("<tr><th>process manager</th><td>static</td></tr>"), "{html}");
        assert!(html.contains("<td>/held.php?a=1&amp;b=%3C</td>"), "{html}");
        let metrics = site.get_ok("/fpm-status?openmetrics");
        assert!(metrics.contains("\nphpfpm_total_processes ") && metrics.ends_with("# EOF\n"), "{metrics}");
        assert_eq!(metrics.lines().filter(|line| line.starts_with("# TYPE")).count(), 12, "{metrics}");

        drop(held);
        assert_eq!(waiting.response("POST").status, 200);
    }
);

script_scenario!(
    the_status_page_shows_each_workers_last_request,
    howdah_only = "PHP-FPM's page does not show modes",
    |s| s.workers(1).php("held.php", HELD).setting("status_path", "\"/s\""),
    |site| {
        let _ = site.get_ok("/held.php?go=1");
        let mut page = Value::Null;
        // A worker may still be finishing its request.
        let _ = howdah_tests::process::eventually(howdah_tests::process::PATIENCE, || {
            page = site.get("/s?full&json").expect(200).json();
            page["processes"][0]["state"] == "Idle"
        });
        let last = &page["processes"][0];
        assert_eq!((&last["state"], &last["request uri"]), (&"Idle".into(), &"/held.php?go=1".into()), "{page}");
        assert!(last["last request memory"].as_u64().unwrap() > 100_000, "{page}");
        assert!(last["requests"].as_u64().unwrap() >= 1, "{page}");
        let ping = site.get("/s?ping").expect(200);
        assert_eq!((ping.text().as_str(), ping.header("content-type")), ("pong", Some("text/plain;charset=UTF-8")));
    }
);

/// The status and body of the admin address's response.
fn admin(site: &Site, target: &str) -> (u16, String) {
    let mut conn = Conn::open(&site.howdah().admin());
    conn.send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    let response = conn.response("GET");
    (response.status, response.text())
}

scenario!(the_admin_address_has_the_pages_of_every_pool, howdah_only = "PHP-FPM has no such address", |s| s, |site| {
    let (status, page) = admin(site, "/pools/default/status?json");
    assert_eq!(status, 200);
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!((&page["pool"], &page["total processes"]), (&"default".into(), &2.into()), "{page}");
    assert_eq!(admin(site, "/pools/default/status?ping"), (200, "pong".to_owned()));
    assert_eq!(admin(site, "/pools/other/status").0, 404);
});

scenario!(
    rules_say_who_sees_a_status_page,
    howdah_only = "the rules are Howdah's own",
    |s| s.setting("status_path", "\"/s\"").setting("rule", "[{ path = \"/s\", deny = true }]"),
    |site| {
        assert_eq!(site.get("/s").status, 403);
        assert_eq!(admin(site, "/pools/default/status").0, 200);
    }
);

scenario!(
    probes_are_answered_whatever_the_host_and_a_server_that_stops_is_not_ready,
    howdah_only = "nginx and PHP-FPM have no such paths",
    |s| s.php("held.php", HELD).setting("http.probes", "true"),
    |site| {
        let ask = |conn: &mut Conn, target: &str| {
            conn.send(format!("GET {target} HTTP/1.1\r\nHost: 10.0.0.7:80\r\n\r\n"));
            let response = conn.response("GET");
            (response.status, response.text())
        };
        let ok = (200, "ok\n".to_owned());
        let mut kept = Conn::open(site.target());
        for target in ["/livez", "/readyz"] {
            assert_eq!(ask(&mut kept, target), ok);
            assert_eq!(admin(site, target), ok);
        }
        let gate = site.gate("status_pages");
        let mut waiting = site.conn();
        waiting.send("GET /held.php HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let held = gate.wait();
        site.howdah().signal(rustix::process::Signal::TERM);
        // The admin address responds to the end.
        let stopping = (503, "the server is stopping\n".to_owned());
        assert!(
            howdah_tests::process::eventually(howdah_tests::process::PATIENCE, || admin(site, "/readyz") == stopping)
        );
        assert_eq!(admin(site, "/livez"), ok);
        drop(held);
        assert_eq!(waiting.response("GET").status, 200);
        assert_eq!(site.howdah_mut().wait(), Some(0));
    }
);

scenario!(
    a_pool_without_a_worker_is_not_ready,
    howdah_only = "nginx and PHP-FPM have no such paths",
    |s| s
        .setting("http.probes", "true")
        .setting("pool.broken", "{ workers = 1, binary = \"/bin/false\" }")
        .expect_log("PHP did not start"),
    |site| {
        let why = "pools without a serving worker: broken\n".to_owned();
        assert_eq!(admin(site, "/readyz"), (503, why.clone()));
        let response = site.get("/readyz");
        assert_eq!((response.status, response.text()), (503, why));
        assert_eq!(site.get("/livez").status, 200);
        assert_eq!(admin(site, "/pools/broken/status?ping").0, 503);
    }
);
