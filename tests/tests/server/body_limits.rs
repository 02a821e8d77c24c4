//! The server's limit for request bodies follows PHP's `post_max_size`: PHP itself refuses larger forms, other bodies
//! get 413.

use howdah_tests::{Part, Request, multipart, php, scenario, script_scenario};
use serde_json::json;

const SEEN: &str = php!("body_limits.php");
const MIB: usize = 1 << 20;

/// A form whose field `a` has this many bytes.
fn form(target: &str, length: usize) -> Request {
    Request::form(target, &format!("a={}", "x".repeat(length)))
}

script_scenario!(
    a_form_above_the_servers_limit_is_refused_by_php,
    |s| s
        .workers(1)
        .ini("display_errors", "0")
        .ini("post_max_size", "5000")
        .php("seen.php", SEEN)
        .allow_log("exceeds the limit of 5000 bytes"),
    |site| {
        let refused = |length: usize| json!({"length": length.to_string(), "post": [], "files": [], "error": "5000", "limit": "5000"});
        let mut conn = site.conn();
        assert_eq!(conn.exchange(&form("/seen.php", 9 * MIB)).expect(200).json(), refused(9 * MIB + 2), "dropped");
        assert_eq!(conn.exchange(&form("/seen.php", MIB)).expect(200).json(), refused(MIB + 2), "kept");
        let upload =
            multipart("/seen.php", &[Part { name: "f", file: Some(("a", "b/c")), content: &vec![b'x'; 9 * MIB] }]);
        let seen = conn.exchange(&upload).expect(200).json();
        assert_eq!((&seen["post"], &seen["files"], &seen["error"]), (&json!([]), &json!([]), &json!("5000")));
        // The length of a chunked body is known only at its end.
        let part = vec![b'x'; 3 * MIB];
        let chunked = form("/seen.php", 1).chunks(&[b"a=", &part, &part, &part]);
        assert_eq!(conn.exchange(&chunked).expect(200).json(), refused(9 * MIB + 2), "chunked");
        let small = conn.exchange(&form("/seen.php", 10)).expect(200).json();
        assert_eq!((&small["post"], &small["length"]), (&json!({"a": 10}), &json!("12")), "the connection stays open");
    },
);

scenario!(
    the_limit_follows_post_max_size_wherever_it_is_set,
    howdah_only = "nginx does not know PHP's limit",
    |s| s
        .ini("display_errors", "0")
        .setting("htaccess", "true")
        .setting("pool.large.workers", "1")
        .setting("pool.large.ini.post_max_size", "\"20M\"")
        .setting("pool.any.workers", "1")
        .setting("pool.any.ini.post_max_size", "0")
        .setting("http.spool", "\"128M\"")
        .setting("rule", "[{ path = \"/large/*\", pool = \"large\" }, { path = \"/any/*\", pool = \"any\" }]")
        .file("ruled/.htaccess", "php_value post_max_size 16M\n")
        .file("few/.htaccess", "LimitRequestBody 1000\n")
        .file("own/.user.ini", "post_max_size = 16M\n")
        .php("seen.php", SEEN)
        .php("large/seen.php", SEEN)
        .php("any/seen.php", SEEN)
        .php("ruled/seen.php", SEEN)
        .php("few/seen.php", SEEN)
        .php("own/seen.php", SEEN)
        .php("large/raw.php", "echo strlen(file_get_contents('php://input'));")
        .expect_log("and was dropped")
        .expect_log("request body exceeds 8388608")
        .allow_log("request body exceeds")
        .allow_log("exceeds the limit of"),
    |site| {
        let parsed = |target: &str, length: usize| site.send(&form(target, length)).expect(200).json()["post"].clone();
        let (all, none) = (json!({"a": 9 * MIB}), json!([]));
        assert_eq!(parsed("/seen.php", 9 * MIB), none);
        assert_eq!(parsed("/large/seen.php", 9 * MIB), all, "the pool's");
        assert_eq!(parsed("/large/seen.php", 21 * MIB), none);
        assert_eq!(parsed("/any/seen.php", 9 * MIB), all, "PHP has no limit");
        assert_eq!(parsed("/ruled/seen.php", 9 * MIB), all, ".htaccess raises it");
        let files = |target: &str| {
            let content = vec![b'x'; 9 * MIB];
            let upload = multipart(target, &[Part { name: "f", file: Some(("a", "b/c")), content: &content }]);
            site.send(&upload).expect(200).json()["files"].clone()
        };
        assert_eq!(files("/large/seen.php"), json!({"a": 1}), "upload_max_filesize is PHP's");
        assert_eq!(files("/own/seen.php"), json!([]), "a .user.ini cannot raise it, and the log says so");
        let raw = |method: &str, target: &str, length: usize| {
            let mut conn = site.conn();
            let head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
            conn.send(head);
            conn.response(method).status
        };
        assert_eq!(
            site.send(&Request::new("PUT", "/large/raw.php").body(vec![b'x'; 9 * MIB])).expect(200).text(),
            (9 * MIB).to_string()
        );
        for (target, length) in [("/seen.php", 9 * MIB), ("/large/raw.php", 21 * MIB), ("/any/seen.php", 17 * MIB)] {
            for method in ["PUT", "POST"] {
                assert_eq!(raw(method, target, length), 413, "{method} {target} {length}");
            }
        }
        let chunked = form("/few/seen.php", 1).chunks(&[&[b'x'; 600], &[b'x'; 600]]);
        assert_eq!(site.send(&chunked).status, 413, "LimitRequestBody holds for bodies of unknown length");
    },
);
