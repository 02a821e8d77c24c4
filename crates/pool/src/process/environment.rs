//! The environment variables of a pool's PHP.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables with this prefix are settings of the server, secrets among them.
const SERVER_PREFIX: &str = "HOWDAH_";

/// Variables with that prefix that PHP's processes read.
const PHP_VARIABLES: &[&str] = &["HOWDAH_SNAPSHOT_COPY", "HOWDAH_SNAPSHOT_PAGES", "HOWDAH_WORDPRESS_TRUST"];

/// Variables from systemd for the server only: with them a script could report to systemd that the server has ended.
const SERVICE_VARIABLES: &[&str] = &[
    "FDSTORE",
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_PIDFDID",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// Returns the environment for a pool's PHP. `own`: environment of the process that starts it; `env`: the pool's
/// variables.
pub fn of_php(
    own: impl IntoIterator<Item = (OsString, OsString)>,
    clear_env: bool,
    env: &[(String, String)],
) -> BTreeMap<OsString, OsString> {
    let inherited = own.into_iter().filter(|(name, _)| !clear_env && is_inherited(name));
    inherited.chain(env.iter().map(|(name, value)| (name.into(), value.into()))).collect()
}

fn is_inherited(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    // Headers that authenticate the server to the collector, usually tokens.
    let is_credential = name.starts_with("OTEL_") && name.ends_with("_HEADERS");
    let is_of_the_server = name.starts_with(SERVER_PREFIX) && !PHP_VARIABLES.contains(&&*name);
    !is_credential && !is_of_the_server && !SERVICE_VARIABLES.contains(&&*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(clear_env: bool, env: &[(&str, &str)]) -> Vec<String> {
        let own = ["PATH", "OTEL_SERVICE_NAME", "HOWDAH_WORDPRESS_TRUST", "HOWDAH_ADMIN_TOKEN", "HOWDAH_NEXT_YEAR"];
        let own = own.into_iter().chain(["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"]);
        let own = own.chain(SERVICE_VARIABLES.iter().copied()).map(|name| (name.into(), "server's".into()));
        let env: Vec<_> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let all = of_php(own, clear_env, &env);
        all.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect()
    }

    #[test]
    fn php_inherits_no_variable_meant_for_the_server() {
        let inherited = ["HOWDAH_WORDPRESS_TRUST=server's", "OTEL_SERVICE_NAME=server's", "PATH=server's"];
        assert_eq!(names(false, &[]), inherited);
        assert_eq!(names(true, &[]), [""; 0]);
    }

    #[test]
    fn variables_of_the_pool_take_precedence() {
        let env = [("PATH", "/bin"), ("OTEL_EXPORTER_OTLP_HEADERS", "a=b")];
        assert_eq!(names(true, &env), ["OTEL_EXPORTER_OTLP_HEADERS=a=b", "PATH=/bin"]);
        assert!(names(false, &env).contains(&"PATH=/bin".to_owned()));
    }
}
