//! Hosts in the settings of sites. `howdah_rules::host` defines the normalized form.

use std::fmt;
use std::net::Ipv6Addr;

use howdah_rules::host::MAX_LEN;

/// The hosts of a site.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostPattern {
    /// Hosts that no other site names, and requests without a host.
    Any,
    /// This host, normalized.
    Exact(String),
    /// Every subdomain of this name, at any depth, but not the name itself.
    Below(String),
}

impl HostPattern {
    /// Parses a host of a site's `hosts`; `None` if it is invalid.
    pub fn new(text: &str) -> Option<Self> {
        if matches!(text, "default" | "*") {
            return Some(Self::Any);
        }
        if let Some(above) = text.strip_prefix("*.") {
            return name(above).map(Self::Below);
        }
        let address = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = address.parse::<Ipv6Addr>() {
            return Some(Self::Exact(format!("[{address}]")));
        }
        name(text).map(Self::Exact)
    }

    /// `true` if a normalized host matches one of these.
    pub fn fits(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(name) => name == host,
            Self::Below(name) => host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.')),
        }
    }
}

/// Parses a host name in the syntax of `hosts`.
fn name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let fits = |label: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(fits)
    };
    (text.len() < MAX_LEN && text.split('.').all(fits)).then(|| text.to_ascii_lowercase())
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("default"),
            Self::Exact(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_hosts_without_port() {
        let shown = |text: &str| HostPattern::new(text).map(|pattern| pattern.to_string());
        for (text, expected) in [
            ("Example.ORG.", "example.org"),
            ("*.Example.org", "*.example.org"),
            ("default", "default"),
            ("*", "default"),
            ("[2001:DB8::0:1]", "[2001:db8::1]"),
            ("::1", "[::1]"),
            ("192.0.2.1", "192.0.2.1"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        for bad in ["", "a:80", "http://a", "a/b", "a..b", "*.", "*.*.a", "a.*", "*a", "bücher.example", "[a]", "a b"]
        {
            assert_eq!(shown(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_star_matches_every_subdomain() {
        let below = HostPattern::new("*.example.org").unwrap();
        assert!(below.fits("a.example.org") && below.fits("a.b.example.org"));
        assert!(!below.fits("example.org") && !below.fits("aexample.org") && !below.fits("example.org.evil"));
    }
}
