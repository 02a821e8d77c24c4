//! PHP settings for one request, in every mode: set by `.htaccess` files and by scripts.

use howdah_tests::{Mode, Request, Site, php, run};
use serde_json::{Value, json};

const MODES: [Mode; 4] = [Mode::Classic, Mode::Worker, Mode::Snapshot, Mode::Async];

const RULED: &str = "php_value memory_limit 99M\nphp_value precision 5\nphp_value max_execution_time 77\n\
    php_value post_max_size 1K\nphp_value upload_max_filesize 3M\nphp_flag display_errors on\n\
    php_value session.gc_maxlifetime 55\n";

fn seen(site: &Site, target: &str) -> Value {
    serde_json::from_str(&site.get_ok(target)).unwrap()
}

#[test]
fn values_of_htaccess_files_count_for_their_requests_and_no_others() {
    for mode in MODES {
        run(
            mode,
            |s| {
                s.workers(1)
                    .ini("display_errors", "0")
                    .ini("log_errors", "0")
                    .setting("htaccess", "true")
                    .file("ruled/.htaccess", RULED)
                    .php("seen.php", php!("settings_of_requests/seen.php"))
                    .php("ruled/seen.php", php!("settings_of_requests/seen.php"))
            },
            |site| {
                let plain = seen(site, "/seen.php");
                let ruled = json!({
                    "memory_limit": "99M", "precision": "5", "max_execution_time": "77", "post_max_size": "1K",
                    "upload_max_filesize": "3M", "display_errors": "1", "session.gc_maxlifetime": "55",
                });
                let post = |target: &str| {
                    let body = format!("a={}", "x".repeat(2000));
                    site.send(&Request::post(target, "application/x-www-form-urlencoded", body)).expect(200).json()
                };
                for _ in 0..2 {
                    assert_eq!(seen(site, "/ruled/seen.php")["settings"], ruled, "{mode:?}");
                    assert_eq!(post("/ruled/seen.php")["posted"], false, "{mode:?}: post_max_size of the file");
                    assert_eq!(post("/seen.php")["posted"], true, "{mode:?}: post_max_size of the pool");
                    assert_eq!(seen(site, "/seen.php"), plain, "{mode:?}");
                }
                // A setting changed by the script itself persists afterwards if the mode keeps state.
                let _ = seen(site, "/seen.php?set=9");
                assert_eq!(seen(site, "/ruled/seen.php")["settings"], ruled, "{mode:?}");
                let kept = if mode == Mode::Worker { &json!("9") } else { &plain["settings"]["precision"] };
                let after = seen(site, "/seen.php");
                assert_eq!((&after["settings"]["precision"], &after["process"]), (kept, &plain["process"]), "{mode:?}");
                if mode == Mode::Async {
                    let both = seen(site, "/ruled/seen.php?ask=/seen.php");
                    let settings = (&both["settings"], &both["same"], &both["between"]);
                    assert_eq!(settings, (&ruled, &json!(true), &plain["settings"]), "they run at once");
                }
            },
        );
    }
}

#[test]
fn no_request_switches_opcache_off_for_those_that_follow() {
    for mode in MODES {
        let stays = matches!(mode, Mode::Worker | Mode::Async);
        run(
            mode,
            |s| {
                let s = s
                    .workers(1)
                    .ini("opcache.enable", "1")
                    .setting("htaccess", "true")
                    .file("ruled/.htaccess", "php_flag opcache.enable off\n")
                    .php("seen.php", php!("settings_of_requests/opcache.php"))
                    .php("ruled/seen.php", php!("settings_of_requests/opcache.php"));
                if stays { s.expect_log("opcache.enable of an .htaccess file has no effect") } else { s }
            },
            |site| {
                let plain = seen(site, "/seen.php");
                assert_eq!((&plain["set"], &plain["works"]), (&json!(true), &json!(true)), "{mode:?}");
                for (target, changed) in [("/ruled/seen.php", false), ("/seen.php?off=1", !stays)] {
                    let off = seen(site, target);
                    assert_eq!((&off["changed"], &off["set"]), (&json!(changed), &json!(stays)), "{mode:?}: {target}");
                    assert_eq!(seen(site, "/seen.php"), plain, "{mode:?} after {target}");
                }
            },
        );
    }
}
