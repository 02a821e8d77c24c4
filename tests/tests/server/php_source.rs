//! A file ending in `.php` runs or is refused; its source is never sent, whatever the path's form.

use howdah_tests::{Request, scenario};
use std::os::unix::fs::symlink;

const SECRET: &str = "'password-in-' . 'the-source'";

/// Targets that have exposed source code on some server.
const TRICKS: &[&str] = &[
    "/s.php",
    "/s.php/",
    "/s.php//",
    "/s.php.",
    "/s.php..",
    "/s.php%20",
    "/s.php%00",
    "/s.php%00.txt",
    "/s.php%0a",
    "/s.php/.",
    "/s.php/..",
    "/s.php/x.txt",
    "/s.php%2f",
    "/s.php%2fx.css",
    "/s%2ephp",
    "/s%2Ephp",
    "/s.ph%70",
    "/S.PHP",
    "/s.PHP",
    "/s.pHp",
    "/s.php::$DATA",
    "/s.php~",
    "/s.php;.txt",
    "/s.php%3b.txt",
    "/s.php%3f",
    "/s.php%23",
    "/./s.php",
    "//s.php",
    "/%2e/s.php",
    "/d/../s.php",
    "/s.php?x=.txt",
    "/s.php%5c",
    "/s.php%ff",
    "/s.php%c0%ae",
    "/link.txt",
    "/upper.PHP",
    "/upper.php",
    "/d/linkdir/s.php",
    "/s.php%252e",
    "/s.php/s.php",
    "/s.php%20/x",
    "/\\s.php",
    "/s.php\\",
    "/s.php%09",
];

scenario!(
    source_is_never_sent,
    |s| s
        .never_behind_nginx("nginx sends links and names in capitals as files")
        .php("s.php", &format!("echo 'ran'; // {SECRET}"))
        .php("upper.PHP", &format!("echo 'ran'; // {SECRET}"))
        .file("d/x.txt", "x"),
    |site| {
        symlink("..", site.file("d/linkdir")).unwrap();
        if !site.is_reference() {
            // nginx would send this one: it checks only the link's name.
            symlink("s.php", site.file("link.txt")).unwrap();
            std::fs::copy(site.file("s.php"), site.file("Mixed.pHp")).unwrap();
        }
        for trick in TRICKS.iter().filter(|t| !site.is_reference() || !t.to_lowercase().contains("upper")) {
            for method in ["GET", "POST", "HEAD", "OPTIONS"] {
                for header in [("X-None", "1"), ("Range", "bytes=0-1000"), ("Accept-Encoding", "identity")] {
                    let mut conn = site.conn();
                    conn.send(Request::new(method, trick).header(header.0, header.1).close().bytes());
                    let Some(response) = conn.try_response(method) else { continue };
                    assert!(
                        !response.text().contains("password-in-"),
                        "{method} {trick} shows the source:\n{}",
                        response.text()
                    );
                    assert_ne!(response.header("content-type"), Some("application/x-php"), "{trick}");
                }
            }
        }
    },
);

scenario!(scripts_that_do_not_exist_are_404, |s| s.php("s.php", "echo 'ran';"), |site| {
    for target in ["/none.php", "/none.php/info", "/s.txt/none.php", "/d/none.php?x"] {
        assert_eq!(site.get(target).status, 404, "{target}");
    }
});

scenario!(
    an_uploaded_image_is_not_run_through_path_info,
    |s| s.file("up/evil.png", "<?php echo 'EXE' . 'CUTED';").file("up/evil.txt", "<?php echo 'EXE' . 'CUTED';"),
    |site| {
        for target in [
            "/up/evil.png/x.php",
            "/up/evil.png/.php",
            "/up/evil.png%00.php",
            "/up/evil.txt/index.php",
            "/up/evil.png%20.php",
        ] {
            let response = site.get(target);
            assert!(!response.text().contains("EXECUTED"), "{target}");
            assert!([400, 403, 404].contains(&response.status), "{target}: {}", response.status);
        }
    },
);
