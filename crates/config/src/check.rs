//! Checks settings against each other and the file system, and reports valid values that cannot work.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::address::{ListenAddr, SocketPlace};
use crate::choice::{ClientAuth, Mode, SandboxProfile, SystemCalls};
use crate::glob::Glob;
use crate::origin::Origin;
use crate::settings::{DEFAULT_POOL, PoolSettings, Settings};
use crate::settings_proxy::ProxySettings;
use crate::source::Source;
use crate::value::Value;
use crate::{check_acme, check_sites, check_telemetry, check_users, hidden, ini, settings_deploy};

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
    for proxy in settings.proxies.iter().filter(|proxy| !proxy.name.contains(':')) {
        self::proxy(proxy, source);
    }
    check_acme::check(settings, source);
    settings_deploy::check(&settings.deploy, source);
    tls(settings, source);
    check_telemetry::check(&settings.telemetry, source);
    check_users::check(settings, source);
}

impl PoolSettings {
    /// The full name of one of the pool's settings, as in `Origins`.
    pub(crate) fn name_of(&self, key: &str) -> String {
        if self.name == DEFAULT_POOL { key.to_owned() } else { format!("pool.{}.{key}", self.name) }
    }
}

fn server(settings: &Settings, source: &mut Source<'_>) {
    if settings.listen.is_empty() {
        source.object("listen", "needs at least one address".to_owned());
    }
    for (at, addr) in settings.listen.iter().enumerate() {
        let any_port = matches!(addr.place(), SocketPlace::Tcp(addr) if addr.port() == 0);
        if settings.listen[..at].iter().any(|other| other.place() == addr.place()) && !any_port {
            source.object("listen", format!("{addr} is listed twice"));
        }
        if settings.admin.place() == addr.place() && !any_port {
            source.object("admin", format!("{addr} is an address of `listen` too; give it a separate address"));
        }
    }
}

fn pool(pool: &PoolSettings, source: &mut Source<'_>) {
    let name = |key: &str| pool.name_of(key);
    let php = |key: &str| if pool.name == DEFAULT_POOL { format!("php.{key}") } else { pool.name_of(key) };
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
            source.object(&name(key), format!("there is no file {}{}", path.display(), hidden::reason(path)));
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
        source.object(
            &php("config"),
            format!("there is no file or directory {}{}", config.display(), hidden::reason(config)),
        );
    }
    for (setting, values) in [("ini", &pool.php.ini), ("admin_ini", &pool.php.admin_ini)] {
        for (key, value) in values {
            if !ini::is_name(key) {
                source.object(&php(setting), format!("{key:?} is not a valid name of a PHP setting"));
            } else if value.contains('\0') {
                source.object(&php(setting), format!("the value of {key} has a NUL byte, which PHP cannot read"));
            }
        }
    }
    for (key, value) in &pool.php.env {
        if key.is_empty() || key.contains(['=', '\0']) || value.contains('\0') {
            source.object(&php("env"), format!("{key:?} is not a valid name of an environment variable"));
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
        let message = format!("{} exceeds `workers`, {}", spare.show(), pool.workers.show());
        source.object(&name("spare_workers"), message);
    }
}

