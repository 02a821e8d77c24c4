//! Requests that are refused before a handler sees them: the reasons, for logs and counters.

use crate::connection::Connection;
use http::StatusCode;

/// First bytes of the PROXY protocol, versions 1 and 2.
const PROXY_PROTOCOL: [&[u8]; 2] = [b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n"];

/// Reason why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// The data is not a valid HTTP/1 request.
    Malformed,
    /// The header is too long or has too many lines.
    HeaderTooLarge,
    /// The header was not complete in time.
    HeaderTimeout,
    /// The client speaks the PROXY protocol.
    ProxyProtocol,
    /// The client speaks TLS on a port for plain HTTP.
    Tls,
    /// The client speaks HTTP on a port with TLS.
    HttpToTls,
    /// The client broke the rules of HTTP/2.
    Http2,
    /// The client broke the rules of HTTP/3.
    Http3,
    /// The web server broke the rules of FastCGI.
    FastCgi,
    /// A request in early data that may not be repeated.
    EarlyData,
}

impl Rejection {
    /// Guesses why these bytes are not an HTTP/1 request.
    pub(crate) fn of(input: &[u8]) -> Self {
        if PROXY_PROTOCOL.iter().any(|header| input.starts_with(header)) {
            return Self::ProxyProtocol;
        }
        // A record of a handshake, of any version (RFC 8446 5.1).
        if input.starts_with(&[0x16, 0x03]) { Self::Tls } else { Self::Malformed }
    }

    /// The reason in logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::HeaderTooLarge => "header_too_large",
            Self::HeaderTimeout => "header_timeout",
            Self::ProxyProtocol => "proxy_protocol",
            Self::Tls => "tls",
            Self::HttpToTls => "http_to_tls",
            Self::Http2 => "http2",
            Self::Http3 => "http3",
            Self::FastCgi => "fastcgi",
            Self::EarlyData => "early_data",
        }
    }
}

/// A request that was refused.
#[derive(Debug, Clone, Copy)]
pub struct Rejected<'a> {
    /// The connection that it came over.
    pub connection: &'a Connection,
    /// Why.
    pub rejection: Rejection,
    /// The status of the response, or the closest one if the protocol only has error codes.
    pub status: StatusCode,
    /// Its first line or the beginning of it; empty if unknown. For invalid FastCGI variables, the reason.
    pub line: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_protocols_are_distinguished_by_their_first_bytes() {
        for (input, rejection) in [
            (&b"garbage\r\n"[..], Rejection::Malformed),
            (b"PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\n", Rejection::ProxyProtocol),
            (b"\r\n\r\n\0\r\nQUIT\n\x21\x11", Rejection::ProxyProtocol),
            (b"PROXYED / HTTP/1.1\r\n", Rejection::Malformed),
            (b"\x16\x03\x01\x02\0", Rejection::Tls),
            (b"\x16\x04", Rejection::Malformed),
        ] {
            assert_eq!(Rejection::of(input), rejection, "{input:?}");
        }
    }
}
