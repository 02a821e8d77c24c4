//! Checks settings as a whole: what no single value shows (missing files, matching names), and valid values that cannot
//! work.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::address::SocketPlace;
use crate::choice::{Mode, SandboxProfile, SystemCalls};
use crate::glob::Glob;
use crate::origin::Origin;
use crate::settings::{DEFAULT_POOL, PoolSettings, Settings};
use crate::source::Source;
use crate::value::Value;
use crate::{check_acme, check_proxies, check_sites, check_telemetry, check_tls, check_users, ini, settings_deploy};

/// Reports all errors in the loaded settings.
pub(crate) fn check(settings: &Settings, source: &mut Source<'_>) {
    server(settings, source);
    for pool in &settings.pools {
        self::pool(pool, source);
    }
    concurrency(settings, source);
    compared(settings, source);
    http(settings, source);
    check_sites::check(settings, source);
    check_proxies::check(settings, source);
    check_acme::check(settings, source);
    settings_deploy::check(&settings.deploy, source);
    check_tls::check(settings, source);
    check_telemetry::check(&settings.telemetry, source);
    check_users::check(settings, source);
}

fn server(settings: &Settings, source: &mut Source<'_>) {
    if settings.listen.is_empty() {
        source.object("listen", "needs at least one address".to_owned());
    }
    for (at, addr) in settings.listen.iter().enumerate() {
        let any_port = matches!(addr.place(), SocketPlace::Tcp(addr) if addr.port() == 0);
        if settings.listen[..at].iter().any(|other| other.place() == addr.place()) && !any_port {
            source.object("listen", format!("{addr} is named twice"));
        }
        if settings.admin.place() == addr.place() && !any_port {
            source.object("admin", format!("{addr} is an address of `listen` too; give it a separate address"));
        }
    }
}

fn pool(pool: &PoolSettings, source: &mut Source<'_>) {
    let is_default = pool.name == DEFAULT_POOL;
    let name = |key: &str| if is_default { key.to_owned() } else { format!("pool.{}.{key}", pool.name) };
    let php = |key: &str| if is_default { format!("php.{key}") } else { format!("pool.{}.{key}", pool.name) };
    match (pool.mode, &pool.script, &pool.boot) {
        (Mode::Worker | Mode::Async, None, _) => {
            let message = format!("mode \"{}\" needs a script; for example: script = \"worker.php\"", pool.mode);
            source.object(&name("mode"), message);
        }
        (Mode::Snapshot, None, None) => {
            let message = "mode \"snapshot\" needs a script, a boot file or an `app` that the server can boot; for example: boot = \"boot.php\"";
            source.object(&name("mode"), message.to_owned());
        }
        _ => {}
    }
    for (key, path) in [("script", &pool.script), ("boot", &pool.boot)] {
        if let Some(path) = path
            && pool.mode != Mode::Classic
            && !path.is_file()
        {
            source.object(&name(key), format!("there is no file {}", path.display()));
        }
    }
    if source.origins.of(&php("binary")) != Origin::Default {
        let binary = &pool.php.binary.path;
        if let Some(missing) = pool.php.binary.missing(source.environment) {
            source.object(&php("binary"), missing);
        } else if std::fs::metadata(binary).is_ok_and(|found| found.permissions().mode() & 0o111 == 0) {
            source.object(&php("binary"), format!("{} is not executable", binary.display()));
        }
    }
    if let Some(config) = &pool.php.config
        && !config.exists()
    {
        source.object(&php("config"), format!("there is no file or directory {}", config.display()));
    }
    for (setting, values) in [("ini", &pool.php.ini), ("admin_ini", &pool.php.admin_ini)] {
        for (key, value) in values {
            if !ini::is_name(key) {
                source.object(&php(setting), format!("{key:?} is not the name of a setting of PHP"));
            } else if value.contains('\0') {
                source.object(&php(setting), format!("the value of {key} has a NUL byte, which PHP cannot read"));
            }
        }
    }
    for (key, value) in &pool.php.env {
        if key.is_empty() || key.contains(['=', '\0']) || value.contains('\0') {
            source.object(&php("env"), format!("{key:?} is not a name of an environment variable"));
        }
    }
    if let Some(path) = pool.warmup.iter().find(|path| !path.starts_with('/')) {
        source.object(&name("warmup"), format!("\"{path}\" must be a request path, such as \"/{path}\""));
    }
    for pattern in &pool.watch {
        if let Err(why) = Glob::new(pattern, Path::new("/")) {
            source.object(&name("watch"), format!("\"{pattern}\" {why}"));
        }
    }
    if pool.status_path.as_ref().is_some_and(|path| !path.starts_with('/')) {
        let message = "expected a path that begins with /; for example: status_path = \"/fpm-status\"";
        source.object(&name("status_path"), message.to_owned());
    }
    not_zero(source, &name("boot_timeout"), pool.boot_timeout);
    numbers_of_workers(pool, source, &name);
    sandbox(pool, source);
}

