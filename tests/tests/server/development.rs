//! `howdah dev`: errors, requests and mails as a developer sees them, invisible to other visitors.

use howdah_tests::howdah::program;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Request, Setup, Site, php, run};
use std::process::{Command, Output};

const MODES: [Mode; 4] = [Mode::Classic, Mode::Worker, Mode::Snapshot, Mode::Async];

/// Throws two calls deep, after part of the page was sent.
const THROWS: &str = "echo 'a part of the page';
function innermost(): never { throw new DomainException('the <cart> is empty', 0, new LogicException('no row')); }
function outer(): never { innermost(); }
if (!function_exists('declared')) { outer(); }";

/// As `THROWS`, without functions, for modes that keep a script.
const THROWS_TWICE: &str = "echo 'a part of the page';
$inner = static function () { throw new DomainException('the <cart> is empty', 0, new LogicException('no row')); };
$outer = static fn() => $inner();
$outer();";

fn asked(path: &str, accept: &str) -> Request {
    Request::get(path).header("Accept", accept).header("Cookie", "PHPSESSID=geheim123").header("X-Seen", "by all")
}

fn developing(setup: Setup) -> Setup {
    setup.developing().allow_log("DomainException").allow_log("request failed")
}

#[test]
fn an_uncaught_exception_is_a_page_in_the_format_that_the_client_accepts() {
    for mode in MODES {
        run(
            mode,
            |s| developing(s).php("throws.php", THROWS_TWICE),
            |site| {
                let page = site.send(&asked("/throws.php?token=geheim123&a=b", "text/html,*/*;q=0.8")).expect(500);
                assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
                let text = page.text();
                for part in [
                    "DomainException",
                    "the &lt;cart&gt; is empty",
                    "LogicException",
                    "class=\"it\"",
                    "X-Seen",
                    "by all",
                ] {
                    assert!(text.contains(part), "{mode:?}: {part} is missing:\n{text}");
                }
                for part in ["geheim123", "a part of the page</", "<cart>"] {
                    assert!(!text.contains(part), "{mode:?}: {part}:\n{text}");
                }
                let json = site.send(&asked("/throws.php", "application/json")).expect(500).json();
                assert_eq!(json["error"]["kind"], "DomainException", "{mode:?}");
                assert_eq!(json["error"]["earlier"][0]["message"], "no row", "{mode:?}");
                assert_eq!(json["error"]["request"]["headers"]["Cookie"], "PHPSESSID=(hidden)", "{mode:?}");
                assert!(json["error"]["stack"].as_array().is_some_and(|stack| stack.len() >= 3), "{mode:?}: {json}");
                let plain = site.get("/throws.php").expect(500);
                assert!(
                    plain.text().starts_with("DomainException: the <cart> is empty\n"),
                    "{mode:?}: {}",
                    plain.text()
                );
                // The worker continues as before.
                assert_eq!(site.get("/throws.php").status, 500);
            },
        );
    }
}

#[test]
fn a_page_that_points_its_own_name_to_this_machine_reads_nothing() {
    let set = |s: Setup| developing(s).allow_log("no site has this host").php("throws.php", THROWS_TWICE);
    run(Mode::Classic, set, |site| {
        for (host, status) in
            [("localhost:8080", 500), ("shop.localhost", 500), ("127.0.0.1", 500), ("evil.example:8080", 421)]
        {
            let page =
                site.send(&asked("/throws.php?XDEBUG_TRIGGER=1", "text/html").header("Host", host)).expect(status);
            assert_eq!(page.text().contains("DomainException"), status == 500, "{host}");
        }
    });
}

#[test]
fn serve_shows_no_error_page() {
    for mode in MODES {
        run(
            mode,
            |s| s.php("throws.php", THROWS_TWICE).ini("display_errors", "0").expect_log("DomainException"),
            |site| {
                let page = site.send(&asked("/throws.php", "text/html")).expect(500);
                for part in ["DomainException", "cart", "throws.php", "howdah dev"] {
                    assert!(!page.text().contains(part), "{mode:?}: {}", page.text());
                }
            },
        );
    }
}

#[test]
fn errors_that_end_a_script_are_pages_too() {
    run(
        Mode::Classic,
        |s| {
            developing(s)
                .allow_log("PHP Fatal error")
                .allow_log("PHP Parse error")
                .php(
                    "memory.php",
                    "ini_set('memory_limit', '8M');\n$all = [];\nwhile (true) { $all[] = str_repeat('x', 100000); }",
                )
                .php("parse.php", "include __DIR__ . '/broken.inc';")
                .library("broken.inc", "if (")
                .php("user.php", "trigger_error('of my own', E_USER_ERROR);")
                .php("throws.php", THROWS)
        },
        |site| {
            for (path, kind, message) in [
                ("/memory.php", "Fatal error", "Allowed memory size"),
                ("/parse.php", "Parse error", "Unclosed '('"),
                ("/user.php", "Fatal error", "of my own"),
                ("/throws.php", "DomainException", "the <cart> is empty"),
            ] {
                let json = site.send(&asked(path, "application/json")).expect(500).json();
                assert_eq!(json["error"]["kind"], kind, "{json}");
                assert!(json["error"]["message"].as_str().is_some_and(|text| text.contains(message)), "{json}");
                assert!(json["error"]["source"].as_array().is_some_and(|lines| !lines.is_empty()), "{path}: {json}");
            }
        },
    );
}

