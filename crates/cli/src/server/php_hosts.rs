//! The part of `howdah check` about PHP programs.

use crate::server::php_limits;
use crate::server::pools;
use howdah_budget::Budgets;
use howdah_config::Settings;
use std::fmt::Write;

/// Describes the PHP of each pool, as comments, because the rest of `howdah check` is a `howdah.toml`. Missing programs
/// are reported elsewhere: as errors of the settings that name them, else as a warning.
///
/// # Errors
/// Programs that do not run, each with the reason.
pub(crate) fn report(settings: &Settings) -> Result<String, Vec<String>> {
    let mut out = String::from("\n");
    let mut errors = Vec::new();
    for pool in settings.pools.iter().filter(|pool| pool.php.binary.path.is_file()) {
        // The sandbox's check reports a missing user.
        let Ok(config) = pools::pool_config(settings, pool, Budgets::new(0, 0)) else { continue };
        match howdah_pool::php_host(&config) {
            Ok(version) => {
                let _ = writeln!(out, "# PHP of pool {}: {version}, {}", pool.name, pool.php.binary.path.display());
            }
            Err(why) => errors.push(format!("pool {}: {why}", pool.name)),
        }
    }
    if errors.is_empty() { Ok(out) } else { Err(errors) }
}

/// Starts each pool's PHP once; its messages, and limits that contradict the server's, become warnings. Missing programs
/// are reported elsewhere.
pub(crate) fn try_to_start(settings: &Settings, warnings: &mut Vec<String>, errors: &mut Vec<String>) {
    for pool in settings.pools.iter().filter(|pool| pool.php.binary.path.is_file()) {
        let Ok(config) = pools::pool_config(settings, pool, Budgets::new(0, 0)) else { continue };
        let names: Vec<&str> = pool.php.ini.keys().map(String::as_str).collect();
        let trial = howdah_pool::try_php(&config, &names);
        let of_pool = |text: &String| format!("pool {}: {text}", pool.name);
        warnings.extend(trial.said.iter().map(of_pool));
        warnings.extend(php_limits::contradictions(settings, pool, &trial.limits).iter().map(of_pool));
        errors.extend(trial.failure.iter().map(of_pool));
    }
}
