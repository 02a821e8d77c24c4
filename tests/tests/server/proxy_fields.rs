//! Fields that a client or a proxied server must not get past the server: those that normalize to trusted ones, and
//! internal paths.

use howdah_tests::upstream::field;
use howdah_tests::{Mode, Request, Setup, Upstream, run};

#[test]
fn ambiguous_fields_are_not_forwarded_and_internal_paths_not_returned() {
    let upstream = Upstream::saying(
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx-accel-redirect: /internal/a\r\nx-accel-buffering: no\r\n\
         x-sendfile: /srv/secret\r\nx-app: yes\r\n\r\nhello",
    );
    let rules = format!(
        "[{{ request_headers = {{ X-Role = \"guest\" }} }}, {{ path = \"/p/*\", proxy = \"{}\" }}]",
        upstream.url()
    );
    let set = |s: Setup| s.workers(1).setting("rule", &rules).php("role.php", "echo $_SERVER['HTTP_X_ROLE'];");
    run(Mode::Classic, set, |site| {
        let request = Request::get("/p/")
            .header("X_Forwarded_For", "6.6.6.6")
            .header("X_Real_IP", "6.6.6.6")
            .header("X.Real.IP", "6.6.6.6")
            .header("Proxy", "http://evil.example")
            .header("X-Sendfile-Type", "X-Accel-Redirect")
            .header("X-Accel-Mapping", "/=/internal/")
            .header("X-Mine", "1");
        let response = site.send(&request).expect(200);
        assert_eq!((response.text().as_str(), response.header("x-app")), ("hello", Some("yes")));
        for name in ["x-accel-redirect", "x-accel-buffering", "x-sendfile"] {
            assert_eq!(response.header(name), None, "{name}");
        }
        let head = upstream.last_head();
        for name in ["x_forwarded_for", "x_real_ip", "x.real.ip", "proxy", "x-sendfile-type", "x-accel-mapping"] {
            assert_eq!(field(&head, name), None, "{name}");
        }
        assert_eq!((field(&head, "x-mine"), field(&head, "x-role")), (Some("1"), Some("guest")));
        upstream.cut();
    });
}

#[test]
fn a_client_takes_no_field_away_that_rules_insert() {
    let upstream = Upstream::saying("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
    let rules = format!(
        "[{{ request_headers = {{ X-Role = \"guest\" }} }}, {{ path = \"/p/*\", proxy = \"{}\" }}]",
        upstream.url()
    );
    let set = |s: Setup| {
        s.http1("the field Connection is HTTP/1's")
            .workers(1)
            .setting("rule", &rules)
            .php("role.php", "echo $_SERVER['HTTP_X_ROLE'];")
    };
    run(Mode::Classic, set, |site| {
        for connection in ["X-Role", "keep-alive, x-role", "x-role, close"] {
            let ask =
                |path: &str| site.send(&Request::get(path).header("Connection", connection).header("X-Role", "admin"));
            assert_eq!(ask("/p/").expect(200).text(), "hello");
            assert_eq!(field(&upstream.last_head(), "x-role"), Some("guest"), "{connection}");
            assert_eq!(ask("/role.php").expect(200).text(), "guest", "{connection}");
        }
        upstream.cut();
    });
}
