//! Normalizes hosts for comparison: by sites, by the conditions of rules, and in `$host`.

use std::io::Write as _;
use std::net::Ipv6Addr;

/// Maximum length of a host in bytes (RFC 1035 2.3.4).
pub const MAX_LEN: usize = 255;

/// Buffer for a normalized host.
pub type HostRoom = [u8; MAX_LEN];

/// Normalizes a host: removes the port and the final dot, lower-cases it, and writes an IPv6 address in the form of RFC
/// 5952, in brackets. `None` for an empty or too long name, or an invalid IPv6 address; the characters of a name are
/// not checked. Internationalized names are not converted: clients send `xn--…` (RFC 5891).
pub fn normal_host<'a>(host: &[u8], room: &'a mut HostRoom) -> Option<&'a [u8]> {
    if host.first() == Some(&b'[') {
        let end = host.iter().position(|&byte| byte == b']')?;
        let address: Ipv6Addr = std::str::from_utf8(&host[1..end]).ok()?.parse().ok()?;
        let mut rest = &mut room[..];
        write!(rest, "[{address}]").ok()?;
        let length = MAX_LEN - rest.len();
        return Some(&room[..length]);
    }
    let name = host.iter().position(|&byte| byte == b':').map_or(host, |colon| &host[..colon]);
    let name = name.strip_suffix(b".").unwrap_or(name);
    let room = room.get_mut(..name.len()).filter(|room| !room.is_empty())?;
    room.copy_from_slice(name);
    room.make_ascii_lowercase();
    Some(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(host: &str) -> Option<String> {
        let mut room = [0; MAX_LEN];
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
}
