//! Support for Laravel Octane, which runs `frankenphp run -c Caddyfile` with its settings in the environment, and reads
//! a version from `frankenphp build-info`. A link named `frankenphp` to `howdah` is enough.
//!
//! The Caddyfile is not read, because Octane's adds nothing to the environment. The endpoints that Octane and users of
//! FrankenPHP request are in `admin`.

use howdah_config::cli::ServeFlags;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

/// The FrankenPHP version whose behavior worker mode follows. Octane compares it with its minimum version.
const CONTRACT: &str = "v1.12.7";

/// A command for `frankenphp`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Invocation {
    /// Print this text and exit.
    Print(String),
    /// Serve with these settings.
    Serve(ServeFlags),
}

/// Parses the command line, if the program's name is `frankenphp`.
///
/// # Errors
/// A mistake in the command line or environment, with its remedy.
pub(crate) fn invocation(arguments: &[String], env: &BTreeMap<String, String>) -> Option<Result<Invocation, String>> {
    let (program, rest) = arguments.split_first()?;
    if Path::new(program).file_name() != Some(OsStr::new("frankenphp")) {
        return None;
    }
    let version = env!("CARGO_PKG_VERSION");
    Some(match rest.first().map(String::as_str) {
        Some("build-info") => Ok(Invocation::Print(format!(
            "path\thowdah\nmod\thowdah\t{version}\ndep\tgithub.com/dunglas/frankenphp\t{CONTRACT}\n"
        ))),
        Some("version" | "-v" | "--version") => {
            Ok(Invocation::Print(format!("howdah {version} as frankenphp {CONTRACT}\n")))
        }
        Some("run") => serve_flags(env).map(Invocation::Serve),
        _ => Err("invoked as `frankenphp`, this program supports only `run`, `build-info` and `version`, for Laravel \
                  Octane; for everything else see `howdah --help`"
            .to_owned()),
    })
}

/// Translates Octane's environment to settings.
fn serve_flags(env: &BTreeMap<String, String>) -> Result<ServeFlags, String> {
    let get = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let needed = |name: &str| {
        get(name).ok_or_else(|| {
            format!("{name} is not in the environment: `frankenphp run` is for Laravel Octane; use `howdah serve`")
        })
    };
    let (public, server) = (needed("APP_PUBLIC_PATH")?, needed("CADDY_SERVER_SERVER_NAME")?);
    let mut flags = ServeFlags::default();
    flags.set("root", public);
    flags.set("mode", "worker");
    flags.set("script", &format!("{public}/frankenphp-worker.php"));
    for address in server.split(',').map(str::trim) {
        flags.set("listen", &listen_address(address)?);
    }
    if let Some(port) = get("CADDY_SERVER_ADMIN_PORT") {
        flags.set("admin", &format!("{}:{port}", get("CADDY_SERVER_ADMIN_HOST").unwrap_or("localhost")));
    }
    // Octane 2.3 sends a number, later versions a line for the Caddyfile.
    let line = get("CADDY_SERVER_WORKER_DIRECTIVE").and_then(|text| text.strip_prefix("num"));
    if let Some(number) = line.or_else(|| get("CADDY_SERVER_WORKER_COUNT")) {
        flags.set("workers", number.trim());
    }
    for line in get("CADDY_SERVER_WATCH_DIRECTIVES").unwrap_or_default().lines() {
        if let Some(path) = line.trim().strip_prefix("watch") {
            let path = path.trim().trim_matches('"').trim_end_matches('/');
            let pattern = if Path::new(path).is_dir() { format!("{path}/**") } else { path.to_owned() };
            flags.set("watch", &pattern);
        }
    }
    Ok(flags)
}

/// Removes the scheme of `http://127.0.0.1:8000` or `http://:8000`.
fn listen_address(site: &str) -> Result<String, String> {
    match site.split_once("://") {
        Some(("http", address)) => Ok(address.trim_end_matches('/').to_owned()),
        Some(("https", _)) => Err(format!(
            "{site}: invoked as `frankenphp`, Howdah does not support --https: start Octane without it behind a \
                         proxy, or start the worker by `howdah serve` with [tls] in howdah.toml"
        )),
        _ => Ok(site.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(arguments: &[&str], env: &[(&str, &str)]) -> Option<Result<Invocation, String>> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        invocation(&arguments, &env.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect())
    }

    #[test]
    fn other_program_names_and_commands_are_not_accepted() {
        assert_eq!(ask(&["/usr/bin/howdah", "build-info"], &[]), None);
        assert!(ask(&["./frankenphp", "php-server"], &[]).unwrap().is_err());
    }

    #[test]
    fn octane_finds_a_version_at_the_end_of_its_line() {
        let Some(Ok(Invocation::Print(text))) = ask(&["frankenphp", "build-info"], &[]) else { panic!() };
        let line = text.lines().find(|l| l.starts_with("dep") && l.contains("github.com/dunglas/frankenphp")).unwrap();
        assert_eq!(line.rsplit_once('v').unwrap().1, &CONTRACT[1..]);
    }

    #[test]
    fn the_environment_becomes_settings() {
        let env = [
            ("APP_PUBLIC_PATH", "/app/public"),
            ("CADDY_SERVER_SERVER_NAME", "http://127.0.0.1:8000"),
            ("CADDY_SERVER_ADMIN_HOST", "localhost"),
            ("CADDY_SERVER_ADMIN_PORT", "2019"),
            ("CADDY_SERVER_WORKER_DIRECTIVE", "num 4"),
            ("CADDY_SERVER_WATCH_DIRECTIVES", "watch \"/app/no-such/**/*.php\"\n\t\twatch /app/.env\n"),
        ];
        let Some(Ok(Invocation::Serve(flags))) = ask(&["/app/frankenphp", "run", "-c", "x"], &env) else { panic!() };
        let is = |name: &str, values: &[&str]| assert_eq!(flags.values[name], values, "{name}");
        is("root", &["/app/public"]);
        is("script", &["/app/public/frankenphp-worker.php"]);
        is("listen", &["127.0.0.1:8000"]);
        is("admin", &["localhost:2019"]);
        is("workers", &["4"]);
        is("watch", &["/app/no-such/**/*.php", "/app/.env"]);
    }

    #[test]
    fn the_number_of_workers_is_read_as_each_octane_writes_it() {
        let served = |name: &str, value: &str| {
            let env = [("APP_PUBLIC_PATH", "/a"), ("CADDY_SERVER_SERVER_NAME", "http://:8000"), (name, value)];
            let Some(Ok(Invocation::Serve(flags))) = ask(&["frankenphp", "run"], &env) else { panic!() };
            flags.values.get("workers").cloned()
        };
        let three = Some(vec!["3".to_owned()]);
        assert_eq!(served("CADDY_SERVER_WORKER_COUNT", "3"), three);
        assert_eq!(served("CADDY_SERVER_WORKER_DIRECTIVE", "num 3"), three);
        // `--workers=auto`.
        assert_eq!(served("CADDY_SERVER_WORKER_COUNT", ""), None);
    }

    #[test]
    fn certificates_that_cannot_be_served_are_reported() {
        assert!(ask(&["frankenphp", "run"], &[]).unwrap().unwrap_err().contains("howdah serve"));
        let env = [("APP_PUBLIC_PATH", "/a"), ("CADDY_SERVER_SERVER_NAME", "https://localhost")];
        assert!(ask(&["frankenphp", "run"], &env).unwrap().unwrap_err().contains("[tls]"));
    }
}
