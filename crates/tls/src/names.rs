//! Names that certificates are for: which are well-formed, and whose certificates no public authority issues.

use std::net::IpAddr;

/// Top-level names that are not in the public name system: RFC 6761 (localhost, test), RFC 6762 (local), RFC 8375
/// (home.arpa), and `internal`, which ICANN has set aside.
pub const PRIVATE_SUFFIXES: &[&str] = &["localhost", "test", "internal", "local", "home.arpa"];

/// Private addresses as networks: loopback, RFC 1918, RFC 3927, and the same of IPv6.
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

/// Who can vouch for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// A public authority.
    Public,
    /// Nobody but the local CA.
    Private,
}

/// A name in the form in which it is stored and compared: lower case, no dot at the end.
///
/// # Errors
/// What is wrong with it, in words that follow the name.
pub fn normalize(name: &str) -> Result<String, &'static str> {
    if let Ok(address) = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Ok(address.to_canonical().to_string());
    }
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if name.starts_with("*.") {
        return Err(
            "is a wildcard, which is not obtained automatically: name each host, or give a certificate's files",
        );
    }
    if name.is_empty() || name.len() > 253 {
        return Err("must have from 1 to 253 characters");
    }
    if !name.is_ascii() {
        return Err("must be ASCII: write international names as xn--…");
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if !name.split('.').all(is_label) {
        return Err("is not a host name");
    }
    if name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit())) {
        return Err("is neither a host name nor an address");
    }
    if !name.contains('.') && name != "localhost" {
        return Err("has no domain: no authority vouches for it; take a name below .internal or .localhost");
    }
    Ok(name)
}

/// Who can vouch for a normalized name.
#[must_use]
pub fn reach(name: &str) -> Reach {
    let private = match name.parse::<IpAddr>() {
        Ok(address) => PRIVATE_NETWORKS.iter().any(|(network, prefix)| is_in(address, *network, *prefix)),
        Err(_) => PRIVATE_SUFFIXES
            .iter()
            .any(|suffix| name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))),
    };
    if private { Reach::Private } else { Reach::Public }
}

fn is_in(address: IpAddr, network: IpAddr, prefix: u8) -> bool {
    let prefix = u32::from(prefix);
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(n)) => (a.to_bits() ^ n.to_bits()).checked_shr(32 - prefix).unwrap_or(0) == 0,
        (IpAddr::V6(a), IpAddr::V6(n)) => (a.to_bits() ^ n.to_bits()).checked_shr(128 - prefix).unwrap_or(0) == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_form() {
        assert_eq!(normalize("Example.ORG.").unwrap(), "example.org");
        assert_eq!(normalize("localhost").unwrap(), "localhost");
        assert_eq!(normalize("[::1]").unwrap(), "::1");
        assert_eq!(normalize("10.0.0.1").unwrap(), "10.0.0.1");
    }

    #[test]
    fn what_could_lead_out_of_the_directory_is_no_name() {
        for bad in [
            "",
            ".",
            "..",
            "a/b.org",
            "../x.org",
            "a..b",
            "-a.org",
            "a_b.org",
            "*.example.org",
            "host",
            "1.2.3",
            "ü.org",
        ] {
            assert!(normalize(bad).is_err(), "{bad}");
        }
        assert!(normalize(&format!("{}.org", "a".repeat(64))).is_err());
        assert!(normalize(&vec!["abcdefg"; 40].join(".")).is_err());
    }

    #[test]
    fn private_names_are_those_that_nobody_else_vouches_for() {
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
            assert_eq!(reach(name), Reach::Private, "{name}");
        }
        for name in ["example.org", "latest", "notlocalhost.org", "mytest", "172.32.0.1", "8.8.8.8", "2001:db8::1"] {
            assert_eq!(reach(name), Reach::Public, "{name}");
        }
    }
}
