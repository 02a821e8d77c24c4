//! Addresses of brokers: `SCHEME://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?ca=FILE]`.

use percent_encoding::percent_decode_str;
use std::fmt;
use std::path::PathBuf;

const SHAPE: &str = "is not an address such as \"redis://:password@10.0.0.5:6379/0\" or \"nats://10.0.0.5\" (\"rediss\" and \"natss\" for TLS)";

/// Brokers by the scheme of their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    Redis,
    Nats,
}

/// The address of a broker, with the credentials for it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address {
    pub(crate) scheme: Scheme,
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// Number of the Redis database.
    pub(crate) database: u32,
    ca_file: Option<PathBuf>,
}

impl Address {
    /// Parses an address. The error never contains the password.
    ///
    /// # Errors
    /// The text is not a valid address.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, tls, rest) = match text.split_once("://") {
            Some(("redis", rest)) => (Scheme::Redis, false, rest),
            Some(("rediss", rest)) => (Scheme::Redis, true, rest),
            Some(("nats", rest)) => (Scheme::Nats, false, rest),
            Some(("natss", rest)) => (Scheme::Nats, true, rest),
            _ => return Err(SHAPE),
        };
        let (credentials, rest) = rest.rsplit_once('@').map_or((None, rest), |(user, rest)| (Some(user), rest));
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let ca_file = match query.map(|query| query.split_once('=')) {
            None => None,
            Some(Some(("ca", file))) if file.starts_with('/') && tls => Some(file.into()),
            Some(_) => return Err("may end only in `?ca=/FILE`, and only with TLS"),
        };
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        if scheme == Scheme::Nats && !database.is_empty() {
            return Err(SHAPE);
        }
        let database = if database.is_empty() { 0 } else { database.parse().map_err(|_| SHAPE)? };
        // The colons of an IPv6 address are in brackets.
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| SHAPE)?),
            _ if scheme == Scheme::Nats => (place, 4222),
            _ => (place, 6379),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || host.contains(['#', ' ']) {
            return Err(SHAPE);
        }
        let (user, password) = read_credentials(credentials).ok_or(SHAPE)?;
        Ok(Self { scheme, tls, host, port, user, password, database, ca_file })
    }

    /// `true` if connections are encrypted and the broker's certificate is verified.
    pub fn is_encrypted(&self) -> bool {
        self.tls
    }

    /// File in PEM with additional authorities that may have issued the broker's certificate.
    pub fn ca_file(&self) -> Option<&PathBuf> {
        self.ca_file.as_ref()
    }
}

/// Formats the address without the credentials.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.scheme {
            Scheme::Redis => "Redis",
            Scheme::Nats => "NATS",
        };
        write!(f, "{name} {}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Parses `USER:PASSWORD` or `:PASSWORD`, percent-encoded. `None` for anything else.
fn read_credentials(credentials: Option<&str>) -> Option<(Option<String>, Option<String>)> {
    let Some(credentials) = credentials else { return Some((None, None)) };
    let (user, password) = credentials.split_once(':')?;
    let password = percent_decode(password).filter(|password| !password.is_empty())?;
    let user = if user.is_empty() { None } else { Some(percent_decode(user)?) };
    Some((user, Some(password)))
}

/// `None` for text that is not UTF-8, or has an invalid sequence.
fn percent_decode(text: &str) -> Option<String> {
    let plain = percent_decode_str(text).decode_utf8().ok()?;
    // The decoder leaves invalid sequences as they are; each valid one is two bytes longer than its byte.
    let sequences = text.matches('%').count();
    (plain.len() + 2 * sequences == text.len()).then(|| plain.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let parsed = |text| Address::parse(text).unwrap();
        let plain = parsed("redis://cache.internal");
        assert_eq!((plain.host.as_str(), plain.port, plain.tls, plain.database), ("cache.internal", 6379, false, 0));
        let full = parsed("rediss://ann:p%40ss%2F@[::1]:7000/3?ca=/etc/ca.pem");
        assert_eq!((full.host.as_str(), full.port, full.tls, full.database), ("::1", 7000, true, 3));
        assert_eq!((full.user.as_deref(), full.password.as_deref()), (Some("ann"), Some("p@ss/")));
        assert_eq!(full.ca_file(), Some(&PathBuf::from("/etc/ca.pem")));
        let nats = parsed("natss://:token@nats.internal");
        assert_eq!((nats.scheme, nats.port, nats.tls), (Scheme::Nats, 4222, true));
        assert_eq!(parsed("redis://:secret@h").password.as_deref(), Some("secret"));
        for wrong in [
            "",
            "http://h",
            "redis://",
            "redis://h:x",
            "redis://h/x",
            "redis://ann@h",
            "redis://:%zz@h",
            "redis://:@h",
            "redis://h?ca=/x",
            "nats://h/1",
            "rediss://h?ca=x",
            "rediss://h?other=/x",
        ] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_in_no_log() {
        let address = Address::parse("redis://ann:secret@h").unwrap();
        assert!(!format!("{address:?} {address}").contains("secret"));
    }
}
