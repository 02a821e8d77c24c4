//! Independent servers as the proxied server: nginx in cleartext and with TLS, PHP's built-in server.

use howdah_tests::nginx::Nginx;
use howdah_tests::process::{PATIENCE, eventually, signal};
use howdah_tests::site::Port;
use howdah_tests::{Mode, Request, Setup, run};
use rustix::process::Signal;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// nginx in cleartext on its first port, and on its second port with a self-signed certificate for `localhost`.
fn nginx() -> Nginx {
    Nginx::start(2, |directory, ports| {
        certificate(directory);
        fs::write(directory.join("f.txt"), "x".repeat(300_000)).unwrap();
        format!(
            "server {{
               listen 127.0.0.1:{plain}; listen 127.0.0.1:{tls} ssl; root {top};
               ssl_certificate {top}/cert.pem; ssl_certificate_key {top}/key.pem;
               location /p/ {{ alias {top}/; dav_methods PUT; }}
               location /p/who {{ return 200 \"$scheme $ssl_server_name $http_host $connection_requests\"; }}
             }}",
            plain = ports[0],
            tls = ports[1],
            top = directory.display(),
        )
    })
}

fn certificate(directory: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(directory.join("key.pem"))
        .arg("-out")
        .arg(directory.join("cert.pem"))
        .stderr(Stdio::null())
        .status();
    assert!(made.is_ok_and(|status| status.success()), "openssl");
}

#[test]
fn nginx_is_proxied_in_the_clear_and_with_tls() {
    let nginx = nginx();
    let ca = nginx.directory().join("cert.pem").display().to_string();
    let (plain, tls) = (nginx.port(0), nginx.port(1));
    for (proxy, scheme) in [
        (format!("{{ to = \"http://127.0.0.1:{plain}\" }}"), "http "),
        (format!("{{ to = \"https://localhost:{tls}\", ca = \"{ca}\" }}"), "https localhost"),
        (
            format!("{{ to = \"https://127.0.0.1:{tls}\", ca = \"{ca}\", server_name = \"localhost\" }}"),
            "https localhost",
        ),
        (format!("{{ to = \"https://127.0.0.1:{tls}\", verify = false }}"), "https "),
    ] {
        let set = |s: Setup| {
            s.workers(1)
                .time("proxy.keep_alive_timeout", "1s")
                .setting("proxy.app", &proxy)
                .setting("rule", "[{ path = \"/p/*\", proxy = \"app\" }]")
        };
        run(Mode::Classic, set, |site| {
            let mut conn = site.conn();
            for number in 1..4 {
                let who = conn.exchange(&Request::get("/p/who").header("Host", "shop.example")).expect(200).text();
                assert_eq!(who, format!("{scheme} shop.example {number}"), "{proxy}");
            }
            let response = conn.exchange(&Request::get("/p/f.txt")).expect(200);
            assert_eq!(response.body.len(), 300_000);
            let part = conn.exchange(&Request::get("/p/f.txt").header("Range", "bytes=5-9"));
            assert_eq!((part.status, part.header("content-range")), (206, Some("bytes 5-9/300000")));
            let etag = response.header("etag").unwrap();
            assert_eq!(conn.exchange(&Request::get("/p/f.txt").header("If-None-Match", etag)).status, 304);
            assert_eq!(conn.exchange(&Request::new("HEAD", "/p/f.txt")).header("content-length"), Some("300000"));
            assert_eq!(conn.exchange(&Request::get("/p/none")).status, 404);
        });
    }
}

#[test]
fn an_untrusted_certificate_or_one_of_another_name_is_502() {
    let nginx = nginx();
    let ca = nginx.directory().join("cert.pem").display().to_string();
    for (proxy, said) in [
        (format!("{{ to = \"https://localhost:{}\" }}", nginx.port(1)), "UnknownIssuer"),
        (format!("{{ to = \"https://127.0.0.1:{}\", ca = \"{ca}\" }}", nginx.port(1)), "not valid for name"),
    ] {
        let set = |s: Setup| {
            s.workers(1)
                .time("proxy.keep_alive_timeout", "1s")
                .setting("proxy.app", &proxy)
                .setting("rule", "[{ path = \"/p/*\", proxy = \"app\" }]")
        };
        run(Mode::Classic, set, |site| {
            assert_eq!(site.get("/p/f.txt").status, 502);
            let _ = site.wait_for_log(&["502: https://", said]);
        });
    }
}

#[test]
fn phps_own_server_is_proxied() {
    let directory = tempfile::Builder::new().prefix("howdah-php-s-").tempdir().unwrap();
    let port = Port::hold();
    fs::create_dir(directory.path().join("p")).unwrap();
    fs::write(
        directory.path().join("p/echo.php"),
        "<?php echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['HTTP_X_FORWARDED_FOR'], ' ', $_POST['a'] ?? '-', ' ', $_GET['b'] ?? '-';",
    )
    .unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "php", "-S"]).arg(format!("127.0.0.1:{}", port.number)).arg("-t");
    let mut process = command.arg(directory.path()).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(eventually(PATIENCE, || TcpStream::connect(("127.0.0.1", port.number)).is_ok()));
    let route = format!("[{{ path = \"/p/*\", proxy = \"http://127.0.0.1:{}\" }}]", port.number);
    run(
        Mode::Classic,
        |s| s.workers(1).setting("rule", &route),
        |site| {
            assert_eq!(site.get_ok("/p/echo.php?b=2"), "GET 127.0.0.1 - 2");
            assert_eq!(site.send(&Request::form("/p/echo.php", "a=1")).expect(200).text(), "POST 127.0.0.1 1 -");
        },
    );
    signal(process.id(), Signal::KILL);
    let _ = process.wait();
}
