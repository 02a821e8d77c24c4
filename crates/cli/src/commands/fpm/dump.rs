//! Prints every directive with its value, in the order and format of `php-fpm -tt`. Also checks values that PHP-FPM
//! would refuse, even of directives that have no effect here.

use super::arguments::{Arguments, STATE, prefix_of};
use super::file::Section;
use super::pool::{self, ACCESS_FORMAT};
use std::path::Path;

/// Format of a value.
#[derive(Clone, Copy)]
enum Form {
    /// The text as written, or this default.
    Text(&'static str),
    /// A number, or this default.
    Number(&'static str),
    /// Seconds, with the suffix `s`.
    Seconds(u64),
    /// Seconds, without a suffix.
    BareSeconds(u64),
    Switch(bool),
    /// A path, relative to the section's prefix.
    Path(Option<&'static str>),
    /// A number, or `unlimited`.
    Core,
    Facility,
    Level,
    /// An address, or a path relative to the prefix.
    Listen,
    /// `pm.start_servers`, which PHP-FPM computes for a dynamic pool.
    StartServers,
    /// `ping.response`, which has a default only with a `ping.path`.
    Pong,
    /// `access.format`, which has a default only with an `access.log`.
    AccessFormat,
    /// `NAME[] = VALUE` or `NAME[KEY] = VALUE`, in reverse order.
    Entries(&'static [&'static str]),
}

use Form::{
    AccessFormat, BareSeconds, Core, Entries, Facility, Level, Listen, Number, Path as File, Pong, Seconds,
    StartServers, Switch, Text,
};

const UNDEFINED: &str = "undefined";

const GLOBAL: &[(&str, Form)] = &[
    ("pid", File(None)),
    ("error_log", File(Some("log/php-fpm.log"))),
    ("syslog.ident", Text("php-fpm")),
    ("syslog.facility", Facility),
    ("log_buffering", Switch(true)),
    ("log_level", Level),
    ("log_limit", Number("1024")),
    ("emergency_restart_interval", Seconds(0)),
    ("emergency_restart_threshold", Number("0")),
    ("process_control_timeout", Seconds(0)),
    ("process.max", Number("0")),
    ("process.priority", Text(UNDEFINED)),
    ("daemonize", Switch(true)),
    ("rlimit_files", Number("0")),
    ("rlimit_core", Core),
    ("events.mechanism", Text("epoll")),
    ("systemd_interval", Seconds(10)),
];

const POOL: &[(&str, Form)] = &[
    ("prefix", Text(UNDEFINED)),
    ("user", Text(UNDEFINED)),
    ("group", Text(UNDEFINED)),
    ("listen", Listen),
    ("listen.backlog", Text("-1")),
    ("listen.acl_users", Text(UNDEFINED)),
    ("listen.acl_groups", Text(UNDEFINED)),
    ("listen.owner", Text(UNDEFINED)),
    ("listen.group", Text(UNDEFINED)),
    ("listen.mode", Text(UNDEFINED)),
    ("listen.allowed_clients", Text(UNDEFINED)),
    ("process.priority", Text(UNDEFINED)),
    ("process.dumpable", Switch(false)),
    ("pm", Text(UNDEFINED)),
    ("pm.max_children", Number("0")),
    ("pm.start_servers", StartServers),
    ("pm.min_spare_servers", Number("0")),
    ("pm.max_spare_servers", Number("0")),
    ("pm.max_spawn_rate", Number("32")),
    ("pm.process_idle_timeout", BareSeconds(10)),
    ("pm.max_requests", Number("0")),
    ("pm.status_path", Text(UNDEFINED)),
    ("pm.status_listen", Text(UNDEFINED)),
    ("ping.path", Text(UNDEFINED)),
    ("ping.response", Pong),
    ("access.log", File(None)),
    ("access.format", AccessFormat),
    ("access.suppress_path", Entries(&["access.suppress_path"])),
    ("slowlog", File(None)),
    ("request_slowlog_timeout", Seconds(0)),
    ("request_slowlog_trace_depth", Number("20")),
    ("request_terminate_timeout", Seconds(0)),
    ("request_terminate_timeout_track_finished", Switch(false)),
    ("rlimit_files", Number("0")),
    ("rlimit_core", Core),
    ("chroot", Text(UNDEFINED)),
    ("chdir", Text(UNDEFINED)),
    ("catch_workers_output", Switch(false)),
    ("decorate_workers_output", Switch(true)),
    ("clear_env", Switch(true)),
    ("security.limit_extensions", Text(".php .phar")),
    ("env", Entries(&["env"])),
    ("php_value", Entries(&["php_value", "php_flag"])),
    ("php_admin_value", Entries(&["php_admin_value", "php_admin_flag"])),
];

/// Facility numbers of syslog(3).
const FACILITIES: &[(&str, u8)] = &[
    ("kern", 0),
    ("user", 1),
    ("mail", 2),
    ("daemon", 3),
    ("auth", 4),
    ("syslog", 5),
    ("lpr", 6),
    ("news", 7),
    ("uucp", 8),
    ("cron", 9),
    ("authpriv", 10),
    ("ftp", 11),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", 23),
];

/// Returns the lines for `[global]`.
///
/// # Errors
/// A value that PHP-FPM would refuse.
pub(super) fn global(section: &Section, given: &Arguments) -> Result<Vec<String>, String> {
    let prefix = given.prefix.as_deref().unwrap_or(Path::new(STATE));
    let mut lines = vec!["[global]".to_owned()];
    for (name, form) in GLOBAL {
        let value = match (*name, given.daemonize) {
            ("daemonize", Some(daemonize)) => yes_or_no(daemonize),
            ("pid", _) if given.pid.is_some() => {
                given.pid.as_ref().map(|pid| pid.display().to_string()).unwrap_or_default()
            }
            _ => shown(section, name, *form, prefix)?,
        };
        lines.push(format!("\t{name} = {value}"));
    }
    lines.push(" ".to_owned());
    Ok(lines)
}

/// Returns the lines for a pool.
///
/// # Errors
/// A value that PHP-FPM would refuse.
pub(super) fn pool(section: &Section, given: &Arguments) -> Result<Vec<String>, String> {
    let prefix = prefix_of(section, given);
    let mut lines = vec![format!("[{}]", section.name)];
    for (name, form) in POOL {
        match form {
            Entries(names) => lines.extend(entries(section, name, names, &prefix)),
            form => lines.push(format!("\t{name} = {}", shown(section, name, *form, &prefix)?)),
        }
    }
    lines.push(" ".to_owned());
    Ok(lines)
}

fn entries<'a>(
    section: &'a Section,
    shown_as: &'a str,
    names: &'a [&str],
    prefix: &'a Path,
) -> impl Iterator<Item = String> + 'a {
    let of_name = section.directives().iter().rev().filter(|directive| names.contains(&directive.name.as_str()));
    of_name.map(move |directive| {
        let key = directive.key.as_deref().unwrap_or_default();
        let value = directive.flag_or_value();
        let value = if shown_as == "env" { value.to_owned() } else { pool::ini_value(key, value, prefix) };
        format!("\t{shown_as}[{key}] = {value}")
    })
}

