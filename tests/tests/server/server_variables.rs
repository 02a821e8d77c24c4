//! `$_SERVER` and related variables: compared key by key with nginx and PHP-FPM under Debian's fastcgi.conf.

use howdah_tests::compare::{differences, named};
use howdah_tests::{Mode, Part, Request, Setup, multipart, run, script_scenario};

fn dump_everywhere() -> Setup {
    Setup::default().www("dump.php").copies("dump.php", &["index.php", "dir/index.php", "a b/dump.php", "app.PHP.php"])
}

/// The same scripts as worker pools: `dump.php` for its own paths, `index.php` for all others.
fn dump_in_loops() -> Setup {
    let plain = include_str!("../../www/dump.php");
    let script = plain.replacen("<?php\n", "<?php $handle = function () {\n", 1)
        + "\n};\nwhile (frankenphp_handle_request($handle)) {}\n";
    Setup::default()
        .workers(1)
        .more_processes(4)
        .setting("pool.dump.mode", "\"worker\"")
        .setting("pool.dump.script", "\"../root/dump.php\"")
        .setting("pool.dump.workers", "1")
        .setting("pool.index.mode", "\"worker\"")
        .setting("pool.index.script", "\"../root/index.php\"")
        .setting("pool.index.workers", "1")
        .setting(
            "rule",
            r#"[{ pool = "index" }, { path = "/dump.php*", pool = "dump" }, { path = "/gate.php", pool = "default" }]"#,
        )
        .file("dump.php", &script)
        .file("index.php", &script)
}

/// Paths of separate scripts, which a worker pool does not have.
const OWN_SCRIPTS: &[&str] = &["directory index", "encoded directory", "extension twice"];