#[test]
fn an_application_keeps_its_own_error_page() {
    let fails = "throw new DomainException('mine');";
    run(
        Mode::Classic,
        |s| {
            developing(s)
                .php("handler.php", &format!("set_exception_handler(function ($e) {{ http_response_code(418); echo 'own: ', $e->getMessage(); }});\n{fails}"))
                .php("shutdown.php", &format!("register_shutdown_function(function () {{ if (error_get_last()) {{ echo 'own page'; }} }});\n{fails}"))
                .php("cleaned.php", &format!("ob_start(); echo 'half a page';\nregister_shutdown_function(function () {{ ob_end_clean(); echo 'own page'; }});\n{fails}"))
                .php("elsewhere.php", &format!("register_shutdown_function(function () {{ header('Location: /sorry', true, 302); }});\n{fails}"))
                .php("silent.php", &format!("register_shutdown_function(function () {{ file_put_contents(__DIR__ . '/ran', 'yes'); }});\n{fails}"))
                .php("handled.php", php!("development/handled.php"))
        },
        |site| {
            let get = |path: &str| site.send(&asked(path, "text/html"));
            assert_eq!(get("/handler.php").expect(418).text(), "own: mine");
            assert_eq!(get("/shutdown.php").expect(500).text(), "own page");
            assert_eq!(get("/cleaned.php").expect(500).text(), "own page");
            assert_eq!(get("/elsewhere.php").expect(302).header("location"), Some("/sorry"));
            assert!(get("/silent.php").expect(500).text().contains("class=\"it\""));
            assert_eq!(std::fs::read_to_string(site.place().root.join("ran")).unwrap(), "yes");
            assert_eq!(get("/handled.php").expect(200).text(), "handled;goes on");
        },
    );
}

#[test]
fn a_worker_that_dies_or_hangs_causes_an_error_page() {
    run(
        Mode::Classic,
        |s| {
            developing(s)
                .setting("deadline", "\"2s\"")
                .setting("replay", "0")
                .allow_log("worker killed")
                .allow_log("signal")
                .allow_log("worker_died")
                .php("dies.php", "posix_kill(posix_getpid(), SIGKILL);")
                .php("hangs.php", "sleep(60);")
        },
        |site| {
            let page = site.send(&asked("/hangs.php?password=geheim123", "text/html")).expect(504).text();
            assert!(
                page.contains("longer than the deadline") && page.contains("X-Seen") || page.contains("x-seen"),
                "{page}"
            );
            assert!(!page.contains("geheim123"), "{page}");
            let json = site.send(&asked("/dies.php", "application/json")).expect(502).json();
            assert_eq!(json["error"]["kind"], "502 Bad Gateway");
        },
    );
}

#[test]
fn changed_code_counts_at_once_and_requests_get_a_line() {
    run(
        Mode::Classic,
        |s| developing(s).php("page.php", "include __DIR__ . '/part.inc';").library("part.inc", "echo 'before';"),
        |site| {
            assert_eq!(site.get("/page.php").expect(200).text(), "before");
            std::fs::write(site.place().root.join("part.inc"), "<?php echo 'after it';").unwrap();
            assert_eq!(site.get("/page.php?n=2").expect(200).text(), "after it");
            assert_eq!(site.get("/none.txt").status, 404);
            let has = |line: &str| line.starts_with("200 GET ") && line.ends_with("  /page.php?n=2");
            assert!(eventually(PATIENCE, || site.log().lines().any(has)), "{}", site.log());
            assert!(!site.log().contains('\x1b'), "colours in a file:\n{}", site.log());
        },
    );
}

fn mails(site: &Site, arguments: &[&str]) -> Output {
    let place = site.place();
    let mut command = Command::new(program());
    command.arg("mails").arg(&place.root).arg("--config").arg(place.run.join("howdah.toml")).args(arguments);
    command.output().unwrap()
}

#[test]
fn mails_are_kept_and_not_sent() {
    for mode in MODES {
        run(
            mode,
            |s| {
                developing(s).php(
                    "mail.php",
                    "var_dump(mail('you@example.org', 'Number ' . $_GET['n'], \"text\\n\", 'From: me@example.org'));",
                )
            },
            |site| {
                for n in 1..=2 {
                    let sent = site.get(&format!("/mail.php?n={n}")).expect(200).text();
                    assert!(sent.contains("bool(true)"), "{mode:?}: {sent}");
                }
                let list = mails(site, &[]);
                let text = String::from_utf8_lossy(&list.stdout).into_owned();
                let lines: Vec<&str> = text.lines().collect();
                assert_eq!(lines.len(), 2, "{mode:?}: {list:?}");
                assert!(lines[0].contains("you@example.org") && lines[0].ends_with("Number 2"), "{text}");
                let shown = mails(site, &["--show", "2"]);
                let text = String::from_utf8_lossy(&shown.stdout).into_owned();
                assert!(text.contains("Subject: Number 1") && text.contains("From: me@example.org"), "{text}");
                let none = mails(site, &["--show", "3"]);
                assert!(!none.status.success() && String::from_utf8_lossy(&none.stderr).contains("there is no mail 3"));
                assert!(mails(site, &["--clear"]).status.success());
                assert!(String::from_utf8_lossy(&mails(site, &[]).stdout).starts_with("No mails from "));
            },
        );
    }
}

#[test]
fn other_machines_cannot_read_the_source() {
    let dir = tempfile::tempdir().unwrap();
    let refused = Command::new(program())
        .args(["dev", "--listen", "0.0.0.0:0", "--allow-root", "--state"])
        .arg(dir.path())
        .arg(dir.path())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("source code") && why.contains("howdah serve"), "{why}");
}
