//! The rules of a site as clients see them: running, sending, refusing and redirecting, over HTTP/1 and HTTP/2.

use howdah_skip::skip;
use howdah_tests::{Mode, Request, Response, Setup, Site, run};
use std::process::Command;

/// Rules, each as the inside of an inline table.
fn rules(setup: Setup, rules: &[&str]) -> Setup {
    let list: Vec<String> = rules.iter().map(|rule| format!("{{ {rule} }}")).collect();
    setup.setting("rule", &format!("[{}]", list.join(", ")))
}

/// Over HTTP/2: `true` for a successful status, and the body.
fn h2(site: &Site, path: &str) -> (bool, String) {
    let answers = howdah_tests::h2::get_all(site.target(), &[path.to_owned()], |_| {});
    (answers[0].ok, String::from_utf8_lossy(&answers[0].body).into_owned())
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = text.as_bytes().chunks(3).flat_map(|part| {
        let number = (0..3).fold(0_usize, |number, at| number << 8 | usize::from(*part.get(at).unwrap_or(&0)));
        let letter =
            move |at: usize| if at <= part.len() { char::from(LETTERS[number >> (18 - 6 * at) & 63]) } else { '=' };
        (0..4).map(letter)
    });
    letters.collect()
}

const DUMP: &str = "foreach (['SCRIPT_NAME', 'PATH_INFO', 'QUERY_STRING', 'REQUEST_URI', 'REMOTE_USER', 'AUTH_TYPE', 'COLOUR', 'REDIRECT_STATUS', 'HTTP_X_GONE'] as $name) echo $name, '=', $_SERVER[$name] ?? '-', ';';";

#[test]
fn a_rewrite_changes_the_script_and_keeps_the_request_target() {
    let setup = |s: Setup| {
        rules(
            s.php("index.php", DUMP).php("api/front.php", DUMP).file("real.txt", "real"),
            &[
                "path = '~^/wiki/(?<title>.+)$', rewrite = '/index.php?title=${title}', env = { COLOUR = 'red' }",
                "path = '/api/*', front_controller = '/api/front.php', request_headers = { X-Gone = '' }",
                "path = '/try/*', try_files = ['/$1', '/index.php?missing=$1']",
            ],
        )
    };
    run(Mode::Classic, setup, |site| {
        let dump = site.get_ok("/wiki/A%26b?x=1");
        assert!(dump.contains("SCRIPT_NAME=/index.php;PATH_INFO=;QUERY_STRING=title=A%26b&x=1;"), "{dump}");
        assert!(dump.contains("REQUEST_URI=/wiki/A%26b?x=1;") && dump.contains("COLOUR=red;"), "{dump}");
        let dump = site.send(&Request::get("/api/none/at/all").header("X-Gone", "1")).expect(200).text();
        assert!(dump.contains("SCRIPT_NAME=/api/front.php;") && dump.contains("HTTP_X_GONE=-;"), "{dump}");
        assert_eq!(site.get_ok("/try/real.txt"), "real");
        assert!(site.get_ok("/try/other.txt").contains("QUERY_STRING=missing=other.txt;"));
        assert!(h2(site, "/wiki/Main").1.contains("QUERY_STRING=title=Main;"));
    });
}