fn assert_same(requests: &[(&str, Vec<u8>)]) {
    let theirs = dump_everywhere();
    let mut found = differences(&theirs, &theirs, requests);
    let shared: Vec<_> = requests.iter().filter(|(name, _)| !OWN_SCRIPTS.contains(name)).cloned().collect();
    found.extend(differences(&dump_in_loops(), &theirs, &shared).into_iter().map(|text| format!("worker: {text}")));
    let behind = differences(&theirs.clone().behind_nginx(), &theirs, requests);
    found.extend(behind.into_iter().map(|text| format!("behind nginx: {text}")));
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

fn get(name: &'static str, target: &str) -> (&'static str, Vec<u8>) {
    named(name, &Request::get(target))
}

fn raw(name: &'static str, text: &str) -> (&'static str, Vec<u8>) {
    (name, text.replace('\n', "\r\n").into_bytes())
}

#[test]
fn paths_equal_the_reference() {
    assert_same(&[
        get("plain", "/dump.php"),
        get("path info", "/dump.php/extra/path"),
        get("path info of one slash", "/dump.php/"),
        get("path info with a script's name", "/dump.php/other.php/x"),
        get("path info encoded", "/dump.php/a%20b/%C3%A9/%2e"),
        get("directory index", "/dir/"),
        get("root index", "/"),
        get("front controller", "/no/such/thing"),
        get("front controller with query", "/no/such?x=1&y=2"),
        get("front controller encoded", "/caf%C3%A9/a%20b"),
        get("encoded directory", "/a%20b/dump.php"),
        get("dot segments", "/./x/../dump.php"),
        get("double slash", "//dump.php"),
        get("encoded letter", "/d%75mp.php"),
        get("extension twice", "/app.PHP.php"),
    ]);
}

#[test]
fn query_strings_equal_the_reference() {
    assert_same(&[
        get("simple", "/dump.php?x=1"),
        get("twice", "/dump.php?a=1&a=2&b[]=1&b[]=2&c[k]=v"),
        get("empty", "/dump.php?"),
        get("no value", "/dump.php?flag"),
        get("bad escapes", "/dump.php?x=%zz&y=%"),
        get("plus and space", "/dump.php?x=a+b%20c"),
        get("second question mark", "/dump.php?x=1?y=2"),
        get("path info and query", "/dump.php/p?x=/y/z.php"),
        get("dots in names", "/dump.php?a.b=1&c%20d=2"),
        get("long", &format!("/dump.php?x={}", "y".repeat(3000))),
    ]);
}

#[test]
fn methods_and_bodies_equal_the_reference() {
    let parts = [
        Part { name: "field", file: None, content: b"value" },
        Part { name: "file", file: Some(("a b.txt", "text/plain")), content: b"content" },
        Part { name: "empty", file: Some(("", "application/octet-stream")), content: b"" },
    ];
    assert_same(&[
        named("form", &Request::form("/dump.php?q=1", "a=1&b[]=2&b[]=3")),
        named(
            "form with charset",
            &Request::post("/dump.php", "application/x-www-form-urlencoded; charset=UTF-8", "a=%C3%A9"),
        ),
        named("json", &Request::post("/dump.php", "application/json", "{\"a\":1}")),
        named("no type", &Request::new("POST", "/dump.php").body("x=1")),
        named("empty post", &Request::new("POST", "/dump.php").body("")),
        named("multipart", &multipart("/dump.php", &parts)),
        named(
            "chunked form",
            &Request::new("POST", "/dump.php")
                .header("Content-Type", "application/x-www-form-urlencoded")
                .chunks(&[b"a=1", b"&b=2"]),
        ),
        named("put", &Request::new("PUT", "/dump.php/item/7").header("Content-Type", "text/plain").body("whole")),
        named("patch", &Request::new("PATCH", "/dump.php").header("Content-Type", "application/json").body("[]")),
        named("delete with body", &Request::new("DELETE", "/dump.php").body("why")),
        named("delete", &Request::new("DELETE", "/dump.php")),
        named("options", &Request::new("OPTIONS", "/dump.php")),
        named("get with body", &Request::get("/dump.php").body("odd")),
        named("unknown method", &Request::new("PROPFIND", "/dump.php")),
    ]);
}

#[test]
fn headers_equal_the_reference() {
    assert_same(&[
        named(
            "usual",
            &Request::get("/dump.php")
                .header("User-Agent", "t/1")
                .header("Accept", "*/*")
                .header("Accept-Language", "de"),
        ),
        named("custom", &Request::get("/dump.php").header("X-Custom-Header", "v").header("x-lower", "w")),
        named("digits and dashes", &Request::get("/dump.php").header("X-1-2-3", "v")),
        named("underscore", &Request::get("/dump.php").header("X_Under", "hidden").header("X-Under", "seen")),
        named("empty value", &Request::get("/dump.php").header("X-Empty", "")),
        named("utf-8 value", &Request::get("/dump.php").header("X-Text", "caf\u{e9} \u{2713}")),
        named("basic, no colon", &Request::get("/dump.php").header("Authorization", "Basic dXNlcg==")),
        named("basic, garbage", &Request::get("/dump.php").header("Authorization", "Basic !!!")),
        named("digest", &Request::get("/dump.php").header("Authorization", "Digest username=\"u\", realm=\"r\"")),
        named("bearer", &Request::get("/dump.php").header("Authorization", "Bearer abc.def")),
        named("cookies", &Request::get("/dump.php").header("Cookie", "a=1; b=2%203; c=x=y; a=9")),
        named(
            "forwarded, not trusted",
            &Request::get("/dump.php").header("X-Forwarded-For", "1.2.3.4").header("X-Forwarded-Proto", "https"),
        ),
        named("content type on get", &Request::get("/dump.php").header("Content-Type", "text/x")),
        named("many", &(0..60).fold(Request::get("/dump.php"), |r, i| r.header(&format!("X-H-{i}"), &"v".repeat(i)))),
    ]);
}

#[test]
fn odd_request_lines_equal_the_reference() {
    assert_same(&[
        raw("http/1.0", "GET /dump.php?x HTTP/1.0\nHost: localhost\n\n"),
        raw("absolute form", "GET http://localhost/dump.php?x=1 HTTP/1.1\nHost: localhost\nConnection: close\n\n"),
        raw("spaces around values", "GET /dump.php HTTP/1.1\nHost: localhost\nX-Pad:   v  \nConnection: close\n\n"),
    ]);
}

script_scenario!(
    the_port_in_the_host_header_is_kept,
    howdah_only = "Debian 12's nginx 1.22 sets HTTP_HOST from $host, which drops the port",
    |s| s.www("dump.php"),
    |site| {
        let host = format!("localhost:{}", site.port());
        let seen = site.send(&Request::get("/dump.php").header("Host", &host)).expect(200).json();
        assert_eq!(seen["HTTP_HOST"], host.as_str());
        assert_eq!(seen["SERVER_NAME"], "localhost");
        assert_eq!(seen["SERVER_PORT"], site.port().to_string());
    },
);

script_scenario!(
    repeated_headers_are_joined,
    howdah_only = "nginx before 1.23 hands over the last one only",
    |s| s.www("dump.php").never_behind_nginx("nginx before 1.23 hands over the last one only"),
    |site| {
        let request = Request::get("/dump.php")
            .header("X-Twice", "a")
            .header("X-Twice", "b")
            .header("Cookie", "a=1")
            .header("Cookie", "b=2");
        let seen = site.send(&request).expect(200).json();
        assert_eq!(seen["HTTP_X_TWICE"], "a, b");
        assert_eq!(seen["HTTP_COOKIE"], "a=1; b=2");
        assert_eq!(seen["_COOKIE"], r#"{"a":"1","b":"2"}"#);
    },
);

script_scenario!(
    basic_credentials_reach_php,
    |s| s.www("dump.php").never_behind_nginx("it sets REMOTE_USER"),
    |site| {
        let seen =
            site.send(&Request::get("/dump.php").header("Authorization", "Basic dXNlcjpwYTpzcw==")).expect(200).json();
        assert_eq!((&seen["PHP_AUTH_USER"], &seen["PHP_AUTH_PW"]), (&"user".into(), &"pa:ss".into()));
        assert_eq!(seen["HTTP_AUTHORIZATION"], "Basic dXNlcjpwYTpzcw==");
        // nginx fills REMOTE_USER from the header without a check; Howdah has not checked it either, and omits it.
        assert_eq!(seen.get("REMOTE_USER").is_some(), site.is_reference());
    }
);

script_scenario!(
    path_info_is_translated,
    howdah_only = "with Debian's fastcgi-php.conf, PHP-FPM sets no PATH_TRANSLATED",
    not_worker = "PATH_INFO is what follows the name of the script that loops: dump_in_loops below",
    |s| s.www("dump.php").never_behind_nginx("PATH_TRANSLATED is nginx's to set"),
    |site| {
        let seen = site.get("/dump.php/a/b").expect(200).json();
        assert_eq!(seen["PATH_INFO"], "/a/b");
        assert_eq!(seen["PATH_TRANSLATED"], site.file("a/b").display().to_string());
    },
);

script_scenario!(doubtful_header_names_make_no_variables, |s| s.www("dump.php"), |site| {
    let request =
        Request::get("/dump.php").header("Proxy", "http://evil.example/").header("X.Dot", "v").header("X_Under", "v");
    let seen = site.send(&request).expect(200).json();
    for key in ["HTTP_PROXY", "HTTP_X.DOT", "HTTP_X_DOT", "HTTP_X_UNDER"] {
        assert_eq!(seen.get(key), None, "{key}");
    }
});

script_scenario!(a_request_without_a_host_has_a_server_name, |s| s.www("dump.php"), |site| {
    let mut conn = site.conn();
    conn.send("GET /dump.php HTTP/1.0\r\n\r\n");
    let seen = conn.response("GET").expect(200).json();
    assert!(["localhost", "127.0.0.1"].contains(&seen["SERVER_NAME"].as_str().unwrap_or_default()), "{seen}");
    assert_eq!(seen["SERVER_PROTOCOL"], "HTTP/1.0");
});

script_scenario!(
    request_time_is_now,
    |s| s
        .php("t.php", "echo json_encode([$_SERVER['REQUEST_TIME'], $_SERVER['REQUEST_TIME_FLOAT'], microtime(true)]);"),
    |site| {
        let clock = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        let before = clock();
        let seen = site.get("/t.php").expect(200).json();
        let after = clock();
        let (whole, fine, now) = (seen[0].as_f64().unwrap(), seen[1].as_f64().unwrap(), seen[2].as_f64().unwrap());
        assert!((whole - fine.floor()).abs() < 1.0, "{seen}");
        let in_order = [before, fine, now, after].windows(2).all(|pair| pair[0] <= pair[1] + 0.001);
        assert!(in_order, "asked after {before}, {seen}, answered before {after}");
    },
);

script_scenario!(
    the_client_port_is_the_clients,
    |s| s.php("p.php", "echo $_SERVER['REMOTE_ADDR'], ':', $_SERVER['REMOTE_PORT'];"),
    |site| {
        let mut conn = site.conn();
        let expected = format!("127.0.0.1:{}", conn.local_port());
        assert_eq!(conn.exchange(&Request::get("/p.php")).text(), expected);
    },
);

/// As in FrankenPHP; nginx and PHP-FPM have no such variable.
#[test]
fn the_remote_host_is_the_clients_address_in_every_mode() {
    for mode in [Mode::Classic, Mode::Worker, Mode::Snapshot, Mode::Async] {
        run(
            mode,
            |s| {
                s.php("p.php", "echo json_encode([$_SERVER['REMOTE_HOST'], getenv('REMOTE_HOST')]);")
                    .never_behind_nginx("its variables are nginx's")
            },
            |site| assert_eq!(site.get_ok("/p.php"), r#"["127.0.0.1","127.0.0.1"]"#, "{mode:?}"),
        );
    }
}

script_scenario!(no_state_of_the_last_request_remains, |s| s.workers(1).www("dump.php"), |site| {
    let full = Request::form("/dump.php/path?q=1", "p=1")
        .header("Cookie", "c=1")
        .header("X-Only-First", "1")
        .header("Authorization", "Basic dTpw");
    let first = site.send(&full).expect(200).json();
    assert_eq!(first["PHP_AUTH_USER"], "u");
    let second = site.get("/dump.php").expect(200).json();
    for key in
        ["HTTP_X_ONLY_FIRST", "HTTP_COOKIE", "PHP_AUTH_USER", "PHP_AUTH_PW", "HTTP_AUTHORIZATION", "PATH_TRANSLATED"]
    {
        assert_eq!(second.get(key), None, "{key}");
    }
    for key in ["_GET", "_POST", "_COOKIE", "_REQUEST"] {
        assert_eq!(second[key], "[]", "{key}");
    }
    assert_eq!(second["QUERY_STRING"], "");
    assert_eq!(second["php://input"], "");
});
