//! Listeners, and trusted proxies for the client's address.

use howdah_tests::{Conn, Request, php, scenario};

const WHO: &str = php!("listeners/who.php");

scenario!(
    a_unix_socket_serves,
    howdah_only = "the harness configures the reference with one TCP port",
    |s| s
        .unix_listener()
        .php("a.php", "echo $_SERVER['REMOTE_ADDR'] ?? 'none', '|', $_SERVER['SERVER_PROTOCOL'];")
        .file("f.txt", "static"),
    |site| {
        let mut conn = Conn::open(&site.unix());
        assert!(conn.exchange(&Request::get("/a.php")).expect(200).text().ends_with("|HTTP/1.1"));
        assert_eq!(conn.exchange(&Request::get("/f.txt")).expect(200).text(), "static");
        assert_eq!(site.get_ok("/f.txt"), "static");
    },
);

scenario!(
    several_listeners_serve,
    howdah_only = "the harness configures the reference with one TCP port",
    |s| s.second_listener().php("a.php", "echo $_SERVER['SERVER_PORT'];"),
    |site| {
        let first = site.get_ok("/a.php");
        let second = Conn::open(&site.second()).exchange(&Request::get("/a.php")).expect(200).text();
        assert_eq!(first, site.port().to_string());
        assert_ne!(first, second);
    },
);

scenario!(forwarded_fields_of_untrusted_clients_are_ignored, |s| s.php("w.php", WHO), |site| {
    let request = Request::get("/w.php")
        .header("X-Forwarded-For", "9.9.9.9")
        .header("X-Forwarded-Proto", "https")
        .header("X-Forwarded-Host", "evil.example")
        .header("Forwarded", "for=9.9.9.9;proto=https;host=evil.example");
    let seen = site.send(&request).expect(200).json();
    assert_eq!(seen[0], "127.0.0.1");
    assert_eq!(seen[1], "");
    assert_eq!(seen[2], "http");
    assert_eq!(seen[3], "localhost");
});

scenario!(
    forwarded_fields_of_trusted_proxies_are_used,
    howdah_only = "nginx needs its real-ip module for it",
    |s| {
        s.setting("http.trusted_proxies", "[\"127.0.0.0/8\", \"10.0.0.0/8\"]")
            .setting(
                "http.trusted_headers",
                "[\"X-Forwarded-For\", \"X-Forwarded-Proto\", \"X-Forwarded-Host\", \"Forwarded\"]",
            )
            .setting(
                "rule",
                "[{ path = '/ruled', request_headers = { X-Forwarded-For = '1.1.1.1' }, rewrite = '/w.php' }]",
            )
            .php("w.php", WHO)
    },
    |site| {
        let ask_for = |path: &str, headers: &[(&str, &str)]| {
            let request = headers.iter().fold(Request::get(path), |r, (n, v)| r.header(n, v));
            site.send(&request).expect(200).json()
        };
        let ask = |headers: &[(&str, &str)]| ask_for("/w.php", headers);
        let seen = ask(&[("X-Forwarded-For", "9.9.9.9"), ("X-Forwarded-Host", "evil.example, shop.example")]);
        assert_eq!(seen[3], "shop.example", "the proxy's own value is used");
        let seen = ask(&[
            ("X-Forwarded-For", "9.9.9.9"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "shop.example"),
        ]);
        assert_eq!(
            (&seen[0], &seen[1], &seen[2], &seen[3]),
            (&"9.9.9.9".into(), &"on".into(), &"https".into(), &"shop.example".into())
        );
        let seen = ask(&[("Forwarded", "for=\"[2001:db8::1]:4711\";proto=https;host=f.example")]);
        assert_eq!((&seen[0], &seen[1], &seen[3]), (&"2001:db8::1".into(), &"on".into(), &"f.example".into()));
        // The last address that is not a trusted proxy counts: anything before it may be forged.
        let seen = ask(&[("X-Forwarded-For", "1.1.1.1, 9.9.9.9, 10.1.2.3")]);
        assert_eq!(seen[0], "9.9.9.9");
        let seen = ask(&[("X-Forwarded-For", "garbage")]);
        assert_eq!(seen[0], "127.0.0.1");
        // A rule may change the field for the script. The client's address for rules and the log stays the same.
        assert_eq!(ask_for("/ruled", &[("X-Forwarded-For", "9.9.9.9")])[0], "9.9.9.9");
    },
);

scenario!(
    fields_that_a_trusted_proxy_only_passes_on_are_ignored,
    howdah_only = "nginx needs its real-ip module for it",
    |s| s.setting("http.trusted_proxies", "[\"127.0.0.0/8\"]").php("w.php", WHO),
    |site| {
        let invented = Request::get("/w.php")
            .header("X-Forwarded-Host", "evil.example")
            .header("X-Forwarded-Port", "1")
            .header("Forwarded", "for=8.8.8.8;proto=https;host=evil.example");
        let seen = site.send(&invented).expect(200).json();
        assert_eq!((&seen[0], &seen[1], &seen[3]), (&"127.0.0.1".into(), &"".into(), &"localhost".into()));
        let written = invented.header("X-Forwarded-For", "6.6.6.6, 9.9.9.9").header("X-Forwarded-Proto", "https");
        let seen = site.send(&written).expect(200).json();
        assert_eq!((&seen[0], &seen[1], &seen[3]), (&"9.9.9.9".into(), &"on".into(), &"localhost".into()));
    },
);