#[test]
fn denied_paths_are_refused_in_every_spelling() {
    let setup = |s: Setup| {
        rules(
            s.php("index.php", "echo 'front';")
                .php("up/evil.php", "echo 'RAN';")
                .file("up/a.txt", "a")
                .file("secret/x.txt", "s"),
            &[
                "path = ['/secret/*', '*.bak'], deny = true",
                "path = '/up/*', php = false",
                "path = '/gone', status = 410",
                "path = '/hello', status = 200, body = 'hi'",
            ],
        )
    };
    run(Mode::Classic, setup, |site| {
        for path in [
            "/secret/x.txt",
            "//secret/x.txt",
            "/a/../secret/x.txt",
            "/%73ecret/x.txt",
            "/secret%2fx.txt",
            "/secret/%0a",
            "/x.bak",
        ] {
            assert_eq!(site.get(path).status, 403);
            assert!(!h2(site, path).0, "{path}");
        }
        for path in ["/up/evil.php", "/up/evil.php/x", "/up/%65vil.php", "/up/EVIL.php/../evil.php"] {
            let response = site.get(path).expect(403);
            assert!(!response.text().contains("RAN") && !response.text().contains("<?php"), "{path}");
        }
        assert_eq!(site.get("/up/none.txt").status, 404);
        assert_eq!(site.get_ok("/up/a.txt"), "a");
        assert_eq!(site.get("/gone").status, 410);
        assert_eq!(site.get_ok("/hello"), "hi");
        assert_eq!(site.get_ok("/anything"), "front");
    });
}

#[test]
fn redirects_headers_and_cache_control_reach_the_client() {
    let setup = |s: Setup| {
        rules(
            s.php("index.php", "header('X-Powered-By: me'); header('Content-Type: text/html'); echo 'x';")
                .file("a.css", "a{}"),
            &[
                "path = '/old/*', redirect = '/new/$1', status = 301",
                "headers = { X-Frame-Options = 'DENY', X-Powered-By = '', '+Link' = '</a.css>' }",
                "cache_control = { 'text/css' = 'max-age=60' }, types = ['text/html'], headers = { '?X-Html' = 'yes' }",
                "path = '/a.css', mime = { css = 'text/x-css' }",
                "path = '/cors/*', cors = { origins = ['https://app.example'], credentials = true }, rewrite = '/index.php'",
                "path = '/denied', deny = true",
            ],
        )
    };
    run(Mode::Classic, setup, |site| {
        let response = site.get("/old/a%20b/%0d%0aX:y?q=1").expect(301);
        assert_eq!(response.header("location"), Some("/new/a%20b/%0D%0AX:y?q=1"));
        let page = site.get("/").expect(200);
        assert_eq!((page.header("x-frame-options"), page.header("x-powered-by")), (Some("DENY"), None));
        assert_eq!(
            (page.header("link"), page.header("x-html"), page.header("cache-control")),
            (Some("</a.css>"), Some("yes"), None)
        );
        assert_eq!(site.get("/denied").expect(403).header("x-frame-options"), Some("DENY"));
        let css = site.get("/a.css").expect(200);
        assert_eq!((css.header("content-type"), css.header("x-html")), (Some("text/x-css"), None));
        let asked = |method: &str, origin: &str| {
            let request = Request::new(method, "/cors/x").header("Origin", origin);
            site.send(&request.header("Access-Control-Request-Method", "PUT"))
        };
        let preflight = asked("OPTIONS", "https://app.example").expect(204);
        assert_eq!(preflight.header("access-control-allow-origin"), Some("https://app.example"));
        assert!(preflight.header("access-control-allow-methods").is_some_and(|methods| methods.contains("PUT")));
        assert!(asked("OPTIONS", "https://evil.example").header("access-control-allow-origin").is_none());
        let response = asked("GET", "https://app.example").expect(200);
        assert_eq!(response.header("access-control-allow-credentials"), Some("true"));
        assert!(response.varies_on("origin"));
    });
}

