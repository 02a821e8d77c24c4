//! The handshake request (RFC 6455 4.2, RFC 8441 5, RFC 9220 3) and the parameters negotiated with it.

use crate::deflate::Deflate;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use howdah_protocol::Offer;
use http::header::{
    ORIGIN, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sha1::{Digest as _, Sha1};

/// Constant that a server appends to the client's key (RFC 6455 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// An acceptable handshake.
#[derive(Debug)]
pub struct Accepted {
    /// `Sec-WebSocket-Accept`; `None` in HTTP/2 and 3.
    pub accept: Option<HeaderValue>,
    /// Compression.
    pub deflate: Option<Deflate>,
    /// The subprotocols that the client offers.
    protocols: Vec<String>,
}

/// An unacceptable handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// The method is not GET.
    Method,
    /// The version is not 13, the only one that is supported.
    Version,
    /// The key is missing or malformed.
    Key,
}

/// Validates a handshake. `None` if the request offers a protocol other than WebSocket.
///
/// # Errors
/// The handshake breaks the protocol.
pub fn negotiate(method: &Method, headers: &HeaderMap, offer: &Offer) -> Option<Result<Accepted, Rejected>> {
    let mut offered = offer.protocol.as_bytes().split(|&byte| byte == b',');
    if !offered.any(|name| name.trim_ascii().eq_ignore_ascii_case(b"websocket")) {
        return None;
    }
    Some(accept(method, headers, offer))
}

fn accept(method: &Method, headers: &HeaderMap, offer: &Offer) -> Result<Accepted, Rejected> {
    if method != Method::GET {
        return Err(Rejected::Method);
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version.as_bytes().trim_ascii() != b"13") {
        return Err(Rejected::Version);
    }
    let accept = if offer.bare {
        None
    } else {
        let key = headers.get(SEC_WEBSOCKET_KEY).ok_or(Rejected::Key)?.as_bytes().trim_ascii();
        let is_key = key.len() == 24 && STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16);
        let digest = STANDARD.encode(Sha1::new().chain_update(key).chain_update(GUID).finalize());
        Some(HeaderValue::from_str(&digest).ok().filter(|_| is_key).ok_or(Rejected::Key)?)
    };
    Ok(Accepted {
        accept,
        deflate: Deflate::accept(&list_elements(headers, &SEC_WEBSOCKET_EXTENSIONS).join(",")),
        protocols: list_elements(headers, &SEC_WEBSOCKET_PROTOCOL),
    })
}

/// The elements of a comma-separated header, over all its lines.
fn list_elements(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|element| element.trim().to_owned()).collect()
}

impl Accepted {
    /// `true` if the client offers this subprotocol.
    pub fn offers(&self, protocol: &HeaderValue) -> bool {
        protocol.to_str().is_ok_and(|protocol| self.protocols.iter().any(|offered| offered == protocol))
    }
}

/// `true` if the request does not come from another origin: `Origin` is missing or names this host.
pub fn same_origin(headers: &HeaderMap, host: &str) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let parts = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let Some((scheme, authority)) = parts else { return false };
    let port = match scheme {
        "https" => ":443",
        "http" => ":80",
        _ => return false,
    };
    let plain = |authority: &str| authority.strip_suffix(port).unwrap_or(authority).to_ascii_lowercase();
    plain(authority) == plain(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn offer(protocol: &'static str, bare: bool) -> Offer {
        Offer { protocol: HeaderValue::from_static(protocol), bare }
    }

    #[test]
    fn a_handshake_is_accepted_with_its_key_and_offers() {
        // The example of RFC 6455 1.3.
        let asked = headers(&[
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-protocol", "chat, superchat"),
            ("sec-websocket-extensions", "permessage-deflate; client_max_window_bits"),
        ]);
        let accepted = negotiate(&Method::GET, &asked, &offer("WebSocket", false)).unwrap().unwrap();
        assert_eq!(accepted.accept.as_ref().unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(accepted.deflate.is_some());
        assert!(accepted.offers(&HeaderValue::from_static("superchat")));
        assert!(!accepted.offers(&HeaderValue::from_static("super")));
        let bare = headers(&[("sec-websocket-version", "13")]);
        assert!(negotiate(&Method::GET, &bare, &offer("websocket", true)).unwrap().unwrap().accept.is_none());
        assert!(negotiate(&Method::GET, &asked, &offer("h2c", false)).is_none());
    }

    #[test]
    fn a_handshake_that_breaks_the_protocol_is_rejected_with_the_reason() {
        let key = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let version = ("sec-websocket-version", "13");
        for (method, lines, reason) in [
            (Method::POST, vec![key, version], Rejected::Method),
            (Method::GET, vec![key], Rejected::Version),
            (Method::GET, vec![key, ("sec-websocket-version", "8")], Rejected::Version),
            (Method::GET, vec![version], Rejected::Key),
            (Method::GET, vec![version, ("sec-websocket-key", "dGhlIHNhbXBsZQ==")], Rejected::Key),
            (Method::GET, vec![version, ("sec-websocket-key", "!GhlIHNhbXBsZSBub25jZQ==")], Rejected::Key),
        ] {
            let judged = negotiate(&method, &headers(&lines), &offer("websocket", false)).unwrap();
            assert_eq!(judged.err(), Some(reason), "{method} {lines:?}");
        }
    }

    #[test]
    fn an_origin_is_the_same_if_it_names_the_host_and_port() {
        for (origin, host, same) in [
            (None, "example.org", true),
            (Some("https://example.org"), "example.org", true),
            (Some("http://EXAMPLE.org:80"), "example.org", true),
            (Some("https://example.org:8443"), "example.org:8443", true),
            (Some("https://example.org:8443"), "example.org", false),
            (Some("https://evil.example"), "example.org", false),
            (Some("https://example.org.evil.example"), "example.org", false),
            (Some("null"), "example.org", false),
            (Some("file://"), "", false),
        ] {
            let lines: Vec<_> = origin.map(|origin| ("origin", origin)).into_iter().collect();
            assert_eq!(same_origin(&headers(&lines), host), same, "{origin:?} {host}");
        }
    }
}
