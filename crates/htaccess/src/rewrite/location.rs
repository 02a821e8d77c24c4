//! URLs: schemes, the requested host, and the encoding of paths.

use crate::system::Facts;

/// The length of `scheme://` (for `mailto:` and the like, of that prefix), if the text begins with a scheme that Apache
/// knows.
pub(crate) fn has_scheme(text: &[u8]) -> Option<usize> {
    const SCHEMES: [&str; 16] = [
        "http://",
        "https://",
        "ftp://",
        "ws://",
        "wss://",
        "gopher://",
        "ldap://",
        "nntp://",
        "ajp://",
        "balancer://",
        "fcgi://",
        "scgi://",
        "uwsgi://",
        "news:",
        "mailto:",
        "unix:",
    ];
    let begins =
        |scheme: &str| text.len() >= scheme.len() && text[..scheme.len()].eq_ignore_ascii_case(scheme.as_bytes());
    SCHEMES.iter().find(|scheme| begins(scheme)).map(|scheme| scheme.len())
}

/// The URL of a path on the requested host.
pub(crate) fn qualified(facts: &Facts<'_>, path: &[u8]) -> Vec<u8> {
    let mut made = format!("{}://{}", facts.scheme(), facts.host_name()).into_bytes();
    let usual = if facts.https { "443" } else { "80" };
    if facts.server_port != usual && !facts.server_port.is_empty() {
        made.extend_from_slice(format!(":{}", facts.server_port).as_bytes());
    }
    if path.first() != Some(&b'/') {
        made.push(b'/');
    }
    made.extend_from_slice(path);
    made
}

/// The path of a URL on the requested host; `None` for other hosts.
pub(crate) fn own_path(facts: &Facts<'_>, address: &[u8]) -> Option<Vec<u8>> {
    let scheme = format!("{}://", facts.scheme());
    let rest = address.strip_prefix(scheme.as_bytes())?;
    let end = rest.iter().position(|&b| b == b'/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let usual = if facts.https { "443" } else { "80" };
    let authority = std::str::from_utf8(authority).ok()?;
    let (name, port) = match authority.rfind(':') {
        Some(at) if !authority[at..].contains(']') => (&authority[..at], &authority[at + 1..]),
        _ => (authority, usual),
    };
    let ours = name.eq_ignore_ascii_case(&facts.host_name()) && port == facts.server_port;
    ours.then(|| if path.is_empty() { b"/".to_vec() } else { path.to_vec() })
}

/// Encodes the characters that are not allowed in a path.
pub(crate) fn escape_path(path: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(path.len());
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"$-_.+!*'(),:;@&=/~".contains(&byte) {
            made.push(byte);
        } else {
            made.extend_from_slice(format!("%{byte:02x}").as_bytes());
        }
    }
    made
}

/// Encodes a URL; its scheme and host are kept.
pub(crate) fn escape_address(address: &[u8]) -> Vec<u8> {
    let Some(scheme) = has_scheme(address) else { return escape_path(address) };
    let host = address[scheme..].iter().position(|&b| b == b'/').map_or(address.len(), |at| scheme + at);
    let mut made = address[..host].to_vec();
    made.extend_from_slice(&escape_path(&address[host..]));
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;
    use std::time::SystemTime;

    #[test]
    fn a_redirect_without_a_host_uses_the_local_address() {
        for (host, server_addr, expected) in [
            ("", "::1", "http://[::1]:8080/a"),
            ("[::2]:8080", "::1", "http://[::2]:8080/a"),
            ("", "127.0.0.1", "http://127.0.0.1:8080/a"),
            ("a.example:8080", "::1", "http://a.example:8080/a"),
        ] {
            let headers = HeaderMap::new();
            let facts = Facts {
                method: "GET",
                target: b"/a",
                path: b"/a",
                query: None,
                protocol: "HTTP/1.0",
                https: false,
                host,
                server_addr,
                server_port: "8080",
                remote: None,
                remote_port: "",
                headers: &headers,
                root: b"/",
                software: "",
                time: SystemTime::UNIX_EPOCH,
            };
            let made = qualified(&facts, b"/a");
            assert_eq!(String::from_utf8_lossy(&made), expected, "{host}");
            assert_eq!(own_path(&facts, &made).as_deref(), Some(&b"/a"[..]), "{host}");
        }
    }
}
