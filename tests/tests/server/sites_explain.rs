//! `howdah explain` predicts what the server then does.

use super::sites::two_sites;
use howdah_tests::howdah::program;
use howdah_tests::{Conn, Site, php, scenario};
use serde_json::Value;
use std::process::Command;

/// Output of `howdah explain --json`.
pub(super) fn explain(site: &Site, arguments: &[&str]) -> Value {
    let output = Command::new(program())
        .arg("explain")
        .args(arguments)
        .arg("--json")
        .arg("--config")
        .arg(site.place().run.join("howdah.toml"))
        .arg("--root")
        .arg(&site.place().root)
        .env("HOWDAH_ALLOW_ROOT", "true")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

scenario!(
    explanations_match_the_responses,
    howdah_only = "sites are Howdah's",
    |s| {
        two_sites(s)
            .php("../shop/sub/who.php", php!("sites/who.php"))
            .file("../shop/sub/index.html", "an index")
            .file("../shop/.secret", "x")
            .file("../shop/copy.php.bak", "x")
            .setting("http.probes", "true")
    },
    |site| {
        let long = format!("/{}", "x".repeat(17_000));
        for (method, host, path) in [
            ("GET", "shop.example", "/a.txt"),
            ("HEAD", "shop.example", "/a.txt"),
            ("POST", "shop.example", "/a.txt"),
            ("GET", "x.shop.example:81", "/"),
            ("GET", "shop.example", "/no/such?q=1"),
            ("GET", "shop.example", "/sub?a=b"),
            ("GET", "shop.example", "/sub/"),
            ("GET", "shop.example", "/sub/who.php/info/x"),
            ("GET", "shop.example", "/.secret"),
            ("GET", "shop.example", "/copy.php.bak"),
            ("GET", "shop.example", "/%zz"),
            ("GET", "shop.example", "/../etc"),
            ("GET", "shop.example", &long),
            ("TRACE", "shop.example", "/"),
            ("GET", "blog.example", "/"),
            ("GET", "blog.example", "/old/who.php"),
            ("GET", "blog.example", "/no/such"),
            ("GET", "nobody.example", "/a.txt"),
            ("GET", "nobody.example", "/livez"),
            ("POST", "nobody.example", "/livez"),
        ] {
            let said = explain(site, &[method, &format!("http://{host}{path}")]);
            let mut conn = Conn::open(site.target());
            conn.send(format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
            let got = conn.response(method);
            let case = format!("{method} {host}{path}: {said:#}\n{got:?}");
            if said["script"].is_null() {
                assert_eq!(said["status"], got.status, "{case}");
                assert_eq!(said["location"].as_str(), got.header("location"), "{case}");
            } else {
                let ran = got.expect(200).json();
                assert_eq!(said["script"]["filename"], ran["script"], "{case}");
                assert_eq!(said["script"]["path_info"], ran["info"], "{case}");
                let pool = said["script"]["pool"].as_str().unwrap();
                let expected = if pool == "shop.example" { "own" } else { pool };
                assert_eq!(ran["pool"], expected, "{case}");
            }
        }
    },
);

scenario!(
    explanations_of_htaccess_files_match_the_responses,
    howdah_only = "`howdah explain` is Howdah's",
    |s| {
        s.php("who.php", "echo json_encode(['script' => __FILE__, 'info' => $_SERVER['PATH_INFO'] ?? '']);")
            .file("a.txt", "x")
            .file("list/b.txt", "x")
            .file(
                ".htaccess",
                "RewriteEngine On\nRewriteRule ^old$ /a.txt [R=301,L]\nRewriteRule ^shown/(.*)$ who.php/$1 [L]\n\
                 RewriteRule ^gone$ - [G]\nRewriteRule ^again$ a.txt [L]\n",
            )
            .file("closed/.htaccess", "Require all denied\n")
            .file("closed/c.txt", "x")
            .file("list/.htaccess", "Options +Indexes\n")
            .file("wrong/.htaccess", "Nonsense\n")
            .file("wrong/d.txt", "x")
            .setting("htaccess", "true")
            .allow_log("Nonsense")
            .allow_log("a .htaccess file cannot be applied")
    },
    |site| {
        for path in [
            "/a.txt",
            "/old",
            "/shown/x/y",
            "/gone",
            "/again",
            "/closed/c.txt",
            "/list/",
            "/list",
            "/wrong/d.txt",
            "/none",
        ] {
            let said = explain(site, &[&format!("http://localhost{path}")]);
            let got = site.get(path);
            let case = format!("{path}: {said:#}\n{got:?}");
            if said["script"].is_null() {
                assert_eq!(said["status"], got.status, "{case}");
                assert_eq!(said["location"].is_null(), got.header("location").is_none(), "{case}");
            } else {
                let ran = got.expect(200).json();
                assert_eq!(said["script"]["filename"], ran["script"], "{case}");
                assert_eq!(said["script"]["path_info"], ran["info"], "{case}");
            }
        }
        let said = explain(site, &["http://localhost/again"]).to_string();
        assert!(said.contains("the path becomes /a.txt"), "{said}");
    },
);

scenario!(the_steps_give_their_reasons, howdah_only = "sites are Howdah's", two_sites, |site| {
    let steps = |arguments: &[&str]| {
        let said = explain(site, arguments);
        let steps = said["steps"].as_array().unwrap().iter();
        steps
            .map(|step| format!("{}: {}\n", step["about"].as_str().unwrap(), step["text"].as_str().unwrap()))
            .collect::<String>()
    };
    let said = steps(&["http://www.shop.example/no/such"]);
    for expected in [
        "client: 127.0.0.1",
        "site: \"shop.example\", by its host \"*.shop.example\", ",
        "10-shop.toml:1\n",
        "route: the front controller, index.php",
        "pool: \"shop.example\", mode \"classic\", the site's own",
        "response: the script's output",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    assert!(steps(&["http://blog.example/old/who.php"]).contains("pool: \"default\", mode \"classic\", by a rule"));
    assert!(
        steps(&["/a.txt", "--header", "Host: blog.example"]).contains("site: \"blog\", by its host \"blog.example\"")
    );
    assert!(steps(&["/a.txt"]).contains("site: none: no site has hosts for a request without a host"));
    let output = Command::new(program()).args(["explain", "http://a b/"]).output().unwrap();
    assert!(!output.status.success());
});

scenario!(
    explained_try_files_are_those_that_are_served,
    howdah_only = "the rules are Howdah's",
    |s| {
        s.file("real.txt", "real").php("index.php", "echo $_SERVER['QUERY_STRING'];").setting(
            "rule",
            "[{ path = '/try/*', try_files = ['/$1', '/index.php?missing=$1'] }, \
             { path = '/none/*', try_files = ['/$1', '=410'] }]",
        )
    },
    |site| {
        assert_eq!(site.get_ok("/try/real.txt"), "real");
        let said = explain(site, &["http://localhost/try/real.txt"]);
        assert!(said["file"].as_str().unwrap().ends_with("/real.txt"), "{said:#}");
        assert_eq!(site.get_ok("/try/other.txt"), "missing=other.txt");
        let said = explain(site, &["http://localhost/try/other.txt"]);
        assert_eq!(said["script"]["name"], "/index.php", "{said:#}");
        assert_eq!(site.get("/none/other.txt").status, 410);
        assert_eq!(explain(site, &["http://localhost/none/other.txt"])["status"], 410);
    },
);
