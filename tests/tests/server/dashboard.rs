//! The dashboard on the admin address: the page for browsers, and orders that a page may send.

use super::admin::OnAddress;
use howdah_skip::skip;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, php};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The response to a request on the admin address.
fn ask(site: &OnAddress, text: &str) -> howdah_tests::Response {
    let mut conn = Conn::open(&site.target(site.admin));
    conn.send(text);
    conn.response("GET")
}

#[test]
fn the_dashboard_is_one_page_that_loads_nothing_from_elsewhere() {
    let site = OnAddress::start(&["admin_token = \"a long one\""]);
    let page = ask(&site, "GET /dashboard HTTP/1.1\r\nHost: localhost\r\n\r\n").expect(200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && policy.contains("connect-src 'self'"), "{policy}");
    let text = page.text();
    for loads in ["src=", "href=", "@import", "url(", "https://"] {
        assert!(!text.contains(loads), "{loads}");
    }
    // The page's data requires the token, with which the server accepts any host name.
    assert_eq!(site.ask("GET /status HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n\r\n"), 401);
    assert_eq!(site.ask("GET /status HTTP/1.1\r\nHost: attacker.example\r\n\r\n"), 401);
    let named = "GET /status HTTP/1.1\r\nHost: web1.internal\r\nAuthorization: Bearer a long one\r\n\r\n";
    assert_eq!(site.ask(named), 200);
    let framed = "GET /dashboard HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n";
    assert_eq!(site.ask(framed), 403);
}

#[test]
fn the_dashboard_only_shows_unless_the_settings_let_it_order() {
    let order = |site: &OnAddress, path: &str, origin: &str| {
        let port = site.admin;
        let host = format!("Host: localhost:{port}\r\nSec-Fetch-Site: same-origin\r\nX-Howdah: 1\r\n");
        let origin = origin.replace("PORT", &port.to_string());
        site.ask(&format!("POST {path} HTTP/1.1\r\n{host}Origin: {origin}\r\nContent-Length: 0\r\n\r\n"))
    };
    let own = "http://localhost:PORT";
    let shows = OnAddress::start(&[]);
    let look = "GET /status HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n\r\n";
    assert_eq!(shows.ask(look), 200);
    assert_eq!(order(&shows, "/pools/default/reload", own), 403);
    let orders = OnAddress::start(&["dashboard_orders = true"]);
    // Its worker may still be booting.
    let drained = || order(&orders, "/pools/default/workers/0/drain", own) == 200;
    assert!(eventually(PATIENCE, drained), "{}", orders.log());
    assert_eq!(order(&orders, "/pools/default/reload", own), 200, "{}", orders.log());
    // Permitted, though there is nothing to restore.
    assert_eq!(order(&orders, "/routes/restore?path=/x", own), 404);
    assert_eq!(order(&shows, "/routes/restore?path=/x", own), 403);
    for path in ["/stop", "/reload"] {
        assert_eq!(order(&orders, path, own), 403, "{path}");
    }
    for other in ["http://attacker.example", "http://localhost:1", "null", "https://localhost:PORT"] {
        assert_eq!(order(&orders, "/pools/default/reload", other), 403, "{other}");
    }
}

#[test]
fn a_browser_shows_pools_workers_and_curves() {
    if !Path::new("/usr/bin/chromium").exists() {
        skip!("chromium", "the test needs a browser");
    }
    let page = in_browser(&OnAddress::start(&[]));
    for shown in [">ready<", "default 0", "class=\"card tile\"", "<polyline", "any other path", "classic"] {
        assert!(page.contains(shown), "{shown} in {page}");
    }
    // No pool is compared, so that section is hidden.
    assert!(page.contains("id=\"compared\" hidden"), "{page}");
}

#[test]
fn a_browser_shows_routes_that_were_demoted() {
    if !Path::new("/usr/bin/chromium").exists() {
        skip!("chromium", "the test needs a browser");
    }
    let compared = [
        "mode = \"worker\"",
        "script = \"visits.php\"",
        "dashboard_orders = true",
        "compare_one_in = 1",
        "[pool.plain]",
        "mode = \"classic\"",
        "workers = 1",
    ];
    let script = format!("<?php\n{}", php!("demotion/visits.php"));
    let site = OnAddress::start_with(&[("visits.php", &script)], &compared);
    let status = || -> Value {
        let look = "GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        serde_json::from_slice(&ask(&site, look).expect(200).body).unwrap()
    };
    let demoted = || {
        let _ = Conn::open(&site.visitors()).exchange(&Request::get("/a<b>c").close());
        status()["pools"][0]["demoted"][0]["route"] == "/a<b>c"
    };
    assert!(eventually(PATIENCE, demoted), "{}\n{}", status(), site.log());
    let page = in_browser(&site);
    for shown in ["Compared with classic mode", "/a&lt;b&gt;c", "classic mode</td>", "responses differed", ">Restore<"]
    {
        assert!(page.contains(shown), "{shown} in {page}");
    }
    assert!(!page.contains("id=\"compared\" hidden"), "{page}");
    // The request that the button sends.
    let host = format!("Host: localhost:{}\r\nSec-Fetch-Site: same-origin\r\nX-Howdah: 1\r\n", site.admin);
    let origin = format!("Origin: http://localhost:{}\r\nContent-Length: 0\r\n\r\n", site.admin);
    assert_eq!(site.ask(&format!("POST /routes/restore?path=%2Fa%3Cb%3Ec HTTP/1.1\r\n{host}{origin}")), 200);
}

/// The page as a browser shows it after two polls of the server.
fn in_browser(site: &OnAddress) -> String {
    let profile = tempfile::tempdir().unwrap();
    // The browser's virtual time advances as soon as the page waits for nothing, so two polls do not take four seconds.
    let output = Command::new("/usr/bin/chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=9000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", &format!("http://127.0.0.1:{}/dashboard", site.admin)])
        .env("HOME", profile.path())
        .output()
        .unwrap();
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
