//! Settings of `dev`: its defaults where flags, environment and `howdah.toml` set nothing.

use super::{addresses, debugger, mails};
use howdah_config::{
    AccessTarget, Loaded, LogFormat, Mode, Origin, PoolSettings, ServeFlags, code_patterns, page_patterns,
};
use std::path::Path;

/// Sets flags for settings that keep their defaults, and classic mode also if a recipe would boot the application.
pub(super) fn complete(flags: &mut ServeFlags, given: &Loaded, project: &Path) {
    let is_open = |name: &str| given.origins.of(name) == Origin::Default;
    let set = |flags: &mut ServeFlags, name: &str, value: &str| {
        if is_open(name) {
            flags.set(name, value);
        }
    };
    if is_open("listen") && given.settings.sites.is_empty() {
        addresses::free().iter().for_each(|addr| flags.set("listen", addr));
        if is_open("acme.names") && is_open("tls.auto") && given.settings.tls.certificates.is_empty() {
            flags.set("tls.auto", "true");
            for name in [&*addresses::name(project), "localhost", "127.0.0.1", "::1"] {
                flags.set("acme.names", name);
            }
        }
    }
    if is_open("workers") {
        // Enough for a page and its resources; workers start on demand.
        flags.set("workers", "1-8");
    }
    // With code under development, each request must load the current code.
    let boots = |pool: &PoolSettings| pool.recipe.is_some();
    if is_open("mode") || given.settings.pools.iter().any(boots) {
        flags.set("mode", "classic");
    }
    set(flags, "log.access", "stdout");
    set(flags, "log.format", "terminal");
    set(flags, "log.level", "warn");
}

/// Changes settings that have no flag.
pub(super) fn develop(loaded: &mut Loaded, project: &Path) -> Result<(), String> {
    let settings = &mut loaded.settings;
    settings.development = true;
    let log = &mut settings.log;
    if log.access == AccessTarget::Stdout && loaded.origins.of("log.format") == Origin::Default {
        log.format = LogFormat::Terminal;
    }
    for site in &mut settings.sites {
        if site.log.access == AccessTarget::Off {
            site.log = settings.log.clone();
        }
    }
    let store = mails::store(&settings.acme.state, project);
    let program =
        std::env::current_exe().map_err(|error| format!("cannot determine the path of this program: {error}"))?;
    let sendmail = format!("{} sendmail --into {}", quoted(&program)?, quoted(&store)?);
    let patterns = code_patterns(project, None);
    for pool in &mut settings.pools {
        develop_php(pool, &sendmail);
        // In classic mode each request loads the changed code anyway.
        if pool.watch.is_empty() && pool.mode != Mode::Classic {
            pool.watch.clone_from(&patterns);
        }
    }
    let loads_code = settings.pools.iter().all(|pool| pool.watch.is_empty());
    settings.page_files = page_patterns(project, loads_code);
    debugger::add(settings)
}

fn develop_php(pool: &mut PoolSettings, sendmail: &str) {
    let values = [
        ("display_errors", "1"),
        ("html_errors", "1"),
        // Report all errors and notices, whatever php.ini sets.
        ("error_reporting", "32767"),
        ("log_errors", "1"),
        // As in PHP's php.ini-development: an error can still replace buffered output.
        ("output_buffering", "4096"),
        ("opcache.validate_timestamps", "1"),
        ("opcache.revalidate_freq", "0"),
        // OPcache compares times in whole seconds. It must not cache files younger than that, or it would miss a second
        // change.
        ("opcache.file_update_protection", "2"),
        ("realpath_cache_ttl", "0"),
        ("sendmail_path", sendmail),
    ];
    for (name, value) in values {
        pool.php.ini.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}

/// Quotes a path for the shell that PHP starts.
fn quoted(path: &Path) -> Result<String, String> {
    match path.to_str().filter(|path| !path.contains(['\'', '\n', '"', '\\'])) {
        Some(path) => Ok(format!("'{path}'")),
        None => Err(format!("the path {} cannot be written into sendmail_path: it has quotes", path.display())),
    }
}
