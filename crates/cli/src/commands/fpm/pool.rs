//! Converts a PHP-FPM pool to settings of a pool here, for `howdah init`, which writes them, and for `howdah-fpm`.

use super::directives::Effect;
use super::directives::fate;
use super::file::Section;
use howdah_config::{FpmAccess, quoted};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// PHP-FPM's default format of access logs.
pub(super) const ACCESS_FORMAT: &str = "%R - %u %t \"%m %r\" %s";

/// Lines `KEY = VALUE` of a `howdah.toml`.
pub(crate) type Lines = Vec<(&'static str, String)>;

/// Appends lines to the text of a `howdah.toml`.
pub(crate) fn write(text: &mut String, lines: Lines) {
    for (key, value) in lines {
        let _ = writeln!(text, "{key} = {value}");
    }
}

/// Returns the directives without effect, each with the reason.
///
/// # Errors
/// A directive that PHP-FPM does not have, or that must not be ignored.
pub(crate) fn dropped(section: &Section, is_pool: bool) -> Result<Vec<(&str, &'static str)>, String> {
    let mut found: Vec<(&str, &'static str)> = Vec::new();
    for directive in section.directives() {
        let (name, place) = (directive.name.as_str(), &directive.place);
        let needs_key = matches!(name, "env" | "php_value" | "php_flag" | "php_admin_value" | "php_admin_flag");
        match directive.key.as_deref() {
            None if needs_key => return Err(format!("{place}: unknown entry '{name}': expected {name}[KEY]")),
            Some("") if needs_key => return Err(format!("{place}: {name}[]: a key is missing")),
            _ => {}
        }
        match fate(name, is_pool) {
            None => return Err(format!("{place}: unknown entry '{name}'")),
            Some(Effect::Refused(remedy)) if !directive.value.is_empty() => {
                return Err(format!("{place}: {name} is not supported: {remedy}"));
            }
            Some(Effect::Dropped(why))
                if !directive.value.is_empty() && !found.iter().any(|(other, _)| *other == name) =>
            {
                found.push((name, why));
            }
            Some(_) => {}
        }
    }
    Ok(found)
}

/// Converts the number of workers, the limits of requests, and the status and ping pages.
///
/// # Errors
/// An invalid directive, which PHP-FPM would refuse too.
pub(crate) fn pool(section: &Section, prefix: &Path) -> Result<Lines, String> {
    let mut lines = workers(section)?;
    if let Some(number) = section.number("pm.max_requests")?.filter(|number| *number > 0) {
        lines.push(("max_requests", number.to_string()));
    }
    lines.push(("deadline", section.seconds("request_terminate_timeout")?.unwrap_or(0).to_string()));
    if let Some(seconds) = section.seconds("request_slowlog_timeout")?.filter(|seconds| *seconds > 0) {
        let log = section.get("slowlog").ok_or("request_slowlog_timeout needs a slowlog")?;
        lines.push(("slow_log_after", seconds.to_string()));
        lines.push(("slow_log", log_target(log, prefix)));
    }
    lines.extend(section.get("pm.status_path").map(|path| ("status_path", quoted(path))));
    Ok(lines)
}

/// Converts PHP's environment, settings and limits. `scanned`: the directory of additional `php.ini` files.
///
/// # Errors
/// An invalid switch.
pub(crate) fn php(
    section: &Section,
    defined: &[(String, String)],
    scanned: Option<&Path>,
    prefix: &Path,
) -> Result<Lines, String> {
    let mut lines = vec![("clear_env", section.switch("clear_env")?.unwrap_or(true).to_string())];
    let scanned = scanned.map(|dir| ("PHP_INI_SCAN_DIR", dir.to_string_lossy().into_owned()));
    let own = section.table(&["env"]).into_iter().map(|(name, value)| (name, expanded(value)));
    let variables: Vec<(&str, String)> = scanned.into_iter().chain(own).collect();
    lines.extend(table("env", variables.iter().map(|(name, value)| (*name, value.as_str()))));
    let defined = defined.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let values = ini_values(section, &["php_value", "php_flag"], prefix);
    let given = defined.filter(|(name, _)| !values.iter().any(|(own, _)| own == name));
    lines.extend(table("ini", given.chain(values.iter().map(|(name, value)| (*name, value.as_str())))));
    let values = ini_values(section, &["php_admin_value", "php_admin_flag"], prefix);
    lines.extend(table("admin_ini", values.iter().map(|(name, value)| (*name, value.as_str()))));
    let limits = [("rlimit_files", "nofile"), ("rlimit_core", "core")];
    let limits = limits.into_iter().filter_map(|(name, key)| Some((key, section.get(name)?)));
    lines.extend(table("limits", limits));
    Ok(lines)
}

/// PHP settings for these directives; a relative path of PHP's error log starts from the prefix.
fn ini_values<'a>(section: &'a Section, names: &[&str], prefix: &Path) -> Vec<(&'a str, String)> {
    let values = section.table(names).into_iter();
    values.map(|(name, value)| (name, ini_value(name, value, prefix))).collect()
}

pub(crate) fn ini_value(name: &str, value: &str, prefix: &Path) -> String {
    match name {
        "error_log" if value != "syslog" => full(value, prefix).to_string_lossy().into_owned(),
        _ => value.to_owned(),
    }
}

/// Value of a variable; `$NAME` refers to the server's environment.
fn expanded(value: &str) -> String {
    match value.strip_prefix('$') {
        Some(name) => std::env::var(name).unwrap_or_default(),
        None => value.to_owned(),
    }
}

fn table<'a>(
    key: &'static str,
    entries: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Option<(&'static str, String)> {
    let mut text = String::new();
    for (name, value) in entries {
        let _ = write!(text, "{}{} = {}", if text.is_empty() { "" } else { ", " }, quoted(name), quoted(value));
    }
    (!text.is_empty()).then(|| (key, format!("{{ {text} }}")))
}

/// Converts a pool's address: a path, a port on all addresses, or an address with a port.
pub(crate) fn address(listen: &str, prefix: &Path) -> String {
    if !is_tcp(listen) {
        format!("fastcgi:unix:{}", prefix.join(listen).display())
    } else if listen.contains(':') {
        format!("fastcgi:{}", listen.replace('*', "0.0.0.0"))
    } else {
        format!("fastcgi:[::]:{listen}")
    }
}

/// `true` for a port, or an address with a port.
pub(crate) fn is_tcp(listen: &str) -> bool {
    listen.parse::<u16>().is_ok() || (listen.contains(':') && !listen.contains('/'))
}

/// The addresses of a pool and of its status page.
pub(crate) fn addresses(section: &Section, prefix: &Path) -> impl Iterator<Item = String> {
    let all = [section.get("listen"), section.get("pm.status_listen")];
    all.into_iter().flatten().map(move |listen| address(listen, prefix))
}

/// Clients that may connect, if the pool restricts them.
pub(crate) fn clients(section: &Section) -> Option<Vec<&str>> {
    let clients = section.get("listen.allowed_clients")?;
    Some(clients.split([',', ' ']).map(str::trim).filter(|client| !client.is_empty() && *client != "any").collect())
        .filter(|clients: &Vec<_>| !clients.is_empty())
}

/// Initial number of workers of a dynamic pool.
///
/// # Errors
/// The value is not a number.
pub(crate) fn start_workers(section: &Section) -> Result<Option<u64>, String> {
    if section.get("pm") != Some("dynamic") {
        return Ok(None);
    }
    let (least, most) = spare_workers(section)?;
    let start = section.number("pm.start_servers")?.unwrap_or(least + most.saturating_sub(least) / 2);
    if !(least..=most).contains(&start) {
        return Err(format!(
            "pm.start_servers ({start}) must be from pm.min_spare_servers ({least}) to pm.max_spare_servers ({most})"
        ));
    }
    Ok(Some(start))
}

/// Minimum and maximum number of idle workers; 0 if the pool does not set them.
fn spare_workers(section: &Section) -> Result<(u64, u64), String> {
    let number = |name: &str| Ok::<_, String>(section.number(name)?.unwrap_or(0));
    Ok((number("pm.min_spare_servers")?, number("pm.max_spare_servers")?))
}

fn workers(section: &Section) -> Result<Lines, String> {
    let manager = section.get("pm").ok_or("pm is missing: static, dynamic or ondemand")?;
    let max = section.number("pm.max_children")?.filter(|max| *max > 0);
    let max = max.ok_or("pm needs pm.max_children, the largest number of workers")?;
    start_workers(section)?;
    match manager {
        "static" => Ok(vec![("workers", max.to_string())]),
        "ondemand" => Ok(vec![("workers", quoted(&format!("0-{max}")))]),
        "dynamic" => {
            let (least, most) = spare_workers(section)?;
            if least == 0 || least > most || most > max {
                return Err(format!(
                    "pm = dynamic needs 1 <= pm.min_spare_servers ({least}) <= pm.max_spare_servers ({most}) <= \
                     pm.max_children ({max})"
                ));
            }
            let (workers, spare) = (format!("{least}-{max}"), format!("{least}-{most}"));
            Ok(vec![("workers", quoted(&workers)), ("spare_workers", quoted(&spare))])
        }
        other => Err(format!("pm = {other}: expected static, dynamic or ondemand")),
    }
}

/// User and group that a pool's PHP runs as.
pub(crate) fn user(section: &Section) -> Option<String> {
    let user = section.get("user")?;
    Some(section.get("group").map_or_else(|| user.to_owned(), |group| format!("{user}:{group}")))
}

/// Format of the pool's access log.
///
/// # Errors
/// A format or a path that PHP-FPM would refuse.
pub(crate) fn access(section: &Section) -> Result<FpmAccess, String> {
    let format = section.get("access.format").unwrap_or(ACCESS_FORMAT);
    let paths = section.directives().iter().filter(|directive| directive.name == "access.suppress_path");
    let paths: Vec<String> = paths.map(|directive| directive.value.clone()).collect();
    if let Some(path) = paths.iter().find(|path| !path.starts_with('/')) {
        return Err(format!("access.suppress_path = {path}: expected a path that begins with /"));
    }
    FpmAccess::parse(format, paths).map_err(|why| format!("access.format = {format}: {why}"))
}

/// Extensions of scripts that may run, from `security.limit_extensions`.
pub(crate) fn extensions(section: &Section) -> Vec<String> {
    let directives = section.directives().iter().rev();
    let set = directives.into_iter().find(|directive| directive.name == "security.limit_extensions");
    let list = set.map_or(".php .phar", |directive| directive.value.as_str());
    list.split([' ', ',']).filter(|ending| !ending.is_empty()).map(str::to_owned).collect()
}

/// Destination of an access log, which may be standard output, too.
pub(crate) fn access_target(text: &str, prefix: &Path) -> String {
    match text {
        "/proc/self/fd/1" | "/dev/stdout" => quoted("stdout"),
        other => log_target(other, prefix),
    }
}

/// Destination of another log: `syslog`, standard error, or a file.
pub(crate) fn log_target(text: &str, prefix: &Path) -> String {
    match text {
        "syslog" => quoted("syslog"),
        "/proc/self/fd/2" | "/dev/stderr" => quoted("stderr"),
        path => quoted(&full(path, prefix).to_string_lossy()),
    }
}

/// Checks that a log can be created, as PHP-FPM opens its logs before it starts.
///
/// # Errors
/// There is no directory for it.
pub(crate) fn has_directory(name: &str, log: Option<&str>, prefix: &Path) -> Result<(), String> {
    let is_file = |log: &&str| *log != "syslog" && !log.starts_with("/proc/") && !log.starts_with("/dev/");
    let Some(file) = log.filter(is_file).map(|log| full(log, prefix)) else { return Ok(()) };
    match file.parent() {
        Some(directory) if !directory.is_dir() => {
            Err(format!("{name} = {}: there is no directory {}", file.display(), directory.display()))
        }
        _ => Ok(()),
    }
}

pub(crate) fn full(path: &str, prefix: &Path) -> PathBuf {
    prefix.join(path)
}
