//! Requests for PHP: a script's variables, and its response.

use crate::support::{Server, settings};
use std::sync::atomic::Ordering;

#[test]
fn a_script_gets_the_variables_of_fastcgi_params() {
    let server = Server::start();
    let mut client = server.connect();
    let response = client.ask(
        "POST /vars.php/some/info?a=b%20c HTTP/1.1\r\nHost: www.example:8080\r\nContent-Type: text/x\r\nContent-Length: 2\r\n\
         Cookie: a=1\r\nCookie: b=2\r\nX-List: one\r\nX-List: two\r\nProxy: evil\r\nX_Under: no\r\nUser-Agent: t\r\n\
         Authorization: Basic dTpw\r\n\r\nhi",
    );
    let root = server.root.path().display().to_string();
    let port = server.tcp().port().to_string();
    let expected: &[(&str, &str)] = &[
        ("QUERY_STRING", "a=b%20c"),
        ("REQUEST_METHOD", "POST"),
        ("CONTENT_TYPE", "text/x"),
        ("CONTENT_LENGTH", "2"),
        ("SCRIPT_NAME", "/vars.php"),
        ("REQUEST_URI", "/vars.php/some/info?a=b%20c"),
        ("DOCUMENT_URI", "/vars.php"),
        ("DOCUMENT_ROOT", &root),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("REQUEST_SCHEME", "http"),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_SOFTWARE", concat!("Howdah/", env!("CARGO_PKG_VERSION"), " (like nginx)")),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("SERVER_ADDR", "127.0.0.1"),
        ("SERVER_PORT", &port),
        ("SERVER_NAME", "www.example"),
        ("REDIRECT_STATUS", "200"),
        ("SCRIPT_FILENAME", &format!("{root}/vars.php")),
        ("PATH_INFO", "/some/info"),
        ("PATH_TRANSLATED", &format!("{root}/some/info")),
        ("HTTP_HOST", "www.example:8080"),
        ("HTTP_CONTENT_TYPE", "text/x"),
        ("HTTP_CONTENT_LENGTH", "2"),
        ("HTTP_COOKIE", "a=1; b=2"),
        ("HTTP_X_LIST", "one, two"),
        ("HTTP_USER_AGENT", "t"),
        ("HTTP_AUTHORIZATION", "Basic dTpw"),
    ];
    for (name, value) in expected {
        assert_eq!(response.var(name), Some(*value), "{name}");
    }
    for absent in ["HTTPS", "HTTP_PROXY", "HTTP_X_UNDER", "REMOTE_USER"] {
        assert_eq!(response.var(absent), None, "{absent}");
    }
    assert_eq!(response.var("REQUEST_ID").unwrap().len(), 16);
    assert_eq!(response.var("label"), Some("POST /vars.php/some/info?a=b%20c"));
    assert!(response.var("REMOTE_PORT").unwrap().parse::<u16>().is_ok());
}

#[test]
fn without_body_or_query_the_variables_are_there_and_empty() {
    let server = Server::start();
    let response = server.get("/vars.php");
    for name in ["QUERY_STRING", "CONTENT_TYPE", "CONTENT_LENGTH", "PATH_INFO"] {
        assert_eq!(response.var(name), Some(""), "{name}");
    }
    assert_eq!(response.var("PATH_TRANSLATED"), None);
    assert_eq!(response.var("repeatable"), Some("true"));
}

#[test]
fn a_target_in_absolute_form_names_the_host() {
    let server = Server::start();
    let response = server.connect().ask("GET http://real.example:81/vars.php?x HTTP/1.1\r\nHost: other\r\n\r\n");
    assert_eq!(response.var("HTTP_HOST"), Some("real.example:81"));
    assert_eq!(response.var("SERVER_NAME"), Some("real.example"));
    assert_eq!(response.var("REQUEST_URI"), Some("/vars.php?x"));
    assert_eq!(response.text().matches("HTTP_HOST=").count(), 1);
}

#[test]
fn only_trusted_proxies_set_client_and_host() {
    let request = "GET /vars.php HTTP/1.1\r\nHost: inner\r\nX-Forwarded-For: 198.51.100.7\r\n\
        X-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\nX-Request-Id: 00000000deadbeef\r\n\r\n";
    let server = Server::start();
    let response = server.connect().ask(request);
    assert_eq!(response.var("REMOTE_ADDR"), Some("127.0.0.1"));
    assert_eq!(response.var("HTTPS"), None);
    assert_ne!(response.var("REQUEST_ID"), Some("00000000deadbeef"));
    let mut trusting = settings();
    trusting.http.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let server = Server::with(trusting.clone());
    let response = server.connect().ask(request);
    for (name, value) in
        [("REMOTE_ADDR", "198.51.100.7"), ("HTTPS", "on"), ("HTTP_HOST", "inner"), ("SERVER_NAME", "inner")]
    {
        assert_eq!(response.var(name), Some(value), "{name}");
    }
    assert_ne!(response.var("REQUEST_ID"), Some("00000000deadbeef"), "not listed by default");
    use howdah_config::TrustedHeader::{For, Host, Proto, RequestId};
    trusting.http.trusted_headers = vec![For, Proto, Host, RequestId];
    let server = Server::with(trusting);
    let response = server.connect().ask(request);
    let expected = [
        ("REMOTE_ADDR", "198.51.100.7"),
        ("REMOTE_PORT", ""),
        ("HTTPS", "on"),
        ("REQUEST_SCHEME", "https"),
        ("HTTP_HOST", "shop.example"),
        ("SERVER_NAME", "shop.example"),
        ("SERVER_PORT", "443"),
        ("REQUEST_ID", "00000000deadbeef"),
        ("HTTP_X_FORWARDED_FOR", "198.51.100.7"),
    ];
    for (name, value) in expected {
        assert_eq!(response.var(name), Some(value), "{name}");
    }
}