#[test]
fn an_alias_and_a_root_serve_other_directories() {
    let setup = |s: Setup| {
        let s = s.php("index.php", "echo 'site';");
        let s = s.php("other/index.php", DUMP).file("other/a.txt", "other").php("other/sub/index.php", DUMP);
        rules(
            s,
            &[
                "path = ['/app', '/app/*'], alias = '@ROOT@/other', front_controller = '/app/index.php'",
                "path = '/one.txt', alias = '@ROOT@/other/a.txt'",
                "path = '/list/*', alias = '@ROOT@/other', index = ['none'], listing = true, php = false",
            ],
        )
    };
    run(Mode::Classic, setup, |site| {
        assert_eq!(site.get("/app").expect(301).header("location"), Some("/app/"));
        assert!(site.get_ok("/app/").contains("SCRIPT_NAME=/app/index.php;"));
        assert!(site.get_ok("/app/sub/").contains("SCRIPT_NAME=/app/sub/index.php;"));
        assert!(site.get_ok("/app/none").contains("SCRIPT_NAME=/app/index.php;"));
        assert!(site.get_ok("/app/a.txt").contains("other") && site.get_ok("/one.txt").contains("other"));
        let page = site.get_ok("/list/");
        assert!(
            page.contains("href=\"./a.txt\"") && page.contains("href=\"./sub/\"") && !page.contains("index.php"),
            "{page}"
        );
        assert_eq!(site.get("/list/index.php").status, 403);
        assert_eq!(site.get("/app/../../etc/passwd").status, 400);
    });
}

#[test]
fn errors_and_maintenance_have_their_pages() {
    let setup = |s: Setup| {
        rules(
            s.php("error.php", DUMP).file("gone.html", "<p>gone</p>").file("away.html", "away").file("x.txt", "x"),
            &[
                "front_controller = '', error_pages = { 404 = '/gone.html', 4xx = '/error.php', 5xx = '/none.html' }",
                "path = '/denied', deny = true",
                "path = '/broken', status = 503",
                "path = '/shop/*', maintenance = { page = '/away.html', flag = '@TOP@/down', retry_after = '2m' }",
            ],
        )
    };
    run(Mode::Classic, setup, |site| {
        let page = site.send(&Request::get("/nothing").header("Range", "bytes=0-1")).expect(404);
        assert_eq!(
            (page.text().as_str(), page.header("content-type")),
            ("<p>gone</p>", Some("text/html; charset=utf-8"))
        );
        assert!(site.get("/denied").expect(403).text().contains("REDIRECT_STATUS=403;"));
        assert_eq!(site.get("/broken").status, 503);
        assert_eq!(site.get("/shop/x").status, 404);
        std::fs::write(site.place().top.join("down"), "").unwrap();
        let away = site.get("/shop/x").expect(503);
        assert_eq!((away.text().as_str(), away.header("retry-after")), ("away", Some("120")));
        assert_eq!(site.get_ok("/x.txt"), "x");
    });
}

#[test]
fn a_pattern_that_takes_too_long_is_an_error() {
    let setup = |s: Setup| {
        let s = s.php("index.php", "echo 'ok';").expect_log("too many steps");
        rules(s, &["name = 'slow', path = '~^/(?!x)(a+)+\\1$', deny = true"])
    };
    run(Mode::Classic, setup, |site| {
        assert_eq!(site.get(&format!("/{}b", "a".repeat(60))).status, 500);
        assert_eq!(site.get_ok("/c"), "ok");
    });
}

