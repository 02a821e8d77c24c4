//! PHP-FPM's names for the settings of a pool: what they become, and what is said where they do not fit.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use howdah_config::{ConfigErrors, Loaded, PoolSettings, ServeFlags, SpareWorkers, Surroundings, WorkerRange, load_in};

fn load_with(toml: &str, flags: &ServeFlags, env: &[(&str, &str)]) -> Result<Loaded, ConfigErrors> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("howdah.toml"), toml).unwrap();
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    load_in(flags, &Surroundings { current_dir: dir.path().to_path_buf(), env, ..Surroundings::default() })
}

fn load(toml: &str) -> Result<Loaded, ConfigErrors> {
    load_with(toml, &ServeFlags::default(), &[])
}

fn pool(toml: &str) -> PoolSettings {
    load(toml).unwrap_or_else(|errors| panic!("{errors}")).settings.pools.remove(0)
}

fn errors(toml: &str) -> String {
    load(toml).unwrap_err().to_string()
}

fn numbers(pool: &PoolSettings) -> (WorkerRange, usize, SpareWorkers) {
    (pool.workers, pool.start_workers, pool.spare_workers)
}

const DYNAMIC: &str = r#"
pm = "dynamic"
"pm.max_children" = 20
"pm.min_spare_servers" = 2
"pm.max_spare_servers" = 6
"#;

#[test]
fn each_kind_of_pool_becomes_what_it_means() {
    let none = SpareWorkers::default();
    let fixed = pool("pm = \"static\"\n\"pm.max_children\" = 5\n\"pm.max_spare_servers\" = 3\n");
    assert_eq!(numbers(&fixed), (WorkerRange { min: 5, max: 5 }, 0, none), "what does not go with it has no effect");
    let dynamic = (WorkerRange { min: 2, max: 20 }, 4, SpareWorkers { min: 2, max: Some(6) });
    assert_eq!(numbers(&pool(DYNAMIC)), dynamic);
    assert_eq!(pool(&format!("{DYNAMIC}\"pm.start_servers\" = 6")).start_workers, 6);
    let on_demand = pool("pm = \"ondemand\"\n\"pm.max_children\" = 9\n\"pm.process_idle_timeout\" = \"3s\"\n");
    assert_eq!(numbers(&on_demand), (WorkerRange { min: 0, max: 9 }, 0, none));
    assert_eq!(on_demand.shrink_after, Duration::from_secs(3));
    let other = pool("\"pm.max_requests\" = 500\nrequest_terminate_timeout = \"7s\"\n");
    assert_eq!((other.max_requests, other.deadline), (500, Some(Duration::from_secs(7))));
    assert_eq!(pool("request_terminate_timeout = 0").deadline, None);
}

#[test]
fn a_pool_of_its_own_takes_the_rest_from_the_top_level() {
    let toml = format!("{DYNAMIC}[pool.a]\n\"pm.max_children\" = 50\n[pool.b]\nworkers = 3\nspare_workers = 0\n");
    let settings = load(&toml).unwrap().settings;
    let spare = SpareWorkers { min: 2, max: Some(6) };
    assert_eq!(numbers(settings.pool("a").unwrap()), (WorkerRange { min: 2, max: 50 }, 4, spare));
    assert_eq!(settings.pool("b").unwrap().workers, WorkerRange { min: 3, max: 3 });
}

#[test]
fn check_shows_what_they_have_become_and_where_it_comes_from() {
    let shown = load(DYNAMIC).unwrap().show();
    let line = |key: &str| shown.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap().to_owned();
    assert!(line("workers").contains("\"2-20\"") && line("workers").contains("howdah.toml:2"), "{shown}");
    assert!(line("spare_workers").contains("\"2-6\""), "{shown}");
    assert!(!shown.contains("pm."), "{shown}");
    let workers: String =
        shown.lines().filter(|line| line.contains("workers = ")).map(|line| format!("{line}\n")).collect();
    assert_eq!(pool(&workers).workers, WorkerRange { min: 2, max: 20 }, "it says the same when it is read");
}

#[test]
fn the_stronger_source_counts() {
    let mut flags = ServeFlags::default();
    flags.set("workers", "3");
    let loaded = load_with("pm = \"static\"\n\"pm.max_children\" = 5\n", &flags, &[]).unwrap();
    assert_eq!(loaded.settings.pools[0].workers, WorkerRange { min: 3, max: 3 });
    let env = [("HOWDAH_PM", "static"), ("HOWDAH_PM_MAX_CHILDREN", "7")];
    let loaded = load_with("workers = 2", &ServeFlags::default(), &env).unwrap();
    assert_eq!(loaded.settings.pools[0].workers, WorkerRange { min: 7, max: 7 });
}

#[test]
fn what_does_not_fit_is_said() {
    for (toml, setting, message) in [
        ("pm = \"static\"", "pm", "needs \"pm.max_children\""),
        ("\"pm.max_children\" = 5", "pm.max_children", "goes with pm ="),
        (
            "pm = \"dyn\"\n\"pm.max_children\" = 5",
            "pm",
            "expected \"static\", \"dynamic\" or \"ondemand\", found \"dyn\"",
        ),
        ("pm = \"dynamic\"\n\"pm.max_children\" = 5", "pm.min_spare_servers", "must be from 1 to"),
        (
            "pm = \"dynamic\"\n\"pm.max_children\" = 5\n\"pm.min_spare_servers\" = 2\n\"pm.max_spare_servers\" = 9",
            "pm.max_spare_servers",
            "must be from \"pm.min_spare_servers\" (2) to \"pm.max_children\" (5)",
        ),
        ("workers = 3\npm = \"static\"\n\"pm.max_children\" = 5", "pm", "`workers` (howdah.toml:1) says the same"),
        (
            "max_requests = 3\n\"pm.max_requests\" = 5",
            "pm.max_requests",
            "`max_requests` (howdah.toml:1) says the same",
        ),
        ("deadline = 3\nrequest_terminate_timeout = 5", "request_terminate_timeout", "`deadline` (howdah.toml:1)"),
        ("pm = \"static\"\npm.max_children = 5", "", "put the key in quotes: \"pm.max_children\" ="),
        ("pm.max_children = 5", "pm.max_children", "put the key in quotes: \"pm.max_children\" ="),
        ("\"pm.max_childs\" = 5", "pm.max_childs", "did you mean pm.max_children"),
        ("workers = \"2-4\"\nstart_workers = 5", "start_workers", "is more than `workers` allows, \"2-4\""),
        ("workers = \"2-4\"\nspare_workers = 5", "spare_workers", "is more than `workers` allows"),
    ] {
        let errors = errors(toml);
        assert!(errors.contains(message) && errors.contains(setting), "{toml}\n{errors}");
    }
}
