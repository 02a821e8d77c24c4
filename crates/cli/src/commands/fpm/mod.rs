//! `howdah-fpm`: this program under that name, or that name and a PHP version (`howdah-fpm8.2`). It accepts PHP-FPM's
//! command line and configuration, so that a service unit only needs another program path.

mod arguments;
mod daemon;
mod directives;
mod dump;
mod file;
pub(crate) mod init;
mod pool;
mod settings;

use crate::commands::serve;
use crate::output::{self, complain};
use crate::server::pools;
use anyhow::{Context, Result, anyhow};
use arguments::Arguments;
use howdah_budget::Budgets;
use howdah_config::{Environment, PhpProgram};
use howdah_observe::dashed_time;
use settings::Configuration;
use std::ffi::OsStr;
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::SystemTime;

/// PHP-FPM's exit statuses for a wrong command line and for a wrong configuration.
const WRONG_USAGE: u8 = 64;
const WRONG_CONFIG: u8 = 78;

const HELP: &str = "\
Usage: howdah-fpm [-n] [-h] [-i] [-m] [-v] [-t] [-p <prefix>] [-g <pid>] [-c <file>] [-d foo[=bar]] [-y <file>] [-D] [-F [-O]] [-R]
  -c <path>|<file> Look for php.ini file in this directory
  -n               No php.ini file will be used
  -d foo[=bar]     Define INI entry foo with value 'bar'
  -h               This help
  -i               PHP information
  -m               Show PHP's modules
  -v               Version number
  -p, --prefix <dir>
                   Directory that relative paths start from (default: /usr).
  -g, --pid <file>
                   Specify the PID file location.
  -y, --fpm-config <file>
                   Specify the configuration of PHP-FPM.
  -t, --test       Test the configuration and exit; given twice, print it
  -D, --daemonize  Run in the background, whatever the configuration says
  -F, --nodaemonize
                   Stay in the foreground, whatever the configuration says
  -O, --force-stderr
                   Log to stderr
  -R, --allow-to-run-as-root
                   Allow pools to run as root
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Invocation {
    Help,
    Version(Arguments),
    /// Print phpinfo(), or with `true` the list of PHP's modules.
    Information(Arguments, bool),
    /// Test the configuration; with `true`, also print all directives.
    Test(Arguments, bool),
    Serve(Arguments),
}

/// Parses the command line, if the program has one of these names.
///
/// # Errors
/// A mistake in the command line.
pub(crate) fn invocation(arguments: &[String]) -> Option<Result<Invocation, String>> {
    let (program, rest) = arguments.split_first()?;
    let name = Path::new(program).file_name().and_then(OsStr::to_str)?;
    let version = name.strip_prefix("howdah-fpm")?.trim_start_matches('-');
    let version = (!version.is_empty()).then(|| version.to_owned());
    Some(parse(rest, version))
}

fn parse(arguments: &[String], version: Option<String>) -> Result<Invocation, String> {
    let mut given = Arguments { version, ..Arguments::default() };
    let (mut tests, mut version_asked, mut modules, mut config) = (0, false, None, None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        for (flag, attached) in flags(argument)? {
            let mut value = || {
                let value = attached.clone().or_else(|| rest.next().cloned());
                value.ok_or_else(|| format!("option {flag} needs a value"))
            };
            match flag.as_str() {
                "-h" | "-?" | "--help" => return Ok(Invocation::Help),
                "-v" | "--version" => version_asked = true,
                "-i" | "--info" => modules = Some(false),
                "-m" | "--modules" => modules = Some(true),
                "-t" | "--test" => tests += 1,
                "-y" | "--fpm-config" => config = Some(PathBuf::from(value()?)),
                "-p" | "--prefix" => given.prefix = Some(PathBuf::from(value()?)),
                "-g" | "--pid" => given.pid = Some(PathBuf::from(value()?)),
                "-c" | "--php-ini" => given.php_ini = Some(PathBuf::from(value()?)),
                "-n" | "--no-php-ini" => given.php_ini = Some(PathBuf::from("/dev/null")),
                "-d" | "--define" => {
                    let text = value()?;
                    let (name, value) = text.split_once('=').unwrap_or((&text, "1"));
                    given.defined.push((name.to_owned(), value.to_owned()));
                }
                "-F" | "--nodaemonize" => given.daemonize = Some(false),
                "-D" | "--daemonize" => given.daemonize = Some(true),
                "-O" | "--force-stderr" => given.force_stderr = true,
                "-R" | "--allow-to-run-as-root" => given.allow_root = true,
                // Accepted for compatibility; only old debuggers use it.
                "-e" | "--profile-info" => {}
                _ => return Err(format!("unknown option {flag}")),
            }
        }
    }
    given.config = config.or_else(|| found(given.version.as_deref())).unwrap_or_default();
    Ok(match (version_asked, modules, tests) {
        (true, ..) => Invocation::Version(given),
        (false, Some(modules), _) => Invocation::Information(given, modules),
        (false, None, 0) => Invocation::Serve(given),
        (false, None, tests) => Invocation::Test(given, tests > 1),
    })
}

