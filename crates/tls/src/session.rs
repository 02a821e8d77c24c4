//! Facts about a TLS connection after its handshake, under the variable names that PHP applications know from nginx and
//! Apache.

use crate::distinguished_name;
use crate::provider::provider;
use rustls::{CipherSuite, HandshakeKind, ProtocolVersion, ServerConnection};
use rustls_pki_types::CertificateDer;
use std::fmt::Write;
use std::time::SystemTime;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A TLS session. Over QUIC the cipher is empty, and `resumed` is always `false`.
#[derive(Debug, Clone)]
pub struct Session {
    /// The name that the client sent (SNI), in lower case.
    pub server_name: Option<Box<str>>,
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// OpenSSL's name of the cipher.
    pub cipher: &'static str,
    /// Key length of the cipher in bits.
    pub cipher_bits: &'static str,
    /// HTTP/2 was negotiated.
    pub h2: bool,
    /// The handshake resumed an earlier session.
    pub resumed: bool,
    /// The client's certificate, which was verified; `None` if the client sent none.
    pub client: Option<Box<ClientCertificate>>,
}

/// A client's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Its subject, as RFC 4514 writes it.
    pub subject: String,
    /// The subject's common name.
    pub common_name: String,
    pub issuer: String,
    /// Its serial number, in hexadecimal.
    pub serial: String,
    /// SHA-256 of the certificate, in hexadecimal.
    pub fingerprint: String,
    /// Start of validity, as OpenSSL prints it.
    pub not_before: String,
    /// End of validity, as OpenSSL prints it.
    pub not_after: String,
    /// End of validity, in seconds since the epoch.
    pub ends: i64,
}

impl Session {
    /// Facts about a connection after its handshake. `None` if it negotiated an unknown version or cipher.
    pub fn of(connection: &ServerConnection) -> Option<Self> {
        let version = match connection.protocol_version()? {
            ProtocolVersion::TLSv1_3 => "TLSv1.3",
            ProtocolVersion::TLSv1_2 => "TLSv1.2",
            _ => return None,
        };
        let (cipher, cipher_bits) = cipher(connection.negotiated_cipher_suite()?.suite());
        Some(Self {
            server_name: connection.server_name().map(|name| name.to_ascii_lowercase().into()),
            version,
            cipher,
            cipher_bits,
            h2: connection.alpn_protocol() == Some(b"h2"),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            client: connection.peer_certificates().and_then(ClientCertificate::of).map(Box::new),
        })
    }
}

impl ClientCertificate {
    /// Facts about a verified chain.
    pub fn of(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let der = chain.first()?;
        let (_, parsed) = X509Certificate::from_der(der).ok()?;
        // In OpenSSL's format.
        let date = |time: x509_parser::time::ASN1Time| time.to_string().replace("+00:00", "GMT");
        Some(Self {
            subject: distinguished_name::text(parsed.subject()),
            common_name: distinguished_name::common_name(parsed.subject()).unwrap_or_default(),
            issuer: distinguished_name::text(parsed.issuer()),
            serial: hex(parsed.raw_serial(), true),
            fingerprint: hex(&sha256(der), false),
            not_before: date(parsed.validity().not_before),
            not_after: date(parsed.validity().not_after),
            ends: parsed.validity().not_after.timestamp(),
        })
    }

    /// Whole days until the certificate expires.
    pub fn days_left(&self, now: SystemTime) -> u64 {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        u64::try_from(self.ends).unwrap_or(0).saturating_sub(now) / 86400
    }
}

fn hex(bytes: &[u8], upper: bool) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = if upper { write!(text, "{byte:02X}") } else { write!(text, "{byte:02x}") };
    }
    text
}

/// Uses the cryptography provider, which is linked anyway.
fn sha256(bytes: &[u8]) -> Vec<u8> {
    let suites = &provider().cipher_suites;
    let suite = suites.iter().find(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    let hash = suite.and_then(rustls::SupportedCipherSuite::tls13).map(|suite| suite.common.hash_provider);
    hash.map(|hash| hash.hash(bytes).as_ref().to_vec()).unwrap_or_default()
}

/// OpenSSL's name of a cipher suite, and its key length in bits, for all suites that rustls supports.
fn cipher(suite: CipherSuite) -> (&'static str, &'static str) {
    match suite {
        CipherSuite::TLS13_AES_256_GCM_SHA384 => ("TLS_AES_256_GCM_SHA384", "256"),
        CipherSuite::TLS13_AES_128_GCM_SHA256 => ("TLS_AES_128_GCM_SHA256", "128"),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => ("TLS_CHACHA20_POLY1305_SHA256", "256"),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => ("ECDHE-ECDSA-AES256-GCM-SHA384", "256"),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => ("ECDHE-ECDSA-AES128-GCM-SHA256", "128"),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => ("ECDHE-ECDSA-CHACHA20-POLY1305", "256"),
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => ("ECDHE-RSA-AES256-GCM-SHA384", "256"),
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => ("ECDHE-RSA-AES128-GCM-SHA256", "128"),
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => ("ECDHE-RSA-CHACHA20-POLY1305", "256"),
        other => (other.as_str().unwrap_or("unknown"), ""),
    }
}