#[test]
fn the_front_controller_serves_paths_without_a_file() {
    let server = Server::start();
    assert_eq!(server.get("/no/such").status, 404);
    std::fs::write(server.root.path().join("index.php"), "<?php // SOURCE").unwrap();
    // The 404 is cached for at most a second, and does not affect other paths.
    let response = server.get("/no/such/path?q=1");
    assert_eq!(response.var("SCRIPT_NAME"), Some("/index.php"));
    assert_eq!(response.var("REQUEST_URI"), Some("/no/such/path?q=1"));
    assert_eq!(response.var("QUERY_STRING"), Some("q=1"));
    assert_eq!(response.var("PATH_INFO"), Some(""));
    // A new file is served at once, although its absence was noticed just before.
    std::fs::create_dir_all(server.root.path().join("no/such")).unwrap();
    std::fs::write(server.root.path().join("no/such/path"), "made").unwrap();
    assert_eq!(server.get("/no/such/path?q=1").text(), "made");
}

fn raw(response: &str) -> crate::support::Response {
    let server = Server::start();
    let request = format!("POST /raw.php HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{response}", response.len());
    let mut client = server.connect();
    let response = client.ask(&request);
    // Whatever head the script sent, the connection stays in sync.
    assert_eq!(client.ask("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n").text(), "static content");
    response
}

#[test]
fn fields_that_http_forbids_are_dropped_from_a_response() {
    let response = raw(
        "201\nX-Good=1\nX Bad=1\nX-Inject=a\\r\\nSet-Cookie: evil\nTransfer-Encoding: x=1\nTransfer-Encoding=chunked\n\
         Connection=close\nContent-Length=3\nSet-Cookie=a\nSet-Cookie=b\nStatus=404 x",
    );
    assert_eq!((response.status, response.text()), (201, "content"));
    assert_eq!(response.header("x-good"), Some("1"));
    assert_eq!(response.header("content-length"), Some("7"));
    for absent in ["x bad", "x-inject", "transfer-encoding", "connection", "status"] {
        assert_eq!(response.header(absent), None, "{absent}");
    }
    assert_eq!(response.head.matches("set-cookie").count(), 2, "{}", response.head);
}

#[test]
fn statuses_without_a_body_have_none() {
    assert_eq!(raw("204\nContent-Length=7").body, b"");
    let response = raw("304\nETag=\"x\"");
    assert_eq!((response.status, response.header("etag")), (304, Some("\"x\"")));
    assert_eq!(raw("999").status, 999);
}

#[test]
fn a_fault_becomes_a_plain_page() {
    let server = Server::start();
    let response = server.connect().ask("GET /fail.php HTTP/1.1\r\nHost: h\r\nAccept: text/html\r\n\r\n");
    assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
    assert!(response.text().contains("<h1>503 Service Unavailable</h1>"));
    assert!(!response.text().contains("hidden detail"));
    assert_eq!(server.stand.given_up.load(Ordering::SeqCst), 1);
}

#[test]
fn no_spelling_of_a_path_sends_source() {
    let server = Server::start();
    let root = server.root.path();
    for name in ["UPPER.PHP", "a.phtml", "b.php.", "c.php ", "d.php~", "e.phar"] {
        std::fs::write(root.join(name), "<?php // SOURCE").unwrap();
    }
    std::os::unix::fs::symlink("vars.php", root.join("link.txt")).unwrap();
    std::os::unix::fs::symlink("link.txt", root.join("link2.css")).unwrap();
    std::fs::create_dir(root.join("dir")).unwrap();
    std::os::unix::fs::symlink("../vars.php", root.join("dir/index.html")).unwrap();
    for target in [
        "/vars.php",
        "/VARS.PHP",
        "/vars.PhP",
        "/vars%2ephp",
        "/vars.php.",
        "/vars.php%20",
        "/vars.php/",
        "/vars.php//",
        "/vars.php/.",
        "/vars.php/..",
        "/vars.php%2f",
        "/./vars.php",
        "//vars.php",
        "/x/../vars.php",
        "/vars.php%5c",
        "/vars.php;x",
        "/vars.php%00.txt",
        "/vars.php%0a",
        "/UPPER.PHP",
        "/UPPER.php",
        "/a.phtml",
        "/b.php.",
        "/c.php%20",
        "/d.php~",
        "/e.phar",
        "/link.txt",
        "/link2.css",
        "/dir/",
        "/dir",
        "/dir/index.html",
        "/%76ars.php",
        "/vars%252ephp",
    ] {
        for method in ["GET", "POST", "HEAD"] {
            let response =
                server.connect().ask(&format!("{method} {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"));
            assert!(!response.text().contains("SOURCE"), "{method} {target}: {response:?}");
        }
    }
    assert_eq!(server.get("/UPPER.PHP").status, 403);
    assert_eq!(server.get("/link.txt").status, 403);
}