fn yes_or_no(on: bool) -> String {
    if on { "yes" } else { "no" }.to_owned()
}

fn shown(section: &Section, name: &str, form: Form, prefix: &Path) -> Result<String, String> {
    let text = section.get(name);
    let or = |default: &str| text.unwrap_or(default).to_owned();
    Ok(match form {
        Text(default) => or(default),
        Number(default) => section.number(name)?.map_or_else(|| default.to_owned(), |number| number.to_string()),
        Seconds(default) => format!("{}s", section.seconds(name)?.unwrap_or(default)),
        BareSeconds(default) => section.seconds(name)?.unwrap_or(default).to_string(),
        Switch(default) => yes_or_no(section.switch(name)?.unwrap_or(default)),
        File(default) => match text.or(default) {
            None => UNDEFINED.to_owned(),
            Some("syslog") => "syslog".to_owned(),
            Some(path) => pool::full(path, prefix).display().to_string(),
        },
        Core => match text {
            Some("unlimited") => "-1".to_owned(),
            _ => section.number(name)?.unwrap_or(0).to_string(),
        },
        Facility => {
            let word = or("daemon").to_ascii_lowercase();
            let found = FACILITIES.iter().find(|(own, _)| *own == word);
            let (_, number) = found.ok_or_else(|| format!("{name} = {word}: unknown facility"))?;
            (u32::from(*number) << 3).to_string()
        }
        Level => or("notice").to_uppercase(),
        Listen => match text {
            Some(listen) if !pool::is_tcp(listen) => pool::full(listen, prefix).display().to_string(),
            _ => or(UNDEFINED),
        },
        StartServers => match pool::start_workers(section)? {
            Some(number) => number.to_string(),
            None => section.number(name)?.unwrap_or(0).to_string(),
        },
        Pong => or(if section.get("ping.path").is_some() { "pong" } else { UNDEFINED }),
        AccessFormat => or(if section.get("access.log").is_some() { ACCESS_FORMAT } else { UNDEFINED }),
        Entries(_) => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::fpm::directives;
    use crate::commands::fpm::file::parse;

    #[test]
    fn every_directive_is_shown_once() {
        let own = ["listen.setfib", "process.cpu_affinity", "php_flag", "php_admin_flag", "apparmor_hat"];
        for (table, is_pool) in [(GLOBAL, false), (POOL, true)] {
            let all = directives::names(is_pool).filter(|name| !own.contains(name));
            let mut all: Vec<&str> = all.collect();
            let mut shown: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
            all.sort_unstable();
            shown.sort_unstable();
            assert_eq!(shown, all);
        }
    }

    #[test]
    fn values_that_have_no_effect_are_checked_too() {
        let given = Arguments::default();
        for (text, why) in [
            ("emergency_restart_interval = often", "expected a number of seconds"),
            ("syslog.facility = none", "unknown facility"),
            ("process.max = -1", "expected a number"),
        ] {
            let config = parse(&format!("[global]\n{text}\n[a]\npm = static\n")).unwrap();
            assert!(global(&config.global, &given).unwrap_err().contains(why), "{text}");
        }
        let config = parse("[a]\npm = static\nrlimit_core = unlimited\nlog = x\nlisten.backlog = -1\n").unwrap();
        let lines = pool(&config.pools[0], &given).unwrap();
        assert!(lines.contains(&"\trlimit_core = -1".to_owned()) && lines[0] == "[a]", "{lines:?}");
    }
}
