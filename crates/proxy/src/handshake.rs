//! The WebSocket handshake (RFC 6455 4) that this server performs on behalf of HTTP/2 and HTTP/3 clients, whose
//! protocols have none (RFC 8441 5, RFC 9220 3).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use rustls::crypto::aws_lc_rs;
use sha1::{Digest as _, Sha1};
use std::sync::LazyLock;

const KEY: HeaderName = http::header::SEC_WEBSOCKET_KEY;
const ACCEPT: HeaderName = http::header::SEC_WEBSOCKET_ACCEPT;

/// Hashed with the key, so that the response proves that the server speaks WebSocket.
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A handshake's key and the expected response.
pub(crate) struct Handshake {
    key: HeaderValue,
    accept: String,
}

impl Handshake {
    /// A new one, if the system has random bytes.
    pub(crate) fn new() -> Option<Self> {
        static PROVIDER: LazyLock<rustls::crypto::CryptoProvider> = LazyLock::new(aws_lc_rs::default_provider);
        let mut random = [0; 16];
        PROVIDER.secure_random.fill(&mut random).ok()?;
        Self::of(&STANDARD.encode(random))
    }

    fn of(key: &str) -> Option<Self> {
        let accept = STANDARD.encode(Sha1::new().chain_update(key).chain_update(WEBSOCKET_GUID).finalize());
        Some(Self { key: HeaderValue::from_str(key).ok()?, accept })
    }

    /// Adds the key to a request's headers.
    pub(crate) fn ask(&self, headers: &mut HeaderMap) {
        headers.insert(KEY, self.key.clone());
    }

    /// Removes the server's answer from a response's headers. Returns `false` if it is missing or wrong.
    pub(crate) fn is_accepted(&self, headers: &mut HeaderMap) -> bool {
        headers.remove(ACCEPT).is_some_and(|said| said.as_bytes().trim_ascii() == self.accept.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_needs_the_response_to_its_key() {
        // The example of RFC 6455 1.3.
        let handshake = Handshake::of("dGhlIHNhbXBsZSBub25jZQ==").unwrap();
        let said = |accept: Option<&'static str>| {
            accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept))).into_iter().collect::<HeaderMap>()
        };
        assert!(handshake.is_accepted(&mut said(Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))));
        assert!(!handshake.is_accepted(&mut said(Some("S3pPLMBiTxaQ9kYGzzhZRbK+xOo="))));
        assert!(!handshake.is_accepted(&mut said(None)));
        let mut asked = HeaderMap::new();
        Handshake::new().unwrap().ask(&mut asked);
        assert_eq!(STANDARD.decode(&asked[KEY]).unwrap().len(), 16);
        assert_ne!(Handshake::new().unwrap().key, asked[KEY]);
    }
}
