//! Access is checked for what is actually served: a sample, with PHP, of the spellings in
//! `crates/site/src/access_tests.rs`.

use crate::server::http3;
use howdah_tests::{Conn, Mode, Request, Setup, Site, Upstream, run, scenario};

/// Rules that protect, and a rewrite around them.
const RULES: &str = "[
    { path = '/secret.php', auth = { realm = 'r', users = { a = '$2y$05$xZEHREeI1mL1Th6Ky4Ku3.sw.6qzbgb/eK/QUvyOkgzX72r1jvWNW' } } },
    { path = '/install.php', allow = ['10.0.0.0/8'] },
    { path = '/login.php', method = 'POST', limit = { rate = '1/h', burst = 0 } },
    { path = '/up/*', exists = ['file', 'directory'], php = false },
    { path = ['/admin', '/admin/*'], deny = true },
    { path = '/sub/index.php', status = 404 },
    { host = 'admin.example.org', deny = true },
    { path = '/way/*', rewrite = '/$1' },
]";

fn protected(setup: Setup) -> Setup {
    let setup = setup.setting("rule", &RULES.replace('\n', " ")).file("admin/file.txt", "RAN");
    ["index.php", "open.php", "secret.php", "install.php", "login.php", "up/x.php", "admin/x.php", "sub/index.php"]
        .into_iter()
        .fold(setup, |setup, name| setup.php(name, &format!("echo 'RAN {name} ', $_SERVER['PATH_INFO'] ?? '';")))
        .file("up/y.PHP", "<?php echo 'RAN';")
}

/// Request paths with the expected status.
const REFUSED: [(&str, u64); 16] = [
    ("/secret.php", 401),
    ("/secret.php/", 401),
    ("/secret.php%2fx", 401),
    ("/%73ecret.php/.x", 401),
    ("/way/secret.php", 401),
    ("/install.php/", 403),
    ("/install.php/x.css", 403),
    ("/up/x.php", 403),
    ("/up/x.php/", 403),
    ("/up/y.PHP", 403),
    ("/way/up/x.php", 403),
    ("/admin", 403),
    ("/admin/file.txt", 403),
    ("/index.php/admin/x", 403),
    ("/way/admin/file.txt", 403),
    ("/sub/", 404),
];

