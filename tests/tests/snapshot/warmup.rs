//! State left by the warm-up of snapshot mode, and its check: either two visitors of a warm application share nothing,
//! or the pool serves without the warm-up and reports why.

use howdah_tests::{Mode, Request, Setup, Site, in_each_way, php, run};
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

const WORKERS: usize = 2;

fn findings(site: &Site) -> Vec<String> {
    let pool = site.howdah().pool();
    pool["snapshot_warmup"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn is_refused(site: &Site) -> bool {
    site.howdah().pool()["snapshot_warmup_refused"] == true
}

/// A worker script whose warm-up requests `/page` and `/other`: `boot` runs once, `handle` is its handler's body,
/// `body` that of its loop.
fn script(setup: Setup, boot: &str, handle: &str, body: &str) -> Setup {
    setup
        .workers(WORKERS)
        .script("worker.php")
        .setting("warmup", "[\"/page\", \"/other?x=1\"]")
        .ini("display_errors", "0")
        .php("worker.php", &php!("warmup/script.php", BOOT = boot, HANDLE = handle, BODY = body))
}

/// As `script`, with an application that keeps values created for its first visitor.
fn leaky(setup: Setup, handle: &str) -> Setup {
    let boot = "final class Kept { public static ?string $value = null; }
        function kept(callable $make) { return Kept::$value ??= $make(); }
        function token() { return rtrim(strtr(base64_encode(random_bytes(24)), '+/', '-_'), '='); }";
    script(setup, boot, handle, "")
}

/// Different visitors to any worker get different responses.
fn assert_each_its_own(site: &Site) {
    let mut seen = HashSet::new();
    for _ in 0..20 {
        let answer = site.get("/page");
        let own = format!("{:?} {}", answer.all("set-cookie"), answer.text());
        assert!(seen.insert(own.clone()), "two visitors got {own}");
    }
}

/// `$handle` shows all visitors a value that it created for the first one; `$what` is text in the expected finding.
macro_rules! refused {
    ($name:ident, $handle:expr, $what:expr) => {
        in_each_way!($name, |s: Setup| leaky(s, $handle).expect_log("warm-up"), |site| {
            assert!(is_refused(site), "{}", site.howdah().pool());
            let findings = findings(site);
            assert!(findings.iter().any(|text| text.starts_with("/page: ") && text.contains($what)), "{findings:?}");
            assert_each_its_own(site);
            assert!(site.marks("boots") >= 2, "the application has booted anew, without the warm-up");
        },);
    };
}

refused!(
    a_hidden_field_that_all_would_share_is_found,
    "echo '<form><input type=\"hidden\" name=\"_token\" value=\"', kept(token(...)), '\"></form>';",
    "_token"
);
refused!(
    a_token_in_json_that_all_would_share_is_found,
    php!("warmup/a_token_in_json_that_all_would_share_is_found.php"),
    "csrf"
);
refused!(
    a_meta_token_that_only_a_warm_application_shows_is_found,
    php!("warmup/a_meta_token_that_only_a_warm_application_shows_is_found.php"),
    "csrf-token"
);
refused!(
    a_cookie_that_all_would_share_is_found,
    "setcookie('visitor', (string) kept(fn () => random_int(1, PHP_INT_MAX)), ['httponly' => true]);",
    "cookie visitor"
);
refused!(
    a_session_that_all_would_share_is_found,
    "session_id(kept(session_create_id(...))); session_start(); $_SESSION['n'] = 1; echo 'x';",
    "PHPSESSID"
);
refused!(
    a_secret_in_the_session_that_all_would_share_is_found,
    // As Symfony does: the value in the page is masked anew for each response.
    "session_start(); $_SESSION['_csrf'] = ['form' => kept(token(...))]; echo bin2hex(random_bytes(16));",
    "the session"
);

in_each_way!(
    a_warm_application_without_leaks_is_not_refused,
    |s| {
        leaky(
            s,
            // Values that all share, values that each visitor has alone, and values that change over time.
            php!("warmup/a_warm_application_without_leaks_is_not_refused.php"),
        )
    },
    |site| {
        assert!(!is_refused(site), "{}", site.howdah().pool());
        assert_eq!(findings(site), Vec::<String>::new());
        assert!(site.get_ok("/page").ends_with("warm"), "the warm-up is in the snapshot");
        assert_eq!(site.marks("boots"), 1);
        assert_each_its_own(site);
    },
);

#[test]
fn the_check_of_the_warm_up_can_be_switched_off() {
    run(
        Mode::Snapshot,
        |s| leaky(s, "echo '_token=\"', kept(token(...)), '\"';").setting("warmup_check", "false"),
        |site| {
            assert!(!is_refused(site), "{}", site.howdah().pool());
            assert_eq!(site.get_ok("/page"), site.get_ok("/page"));
        },
    );
}

#[test]
fn separate_boots_of_workers_are_checked_too() {
    run(
        Mode::Snapshot,
        |s| {
            leaky(s, "static $pipe; $pipe ??= popen('cat', 'w'); echo '_token=\"', kept(token(...)), '\"';")
                .expect_log("warm-up")
        },
        |site| {
            assert!(is_refused(site), "{}", site.howdah().pool());
            assert_each_its_own(site);
        },
    );
}

/// A second process must not use a connection of the boot, so the response without a warm-up is unknown.
#[test]
fn where_the_boot_has_connections_tokens_are_known_by_their_names() {
    for (kept, refused) in
        [("'_token=\"', kept(token(...)), '\"'", true), ("'<link href=/app.', kept(token(...)), '.css>'", false)]
    {
        run(
            Mode::Snapshot,
            |s| {
                let handle = format!("global $pair; $pair ??= 1; echo {kept};");
                let s = leaky(s, &handle)
                    .php("boot.php", "return stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);");
                let worker =
                    php!("warmup/where_the_boot_has_connections_tokens_are_known_by_their_names.php", HANDLE = handle);
                let s = s.php("worker.php", &worker);
                if refused { s.expect_log("warm-up") } else { s }
            },
            |site| assert_eq!(is_refused(site), refused, "{}", site.howdah().pool()),
        );
    }
}

in_each_way!(
    values_that_a_boot_file_shares_with_all_visitors_are_named,
    |s: Setup| {
        s.workers(WORKERS)
            .boot("boot.php")
            .setting("warmup", "[\"/page.php\", \"/fine.php\"]")
            .php("boot.php", "$token = bin2hex(random_bytes(20));")
            .php("page.php", "$token ??= bin2hex(random_bytes(20)); echo '<input name=csrf value=', $token, '>';")
            .php("fine.php", "echo '<input name=csrf value=', bin2hex(random_bytes(20)), '>', md5('constant');")
            .expect_log("from the boot and not from the warm-up")
    },
    |site| {
        assert!(!is_refused(site), "the pool refuses the warm-up: {}", site.howdah().pool());
        let findings = findings(site);
        assert!(findings.len() == 1 && findings[0].starts_with("/page.php: the page has"), "{findings:?}");
    },
);

#[test]
fn a_reload_checks_again() {
    run(
        Mode::Snapshot,
        |s| leaky(s, "echo '_token=\"', kept(token(...)), '\"';").expect_log("warm-up"),
        |site| {
            assert!(is_refused(site));
            let worker = site.place().top.join("root/worker.php");
            let text = std::fs::read_to_string(&worker).unwrap().replace("kept(token(...))", "token()");
            howdah_tests::site::replace_file(&worker, text);
            let out = site.howdah().command(&["reload"]);
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            assert!(!is_refused(site), "{}", site.howdah().pool());
            assert_eq!(findings(site), Vec::<String>::new());
        },
    );
}

// --- Howdah\after_warmup() ---------------------------------------------------------------------------------------------

in_each_way!(
    after_warmup_runs_once_between_the_warm_up_and_the_snapshot,
    |s| script(
        s,
        php!("warmup/after_warmup_runs_once_between_the_warm_up_and_the_snapshot.php"),
        "State::$token ??= bin2hex(random_bytes(16)); State::$seen[] = $_SERVER['REQUEST_URI'];
        echo State::$token, ' ', implode(',', State::$seen);",
        ""
    ),
    |site| {
        let mut tokens = HashSet::new();
        for _ in 0..20 {
            let answer = site.get_ok("/page?");
            let (token, seen) = answer.split_once(' ').unwrap();
            assert!(tokens.insert(token.to_owned()));
            let warm = ["/page,/other?x=1"; 3].join(",");
            assert_eq!(seen, format!("{warm},reset,also,/page?"));
        }
        assert_eq!(site.marks("after"), 1, "only the worker that boots for all runs it");
        assert!(!is_refused(site), "{}", site.howdah().pool());
    },
);

in_each_way!(
    a_constant_of_the_boot_or_the_warm_up_can_be_the_requests,
    |s| script(
        s,
        "define('OF_BOOT', 0.5);",
        "$own = (int) $_SERVER['QUERY_STRING'];
        Howdah\\redefine('OF_BOOT', $own);
        Howdah\\redefine('OF_WARM_UP', $own / 2) || define('OF_WARM_UP', $own / 2);
        echo json_encode([OF_BOOT, OF_WARM_UP, Howdah\\redefine('PHP_VERSION_ID', 1), PHP_VERSION_ID > 1]);",
        ""
    ),
    |site| {
        for own in 1..20 {
            let half = f64::from(own) / 2.0;
            let shown = site.get_ok(&format!("/page?{own}"));
            assert!(
                shown == format!("[{own},{half},false,true]") || shown == format!("[{own},{half:.1},false,true]"),
                "{shown}"
            );
        }
    },
);

#[test]
fn an_after_warmup_that_fails_costs_the_warm_up_only() {
    run(
        Mode::Snapshot,
        |s| {
            script(s, "Howdah\\after_warmup(fn () => throw new RuntimeException('no reset'));", "echo 'served';", "")
                .expect_log("no reset")
                .expect_log("warm-up")
        },
        |site| {
            assert_eq!(site.get_ok("/page"), "served");
            assert!(is_refused(site) && findings(site)[0].contains("after_warmup"), "{}", site.howdah().pool());
        },
    );
}

#[test]
fn in_a_request_after_warmup_exists_and_is_never_called() {
    run(
        Mode::Snapshot,
        |s| s.php("index.php", "Howdah\\after_warmup(function () { echo 'called'; }); echo 'ok';"),
        |site| assert_eq!(site.get_ok("/"), "ok"),
    );
}

// --- errors of the warm-up ---------------------------------------------------------------------------------------------

in_each_way!(
    warm_up_requests_that_fail_are_named,
    |s| script(s, "", php!("warmup/warm_up_requests_that_fail_are_named.php"), "")
        .expect_log("not configured")
        .expect_log("/page was answered with status 500"),
    |site| {
        assert_eq!(site.get_ok("/x"), "served");
        assert!(!is_refused(site), "{}", site.howdah().pool());
        let findings = findings(site);
        assert_eq!(findings, ["/other?x=1 was answered with status 404", "/page was answered with status 500"]);
        let shown = site.howdah().command(&["status"]);
        assert!(String::from_utf8_lossy(&shown.stdout).contains("warm-up: /page was answered with status 500"));
    },
);

#[test]
fn a_warm_up_request_that_ends_the_script_costs_the_warm_up_only() {
    let ends = [
        ("exit;", None),
        ("no_such_function();", Some("Call to undefined function no_such_function()")),
        ("eval('class X { function f() {} function f() {} }');", Some("Cannot redeclare X::f()")),
    ];
    for (end, logged) in ends {
        let handle = format!("if (str_starts_with($_SERVER['REQUEST_URI'], '/other')) {{ {end} }} echo 'served';");
        // An exception ends the request, but not the script.
        let refused = !end.starts_with("no_such");
        run(
            Mode::Snapshot,
            |s| {
                let s = script(s, "", &handle, "").allow_log("/other?x=1 was answered with status 500");
                let s = logged.into_iter().fold(s, |s, text| s.expect_log(text));
                if refused {
                    s.expect_log("the script ended with warm-up request 2, of /other?x=1")
                        .allow_log("serving without warm-up")
                } else {
                    s
                }
            },
            |site| {
                assert_eq!(is_refused(site), refused, "{}", site.howdah().pool());
                assert_eq!(site.get_ok("/page"), "served");
                let status = site.get("/other").status;
                assert_eq!(status, if logged.is_some() { 500 } else { 200 });
            },
        );
    }
}

#[test]
fn a_loop_that_counts_less_requests_than_the_warm_up_has_serves_without_it() {
    run(
        Mode::Snapshot,
        |s| {
            s.workers(1)
                .script("worker.php")
                .setting("warmup", "[\"/page\"]")
                .php(
                    "worker.php",
                    "$handle = function () { global $n; echo 'n=', $n; };
                    for ($n = 0; $n < 2 && frankenphp_handle_request($handle); $n++) {}",
                )
                .expect_log("the script ended with warm-up request 2")
                .allow_log("serving without warm-up")
        },
        |site| {
            for _ in 0..5 {
                assert_eq!(site.get_ok("/page"), "n=0");
            }
            assert!(is_refused(site));
        },
    );
}

// --- registrations by warm-up requests -------------------------------------------------------------------------------

in_each_way!(
    shutdown_functions_of_warm_up_requests_are_theirs,
    |s| script(
        s,
        "register_shutdown_function(function () { mark('boot'); });",
        php!("warmup/shutdown_functions_of_warm_up_requests_are_theirs.php"),
        ""
    ),
    |site| {
        let count = |site: &Site| ["boot", "lazy", "request"].map(|name| site.marks(name));
        let before = count(site);
        let mut expected = before;
        for i in 1..=5 {
            let _ = site.get_ok(if i % 2 == 0 { "/page?exit=1" } else { "/page" });
            expected = [expected[0] + 1, expected[1] + 1, expected[2] + 1];
            for (name, times) in ["boot", "lazy", "request"].into_iter().zip(expected) {
                site.wait_for_mark(name, times);
            }
        }
        assert_eq!(count(site), expected, "each ran once for each request");
    },
);

// --- sequences in memory -----------------------------------------------------------------------------------------------

/// A visitor's request on a separate connection.
fn fresh(site: &Site, target: &str) -> String {
    site.send(&Request::get(target).close()).expect(200).text()
}

// libuuid keeps a clock and a sequence number in memory; if it can keep them in a file, they come from there.
in_each_way!(
    time_based_uuids_do_not_go_on_from_the_boots_sequence,
    |s: Setup| {
        let handle = php!("warmup/time_based_uuids_do_not_go_on_from_the_boots_sequence.php");
        script(s.extension("uuid", "extension"), "uuid_create(UUID_TYPE_TIME);", handle, "")
    },
    |site| {
        let (mut seen, mut sequences) = (HashSet::new(), HashSet::new());
        for _ in 0..24 {
            let all: Vec<String> = serde_json::from_str(&fresh(site, "/page")).unwrap();
            sequences.insert(all[0][19..23].to_owned());
            for one in all {
                assert!(seen.insert(one.clone()), "twice: {one}");
            }
        }
        // Each has 16384 values.
        let by_file = Path::new("/var/lib/libuuid").exists();
        assert!(by_file || sequences.len() > 20, "the boot's sequence goes on in each request: {sequences:?}");
    },
);

in_each_way!(
    gmps_random_numbers_do_not_go_on_from_the_boots,
    |s: Setup| {
        let s = s.extension("gmp", "extension");
        script(
            s,
            "gmp_random_bits(64);",
            "echo gmp_strval(gmp_random_bits(128)), ' ', gmp_strval(gmp_random_bits(128));",
            "",
        )
    },
    |site| {
        let mut seen = HashSet::new();
        for _ in 0..12 {
            for number in fresh(site, "/page").split(' ') {
                assert!(seen.insert(number.to_owned()), "twice: {number}");
            }
        }
    },
);

in_each_way!(
    visitors_of_a_warm_application_draw_their_own_numbers,
    |s| { script(s, "", php!("warmup/visitors_of_a_warm_application_draw_their_own_numbers.php"), "") },
    |site| {
        assert!(!is_refused(site), "{}", site.howdah().pool());
        let mut seen = HashSet::new();
        for _ in 0..40 {
            let values: Vec<Value> = serde_json::from_str(&fresh(site, "/page")).unwrap();
            for value in values {
                assert!(seen.insert(value.to_string()), "twice: {value}");
            }
        }
    },
);

// --- advice ------------------------------------------------------------------------------------------------------------

/// A request that maps memory makes the restore search for written pages.
const MAPS: &str = "if (isset($_GET['map'])) { $GLOBALS['big'] = str_repeat('x', 120 << 20); } echo 'ok';";

#[test]
fn a_pool_whose_requests_search_each_time_is_advised_once_to_warm_up() {
    run(
        Mode::Snapshot,
        |s| {
            s.workers(2).script("worker.php").ini("memory_limit", "512M").php(
                "worker.php",
                &format!("$handle = function () {{ {MAPS} }}; while (frankenphp_handle_request($handle)) {{}}"),
            )
        },
        |site| {
            let advice = "makes restores slow: set `warmup`";
            for _ in 0..40 {
                let _ = site.get_ok("/");
            }
            assert!(!site.log().contains(advice), "{}", site.log());
            for _ in 0..120 {
                let _ = site.get_ok("/?map=1");
            }
            let _ = site.wait_for_log(&[advice]);
            for _ in 0..80 {
                let _ = site.get_ok("/?map=1");
            }
            assert_eq!(site.log().lines().filter(|line| line.contains(advice)).count(), 1, "{}", site.log());
        },
    );
}
