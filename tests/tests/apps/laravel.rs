//! A small Laravel application (`laravel/`, on Debian's packages of Laravel 8) in snapshot mode, booted by the worker
//! script of `examples/snapshot`. Its pages must equal those of its plain front controller in classic mode.

use howdah_tests::site::replace_file;
use howdah_tests::{Mode, Request, Setup, Site, php, run};
use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

const FILES: [&str; 14] = [
    "app/Counter.php",
    "app/HttpKernel.php",
    "app/Routes.php",
    "bootstrap/app.php",
    "config/app.php",
    "config/auth.php",
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
        let content =
            if file.ends_with("sqlite") { String::new() } else { text(&format!("tests/apps/laravel/{file}")) };
        s.file(&format!("../{file}"), content)
    });
    let directories = ["bootstrap/cache", "storage/framework/sessions", "storage/framework/views", "storage/logs"];
    directories
        .iter()
        .fold(setup, |s, directory| s.file(&format!("../{directory}/.keep"), ""))
        .file("../vendor/autoload.php", text("tests/apps/laravel/autoload.php"))
        .file("index.php", text("tests/apps/laravel/public/index.php"))
        .file("laravel-worker.php", text("../examples/snapshot/laravel-worker.php"))
        // Laravel 8 on PHP 8.2.
        .ini("error_reporting", "E_ALL & ~E_DEPRECATED")
        .ini("display_errors", "0")
}

fn snapshot(setup: Setup) -> Setup {
    warmed(setup, "[\"/\", \"/rows\"]")
}

fn warmed(setup: Setup, warmup: &str) -> Setup {
    setup.script("laravel-worker.php").setting("warmup", warmup)
}

const PAGES: [&str; 8] =
    ["/", "/?q=a+b", "/items/7?x=1", "/items/8", "/rows", "/check?mail=no-address", "/token", "/nowhere"];

/// Status, type and text of each page, for a separate host.
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

/// Visits `n` counting pages with one session.
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
        Mode::Classic,
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
        Mode::Snapshot,
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
        Mode::Snapshot,
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

/// A visitor that keeps cookies.
#[derive(Default)]
struct Visitor {
    cookies: Vec<(String, String)>,
}

