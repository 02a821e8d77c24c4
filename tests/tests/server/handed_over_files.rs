//! Files that scripts hand over to the server (`X-Accel-Redirect`, `X-Sendfile`); and users and PHP times in the access
//! log.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::setup::Setup;
use howdah_tests::{Conn, Request, Site, php, scenario, script_scenario};

/// Hands over the file in the request.
const HAND: &str = php!("handed_over_files/hand.php");

fn files(setup: Setup) -> Setup {
    let large: Vec<u8> = (0..3_000_000u32).map(|n| b'a' + u8::try_from(n % 23).unwrap_or(0)).collect();
    setup
        .php("hand.php", HAND)
        .file("public.txt", "public")
        .file("../files/a b.txt", "0123456789")
        .file("../files/deep/large.bin", large)
        .file("../files/source.php", "<?php echo 'secret';")
        .file("../files/.dot", "dot")
        .file("../outside.txt", "outside")
        .allow_log("does not name a file that can be sent")
}

fn accel(name: &str) -> String {
    format!("/hand.php?field=X-Accel-Redirect&name={name}")
}

script_scenario!(
    a_script_hands_a_file_to_the_server,
    howdah_only = "the reference has no internal location",
    |s| files(s).setting("static.x_accel_redirect", r#"{ "/protected/" = "@TOP@/files" }"#),
    |site| {
        let target = accel("/protected/a%2520b.txt%3Fq%3D1");
        let answer = site.get(&target).expect(200);
        assert_eq!(answer.text(), "0123456789");
        assert_eq!(answer.header("content-type").map(|media| media.split(';').next().unwrap()), Some("text/plain"));
        assert_eq!(answer.header("content-disposition"), Some("attachment; filename=\"f.txt\""));
        assert_eq!(answer.all("cache-control"), ["private, max-age=5"]);
        assert_eq!(answer.all("set-cookie").len(), 2);
        assert_eq!(answer.header("content-length"), Some("10"));
        for gone in ["x-accel-redirect", "x-powered-by", "location"] {
            assert_eq!(answer.header(gone), None, "{gone}");
        }
        let etag = answer.header("etag").unwrap().to_owned();
        assert_ne!(etag, "\"of-the-script\"");
        // All features of static files apply to these files too.
        let part = site.send(&Request::get(&target).header("Range", "bytes=2-4")).expect(206);
        assert_eq!((part.text().as_str(), part.header("content-range")), ("234", Some("bytes 2-4/10")));
        let large = accel("/protected/deep/large.bin");
        let parts = site.send(&Request::get(&large).header("Range", "bytes=0-0,2999999-")).expect(206);
        assert!(parts.header("content-type").unwrap().starts_with("multipart/byteranges"));
        assert_eq!(parts.text().matches("Content-Type: text/plain").count(), 2);
        assert_eq!(site.send(&Request::get(&target).header("If-None-Match", &etag)).expect(304).body, b"");
        let _ = site.send(&Request::get(&target).header("Range", "bytes=10-")).expect(416);
        assert_eq!(site.send(&Request::new("HEAD", &target)).expect(200).header("content-length"), Some("10"));
        assert_eq!(site.send(&Request::form(&target, "a=b")).expect(200).text(), "0123456789");
        let large = site.get(&format!("{large}&type=application/octet-stream")).expect(200);
        assert_eq!(large.header("content-type"), Some("application/octet-stream"));
        assert_eq!(large.body.len(), 3_000_000);
        assert!(large.body.iter().enumerate().all(|(n, &byte)| usize::from(byte - b'a') == n % 23));
        assert_eq!(site.get(&accel("/protected/.dot")).expect(200).text(), "dot");
    },
);

scenario!(
    a_file_that_is_handed_over_lies_in_its_directory,
    howdah_only = "the reference has no internal location",
    |s| files(s)
        .setting("static.x_accel_redirect", r#"{ "/protected/" = "@TOP@/files" }"#)
        .setting("static.x_sendfile", r#"["@TOP@/files"]"#),
    |site| {
        let top = site.place().top.display().to_string();
        std::os::unix::fs::symlink("../outside.txt", site.place().top.join("files/link.txt")).unwrap();
        std::os::unix::fs::symlink("..", site.place().top.join("files/up")).unwrap();
        for name in [
            "/protected/",
            "/protected",
            "/protected/deep",
            "/protected/none.txt",
            "/protected/../outside.txt",
            "/protected/%252e%252e/outside.txt",
            "/protected/..%252foutside.txt",
            "/protected/link.txt",
            "/protected/up/outside.txt",
            "/protected/a.txt%2500",
            "/protected/source.php",
            "/protectedx/a",
            "/public.txt",
            "a%20b.txt",
            "@named",
            "",
        ] {
            let answer = site.get(&accel(name));
            let text = answer.text();
            assert!(answer.status == 404 && answer.header("set-cookie").is_none(), "{name}: {}", answer.status);
            assert!(!text.contains("outside") && !text.contains("secret") && !text.contains("printed"), "{name}");
        }
        let sendfile = |name: &str| site.get(&format!("/hand.php?field=X-Sendfile&name={name}"));
        assert_eq!(sendfile(&format!("{top}/files/a%20b.txt")).expect(200).text(), "0123456789");
        assert_eq!(sendfile(&format!("{top}/files/a%20b.txt")).header("x-sendfile"), None);
        for name in [
            "/etc/passwd".to_owned(),
            format!("{top}/outside.txt"),
            format!("{top}/files/../outside.txt"),
            format!("{top}/files/link.txt"),
            format!("{top}/files/up/outside.txt"),
            format!("{top}/files/source.php"),
            format!("{top}/filesx"),
            "files/a%20b.txt".to_owned(),
            "../files/a%20b.txt".to_owned(),
        ] {
            assert_eq!(sendfile(&name).status, 404, "{name}");
        }
        // Clients cannot request them.
        for target in ["/protected/a%20b.txt", "/files/a%20b.txt", "/../files/a%20b.txt"] {
            assert_ne!(site.get(target).status, 200, "{target}");
        }
    },
);

scenario!(
    fields_that_nothing_answers_do_not_reach_clients,
    howdah_only = "the reference has no internal location",
    |s| files(s)
        .unix_listener()
        .setting("http.trusted_proxies", r#"["unix"]"#)
        .allow_log("dropped: no directory is configured for it")
        .php(
            "seen.php",
            "echo json_encode([$_SERVER['HTTP_X_SENDFILE_TYPE'] ?? '', $_SERVER['HTTP_X_ACCEL_MAPPING'] ?? '']);"
        ),
    |site| {
        for field in ["X-Accel-Redirect", "X-Sendfile"] {
            let target = format!("/hand.php?field={field}&name=/protected/a");
            let answer = site.get(&target).expect(201);
            assert_eq!((answer.header(field), answer.text().as_str()), (None, "what the script printed"));
            let mut conn = Conn::open(&site.unix());
            conn.send(Request::get(&target).bytes());
            assert_eq!(conn.response("GET").expect(201).header(field), Some("/protected/a"));
        }
        // Other fields that scripts send for nginx.
        for field in ["X-Accel-Buffering", "X-Accel-Charset", "X-Accel-Expires", "X-Accel-Limit-Rate"] {
            let target = format!("/hand.php?field={field}&name=no");
            assert_eq!(site.get(&target).expect(201).header(field), None, "{field}");
            let mut conn = Conn::open(&site.unix());
            conn.send(Request::get(&target).bytes());
            assert_eq!(conn.response("GET").expect(201).header(field), Some("no"), "{field}");
        }
        // A client must not decide how files are handed over.
        let asks =
            Request::get("/seen.php").header("X-Sendfile-Type", "X-Accel-Redirect").header("X-Accel-Mapping", "/=/");
        assert_eq!(site.send(&asks).expect(200).text(), r#"["",""]"#);
        let mut conn = Conn::open(&site.unix());
        conn.send(asks.bytes());
        assert_eq!(conn.response("GET").expect(200).text(), r#"["X-Accel-Redirect","\/=\/"]"#);
    },
);

/// The access log next to the root, and whether it satisfied `wanted` in time.
fn access_log(site: &Site, wanted: impl Fn(&str) -> bool) -> (bool, String) {
    let mut text = String::new();
    let logged = eventually(PATIENCE, || {
        text = std::fs::read_to_string(site.place().top.join("access.log")).unwrap_or_default();
        wanted(&text)
    });
    (logged, text)
}

scenario!(
    the_access_log_names_the_user_of_basic_authentication,
    howdah_only = "the reference keeps no access log",
    |s| s.php("who.php", "echo $_SERVER['PHP_AUTH_USER'] ?? '-';").setting("log.access", "\"../access.log\""),
    |site| {
        let auth = Request::get("/who.php?1").header("Authorization", "Basic YW4gImE6c2VjcmV0");
        assert_eq!(site.send(&auth).expect(200).text(), "an \"a");
        assert_eq!(site.get("/who.php?2").expect(200).text(), "-");
        let complete = |text: &str| ["who.php?1", "who.php?2"].iter().all(|line| text.contains(line));
        let (logged, text) = access_log(site, |text| complete(text) && text.ends_with('\n'));
        let user = |n: usize| text.lines().find(|line| line.contains(&format!("who.php?{n}"))).unwrap().to_owned();
        // The combined format separates fields by spaces, so a space in the name is escaped too.
        assert!(logged && user(2).contains("127.0.0.1 - - ["), "{text}");
        assert!(user(1).contains("127.0.0.1 - an\\x20\\x22a [") && !text.contains("secret"), "{text}");
    },
);

scenario!(
    work_after_the_response_does_not_count_as_waiting,
    howdah_only = "the reference keeps no access log",
    |s| s
        .php("after.php", "require 'gate.php'; usleep(60000); echo 'done'; fastcgi_finish_request(); gate('after');")
        .setting("log.access", "\"../access.log\""),
    |site| {
        let gate = site.gate("after");
        assert_eq!(site.get("/after.php").expect(200).text(), "done");
        // PHP is still running.
        let line = |text: &str| text.lines().filter(|line| line.contains("/after.php")).collect::<String>();
        let (logged, text) = access_log(site, |text| line(text).contains("total_us="));
        let text = line(&text);
        let number = |name: &str| {
            let value = text.split(name).nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
            value.unwrap_or_else(|| panic!("no {name} in {text}"))
        };
        let (queue, php, total) = (number("queue_us="), number("php_us="), number("total_us="));
        assert!(logged && php >= 60_000 && queue + php <= total, "{text}");
        gate.release();
    },
);