/// Splits an argument into flags, each with its attached value: `-tt`, `-d x=1`, `-dx=1`, `--pid=FILE`.
fn flags(argument: &str) -> Result<Vec<(String, Option<String>)>, String> {
    if argument.starts_with("--") {
        let (name, value) = argument.split_once('=').map_or((argument, None), |(name, value)| (name, Some(value)));
        return Ok(vec![(name.to_owned(), value.map(str::to_owned))]);
    }
    let letters = argument.strip_prefix('-').filter(|letters| !letters.is_empty());
    let letters = letters.ok_or_else(|| format!("unknown argument {argument}"))?;
    let mut found = Vec::new();
    for (at, letter) in letters.char_indices() {
        let after = &letters[at + letter.len_utf8()..];
        let takes_value = "cdgpy".contains(letter);
        found.push((format!("-{letter}"), (takes_value && !after.is_empty()).then(|| after.to_owned())));
        if takes_value {
            break;
        }
    }
    Ok(found)
}

/// Path of the packaged configuration: for the given PHP version, else for the newest one.
fn found(version: Option<&str>) -> Option<PathBuf> {
    let of = |version: &str| PathBuf::from(format!("/etc/php/{version}/fpm/php-fpm.conf"));
    let versions = version.map_or_else(|| vec!["8.5", "8.4", "8.3", "8.2"], |version| vec![version]);
    versions.into_iter().map(of).chain([PathBuf::from("/etc/php-fpm.conf")]).find(|path| path.is_file())
}

/// Runs the command. `passed` are the sockets from the service manager.
pub(crate) fn run(asked: Invocation, passed: Vec<(OwnedFd, String)>) -> Result<ExitCode> {
    let environment = Environment::of_process();
    match asked {
        Invocation::Help => output::print(HELP).map(|()| ExitCode::SUCCESS),
        Invocation::Version(given) => version(&given, &environment),
        Invocation::Information(given, modules) => information(&given, modules, &environment),
        Invocation::Test(given, in_full) => Ok(match read(&given, &environment) {
            Ok(read) => {
                read.lines.iter().filter(|_| in_full).for_each(|line| say("NOTICE", line));
                say("NOTICE", format_args!("configuration file {} test is successful", given.config.display()));
                ExitCode::SUCCESS
            }
            Err(code) => code,
        }),
        Invocation::Serve(given) => {
            if !daemon::is_child() {
                match read(&given, &environment) {
                    Ok(read) if read.daemonize => return daemon::start(),
                    Ok(_) => {}
                    Err(code) => return Ok(code),
                }
            }
            daemon::leave_terminal();
            let reread = move || settings::load(&given, &environment).map(|read| read.loaded);
            serve::run_with(Arc::new(reread), passed, |why| wrong_config(&why))
        }
    }
}

/// Prints the PHP version in PHP-FPM's format, which scripts parse.
fn version(given: &Arguments, environment: &Environment) -> Result<ExitCode> {
    let program = PhpProgram::located(given.version.as_deref(), environment).map_err(|why| anyhow!(why))?;
    let said = Command::new(&program.path).arg("--version").output();
    let said = said.with_context(|| format!("cannot run {}", program.path.display()))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let php = said.split("(PHP ").nth(1).and_then(|rest| rest.split(')').next()).unwrap_or("unknown");
    output::print(format!("PHP {php} (fpm-fcgi) (howdah {})\n", env!("CARGO_PKG_VERSION")))?;
    Ok(ExitCode::SUCCESS)
}

