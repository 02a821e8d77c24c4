//! A route that is slower in a booted application than in classic mode, because its code is not in the snapshot. The
//! server detects it by its restores, reports it, runs it in classic mode, learns it there, and moves it back when the
//! warm-up includes it.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Setup, Site, php, run, time_limit};
use serde_json::Value;

/// Disables random comparisons.
fn setup(setup: Setup) -> Setup {
    setup
        .workers(1)
        .script("index.php")
        .php("index.php", php!("cold_routes/index.php"))
        .ini("memory_limit", "512M")
        .more_processes(2)
        .setting("warmup_auto", "true")
        .setting("compare_one_in", "1000000")
        .setting("pool.plain.mode", "\"classic\"")
        .setting("pool.plain.workers", "1")
}

/// Mode of the route. Must not be called while the route is compared, because the response differs between modes.
fn mode_of_route(site: &Site) -> String {
    site.get_ok("/cold?mode=1")
}

#[test]
fn a_cold_slow_route_runs_in_classic_mode_until_it_is_warm() {
    time_limit(120, "eight comparisons, each of responses that are a second apart");
    run(Mode::Snapshot, setup, |site| {
        for _ in 0..30 {
            assert_eq!(site.get_ok("/cold"), "the same");
        }
        let text = || String::from_utf8(site.howdah().command(&["status"]).stdout).unwrap();
        assert!(text().contains("not warm: /cold: "), "{}", text());
        // Only as many requests as comparisons, so that the route is not learned before.
        let mut compared = None;
        let demoted = eventually(PATIENCE, || {
            let now = site.howdah().pool();
            let results = now["compared"].as_object().unwrap().values();
            let count: u64 = results.filter_map(Value::as_u64).sum();
            if compared.replace(count) != Some(count) {
                let _ = site.get_ok("/cold");
            }
            now["demoted"][0]["route"] == "/cold"
        });
        assert!(demoted, "{}\n{}", site.howdah().pool(), site.log());
        let reason = site.howdah().pool()["demoted"][0]["reason"].to_string();
        assert!(reason.contains("it is not warm: each restore searches for written pages"), "{reason}");
        assert_eq!(mode_of_route(site), "classic");
        let warm = eventually(PATIENCE, || mode_of_route(site) == "snapshot");
        assert!(warm, "{}\n{}", site.howdah().pool(), site.log());
        let _ = site.wait_for_log(&["warm-up: learned /cold"]);
        let _ = site.wait_for_log(&["restored: the pool has new workers"]);
    });
}