fn check(site: &Site) {
    for (path, status) in REFUSED {
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            let response = site.send(&Request::new(method, path).header("Content-Length", "0"));
            assert_eq!(u64::from(response.status), status, "{method} {path}: {}", response.text());
            assert!(!response.text().contains("RAN"), "{method} {path}");
        }
        let answers = howdah_tests::h2::get_all(site.target(), &[path.to_owned()], |_| {});
        assert!(!answers[0].ok && !answers[0].body.starts_with(b"RAN"), "{path}");
    }
    let logins = ["/login.php", "/login.php/a", "/login.php/b", "/login.php%2fc", "/way/login.php"];
    let statuses = logins.map(|path| site.send(&Request::post(path, "a/b", "x")).status);
    assert_eq!(statuses, [200, 429, 429, 429, 429]);
    for (host, status) in [("admin.example.org", 403), ("ADMIN.example.org.:80", 403), ("other.example.org", 200)] {
        let mut conn = site.conn();
        conn.send(format!("GET /open.php HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
        assert_eq!(conn.response("GET").status, status, "{host}");
    }
    assert_eq!(site.get_ok("/open.php/admin/x"), "RAN open.php /admin/x");
    assert_eq!(site.get_ok("/login.php/x"), "RAN login.php /x");
}

#[test]
fn rules_apply_to_the_served_file_however_it_is_reached() {
    run(Mode::Classic, protected, |site| {
        check(site);
        assert_eq!(site.get_ok("/none"), "RAN index.php ");
    });
}

/// The target of a rewrite in an `.htaccess` file is checked like the path of a request.
#[test]
fn no_htaccess_file_bypasses_rules() {
    let file = "RewriteEngine on\nRewriteRule ^media/(.*)$ up/$1 [L]\nRewriteRule ^way/(.*)$ $1 [L]\n\
                RewriteRule ^open2$ open.php [L]\nErrorDocument 404 /admin/file.txt\n\
                <FilesMatch \"\\.php$\">\nHeader set X-Match yes\n</FilesMatch>\nAddHandler application/x-httpd-php .php\n";
    let setup = |s: Setup| protected(s).setting("htaccess", "true").file(".htaccess", file);
    run(Mode::Classic, setup, |site| {
        check(site);
        for path in ["/media/x.php", "/media/y.PHP", "/media/x.php/z"] {
            let response = site.get(path);
            assert_eq!(response.status, 403, "{path}");
            assert!(!response.text().contains("RAN"), "{path}");
        }
        // A protected error page is not used.
        let missing = site.get("/none");
        assert!(missing.status == 404 && !missing.text().contains("RAN"), "{}", missing.text());
        assert_eq!(site.get_ok("/open2"), "RAN open.php ");
    });
}

#[test]
fn rules_apply_to_served_files_over_http_3() {
    run(
        Mode::Classic,
        |s: Setup| protected(http3::http3(s)),
        |site| {
            for (path, status) in [REFUSED[1], REFUSED[4], REFUSED[10], REFUSED[13]] {
                assert_eq!(http3::run(site, &["get", path])["status"], status, "{path}");
            }
            assert_eq!(http3::run(site, &["get", "/open.php/x"])["text"], "RAN open.php /x");
        },
    );
}

const REMOTE: &str = "echo 'remote ', $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['PATH_INFO'] ?? '-';";

/// WebDAV, Git and ACME use names there that no file of a site may have.
fn names_behind_a_script(site: &Site) {
    for info in [
        "/dav/files/anna/.obsidian/app.json",
        "/dav/uploads/anna/x/.file",
        "/repository/.git/config",
        "/.well-known/acme-challenge/x",
        "/x.php.bak",
        "/howdah.toml",
        "/a. /b.",
    ] {
        let target = format!("/remote.php{}", info.replace(' ', "%20"));
        for method in ["PUT", "MOVE", "GET"] {
            let response = site.send(&Request::new(method, &target).header("Content-Length", "0")).expect(200);
            assert_eq!(response.text(), format!("remote {method} {info}"));
        }
        assert_eq!(
            howdah_tests::h2::get_all(site.target(), &[target], |_| {})[0].body,
            format!("remote GET {info}").as_bytes()
        );
    }
    assert_eq!(site.get_ok("/remote.php/a/../b%2fc//d"), "remote GET /b/c/d");
    assert_eq!(site.get("/remote.php/a%00").status, 400);
}

#[test]
fn no_path_info_of_a_script_changes_the_answer() {
    let files = |s: Setup| s.php("remote.php", REMOTE).php("index.php", "echo 'index';").file(".git/hook.php", "x");
    run(Mode::Classic, files, |site| {
        names_behind_a_script(site);
        assert_eq!(site.get_ok("/.git/hook.php/x"), "index");
    });
    let with_files = |s: Setup| files(s).setting("htaccess", "true").file(".htaccess", "DirectoryIndex index.php\n");
    run(Mode::Classic, with_files, |site| {
        names_behind_a_script(site);
        assert_eq!(site.get("/.git/hook.php/x").status, 404);
    });
}

scenario!(
    no_dots_lead_around_the_redirect_to_https,
    howdah_only = "the harness configures the reference without TLS",
    |s| s
        .https()
        .second_listener()
        .setting("tls.redirect", "true")
        .file(".well-known/acme-challenge/token", "proof")
        .php("login.php", "echo 'RAN';"),
    |site| {
        for (path, status) in [
            ("/login.php", 301),
            ("/.well-known/acme-challenge/../../login.php", 301),
            ("/.well-known/acme-challenge/%2e%2e/%2e%2e/login.php", 301),
            ("/.well-known/acme-challenge%2f..%2f../login.php", 301),
            ("/.well-known/acme-challenge/token", 200),
            ("/x/../.well-known/acme-challenge/token", 200),
        ] {
            let mut plain = Conn::open(&site.second());
            let response = plain.exchange(&Request::get(path));
            assert_eq!(response.status, status, "{path}");
            assert!(!response.text().contains("RAN"), "{path}");
        }
    },
);

/// Many servers strip parameters from a path's segments before they resolve dots, and ignore a trailing slash.
#[test]
fn rules_apply_to_the_path_as_a_proxied_server_reads_it() {
    let upstream = Upstream::saying("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nREACHED");
    let rules = format!(
        "[{{ path = [\"/back/admin\", \"/back/admin/*\", \"/back/secret.jsp\"], deny = true }}, \
         {{ path = \"/back/*\", proxy = \"{}\" }}]",
        upstream.url()
    );
    run(
        Mode::Classic,
        |s| s.workers(1).setting("rule", &rules),
        |site| {
            for path in [
                "/back/admin",
                "/back/admin;x",
                "/back/admin;x/page",
                "/back/;/admin",
                "/back/public/..;/admin/page",
                "/back/public/..;x=y/admin",
                "/back/%61dmin%3bx",
                "/back/secret.jsp/",
                "/back/secret.jsp;jsessionid=1",
                "/back/x/../secret.jsp/%2e",
                "/;/back/;/secret.jsp",
            ] {
                assert!([403, 404].contains(&site.get(path).status), "{path}");
                assert!(!site.get(path).text().contains("REACHED"), "{path}");
            }
            for path in ["/back/", "/back/public/", "/back/public;jsessionid=1", "/back/secret.jsp.html"] {
                assert_eq!(site.get_ok(path), "REACHED", "{path}");
            }
            upstream.cut();
        },
    );
}
