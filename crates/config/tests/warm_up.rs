//! Pools that learn their warm-up.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod directory;

use directory::Site;

#[test]
fn a_snapshot_pool_with_a_script_learns_its_warm_up_unless_one_is_set() {
    let script = "mode = \"snapshot\"\nscript = \"worker.php\"\n";
    for (text, learns) in [
        (script.to_owned(), true),
        (format!("{script}warmup_auto = false\n"), false),
        (format!("{script}warmup = [\"/\"]\n"), false),
        (format!("{script}warmup = [\"/\"]\nwarmup_auto = true\n"), true),
        ("mode = \"worker\"\nscript = \"worker.php\"\n".to_owned(), false),
        ("mode = \"snapshot\"\nboot = \"worker.php\"\n".to_owned(), false),
        (format!("[pool.own]\n{script}"), true),
        (format!("[pool.own]\n{script}warmup_auto = false\n"), false),
    ] {
        let site = Site::new(&format!("root = \".\"\n{text}"));
        site.write("worker.php", "<?php");
        let settings = site.load().unwrap().settings;
        assert_eq!(settings.pools.last().unwrap().warmup_auto, learns, "{text}");
    }
}
