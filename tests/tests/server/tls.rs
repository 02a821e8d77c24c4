//! TLS: negotiation, the certificate that a client gets, and the variables that scripts see. `openssl s_client` and
//! curl are the clients, so that two other implementations must agree.

use howdah_tests::tls::{authority, certificate, s_client};
use howdah_tests::{Site, Target, php, scenario};
use std::process::Command;

const SEEN: &str = php!("tls/seen.php");

/// Output of curl for a path over TLS with these arguments.
fn curl(port: u16, path: &str, arguments: &[&str]) -> String {
    let url = format!("https://localhost:{port}{path}");
    let output = Command::new("curl").args(["-sSk"]).args(arguments).arg(url).output();
    let output = output.unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The port at which clients may or must present certificates (`Setup::https_clients`).
fn second(site: &Site) -> u16 {
    match site.second() {
        Target::Tcp(address) | Target::Tls(address) | Target::Version(address, _) => address.port(),
        Target::Unix(_) => 0,
    }
}

fn seen(port: u16, arguments: &[&str]) -> serde_json::Value {
    let text = curl(port, "/seen.php", arguments);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

scenario!(
    the_protocol_is_negotiated,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https().php("seen.php", SEEN),
    |site| {
        let h2 = seen(site.port(), &["--http2"]);
        assert_eq!((&h2["SERVER_PROTOCOL"], &h2["SSL_PROTOCOL"]), (&"HTTP/2.0".into(), &"TLSv1.3".into()));
        let h1 = seen(site.port(), &["--http1.1", "--tls-max", "1.2"]);
        assert_eq!((&h1["SERVER_PROTOCOL"], &h1["SSL_PROTOCOL"]), (&"HTTP/1.1".into(), &"TLSv1.2".into()));
        assert_eq!(h1["SSL_CIPHER"], "ECDHE-ECDSA-AES256-GCM-SHA384");
        for seen in [&h1, &h2] {
            assert_eq!((&seen["HTTPS"], &seen["REQUEST_SCHEME"]), (&"on".into(), &"https".into()));
            assert_eq!(seen["SERVER_PORT"], site.port().to_string());
            assert_eq!((&seen["SSL_SERVER_NAME"], &seen["SSL_CLIENT_VERIFY"]), (&"localhost".into(), &"NONE".into()));
        }
        let none = s_client(site.port(), &["-alpn", "smtp"], b"");
        assert!(none.contains("no application protocol"), "{none}");
        // A client that offers no protocol gets HTTP/1.1 (RFC 9113 3.2: HTTP/2 must be negotiated).
        let text = s_client(site.port(), &["-quiet", "-ign_eof"], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        assert!(text.contains("HTTP/1.1 400"), "{text}");
    }
);

scenario!(
    old_versions_are_refused,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https().setting("tls.min_version", "\"1.3\""),
    |site| {
        let agreed = |version| s_client(site.port(), &[version], b"");
        assert!(agreed("-tls1_3").contains("New, TLSv1.3"));
        for version in ["-tls1_2", "-tls1_1"] {
            let text = agreed(version);
            assert!(text.contains("(NONE)"), "{text}");
        }
    },
);

scenario!(
    each_name_has_its_certificate,
    howdah_only = "the harness configures the reference without TLS",
    |s| {
        // Next to the document root, which is created later.
        s.https().https_certificates(&[("a", &["a.example"]), ("b", &["b.example", "*.c.example"])])
    },
    |site| {
        let served = |name: &str| {
            let text = s_client(site.port(), &["-servername", name], b"");
            let pem = text.split("-----BEGIN CERTIFICATE-----").nth(1).unwrap_or_else(|| panic!("{text}"));
            let first = pem.trim().lines().next().unwrap().to_owned() + pem.trim().lines().nth(3).unwrap();
            let of = |stem: &str| {
                let file = std::fs::read_to_string(site.place().top.join(format!("{stem}.pem"))).unwrap();
                file.lines().nth(1).unwrap().to_owned() + file.lines().nth(4).unwrap()
            };
            ["a", "b"].into_iter().find(|stem| of(stem) == first).unwrap_or("none")
        };
        for (name, stem) in [("a.example", "a"), ("B.Example", "b"), ("x.c.example", "b"), ("unknown.example", "a")] {
            assert_eq!(served(name), stem, "{name}");
        }
    },
);

scenario!(
    sessions_resume_on_every_io_thread,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https().setting("threads", "2").php("seen.php", SEEN),
    |site| {
        let request = b"GET /seen.php HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        for version in ["-tls1_3", "-tls1_2"] {
            let kept = site.place().tmp.join("session.pem");
            let kept = kept.to_str().unwrap();
            let first = s_client(site.port(), &[version, "-ign_eof", "-sess_out", kept], request);
            assert!(first.contains("\"SSL_SESSION_RESUMED\":\"Initial\""), "{first}");
            // A new connection goes to the I/O thread with the fewest connections: open ones make it the other thread's
            // turn.
            let mut open = Vec::new();
            for _ in 0..4 {
                let again = s_client(site.port(), &[version, "-ign_eof", "-sess_in", kept], request);
                assert!(again.contains("\"SSL_SESSION_RESUMED\":\"Resumed\""), "{again}");
                let mut conn = site.conn();
                let _ = conn.exchange(&howdah_tests::Request::get("/ready.txt")).expect(200);
                open.push(conn);
            }
            std::fs::remove_file(kept).unwrap();
        }
    },
);

scenario!(
    clients_must_show_a_certificate,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https_clients("required").php("seen.php", SEEN),
    |site| {
        let top = &site.place().top;
        let file = |name: &str| top.join(name).display().to_string();
        let known = seen(second(site), &["--cert", &file("clients.pem"), "--key", &file("clients.key")]);
        for (name, value) in [
            ("SSL_CLIENT_VERIFY", "SUCCESS"),
            ("SSL_CLIENT_S_DN", "CN=Ann,O=Smith\\, Sons"),
            ("SSL_CLIENT_S_DN_CN", "Ann"),
            ("SSL_CLIENT_I_DN", "CN=Test CA"),
            ("SSL_CLIENT_M_SERIAL", "0ABC"),
        ] {
            assert_eq!(known[name], value, "{known}");
        }
        let fingerprint = Command::new("openssl")
            .args(["x509", "-noout", "-fingerprint", "-sha256", "-in", &file("clients.pem")])
            .output()
            .unwrap();
        let fingerprint = String::from_utf8(fingerprint.stdout).unwrap().replace(':', "").to_lowercase();
        assert!(fingerprint.contains(known["SSL_CLIENT_FINGERPRINT"].as_str().unwrap()), "{fingerprint} {known}");
        let nobody = curl(second(site), "/seen.php", &[]);
        assert!(nobody.contains("alert"), "{nobody}");
        let _ = authority(top, "strangers");
        let stranger =
            curl(second(site), "/seen.php", &["--cert", &file("strangers.pem"), "--key", &file("strangers.key")]);
        assert!(stranger.contains("alert"), "{stranger}");
    },
);

scenario!(
    clients_may_show_a_certificate,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https_clients("optional").php("seen.php", SEEN),
    |site| {
        let file = |name: &str| site.place().top.join(name).display().to_string();
        assert_eq!(seen(second(site), &[])["SSL_CLIENT_VERIFY"], "NONE");
        // A header cannot forge the variables.
        let lying = seen(second(site), &["-H", "SSL-Client-Verify: SUCCESS", "-H", "SSL_CLIENT_VERIFY: SUCCESS"]);
        assert_eq!(lying["SSL_CLIENT_VERIFY"], "NONE");
        let known = seen(second(site), &["--cert", &file("clients.pem"), "--key", &file("clients.key")]);
        assert_eq!(known["SSL_CLIENT_S_DN_CN"], "Ann");
    },
);

scenario!(
    clients_without_tls_are_redirected_to_https,
    howdah_only = "the harness configures the reference without TLS",
    |s| s
        .https()
        .second_listener()
        .setting("tls.redirect", "true")
        .setting("rule", "[{ https = true, headers = { \"?Strict-Transport-Security\" = \"max-age=300\" } }]")
        .file(".well-known/acme-challenge/token", "proof")
        .php("a.php", "echo 'here';"),
    |site| {
        use howdah_tests::{Conn, Request};
        let mut plain = Conn::open(&site.second());
        let moved = plain.exchange(&Request::get("/a.php?x=1&y=%20"));
        let place = format!("https://localhost:{}/a.php?x=1&y=%20", site.port());
        assert_eq!((moved.status, moved.header("location")), (301, Some(place.as_str())));
        assert_eq!(moved.header("strict-transport-security"), None);
        let moved = plain.exchange(&Request::post("/a.php", "a/b", "body"));
        assert_eq!(moved.status, 308);
        let mut plain = Conn::open(&site.second());
        let proof = plain.exchange(&Request::get("/.well-known/acme-challenge/token"));
        assert_eq!(proof.expect(200).text(), "proof");
        let there = site.get("/a.php").expect(200);
        assert_eq!((there.header("strict-transport-security"), there.text().as_str()), (Some("max-age=300"), "here"));
        let missing = site.get("/none.txt");
        assert_eq!((missing.status, missing.header("strict-transport-security")), (404, Some("max-age=300")));
    },
);

scenario!(
    an_expired_certificate_is_served_and_reported,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https_expired().allow_log("expired"),
    |site| {
        assert!(s_client(site.port(), &[], b"").contains("certificate has expired"));
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
        let _ = site.wait_for_log(&["WARN", "expired", "days ago"]);
    },
);

#[test]
fn check_reports_broken_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) =
        (certificate(dir.path(), "one", &["a.example"]), certificate(dir.path(), "other", &["b.example"]));
    let toml = dir.path().join("howdah.toml");
    let check = |certificates: &str| {
        let text = format!("listen = \"https://127.0.0.1:0\"\nroot = \".\"\n[tls]\ncertificates = [{certificates}]\n");
        std::fs::write(&toml, text).unwrap();
        let mut command = Command::new(howdah_tests::howdah::program());
        // The tests may run as root.
        let output = command.env("HOWDAH_ALLOW_ROOT", "true").arg("check").arg("--config").arg(&toml).output();
        let output = output.unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (good, said) = check(&one.setting());
    assert!(good, "{said}");
    let mixed = format!("{{ cert = {:?}, key = {:?} }}, {{ cert = \"none.pem\" }}", one.cert, other.key);
    let (good, said) = check(&mixed);
    assert!(!good && said.contains("howdah.toml:4: [tls] certificates: the key in"), "{said}");
    assert!(
        said.contains("does not belong to the first certificate") && said.contains("none.pem: No such file"),
        "{said}"
    );
    rustix::fs::chmod(&one.key, rustix::fs::Mode::from_raw_mode(0o644)).unwrap();
    let (good, said) = check(&one.setting());
    assert!(good && said.contains("warning: every user of this machine can read the key"), "{said}");
    std::fs::write(&toml, "listen = \"https://127.0.0.1:0\"\nroot = \".\"\n").unwrap();
    let output =
        Command::new(howdah_tests::howdah::program()).arg("check").arg("--config").arg(&toml).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("needs a certificate; for example"), "{said}");
}
