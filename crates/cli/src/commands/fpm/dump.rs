//! Prints every directive with its value, in the order and format of `php-fpm -tt`. Also checks values that PHP-FPM
//! would refuse, even of directives that have no effect here.

use super::arguments::{Arguments, STATE, prefix_of};
use super::directives::{Form, GLOBAL, POOL, UNDEFINED};
use super::file::Section;
use super::pool::{self, ACCESS_FORMAT};
use std::path::Path;

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
    for (name, _, form) in GLOBAL {
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
    for (name, _, form) in POOL {
        match form {
            Form::Hidden => {}
            Form::Entries(names) => lines.extend(entries(section, name, names, &prefix)),
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
        Form::Text(default) => or(default),
        Form::Number(default) => section.number(name)?.map_or_else(|| default.to_owned(), |number| number.to_string()),
        Form::Seconds(default) => format!("{}s", section.seconds(name)?.unwrap_or(default)),
        Form::BareSeconds(default) => section.seconds(name)?.unwrap_or(default).to_string(),
        Form::Switch(default) => yes_or_no(section.switch(name)?.unwrap_or(default)),
        Form::File(default) => match text.or(default) {
            None => UNDEFINED.to_owned(),
            Some("syslog") => "syslog".to_owned(),
            Some(path) => pool::full(path, prefix).display().to_string(),
        },
        Form::Core => match text {
            Some("unlimited") => "-1".to_owned(),
            _ => section.number(name)?.unwrap_or(0).to_string(),
        },
        Form::Facility => {
            let word = or("daemon").to_ascii_lowercase();
            let found = FACILITIES.iter().find(|(own, _)| *own == word);
            let (_, number) = found.ok_or_else(|| format!("{name} = {word}: unknown facility"))?;
            (u32::from(*number) << 3).to_string()
        }
        Form::Level => or("notice").to_uppercase(),
        Form::Listen => match text {
            Some(listen) if !pool::is_tcp(listen) => pool::full(listen, prefix).display().to_string(),
            _ => or(UNDEFINED),
        },
        Form::StartServers => match pool::start_workers(section)? {
            Some(number) => number.to_string(),
            None => section.number(name)?.unwrap_or(0).to_string(),
        },
        Form::Pong => or(if section.get("ping.path").is_some() { "pong" } else { UNDEFINED }),
        Form::AccessFormat => or(if section.get("access.log").is_some() { ACCESS_FORMAT } else { UNDEFINED }),
        Form::Entries(_) | Form::Hidden => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::fpm::file::parse;

    #[test]
    fn values_that_have_no_effect_are_checked_too() {
        let given = Arguments::default();
        for (text, why) in [
            ("emergency_restart_interval = often", "expected a number of seconds"),
            ("syslog.facility = none", "unknown facility"),
            ("process.max = -1", "expected a number"),
        ] {
            let config = parse(&format!("[global]\n{text}\n[a]\npm = static\n"), Path::new("/etc/fpm.conf")).unwrap();
            assert!(global(&config.global, &given).unwrap_err().contains(why), "{text}");
        }
        let config = parse(
            "[a]\npm = static\nrlimit_core = unlimited\nlog = x\nlisten.backlog = -1\n",
            Path::new("/etc/fpm.conf"),
        )
        .unwrap();
        let lines = pool(&config.pools[0], &given).unwrap();
        assert!(lines.contains(&"\trlimit_core = -1".to_owned()) && lines[0] == "[a]", "{lines:?}");
    }
}
