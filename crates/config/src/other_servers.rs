//! Maps names in other servers to the settings here, for error messages.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use howdah_rules::keys::is_misspelt;
use std::ffi::OsString;

/// Keys of nginx, PHP and others.
const SETTINGS: &[(&str, &str)] = &[
    ("client_max_body_size", "[http] max_body; PHP's post_max_size alone is enough"),
    ("client_body_timeout", "[http] client_timeout"),
    ("keepalive_timeout", "[http] idle_timeout"),
    ("send_timeout", "[http] client_timeout"),
    ("worker_connections", "[http] max_connections"),
    ("set_real_ip_from", "[http] trusted_proxies"),
    ("worker_processes", "threads"),
    ("server_names", "hosts in a [[site]]"),
    ("host", "listen, or hosts in a [[site]]"),
    ("port", "listen"),
    ("bind", "listen"),
    ("document_root", "root"),
    ("try_files", "front_controller, or try_files in a [[rule]]"),
    ("location", "[[rule]]"),
    ("auth_basic", "`auth` in a [[rule]]"),
    ("add_header", "`headers` in a [[rule]]"),
    ("access_log", "[log] access"),
    ("error_log", "[log] error"),
    ("gzip", "[compression]"),
    ("ssl_certificate", "[tls] certificates"),
    ("ssl_certificate_key", "[tls] certificates"),
    ("fastcgi_pass", "mode and [pool.NAME]"),
    ("fastcgi_param", "[php] env"),
    ("fastcgi_read_timeout", "deadline"),
    ("proxy_pass", "a `proxy` in [[rule]]"),
    ("recipe", "app, with mode = \"snapshot\" or \"worker\""),
    ("route", "[[rule]] with `path` for `match`"),
    ("php_value", "[php] ini"),
    ("php_flag", "[php] ini"),
    ("php_admin_value", "[php] admin_ini"),
    ("php_admin_flag", "[php] admin_ini"),
];

/// Keys of PHP-FPM's pool files, which a command can convert.
const FPM_POOL_DIRECTIVES: &[(&str, &str)] = &[
    ("pm", "workers"),
    ("max_children", "workers"),
    ("request_terminate_timeout", "deadline"),
    ("request_slowlog_timeout", "slow_log_after"),
    ("slowlog", "slow_log"),
    ("ping", "status_path"),
];

/// Returns the settings that correspond to another server's key.
pub(crate) fn counterpart(key: &str) -> Option<String> {
    let find = |list: &[(&str, &'static str)]| list.iter().find(|(name, _)| *name == key).map(|(_, own)| *own);
    let converted = |own| format!("{own}; `howdah init POOL.conf` converts a pool's file of PHP-FPM");
    find(SETTINGS).map(str::to_owned).or_else(|| find(FPM_POOL_DIRECTIVES).map(converted))
}

/// Flags of other servers.
const FLAGS: &[(&str, &str)] = &[
    ("--port", "--listen :PORT"),
    ("-p", "--listen :PORT"),
    ("--host", "--listen HOST:PORT"),
    ("--bind", "--listen HOST:PORT"),
    ("-b", "--listen HOST:PORT"),
    ("--address", "--listen HOST:PORT"),
    ("-S", "--listen HOST:PORT"),
    ("--root", "the argument ROOT"),
    ("-t", "the argument ROOT, or `howdah check` for a test of the settings"),
    ("--worker", "--mode worker --script FILE"),
    ("--num-workers", "--workers"),
    ("-s", "`howdah reload` and `howdah stop`"),
];

/// Commands of other servers.
const COMMANDS: &[(&str, &str)] = &[
    ("start", "howdah serve"),
    ("run", "howdah serve"),
    ("php-server", "howdah serve"),
    ("validate", "howdah check"),
    ("test", "howdah check"),
    ("configtest", "howdah check"),
    ("restart", "howdah upgrade"),
    ("logs", "howdah top, and the files of [log]"),
];

/// Adds a hint to the error about another server's flag or command, or one of `serve` (`is_of_serve`) for a command that
/// does not take it.
pub(crate) fn hint(mut error: clap::Error, is_of_serve: impl Fn(&str) -> bool) -> clap::Error {
    let (named, known) = match error.kind() {
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, FLAGS),
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, COMMANDS),
        _ => return error,
    };
    let Some(ContextValue::String(name)) = error.get(named).cloned() else { return error };
    let own = known.iter().find(|(other, _)| **other == name).map(|(_, own)| format!("here it is {own}"));
    let of_serve = |name: &str| {
        let text = format!("{name} is a flag of `howdah serve`; other commands read it from the file of --config");
        name.strip_prefix("--").is_some_and(&is_of_serve).then_some(text)
    };
    let Some(advice) = own.or_else(|| of_serve(&name)) else {
        drop_unlike(&mut error, &name);
        return error;
    };
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::Usage);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
    error
}

/// Removes clap's suggestion if it is another word, not the misspelt one (`--client` for `--listen`).
fn drop_unlike(error: &mut clap::Error, name: &str) {
    if let Some(ContextValue::String(similar)) = error.get(ContextKind::SuggestedArg)
        && !is_misspelt(name, similar)
    {
        error.remove(ContextKind::SuggestedArg);
        // It shows the suggested flag.
        error.remove(ContextKind::Usage);
    }
}

/// Converts `howdah help [COMMAND]` to `--help`.
pub(crate) fn with_help(mut args: Vec<OsString>) -> Vec<OsString> {
    if args.get(1).is_some_and(|first| first == "help") {
        args.remove(1);
        args.truncate(2);
        args.push("--help".into());
    }
    args
}

#[cfg(test)]
mod tests {
    use crate::cli::Cli;

    #[test]
    fn flags_and_commands_of_other_servers_get_the_name_here() {
        let said = |line: &str| Cli::try_parse_from(line.split(' ')).unwrap_err().to_string();
        for (line, own) in [
            ("howdah serve --port 80", "tip: here it is --listen :PORT"),
            ("howdah serve -p 80", "tip: here it is --listen :PORT"),
            ("howdah serve --bind=x", "tip: here it is --listen HOST:PORT"),
            ("howdah start", "tip: here it is howdah serve"),
            ("howdah validate", "tip: here it is howdah check"),
            ("howdah restart", "tip: here it is howdah upgrade"),
        ] {
            assert!(said(line).contains(own), "{line}: {}", said(line));
            assert_eq!(said(line).matches("tip:").count(), 1, "{}", said(line));
        }
        assert!(said("howdah serve --lisen x").contains("--listen"), "a slip keeps its own advice");
        assert!(said("howdah explain --cleint x /").contains("--client"), "{}", said("howdah explain --cleint x /"));
        for line in ["howdah explain --listen :80 /", "howdah explain --mode=async /"] {
            assert!(said(line).contains("is a flag of `howdah serve`"), "{line}: {}", said(line));
            assert!(!said(line).contains("a similar argument"), "{line}: {}", said(line));
        }
        assert!(!said("howdah explain --lisen x /").contains("client"), "{}", said("howdah explain --lisen x /"));
        assert!(said("howdah help").contains("Usage: howdah <COMMAND>"), "{}", said("howdah help"));
        assert!(said("howdah help reload").contains("Usage: howdah reload"), "{}", said("howdah help reload"));
    }
}
