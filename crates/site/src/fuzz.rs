//! Fuzz targets for the code that parses untrusted input. Each accepts any bytes and panics if an invariant is
//! violated. `howdah_fuzz_driver` runs them in tests.

use crate::compress::negotiate;
use crate::forwarded;
use crate::host::is_host;
use crate::phase::php;
use crate::request_path::{decode, normalise};
use crate::static_files::fuzz as files;
use bytes::Bytes;
use howdah_config::{Algorithm, HttpSettings, TrustedHeader};
use howdah_protocol::Peer;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::net::IpAddr;

/// Header lines as received, without those that a connection would refuse.
fn fields(data: &[u8]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines(data).into_iter().take(200) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&name), HeaderValue::from_bytes(&value)) {
            map.append(name, value);
        }
    }
    map
}

/// Names and values as the pool returns them: any bytes.
fn lines(data: &[u8]) -> Vec<(Bytes, Bytes)> {
    let split = |line: &[u8]| {
        let colon = line.iter().position(|&b| b == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        (Bytes::copy_from_slice(&line[..colon]), Bytes::copy_from_slice(value.trim_ascii_start()))
    };
    data.split(|&b| b == b'\n').map(split).collect()
}

/// A decoded path satisfies its invariants for any input.
pub fn request_path(data: &[u8]) {
    let Ok(plain) = decode(data) else { return };
    assert!(plain.len() <= data.len() && !plain.contains(&0));
    let Ok(path) = normalise(&plain) else { return };
    assert_eq!(path.first(), Some(&b'/'));
    assert!(!path.split(|&b| b == b'/').any(|name| matches!(name, b"." | b"..")));
    assert!(!path.windows(2).any(|pair| pair == b"//"));
    assert_eq!(normalise(&path).as_ref(), Ok(&path));
}

/// Fields of an untrusted peer, and fields that are not listed, do not change the client. Fields of a trusted peer
/// yield a valid address, host and port, or nothing.
pub fn forwarded_fields(data: &[u8]) {
    let headers = fields(data);
    let trusted = vec!["10.0.0.0/8".parse().unwrap_or_else(|_| unreachable!())];
    let mut settings = HttpSettings { trusted_proxies: trusted, ..HttpSettings::default() };
    let trusts = |peer: Option<IpAddr>| peer == Some([10, 0, 0, 1].into());
    let peer = |addr: [u8; 4]| Peer::tcp((addr, 4000).into(), ([127, 0, 0, 1], 80).into(), trusts);
    let (stranger, proxy) = (peer([192, 0, 2, 1]), peer([10, 0, 0, 1]));
    assert_eq!(forwarded::client(&stranger, &headers, &settings).addr(&stranger), "192.0.2.1");
    use TrustedHeader::{For, Forwarded, Host, Port, Proto};
    for list in [vec![], vec![For, Proto], vec![For, Proto, Host, Port], vec![Forwarded], vec![Forwarded, For, Host]] {
        settings.trusted_headers = list;
        let client = forwarded::client(&proxy, &headers, &settings);
        assert_eq!(client.addr(&proxy).parse().ok(), client.ip);
        assert!(client.reported_host().is_none_or(|host| is_host(host.as_bytes())));
        let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok();
        assert!(is_port(client.port(&proxy)) && is_port(client.server_port(&proxy)));
        let says = |header| settings.trusted_headers.contains(&header);
        assert!(says(Host) || says(Forwarded) || client.reported_host().is_none());
        assert!(says(For) || says(Forwarded) || client.addr(&proxy) == "10.0.0.1");
    }
}

/// Ranges, conditions and codings of a request for a file.
pub fn file_request(data: &[u8]) {
    let headers = fields(data);
    for length in [0, 1, 1000, u64::MAX] {
        files::ask(&headers, length);
    }
    let offered = [Algorithm::Zstd, Algorithm::Brotli, Algorithm::Gzip];
    let accepted = headers.get_all("accept-encoding").iter().map(HeaderValue::as_bytes);
    let _ = negotiate::choose(accepted, &offered);
}

/// The head of a response as a compromised worker may send it; three bytes are the status. The result can be sent:
/// all names and values are valid, there are no connection fields, and the size is within the limits.
pub fn response_head(data: &[u8]) {
    let (status, rest) = data.split_at(data.len().min(3));
    let status = std::str::from_utf8(status).ok().and_then(|digits| digits.parse().ok()).unwrap_or(200);
    let lines = lines(rest);
    php::fuzz::response_head(status, lines.clone());
    howdah_protocol::informational::fuzz(status, &lines);
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_fuzz_driver::{Target, drive};

    #[allow(clippy::type_complexity)]
    #[test]
    fn input_from_untrusted_peers_violates_no_invariant() {
        type Named = (&'static str, fn(&[u8]));
        let targets: [Named; 7] = [
            ("request_path", request_path),
            ("forwarded", forwarded_fields),
            ("file_request", file_request),
            ("response_head", response_head),
            ("rules", howdah_rules::fuzz::rules),
            ("access", crate::fuzz_access::access),
            ("htaccess", crate::fuzz_htaccess::htaccess),
        ];
        for (name, run) in targets {
            drive(&Target { name, corpus: name, words: &[], run }, 1000);
        }
    }
}
