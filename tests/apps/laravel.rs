//! A small Laravel application (`laravel/`, on Debian's packages of Laravel 8) in snapshot mode, booted by the worker
//! script of `examples/snapshot`: its pages are those of its plain front controller in classic mode.

use howdah_tests::site::replace_file;
use howdah_tests::{Kind, Request, Setup, Site, run};
use std::path::Path;

const FILES: [&str; 13] = [
    "app/Counter.php",
    "app/HttpKernel.php",
    "app/Routes.php",
    "bootstrap/app.php",
    "config/app.php",
    "config/cache.php",
    "config/database.php",
    "config/logging.php",
    "config/session.php",
    "config/view.php",
    "resources/views/page.blade.php",
    "routes/web.php",
    "storage/data.sqlite",
];

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The project around the document root.
fn project(setup: Setup) -> Setup {
    let setup = FILES.iter().fold(setup, |s, file| {
        let content = if file.ends_with("sqlite") { String::new() } else { text(&format!("apps/laravel/{file}")) };
        s.file(&format!("../{file}"), content)
    });
    let directories = ["bootstrap/cache", "storage/framework/sessions", "storage/framework/views", "storage/logs"];
    directories
        .iter()
        .fold(setup, |s, directory| s.file(&format!("../{directory}/.keep"), ""))
        .file("../vendor/autoload.php", text("apps/laravel/autoload.php"))
        .file("index.php", text("apps/laravel/public/index.php"))
        .file("laravel-worker.php", text("../examples/snapshot/laravel-worker.php"))
        // Laravel 8 on PHP 8.2.
        .ini("error_reporting", "E_ALL & ~E_DEPRECATED")
        .ini("display_errors", "0")
}

fn snapshot(setup: Setup) -> Setup {
    setup
        .setting("mode", "\"snapshot\"")
        .setting("script", "\"../root/laravel-worker.php\"")
        .setting("warmup", "[\"/\", \"/rows\"]")
}

const PAGES: [&str; 8] =
    ["/", "/?q=a+b", "/items/7?x=1", "/items/8", "/rows", "/check?mail=no-address", "/token", "/nowhere"];

/// Status, type and text of each page, with a host of its own.
fn visit(site: &Site) -> Vec<String> {
    let ask = |page: &&str| {
        let answer = site.send(&Request::get(page).header("Host", "shop.example:81"));
        format!("{page} {} {:?} {}", answer.status, answer.header("content-type"), answer.text())
    };
    let mut shown: Vec<String> = PAGES.iter().map(ask).collect();
    shown.push(format!("broken {}", site.get("/broken").status));
    shown.push(format!("a form without a token {}", site.send(&Request::form("/token", "a=b")).status));
    shown
}

/// A visitor with a session: `n` pages that count.
fn visits(site: &Site, n: usize) -> Vec<String> {
    let mut cookie = String::new();
    let mut page = || {
        let request = Request::get("/visits");
        let answer = site.send(&if cookie.is_empty() { request } else { request.header("Cookie", &cookie) });
        let set = answer.all("set-cookie").into_iter().find(|line| line.starts_with("laravel_session="));
        set.unwrap_or_default().split(';').next().unwrap_or_default().clone_into(&mut cookie);
        answer.text()
    };
    (0..n).map(|_| page()).collect()
}

#[test]
fn laravels_pages_are_the_same_in_snapshot_mode() {
    let mut classic = Vec::new();
    run(
        Kind::Classic,
        |s| project(s).workers(1),
        |site| {
            classic = visit(site);
            assert_eq!(visits(site, 3), ["visits: 1", "visits: 2", "visits: 3"]);
        },
    );
    assert!(classic[0].contains("http://shop.example:81/items/0 none"), "{}", classic[0]);
    assert!(classic[2].contains("\"own\":1,\"all\":1"), "{}", classic[2]);
    assert!(classic[9].ends_with("419"), "{}", classic[9]);
    run(
        Kind::Classic,
        |s| snapshot(project(s)).workers(2),
        |site| {
            for _ in 0..40 {
                assert_eq!(visit(site), classic);
            }
            assert_eq!(visits(site, 3), ["visits: 1", "visits: 2", "visits: 3"]);
        },
    );
}

#[test]
fn laravel_in_snapshot_mode_follows_its_configuration() {
    run(
        Kind::Classic,
        |s| snapshot(project(s)).workers(3),
        |site| {
            assert!(site.get_ok("/").contains("<title>Laravel</title>"));
            let top = site.place().top.clone();
            replace_file(&top.join(".env"), "APP_NAME=\"From the environment\"\n");
            for _ in 0..6 {
                assert!(site.get_ok("/").contains("<title>From the environment</title>"));
            }
            let config = std::fs::read_to_string(top.join("config/app.php")).unwrap();
            replace_file(&top.join("config/app.php"), &config.replace("env('APP_NAME', 'Laravel')", "'Renamed'"));
            for _ in 0..6 {
                assert!(site.get_ok("/").contains("<title>Renamed</title>"));
            }
            let _ = site.wait_for_log(&["the configuration has changed"]);
        },
    );
}

#[test]
fn laravel_is_the_same_in_a_sandbox() {
    let of = |setup: &dyn Fn(Setup) -> Setup| {
        let mut seen = Vec::new();
        run(
            Kind::Classic,
            |s| setup(project(s)).workers(1),
            |site| {
                seen = visit(site);
                assert_eq!(visits(site, 3), ["visits: 1", "visits: 2", "visits: 3"]);
                assert!(!site.log().contains("sandbox: refused"), "{}", site.log());
            },
        );
        seen
    };
    let free = of(&|s| s);
    assert_eq!(of(&|s| s.setting("sandbox", "\"app\"")), free);
    assert_eq!(of(&|s| snapshot(s).setting("sandbox", "\"app\"")), free);
}
