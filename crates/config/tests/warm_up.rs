//! Pools that learn their warm-up.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod directory;

use directory::Site;

#[test]
fn a_snapshot_pool_with_octanes_script_learns_its_warm_up_unless_one_is_set() {
    const OCTANE: &str = "vendor/laravel/octane/bin/frankenphp-worker.php";
    let script = &format!("mode = \"snapshot\"\nscript = \"{OCTANE}\"\n");
    for (text, learns) in [
        (script.clone(), true),
        (script.replace(OCTANE, "worker.php"), false),
        (format!("{script}warmup_auto = false\n"), false),
        (format!("{script}warmup = [\"/\"]\n"), false),
        (format!("{script}warmup = [\"/\"]\nwarmup_auto = true\n"), true),
        (script.replace("snapshot", "worker"), false),
        ("mode = \"snapshot\"\nboot = \"worker.php\"\n".to_owned(), false),
        (format!("[pool.own]\n{script}"), true),
        (format!("[pool.own]\n{script}warmup_auto = false\n"), false),
    ] {
        let site = Site::new(&format!("root = \".\"\n{text}"));
        site.write("worker.php", "<?php");
        site.write(OCTANE, "<?php");
        let settings = site.load().unwrap().settings;
        assert_eq!(settings.pools.last().unwrap().warmup_auto, learns, "{text}");
    }
}