impl Visitor {
    fn send(&mut self, site: &Site, request: Request) -> (u16, String) {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = if cookies.is_empty() { request } else { request.header("Cookie", &cookies.join("; ")) };
        let answer = site.send(&request);
        for line in answer.all("set-cookie") {
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.retain(|(own, _)| own != name);
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
        (answer.status, answer.text())
    }

    fn get(&mut self, site: &Site, path: &str) -> String {
        let (status, text) = self.send(site, Request::get(path));
        assert_eq!(status, 200, "{path}: {text}");
        text
    }

    /// The token of a form, and the user that Laravel takes the visitor for.
    fn form(&mut self, site: &Site) -> (String, String) {
        let text = self.get(site, "/form");
        let token = text.split("value=\"").nth(1).unwrap().split('"').next().unwrap();
        (token.to_owned(), text.rsplit('>').next().unwrap().to_owned())
    }
}

/// A database with Laravel's table of sessions and a user.
fn database() -> Vec<u8> {
    let path =
        std::env::temp_dir().join(format!("howdah-laravel-{}-{:?}", std::process::id(), std::thread::current().id()));
    let code = php!("laravel/database.php");
    let made = Command::new("php").args(["-r", code, "--"]).arg(&path).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    bytes
}

fn with_visitors(setup: Setup, driver: &str) -> Setup {
    warmed(project(setup), r#"["/", "/rows", "/form", "/visits", "/terminates", "/items/3"]"#)
        .workers(2)
        .file("../.env", format!("SESSION_DRIVER={driver}\n"))
        .file("../storage/data.sqlite", database())
}

/// Checks that state of one visitor is not visible to another.
fn visitors_are_strangers(site: &Site) {
    let mut tokens = HashSet::new();
    for _ in 0..12 {
        assert!(tokens.insert(Visitor::default().form(site).0), "two visitors got one token");
    }
    let (mut a, mut b) = (Visitor::default(), Visitor::default());
    let (token, who) = a.form(site);
    assert_eq!(who, "guest");
    let _ = b.form(site);
    let save = || Request::form("/form", &format!("_token={token}"));
    assert_eq!(Visitor::default().send(site, save()).0, 419, "a stranger without a cookie");
    assert_eq!(b.send(site, save()).0, 419, "a stranger with a session");
    assert_eq!(a.send(site, save()), (200, "saved".to_owned()));
    for n in 1..=6 {
        assert_eq!(a.get(site, "/visits"), format!("visits: {n}"));
    }
    assert_eq!(b.get(site, "/visits"), "visits: 1");
    let login =
        |password: &str| Request::form("/login", &format!("_token={token}&email=a%40shop.example&password={password}"));
    assert_eq!(a.send(site, login("wrong")), (200, "unknown".to_owned()));
    assert_eq!(a.send(site, login("right")), (200, "welcome".to_owned()));
    for _ in 0..6 {
        assert_eq!(a.form(site).1, "7");
        assert_eq!(b.form(site).1, "guest");
        assert_eq!(Visitor::default().form(site).1, "guest");
    }
    let ends =
        || std::fs::read_to_string(site.place().top.join("storage/terminated")).unwrap_or_default().lines().count();
    let before = ends();
    for n in 1..=3 {
        assert_eq!(site.get_ok("/terminates"), "soon");
        assert!(howdah_tests::process::eventually(howdah_tests::process::PATIENCE, || ends() >= before + n));
        let _ = site.get_ok("/token");
    }
    assert_eq!(ends(), before + 3, "terminating() is a request's own");
}

#[test]
fn visitors_of_a_warm_laravel_are_strangers_to_each_other() {
    for driver in ["database", "file"] {
        for way in ["", "pagemap", "fork"] {
            run(
                Mode::Snapshot,
                |s| with_visitors(if way.is_empty() { s } else { s.env("HOWDAH_SNAPSHOT_PAGES", way) }, driver),
                |site| {
                    let pool = site.howdah().pool();
                    assert_eq!(pool["snapshot_warmup_refused"], false, "{pool}");
                    assert_eq!(pool["snapshot_warmup"], serde_json::json!([]));
                    assert!(pool["snapshot_template"].is_u64(), "SQLite is closed, so the boot is shared: {pool}");
                    visitors_are_strangers(site);
                },
            );
        }
    }
}

/// Without the worker script's reset, the check must detect the leak, and the application must serve correctly without
/// its warm-up.
#[test]
fn a_warm_laravel_that_is_not_reset_is_refused() {
    for driver in ["database", "file"] {
        let script = text("../examples/snapshot/laravel-worker.php");
        assert!(script.contains("Howdah\\after_warmup("));
        let script = script.replace("Howdah\\after_warmup(", "array(");
        run(
            Mode::Snapshot,
            |s| with_visitors(s, driver).file("laravel-worker.php", &script).expect_log("warm-up"),
            |site| {
                let pool = site.howdah().pool();
                assert_eq!(pool["snapshot_warmup_refused"], true, "{pool}");
                assert!(pool["snapshot_warmup"].to_string().contains("/form: the page has"), "{pool}");
                visitors_are_strangers(site);
            },
        );
    }
}

#[test]
fn laravel_is_the_same_in_a_sandbox() {
    let of = |mode: Mode, setup: &dyn Fn(Setup) -> Setup| {
        let mut seen = Vec::new();
        run(
            mode,
            |s| setup(project(s)).workers(1),
            |site| {
                seen = visit(site);
                assert_eq!(visits(site, 3), ["visits: 1", "visits: 2", "visits: 3"]);
                assert!(!site.log().contains("sandbox: refused"), "{}", site.log());
            },
        );
        seen
    };
    let free = of(Mode::Classic, &|s| s);
    assert_eq!(of(Mode::Classic, &|s| s.setting("sandbox", "\"app\"")), free);
    assert_eq!(of(Mode::Snapshot, &|s| snapshot(s).setting("sandbox", "\"app\"")), free);
}
