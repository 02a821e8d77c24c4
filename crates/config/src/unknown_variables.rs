//! Environment variables that look like settings and set nothing.

use std::collections::BTreeMap;

use crate::strict::all_rows;
use howdah_rules::keys::{is_slip, nearest};

const PREFIX: &str = "HOWDAH_";

/// Variables with that prefix that are not settings: of PHP's processes, recipes and the server's own processes.
const OTHERS: &[&str] = &[
    "HOWDAH_ENDS_WITH_INPUT",
    "HOWDAH_FPM_IN_BACKGROUND",
    "HOWDAH_SETTLES",
    "HOWDAH_SNAPSHOT_COPY",
    "HOWDAH_SNAPSHOT_PAGES",
    "HOWDAH_TAKES_OVER",
    "HOWDAH_TINY_RINGS",
    "HOWDAH_WORDPRESS_TRUST",
];

/// Variables of Howdah's own tests.
const TESTS: &str = "HOWDAH_TEST_";

/// A variable that sets nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownVariable {
    name: String,
    /// The similar variable that was probably meant.
    meant: Option<String>,
}

impl UnknownVariable {
    /// `true` if one character separates it from a known variable.
    pub fn is_slip(&self) -> bool {
        self.meant.as_deref().is_some_and(|meant| is_slip(&self.name, meant))
    }
}

impl std::fmt::Display for UnknownVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the environment variable {} sets nothing: no setting has that name", self.name)?;
        self.meant.as_ref().map_or(Ok(()), |meant| write!(f, "; did you mean {meant}?"))
    }
}

/// The variables of this environment that begin like a setting and are none.
pub fn unknown_variables(env: &BTreeMap<String, String>) -> Vec<UnknownVariable> {
    let settings: Vec<String> = all_rows().filter_map(crate::row::Row::variable).collect();
    let known: Vec<&str> = settings.iter().map(String::as_str).chain(OTHERS.iter().copied()).collect();
    let is_unknown = |name: &str, value: &str| {
        name.starts_with(PREFIX) && !name.starts_with(TESTS) && !known.contains(&name) && !is_of_kubernetes(name, value)
    };
    let unknown = env.iter().filter(|(name, value)| is_unknown(name, value));
    // Compared without the prefix, which makes all names similar.
    let meant =
        |name: &str| nearest(name.strip_prefix(PREFIX)?, known.iter().filter_map(|known| known.strip_prefix(PREFIX)));
    let described = unknown.map(|(name, _)| UnknownVariable {
        name: name.clone(),
        meant: meant(name).map(|meant| format!("{PREFIX}{meant}")),
    });
    described.collect()
}

/// `true` for the variables that Kubernetes gives all containers of a namespace with a service `howdah` or `howdah-…`.
fn is_of_kubernetes(name: &str, value: &str) -> bool {
    let is_url = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    let is_part = name
        .rsplit_once("_PORT_")
        .and_then(|(_, rest)| rest.split_once('_'))
        .is_some_and(|(port, _)| port.bytes().all(|byte| byte.is_ascii_digit()));
    is_url || is_part || name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Vec<(String, bool)> {
        let env = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        unknown_variables(&env).iter().map(|variable| (variable.to_string(), variable.is_slip())).collect()
    }

    #[test]
    fn slips_are_distinguished_from_other_names() {
        let all =
            found(&[("HOWDAH_LISTEM", ":80"), ("HOWDAH_COLOUR", "red"), ("HOWDAH_HTTP_MAXBODY", "1M"), ("PATH", "")]);
        let text = "the environment variable HOWDAH_COLOUR sets nothing: no setting has that name";
        assert_eq!(all[0], (text.to_owned(), false));
        assert!(all[1].1 && all[1].0.ends_with("did you mean HOWDAH_HTTP_MAX_BODY?"), "{all:?}");
        assert!(all[2].1 && all[2].0.ends_with("did you mean HOWDAH_LISTEN?"), "{all:?}");
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn settings_and_variables_of_kubernetes_are_fine() {
        for (name, value) in [
            ("HOWDAH_PORT", "tcp://10.0.0.1:80"),
            ("HOWDAH_SERVICE_HOST", "10.0.0.1"),
            ("HOWDAH_SERVICE_PORT", "80"),
            ("HOWDAH_SERVICE_PORT_HTTP", "80"),
            ("HOWDAH_PORT_80_TCP", "tcp://10.0.0.1:80"),
            ("HOWDAH_PORT_80_TCP_PROTO", "tcp"),
            ("HOWDAH_PORT_80_TCP_PORT", "80"),
            ("HOWDAH_PORT_80_TCP_ADDR", "10.0.0.1"),
            ("HOWDAH_METRICS_PORT_9000_UDP_ADDR", "10.0.0.1"),
            ("HOWDAH_LISTEN", ":80"),
            ("HOWDAH_WORDPRESS_TRUST", "wp-config.php"),
        ] {
            assert_eq!(found(&[(name, value)]), [], "{name}");
        }
    }
}