/// Makes PHP print phpinfo() or its modules, with the PHP settings of the service but without reading its
/// configuration.
fn information(given: &Arguments, modules: bool, environment: &Environment) -> Result<ExitCode> {
    let loaded = settings::of_php(given, environment).map_err(|why| anyhow!(why))?;
    let pool = loaded.settings.pools.first().ok_or_else(|| anyhow!("no pool"))?;
    let config = pools::pool_config(&loaded.settings, pool, Budgets::new(0, 0)).map_err(|why| anyhow!(why))?;
    let status = howdah_pool::print_php(&config, modules).map_err(|why| anyhow!(why))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the configuration, and prints its mistakes and the directives without effect.
fn read(given: &Arguments, environment: &Environment) -> Result<Configuration, ExitCode> {
    match settings::load(given, environment) {
        Ok(read) => {
            read.notes.iter().for_each(|note| say("WARNING", note));
            Ok(read)
        }
        Err(why) => Err(wrong_config(&why)),
    }
}

fn wrong_config(why: &str) -> ExitCode {
    say("ERROR", why);
    say("ERROR", "FPM initialization failed");
    ExitCode::from(WRONG_CONFIG)
}

/// Prints a line in PHP-FPM's format.
fn say(level: &str, text: impl Display) {
    complain(format_args!("[{}] {level}: {text}", dashed_time(SystemTime::now())));
}

/// Prints a mistake in the command line and returns the exit status for that.
pub(crate) fn wrong_usage(why: &str) -> ExitCode {
    complain(format_args!("howdah-fpm: {why}\n{HELP}"));
    ExitCode::from(WRONG_USAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(line: &str) -> Option<Result<Invocation, String>> {
        invocation(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_program_name_selects_fpm_and_may_end_in_a_version() {
        assert_eq!(ask("/usr/bin/howdah serve"), None);
        assert_eq!(ask("howdah-php --version"), None);
        let Some(Ok(Invocation::Serve(given))) = ask("/usr/sbin/howdah-fpm8.2 --nodaemonize --fpm-config /a/b.conf")
        else {
            panic!()
        };
        assert_eq!((given.version.as_deref(), given.config.as_path()), (Some("8.2"), Path::new("/a/b.conf")));
        assert_eq!(given.daemonize, Some(false));
    }

    #[test]
    fn flags_are_spelled_in_every_way_of_php_fpm() {
        let Some(Ok(Invocation::Test(given, true))) =
            ask("howdah-fpm -tt -RFy/a/b.conf -d x=1 -dy --pid=/run/p -g /run/q -p /srv -n -O -D")
        else {
            panic!()
        };
        assert!(given.allow_root && given.force_stderr && given.daemonize == Some(true));
        assert_eq!(given.defined, [("x".to_owned(), "1".to_owned()), ("y".to_owned(), "1".to_owned())]);
        assert_eq!(
            (given.pid.as_deref(), given.prefix.as_deref()),
            (Some(Path::new("/run/q")), Some(Path::new("/srv")))
        );
        assert_eq!(given.php_ini.as_deref(), Some(Path::new("/dev/null")));
        assert!(matches!(ask("howdah-fpm -v"), Some(Ok(Invocation::Version(_)))));
        assert!(matches!(ask("howdah-fpm -t --test"), Some(Ok(Invocation::Test(_, true)))));
        assert!(matches!(ask("howdah-fpm -n -m"), Some(Ok(Invocation::Information(_, true)))));
        assert!(matches!(ask("howdah-fpm -i"), Some(Ok(Invocation::Information(_, false)))));
        assert_eq!(ask("howdah-fpm -t -h"), Some(Ok(Invocation::Help)));
        for wrong in ["howdah-fpm -x", "howdah-fpm --bogus", "howdah-fpm -y", "howdah-fpm serve", "howdah-fpm -"] {
            assert!(ask(wrong).unwrap().is_err(), "{wrong}");
        }
    }
}