#[test]
fn passwords_of_the_real_htpasswd_are_accepted() {
    let hash = |flags: &str, user: &str| {
        let made = Command::new("htpasswd").args([flags, user, "geheim"]).output().ok()?;
        Some(String::from_utf8_lossy(&made.stdout).trim().to_owned())
    };
    let (Some(bcrypt), Some(md5), Some(sha)) = (hash("-nbB", "anna"), hash("-nb", "bert"), hash("-nbs", "carl")) else {
        skip!("htpasswd", "apache2-utils is not installed");
    };
    let setup = |s: Setup| {
        let s = s.php("index.php", DUMP).file("users", format!("{bcrypt}\n{md5}\n{sha}\n")).allow_log("wrong user");
        rules(
            s,
            &[
                "path = '/admin/*', auth = { realm = 'Staff', file = '@ROOT@/users' }",
                "path = '/admin/open', auth = false",
                "path = '/admin/secret', deny = true",
            ],
        )
    };
    run(Mode::Classic, setup, |site| {
        let ask = |path: &str, user: &str, password: &str| -> Response {
            let credentials = base64(&format!("{user}:{password}"));
            site.send(&Request::get(path).header("Authorization", &format!("Basic {credentials}")))
        };
        let asked = site.get("/admin/x").expect(401);
        assert_eq!(asked.header("www-authenticate"), Some("Basic realm=\"Staff\", charset=\"UTF-8\""));
        for user in ["anna", "bert", "carl"] {
            for _ in 0..2 {
                let dump = ask("/admin/x", user, "geheim").expect(200).text();
                assert!(dump.contains(&format!("REMOTE_USER={user};AUTH_TYPE=Basic;")), "{dump}");
            }
            assert_eq!(ask("/admin/x", user, "falsch").status, 401);
        }
        assert_eq!(ask("/admin/x", "nobody", "geheim").status, 401);
        assert_eq!(site.get("/admin/secret").status, 401);
        assert_eq!(ask("/admin/secret", "carl", "geheim").status, 403);
        assert!(site.get_ok("/admin/open").contains("REMOTE_USER=-;"));
        assert!(site.get_ok("/").contains("REMOTE_USER=-;"));
    });
}

#[test]
fn clients_at_once_get_no_more_than_their_limit() {
    let setup =
        |s: Setup| rules(s.php("index.php", "echo 'ok';"), &["path = '/login', limit = { rate = '1/h', burst = 9 }"]);
    run(Mode::Classic, setup, |site| {
        let site = &*site;
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..8)
                .map(|_| scope.spawn(move || (0..5).map(|_| site.get("/login").status).collect::<Vec<_>>()))
                .collect();
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
        });
        assert_eq!(statuses.iter().filter(|&&status| status == 200).count(), 10, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|&&status| status == 429).count(), 30, "{statuses:?}");
        let refused = site.get("/login").expect(429);
        assert!(refused.header("retry-after").and_then(|seconds| seconds.parse::<u32>().ok()).is_some_and(|s| s > 60));
        assert_eq!(site.get_ok("/other"), "ok");
    });
}

#[test]
fn an_application_under_a_path_has_its_rules_only_there() {
    let setup = |s: Setup| {
        let s = s.php("index.php", "echo 'site';").php("files/doku.php", DUMP).file("files/data/x.txt", "secret");
        rules(s, &["path = ['/wiki', '/wiki/*'], alias = '@ROOT@/files', app = 'dokuwiki'"])
    };
    run(Mode::Classic, setup, |site| {
        assert_eq!(site.get("/wiki/data/x.txt").status, 403);
        assert!(site.get_ok("/wiki/start").contains("SCRIPT_NAME=/wiki/doku.php;PATH_INFO=;QUERY_STRING=id=start;"));
        assert_eq!(site.get("/wiki/none/such.css").status, 404);
        assert_eq!(site.get_ok("/data/x.txt"), "site");
    });
}

#[test]
fn hundreds_of_rules_are_evaluated_correctly() {
    let setup = |s: Setup| {
        let list: Vec<String> = (0..200)
            .map(|at| match at % 3 {
                0 => format!("path = '/p{at}', status = 410"),
                1 => format!("path = '/p{at}/*', redirect = '/to/$1'"),
                _ => format!("path = '~^/p{at}-([0-9]+)$', rewrite = '/index.php?n=$1'"),
            })
            .collect();
        rules(s.php("index.php", DUMP), &list.iter().map(String::as_str).collect::<Vec<_>>())
    };
    run(Mode::Classic, setup, |site| {
        assert_eq!(site.get("/p198").status, 410);
        assert_eq!(site.get("/p199/x").expect(302).header("location"), Some("/to/x"));
        assert!(site.get_ok("/p197-12").contains("QUERY_STRING=n=12;"));
        assert!(site.get_ok("/p").contains("QUERY_STRING=;"));
    });
}
