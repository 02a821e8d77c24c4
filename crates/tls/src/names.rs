//! Certificate names: validation of clients' names, and the names that no public authority can certify.

use ipnet::IpNet;
use std::net::IpAddr;

/// Suffixes of names outside the public DNS: RFC 6761 (localhost, test), RFC 8375 (home.arpa), RFC 6762 (local), and
/// `internal`, which ICANN has reserved.
pub const PRIVATE_SUFFIXES: &[&str] = &["localhost", "test", "internal", "local", "home.arpa"];

/// Private networks: loopback, RFC 1918, RFC 3927, and their IPv6 counterparts.
pub const PRIVATE_NETWORKS: &[(IpAddr, u8)] = &[
    (IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 0)), 8),
    (IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 0)), 8),
    (IpAddr::V4(std::net::Ipv4Addr::new(172, 16, 0, 0)), 12),
    (IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 0, 0)), 16),
    (IpAddr::V4(std::net::Ipv4Addr::new(169, 254, 0, 0)), 16),
    (IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), 128),
    (IpAddr::V6(std::net::Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
    (IpAddr::V6(std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
];

/// Authority that can verify a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameScope {
    /// A public authority.
    Public,
    /// Only the local CA.
    Private,
}

/// Normalizes a client's name to its stored form; `None` unless it is a DNS name of at least two labels. The result
/// becomes a directory's name.
pub fn of_client(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let is_label = |label: &str| {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        (1..=63).contains(&label.len()) && label.bytes().all(fits)
    };
    let is_host = name.len() <= 253 && name.contains('.') && name.split('.').all(is_label);
    (is_host && name.parse::<IpAddr>().is_err()).then_some(name)
}

/// `true` if a certificate's name covers a host: a wildcard stands for one label (RFC 6125 6.4.3). Both must be in
/// lower case.
pub fn covers(name: &str, host: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(parent) => host.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == parent),
        None => name == host,
    }
}

/// The authority that can verify a normalized name.
pub fn reach(name: &str) -> NameScope {
    let private = match name.parse::<IpAddr>() {
        Ok(address) => PRIVATE_NETWORKS
            .iter()
            .any(|(network, prefix)| IpNet::new(*network, *prefix).is_ok_and(|net| net.contains(&address))),
        Err(_) => PRIVATE_SUFFIXES
            .iter()
            .any(|suffix| name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))),
    };
    if private { NameScope::Private } else { NameScope::Public }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_leave_the_directory_is_invalid() {
        assert_eq!(of_client("Shop.Example.ORG.").unwrap(), "shop.example.org");
        for bad in [
            "",
            ".",
            "..",
            "a/b.org",
            "../x.org",
            "a..b",
            "host",
            "10.0.0.1",
            "\u{fc}.org",
            "a\0.org",
            &"a.".repeat(200),
        ] {
            assert!(of_client(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_wildcard_stands_for_one_label() {
        for (name, host) in [("a.org", "a.org"), ("*.a.org", "x.a.org"), ("*.a.org", "*.a.org")] {
            assert!(covers(name, host), "{name} {host}");
        }
        for (name, host) in
            [("a.org", "x.a.org"), ("*.a.org", "a.org"), ("*.a.org", "x.y.a.org"), ("*.a.org", ".a.org")]
        {
            assert!(!covers(name, host), "{name} {host}");
        }
    }

    #[test]
    fn private_names_are_those_that_no_public_authority_certifies() {
        for name in [
            "localhost",
            "shop.localhost",
            "a.test",
            "db.internal",
            "tv.local",
            "x.home.arpa",
            "10.1.2.3",
            "127.0.0.2",
            "::1",
            "fd00::1",
            "172.31.0.1",
        ] {
            assert_eq!(reach(name), NameScope::Private, "{name}");
        }
        for name in ["example.org", "latest", "notlocalhost.org", "mytest", "172.32.0.1", "8.8.8.8", "2001:db8::1"] {
            assert_eq!(reach(name), NameScope::Public, "{name}");
        }
    }
}
