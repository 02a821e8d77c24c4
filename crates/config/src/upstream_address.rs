//! Addresses of upstream servers.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

/// The socket address of an upstream server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UpstreamPlace {
    /// A host name or IP address (IPv6 without brackets), and a port.
    Tcp { host: String, port: u16 },
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// An upstream server: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`, optionally followed by its share of the
/// requests, ` weight=N`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UpstreamAddr {
    pub place: UpstreamPlace,
    /// Use TLS.
    pub tls: bool,
    /// Its share of the requests if there are several servers.
    pub weight: u32,
}

/// Maximum weight.
const MAX_WEIGHT: u32 = 1000;

impl UpstreamAddr {
    /// The value of `Host`: host and port, without the scheme's default port.
    pub fn authority(&self) -> String {
        match &self.place {
            UpstreamPlace::Unix(_) => "localhost".to_owned(),
            UpstreamPlace::Tcp { host, port } => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                let usual = if self.tls { 443 } else { 80 };
                if *port == usual { host } else { format!("{host}:{port}") }
            }
        }
    }
}

impl FromStr for UpstreamAddr {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, weight) = match text.split_once(' ') {
            Some((address, options)) => {
                let weight = options.trim().strip_prefix("weight=").and_then(number).ok_or(())?;
                (address, weight)
            }
            None => (text, 1),
        };
        if !(1..=MAX_WEIGHT).contains(&weight) {
            return Err(());
        }
        if let Some(path) = address.strip_prefix("unix:") {
            let place = UpstreamPlace::Unix(PathBuf::from(path));
            return if path.starts_with('/') { Ok(Self { place, tls: false, weight }) } else { Err(()) };
        }
        let (tls, rest) = match (address.strip_prefix("http://"), address.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(()),
        };
        // A path would conflict with the request's; use rules to rewrite paths.
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let usual = if tls { 443 } else { 80 };
        let (host, port) = match rest.strip_prefix('[') {
            Some(inner) => {
                let (host, after) = inner.split_once(']').ok_or(())?;
                host.parse::<Ipv6Addr>().map_err(|_| ())?;
                (host, if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or(())?) })
            }
            None => {
                let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
                let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
                if host.is_empty() || host.len() > 253 || !host.bytes().all(fits) {
                    return Err(());
                }
                (host, port)
            }
        };
        let port = port.map_or(Some(usual), |port| u16::try_from(number(port)?).ok()).filter(|port| *port > 0);
        let place = UpstreamPlace::Tcp { host: host.to_owned(), port: port.ok_or(())? };
        Ok(Self { place, tls, weight })
    }
}

/// Parses digits only; `parse` would accept a sign.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

impl fmt::Display for UpstreamAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            UpstreamPlace::Unix(path) => write!(f, "unix:{}", path.display())?,
            UpstreamPlace::Tcp { host, port } => {
                let scheme = if self.tls { "https" } else { "http" };
                let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
                write!(f, "{scheme}://{open}{host}{close}:{port}")?;
            }
        }
        if self.weight == 1 { Ok(()) } else { write!(f, " weight={}", self.weight) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_a_host_and_no_path() {
        for (text, shown, authority) in [
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000", "127.0.0.1:3000"),
            ("http://node/", "http://node:80", "node"),
            ("https://a.example", "https://a.example:443", "a.example"),
            ("https://a.example:80 weight=7", "https://a.example:80 weight=7", "a.example:80"),
            ("http://[::1]:81", "http://[::1]:81", "[::1]:81"),
            ("unix:/run/app.sock", "unix:/run/app.sock", "localhost"),
            ("unix:/run/app.sock weight=2", "unix:/run/app.sock weight=2", "localhost"),
        ] {
            let address: UpstreamAddr = text.parse().unwrap_or_else(|()| panic!("{text}"));
            assert_eq!((address.to_string().as_str(), address.authority().as_str()), (shown, authority));
            assert_eq!(address.to_string().parse(), Ok(address));
        }
        for bad in [
            "",
            "127.0.0.1:3000",
            "ftp://a",
            "http://",
            "http://a/b",
            "http://a?b",
            "http://u@a",
            "http://a:0",
            "http://a:+1",
            "http://a:65536",
            "http://a:4294967376",
            "http://[::1",
            "http://[a]",
            "http://::1",
            "http://a weight=0",
            "http://a weight=1001",
            "http://a down",
            "unix:run/app.sock",
            "http://a\r\nx",
        ] {
            assert_eq!(bad.parse::<UpstreamAddr>(), Err(()), "{bad}");
        }
    }
}
