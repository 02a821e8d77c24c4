//! Step debugging under `dev`: a separate pool with Xdebug, and rules that send debugging requests to it. Other
//! requests run without Xdebug, or with it turned off if `php.ini` loads it.

use crate::server::pools;
use howdah_budget::Budgets;
use howdah_config::{
    DEFAULT_POOL, Mode, PoolSettings, SandboxProfile, Settings, SiteSettings, SpareWorkers, WorkerRange, quoted,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Name of the debugging pool for the default pool; those for other pools append the pool's name.
const NAME: &str = "debug";
/// The PHP setting that loads Xdebug, and Xdebug's name in PHP's extension directory.
const LOADS: &str = "zend_extension";
const XDEBUG: &str = "xdebug";
/// Xdebug settings that this module reads or sets.
const MODE: &str = "xdebug.mode";
const START: &str = "xdebug.start_with_request";
const PORT: &str = "xdebug.client_port";
/// Port of the debugger, unless `PORT` sets another.
const USUAL_PORT: u16 = 9003;
/// Each breakpoint occupies a worker, and a page causes further requests.
const WORKERS: u32 = 8;
/// Time limits of requests that are being debugged.
const DEBUG_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// The same limit in the syntax of rules.
const DEBUG_TIMEOUT_RULE: &str = "24h";
/// Marks of debugging requests, as set by Xdebug's clients and browser extensions.
const CONDITIONS: [&str; 4] = [
    r#"header = { Cookie = '~(?:^|;)\s*XDEBUG_(?:SESSION|TRIGGER)=' }"#,
    "query = { XDEBUG_SESSION = true }",
    "query = { XDEBUG_TRIGGER = true }",
    "query = { XDEBUG_SESSION_START = true }",
];

/// Source of PHP's Xdebug.
#[derive(Debug, Clone, PartialEq, Eq)]
enum XdebugSource {
    /// `php.ini` loads it.
    Everywhere,
    /// This value of `zend_extension` loads it.
    Loaded(String),
}

/// Adds the debugging pools, and the rules to each site.
pub(super) fn add(settings: &mut Settings) -> Result<(), String> {
    let sites = settings.all_sites();
    // Maps each pool that a site uses as its default to its debugging pool.
    let mut debugging: BTreeMap<String, String> = BTreeMap::new();
    for site in &sites {
        let Some(base) = settings.pool(&site.pool).filter(|base| !debugging.contains_key(&base.name)) else { continue };
        let Some(found) = look(settings, base) else { continue };
        let pool = debugger(base, free_name(settings, &base.name), site, &found);
        debugging.insert(base.name.clone(), pool.name.clone());
        if found == XdebugSource::Everywhere
            && let Some(base) = settings.pools.iter_mut().find(|base| base.name == site.pool)
        {
            // Xdebug in `php.ini` cannot be unloaded, only turned off.
            base.php.ini.entry(MODE.to_owned()).or_insert_with(|| "off".to_owned());
        }
        settings.pools.push(pool);
    }
    for pool in settings.pools.iter_mut().filter(|pool| debugging.contains_key(&pool.name)) {
        if named(pool).is_some() {
            pool.php.ini.remove(LOADS);
        }
    }
    if let Some(pool) = debugging.get(DEFAULT_POOL) {
        settings.rules = settings.rules.between(&chooses(pool), &frees())?;
    }
    for site in &mut settings.sites {
        if let Some(pool) = debugging.get(&site.pool) {
            site.rules = site.rules.between(&chooses(pool), &frees())?;
        }
    }
    Ok(())
}

/// Describes the debugger to the developer, in one line.
pub(super) fn words(settings: &Settings) -> String {
    let is_one = |pool: &&PoolSettings| pool.name.starts_with(NAME) && pool.php.ini.contains_key(START);
    match settings.pools.iter().find(is_one) {
        Some(pool) => format!(
            "Step debugging: a request with XDEBUG_SESSION or XDEBUG_TRIGGER as cookie or in its query runs in the pool {}.",
            pool.name
        ),
        None => "No step debugging: PHP has no Xdebug (`apt install php-xdebug` or `pecl install xdebug`).".to_owned(),
    }
}

/// Looks for Xdebug by starting PHP without and with it.
fn look(settings: &Settings, base: &PoolSettings) -> Option<XdebugSource> {
    if !base.php.binary.path.is_file() {
        return None;
    }
    let mut pool = base.clone();
    let named = named(base).map(str::to_owned);
    if named.is_some() {
        pool.php.ini.remove(LOADS);
    }
    if knows_xdebug(settings, &pool) {
        return Some(XdebugSource::Everywhere);
    }
    let value = named.unwrap_or_else(|| XDEBUG.to_owned());
    pool.php.ini.insert(LOADS.to_owned(), value.clone());
    knows_xdebug(settings, &pool).then_some(XdebugSource::Loaded(value))
}

fn knows_xdebug(settings: &Settings, pool: &PoolSettings) -> bool {
    let Ok(config) = pools::pool_config(settings, pool, Budgets::new(0, 0)) else { return false };
    let trial = howdah_pool::try_php(&config, &[MODE]);
    let is_unknown = |line: &String| line.contains(&format!("\"{MODE}\""));
    trial.failure.is_none() && !trial.said.iter().any(is_unknown)
}

/// The value of `zend_extension` in a pool's settings that names Xdebug.
fn named(pool: &PoolSettings) -> Option<&str> {
    let value = pool.php.ini.get(LOADS)?;
    let file = Path::new(value).file_stem()?.to_str()?;
    file.contains(XDEBUG).then_some(value)
}

fn free_name(settings: &Settings, base: &str) -> String {
    let mut name = if base == DEFAULT_POOL { NAME.to_owned() } else { format!("{NAME}-{base}") };
    while settings.pool(&name).is_some() {
        name.push_str("-xdebug");
    }
    name
}

/// The pool that debugs requests which `base` would run for this site.
fn debugger(base: &PoolSettings, name: String, site: &SiteSettings, found: &XdebugSource) -> PoolSettings {
    let mut pool = PoolSettings {
        name,
        workers: WorkerRange { min: 0, max: base.workers.max.max(WORKERS) },
        start_workers: 0,
        spare_workers: SpareWorkers::default(),
        // A breakpoint may last any time.
        deadline: None,
        cpu_deadline: None,
        queue_timeout: DEBUG_TIMEOUT,
        slow_log_after: None,
        // A request that died in the debugger must not be retried unnoticed.
        replay: 0,
        max_pool_memory: None,
        status_path: None,
        recipe: None,
        watch: Vec::new(),
        warmup: Vec::new(),
        warmup_auto: false,
        ..base.clone()
    };
    let is_file = |front: &String| site.root.join(front.trim_start_matches('/')).is_file();
    match base.mode {
        Mode::Classic => {}
        // The scripts need what the boot file has loaded.
        Mode::Snapshot if base.boot.is_some() => {}
        _ if site.front_controller.as_ref().is_some_and(is_file) => {
            (pool.mode, pool.script, pool.boot) = (Mode::Classic, None, None);
        }
        // Xdebug ends its session when the script ends, which in worker mode is with the worker.
        _ => (pool.mode, pool.max_requests) = (Mode::Worker, 1),
    }
    let ini = &mut pool.php.ini;
    if let XdebugSource::Loaded(value) = found {
        ini.insert(LOADS.to_owned(), value.clone());
    }
    ini.entry(MODE.to_owned()).or_insert_with(|| "debug,develop".to_owned());
    ini.entry(START.to_owned()).or_insert_with(|| "trigger".to_owned());
    // PHP would warn at each start that JIT and Xdebug are incompatible.
    ini.insert("opcache.jit".to_owned(), "disable".to_owned());
    ini.insert("max_execution_time".to_owned(), "0".to_owned());
    let port = ini.get(PORT).and_then(|port| port.parse().ok()).unwrap_or(USUAL_PORT);
    if pool.sandbox.profile != SandboxProfile::Off && !pool.sandbox.connect.contains(&port) {
        pool.sandbox.connect.push(port);
    }
    pool
}

/// Rules that send a site's debugging requests to the pool. Later rules may override the pool.
fn chooses(pool: &str) -> String {
    rules(&format!("pool = {}\n", quoted(pool)))
}

/// Rules that override the time limits of earlier rules for debugging requests.
fn frees() -> String {
    rules(&format!("deadline = \"0\"\nqueue_timeout = \"{DEBUG_TIMEOUT_RULE}\"\n"))
}

fn rules(actions: &str) -> String {
    CONDITIONS.iter().map(|condition| format!("[[rule]]\nname = \"{NAME}\"\n{condition}\n{actions}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> PoolSettings {
        let mut base = PoolSettings { deadline: Some(Duration::from_secs(1)), replay: 2, ..PoolSettings::default() };
        base.php.ini.insert(LOADS.to_owned(), "/x/xdebug.so".to_owned());
        base
    }

    fn loaded() -> XdebugSource {
        XdebugSource::Loaded("/x/xdebug.so".to_owned())
    }

    #[test]
    fn the_pool_of_a_debugger_has_no_worker_before_it_is_needed_and_no_limits() {
        let site = Settings::default().top_level_site();
        let pool = debugger(&base(), "debug".to_owned(), &site, &loaded());
        assert_eq!((pool.workers.min, pool.deadline, pool.cpu_deadline, pool.replay), (0, None, None, 0));
        assert_eq!(pool.php.ini.get(LOADS).map(String::as_str), Some("/x/xdebug.so"));
        assert_eq!(pool.php.ini.get(MODE).map(String::as_str), Some("debug,develop"));
        assert!(pool.sandbox.connect.is_empty());
    }

    #[test]
    fn a_debugged_request_runs_the_front_controller_where_there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let site = SiteSettings { root: dir.path().to_owned(), ..Settings::default().top_level_site() };
        let script = Some(dir.path().join("worker.php"));
        let base = PoolSettings { mode: Mode::Async, script: script.clone(), ..base() };
        let pool = debugger(&base, "debug".to_owned(), &site, &loaded());
        assert_eq!((pool.mode, pool.script, pool.max_requests), (Mode::Worker, script, 1));
        std::fs::write(dir.path().join("index.php"), "").unwrap();
        let pool = debugger(&base, "debug".to_owned(), &site, &loaded());
        assert_eq!((pool.mode, pool.script, pool.max_requests), (Mode::Classic, None, 0));
    }

    #[test]
    fn other_extensions_stay_where_they_are() {
        let mut pool = base();
        assert_eq!(named(&pool), Some("/x/xdebug.so"));
        for (value, expected) in [("xdebug", Some("xdebug")), ("opcache.so", None), ("/xdebug/other.so", None)] {
            pool.php.ini.insert(LOADS.to_owned(), value.to_owned());
            assert_eq!(named(&pool), expected);
        }
    }

    #[test]
    fn rules_for_the_debugger_come_before_those_of_the_settings() {
        let rules = Settings::default().rules.between(&chooses("a \"pool\""), &frees()).unwrap();
        assert_eq!(rules.rules().len(), 2 * CONDITIONS.len());
        assert!(rules.pools().all(|pool| pool == "a \"pool\""));
    }
}