/// Checks that the settings of the number of workers are consistent.
fn numbers_of_workers(pool: &PoolSettings, source: &mut Source<'_>, name: &dyn Fn(&str) -> String) {
    let max = pool.workers.max as usize;
    let spare = pool.spare_workers;
    if spare.min.max(spare.max.unwrap_or(0)) as usize > max {
        let message = format!("{} is more than `workers` allows, {}", spare.show(), pool.workers.show());
        source.object(&name("spare_workers"), message);
    }
}

fn sandbox(pool: &PoolSettings, source: &mut Source<'_>) {
    let is_default = pool.name == DEFAULT_POOL;
    let name =
        |key: &str| if is_default { format!("sandbox.{key}") } else { format!("pool.{}.sandbox.{key}", pool.name) };
    let sandbox = &pool.sandbox;
    if sandbox.profile == SandboxProfile::Off {
        return;
    }
    if let Some(both) = sandbox.deny.iter().find(|group| sandbox.allow.contains(group)) {
        source.object(&name("deny"), format!("\"{both}\" stands in `allow` too"));
    }
    if pool.mode == Mode::Snapshot && sandbox.deny.contains(&SystemCalls::Fork) {
        let message = "workers in mode \"snapshot\" are forked from one another, so \"fork\" cannot be refused there";
        source.object(&name("deny"), message.to_owned());
    }
    for (key, paths) in [("read", &sandbox.read), ("execute", &sandbox.execute)] {
        if let Some(path) = paths.iter().find(|path| !path.exists()) {
            source.object(&name(key), format!("there is no file or directory {}", path.display()));
        }
    }
    for (key, paths) in [("write", &sandbox.write), ("write_code", &sandbox.write_code)] {
        if let Some(path) = paths.iter().find(|path| path.exists() && !path.is_dir()) {
            source.object(&name(key), format!("{} is not a directory", path.display()));
        }
    }
}

/// Reports a `concurrency` that no pool uses. At the top level it is for the async pools, and its default appears in
/// the output of `howdah check`.
fn concurrency(settings: &Settings, source: &mut Source<'_>) {
    let name = |pool: &PoolSettings| match pool.name.as_str() {
        DEFAULT_POOL => "concurrency".to_owned(),
        name => format!("pool.{name}.concurrency"),
    };
    let default = PoolSettings::default().concurrency;
    let (of_use, others): (Vec<_>, Vec<_>) = settings.pools.iter().partition(|pool| pool.mode == Mode::Async);
    for pool in others.into_iter().filter(|pool| pool.concurrency != default) {
        let origin = source.origins.of(&name(pool));
        if of_use.iter().all(|pool| source.origins.of(&name(pool)) != origin) {
            let message = format!(
                "is for mode \"async\"; a worker in mode \"{}\" runs one request at a time, see `workers`",
                pool.mode
            );
            source.object(&name(pool), message);
        }
    }
}

/// Checks that a pool with comparisons has a pool in classic mode to compare with.
fn compared(settings: &Settings, source: &mut Source<'_>) {
    let compared = |pool: &&PoolSettings| pool.compare_one_in > 0 && pool.mode != Mode::Classic;
    for pool in settings.pools.iter().filter(compared) {
        let name = |key: &str| match pool.name.as_str() {
            DEFAULT_POOL => key.to_owned(),
            name => format!("pool.{name}.{key}"),
        };
        if pool.compare_with.is_none() {
            let message =
                "needs a pool in mode \"classic\" with the same root; for example: [pool.plain] mode = \"classic\"";
            source.object(&name("compare_one_in"), message.to_owned());
        }
    }
}

fn http(settings: &Settings, source: &mut Source<'_>) {
    let http = &settings.http;
    for (key, value) in [("client_timeout", http.client_timeout), ("idle_timeout", http.idle_timeout)] {
        not_zero(source, &format!("http.{key}"), value);
    }
    if let Some(dir) = &http.temp_dir
        && !dir.is_dir()
    {
        source.object("http.spool", format!("there is no directory {} for it: see TMPDIR", dir.display()));
    }
}

fn not_zero(source: &mut Source<'_>, name: &str, value: Duration) {
    if value.is_zero() {
        source.object(name, "must be more than 0".to_owned());
    }
}