fn sandbox(pool: &PoolSettings, source: &mut Source<'_>) {
    let name = |key: &str| pool.name_of(&format!("sandbox.{key}"));
    let sandbox = &pool.sandbox;
    if sandbox.profile == SandboxProfile::Off {
        return;
    }
    if let Some(both) = sandbox.deny.iter().find(|group| sandbox.allow.contains(group)) {
        source.object(&name("deny"), format!("\"{both}\" is in `allow` too"));
    }
    if pool.mode == Mode::Snapshot && sandbox.deny.contains(&SystemCalls::Fork) {
        let message = "workers in mode \"snapshot\" are forked from one another, so \"fork\" cannot be refused there";
        source.object(&name("deny"), message.to_owned());
    }
    for (key, paths) in [("read", &sandbox.read), ("execute", &sandbox.execute)] {
        if let Some(path) = paths.iter().find(|path| !path.exists()) {
            source.object(
                &name(key),
                format!("there is no file or directory {}{}", path.display(), hidden::reason(path)),
            );
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
    let name = |pool: &PoolSettings| pool.name_of("concurrency");
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
        if pool.compare_with.is_none() {
            let message =
                "needs a pool in mode \"classic\" with the same root; for example: [pool.plain] mode = \"classic\"";
            source.object(&pool.name_of("compare_one_in"), message.to_owned());
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

fn proxy(proxy: &ProxySettings, source: &mut Source<'_>) {
    let name = |key: &str| format!("proxy.{}.{key}", proxy.name);
    if proxy.to.is_empty() {
        source.object(&name("to"), "needs at least one server; for example: to = \"http://127.0.0.1:3000\"".to_owned());
    }
    not_zero(source, &name("response_timeout"), proxy.response_timeout);
    let is_path = |path: &str| path.starts_with('/') && path.bytes().all(|byte| (b'!'..=b'~').contains(&byte));
    if proxy.health.as_deref().is_some_and(|path| !is_path(path)) {
        source.object(&name("health"), "must be a path that begins with a slash, such as \"/healthz\"".to_owned());
    }
    if let Some(ca) = &proxy.ca
        && !ca.is_file()
    {
        source.object(&name("ca"), format!("{} does not exist{}", ca.display(), hidden::reason(ca)));
    }
    let tls = proxy.to.iter().any(|server| server.tls);
    if !tls && (proxy.ca.is_some() || proxy.server_name.is_some() || !proxy.verify) {
        source.object(
            &name("to"),
            "no server begins with https://, so `ca`, `server_name` and `verify` have no effect".to_owned(),
        );
    }
}

/// Checks that TLS settings are consistent. The files' contents are checked when they are loaded.
fn tls(settings: &Settings, source: &mut Source<'_>) {
    let tls = &settings.tls;
    let https = settings.listen.iter().find(|addr| matches!(addr, ListenAddr::Https(_)));
    if matches!(settings.admin, ListenAddr::Https(_)) {
        source.object("admin", "the admin endpoint does not support TLS; use a Unix socket".to_owned());
    }
    if settings.admin.is_fastcgi() {
        source.object("admin", "the admin endpoint speaks both HTTP and FastCGI; leave out fastcgi:".to_owned());
    }
    match https {
        Some(addr)
            if tls.certificates.is_empty()
                && settings.sites.iter().all(|site| site.tls.certificates.is_empty())
                && !settings.acme.is_used() =>
        {
            let message = format!(
                "{addr} needs a certificate; for example, under [tls]: certificates = [{{ cert = \"cert.pem\", key = \"key.pem\" }}], or auto = true"
            );
            source.object("listen", message);
        }
        None if tls.redirect => {
            let message = "needs an address to redirect to: none of `listen` begins with https://";
            source.object("tls.redirect", message.to_owned());
        }
        None if tls.http3 => {
            let message = "needs an address for it: none of `listen` begins with https://";
            source.object("tls.http3", message.to_owned());
        }
        None if !tls.certificates.is_empty() => {
            let message = "no address of `listen` begins with https://, so they would not be used";
            source.object("tls.certificates", message.to_owned());
        }
        _ => {}
    }
    match (tls.client_auth, &tls.client_ca) {
        (ClientAuth::Off, Some(_)) => {
            source.object("tls.client_ca", "has no effect while `client_auth` is \"off\"".to_owned());
        }
        (ClientAuth::Optional | ClientAuth::Required, None) => {
            let message = "needs `client_ca`, the CA whose certificates are accepted";
            source.object("tls.client_auth", message.to_owned());
        }
        _ => {}
    }
}

fn not_zero(source: &mut Source<'_>, name: &str, value: Duration) {
    if value.is_zero() {
        source.object(name, "must be more than 0".to_owned());
    }
}
