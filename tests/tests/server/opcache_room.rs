//! A full OPcache, which slows down every request: the log names the setting to raise, once.

use howdah_tests::{Mode, Setup, run};

/// More scripts than OPcache can hold.
const MANY: &str = "
    for ($n = 0; $n < 300; $n++) {
        $file = __DIR__ . \"/many-$n.php\";
        is_file($file) || file_put_contents($file, \"<?php return $n;\");
        include $file;
    }";

fn full(setup: Setup) -> Setup {
    setup
        .workers(2)
        .ini("opcache.enable", "1")
        .ini("opcache.max_accelerated_files", "200")
        .ini("opcache.file_update_protection", "0")
        .expect_log("OPcache is full")
}

#[test]
fn a_full_opcache_is_logged_once_in_a_pool() {
    let classic = |setup: Setup| full(setup).workers(1).php("fill.php", MANY).php("index.php", "echo 'done';");
    let snapshot = |setup: Setup| {
        let script = format!("{MANY}\nwhile (frankenphp_handle_request(function () {{ echo 'done'; }}));");
        full(setup).script("worker.php").php("worker.php", &script).setting("warmup_auto", "false")
    };
    let is_logged_once = |site: &howdah_tests::Site| {
        let _ = site.wait_for_log(&["raise opcache.max_accelerated_files"]);
        assert_eq!(site.log().matches("OPcache is full").count(), 1, "{}", site.log());
    };
    run(Mode::Classic, classic, |site| {
        let _ = site.get_ok("/fill.php");
        assert!(!site.log().contains("OPcache"), "{}", site.log());
        for _ in 0..256 {
            assert_eq!(site.get_ok("/index.php"), "done");
        }
        is_logged_once(site);
    });
    run(Mode::Snapshot, snapshot, |site| {
        assert_eq!(site.get_ok("/"), "done");
        is_logged_once(site);
    });
}
