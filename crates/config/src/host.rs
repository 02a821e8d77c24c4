//! Hosts: as sites name them, and in the one form in which they are compared.

use std::fmt;
use std::io::Write as _;
use std::net::Ipv6Addr;

use crate::document::{Node, Tree};
use crate::kind::Kind;
use crate::value::Value;

/// Bytes of the longest host there can be (RFC 1035 2.3.4).
const LONGEST: usize = 255;

/// Room for a host in the form in which hosts are compared.
pub type HostRoom = [u8; LONGEST];

/// A host in the form in which hosts are compared: without port and without the dot at its end, letters small, an IPv6
/// address as RFC 5952 writes it, in brackets. `None` for what is no host. Names are taken as they came: whoever uses
/// others than ASCII letters sends `xn--…` anyway (RFC 5891).
#[must_use]
pub fn normal_host<'a>(host: &[u8], room: &'a mut HostRoom) -> Option<&'a [u8]> {
    if host.first() == Some(&b'[') {
        let end = host.iter().position(|&byte| byte == b']')?;
        let address: Ipv6Addr = std::str::from_utf8(&host[1..end]).ok()?.parse().ok()?;
        let mut rest = &mut room[..];
        write!(rest, "[{address}]").ok()?;
        let length = LONGEST - rest.len();
        return Some(&room[..length]);
    }
    let name = host.iter().position(|&byte| byte == b':').map_or(host, |colon| &host[..colon]);
    let name = name.strip_suffix(b".").unwrap_or(name);
    let room = room.get_mut(..name.len()).filter(|room| !room.is_empty())?;
    room.copy_from_slice(name);
    room.make_ascii_lowercase();
    Some(room)
}

/// Hosts that a site is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostPattern {
    /// Those that no other site names, and requests without a host.
    Any,
    /// This one, in the form in which hosts are compared.
    Exact(String),
    /// Every name below this one, at whatever depth, and not the name itself.
    Below(String),
}

impl HostPattern {
    /// What `hosts` of a site has written; `None` if that can be no host.
    #[must_use]
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

    /// Whether a host in the form in which hosts are compared is one of these.
    #[must_use]
    pub fn fits(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(name) => name == host,
            Self::Below(name) => host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.')),
        }
    }
}

/// The name of a host, as `hosts` may have it.
fn name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let fits = |label: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(fits)
    };
    (text.len() < LONGEST && text.split('.').all(fits)).then(|| text.to_ascii_lowercase())
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

impl Value for HostPattern {
    const KIND: Kind = Kind::Host;

    fn from_node(node: &Node) -> Option<Self> {
        if let Tree::Text(text) = &node.tree { Self::new(text) } else { None }
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::new(text)
    }

    fn show(&self) -> String {
        crate::document::quoted(&self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(host: &str) -> Option<String> {
        let mut room = [0; LONGEST];
        normal_host(host.as_bytes(), &mut room).map(|host| String::from_utf8_lossy(host).into_owned())
    }

    #[test]
    fn hosts_have_one_form() {
        for (host, expected) in [
            ("example.org", "example.org"),
            ("EXAMPLE.Org:8080", "example.org"),
            ("example.org.:80", "example.org"),
            ("example.org:", "example.org"),
            ("192.0.2.1:80", "192.0.2.1"),
            ("[2001:DB8:0:0::1]:443", "[2001:db8::1]"),
            ("[::ffff:192.0.2.1]", "[::ffff:192.0.2.1]"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(normal(host).as_deref(), Some(expected), "{host}");
        }
        for none in ["", ".", ":80", "[::1", "[]", "[x]", &"a".repeat(256)] {
            assert_eq!(normal(none), None, "{none}");
        }
        assert_eq!(normal(&"a".repeat(255)).unwrap().len(), 255);
    }

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
    fn a_star_stands_for_what_lies_below() {
        let below = HostPattern::new("*.example.org").unwrap();
        assert!(below.fits("a.example.org") && below.fits("a.b.example.org"));
        assert!(!below.fits("example.org") && !below.fits("aexample.org") && !below.fits("example.org.evil"));
    }
}
