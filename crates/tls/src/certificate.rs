//! A certificate with its chain and its key, loaded and checked together: a `Certificate` can always be served.

use crate::provider::provider;
use rustls::InconsistentKeys;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Maximum length of a file; a chain has a few kilobytes.
const MAX_FILE_LEN: u64 = 1 << 20;

/// Remaining lifetime, in seconds, below which there is a warning, for certificates that are valid for more than twice
/// as long.
const EXPIRY_WARNING: u64 = 7 * 24 * 3600;

/// A checked certificate with its key.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The chain and the key, in rustls' form.
    pub key: Arc<CertifiedKey>,
    /// The DNS names and IP addresses it covers, in lower case; a wildcard is `*.example.org`.
    pub names: Vec<Box<str>>,
    /// Start of validity, in seconds since the epoch.
    pub not_before: u64,
    /// End of validity (inclusive), in seconds since the epoch.
    pub not_after: u64,
}

/// Reason why a certificate cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file could not be read.
    #[error("cannot read {}: {error}{}", path.display(), hint(error))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file is not in PEM format, or does not contain what is needed.
    #[error("{} has no {what}{why}", of.display())]
    Missing {
        /// The file.
        of: PathBuf,
        /// The expected content.
        what: &'static str,
        /// The actual content, or the remedy.
        why: String,
    },
    /// The first certificate of a chain cannot be read.
    #[error("the first certificate of {} cannot be read: {why}", of.display())]
    Malformed {
        /// The file.
        of: PathBuf,
        /// The problem.
        why: String,
    },
    /// The key cannot be used.
    #[error("the key in {} cannot be used: {why} (supported: RSA of 2048 to 8192 bits, ECDSA P-256, P-384, P-521, Ed25519)", of.display())]
    Key {
        /// The file.
        of: PathBuf,
        /// The problem.
        why: String,
    },
    /// The key belongs to another certificate.
    #[error("the key in {} does not belong to the first certificate in {}; the server's own certificate comes first, then its issuers", key.display(), certificate.display())]
    Mismatch {
        /// The file of the chain.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; the server's user needs read permission",
        _ => "",
    }
}

/// Problem of a certificate that can still be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateWarning {
    /// Expired this long ago.
    Expired(Duration),
    /// Becomes valid after this time.
    NotYetValid(Duration),
    /// Expires within this time.
    EndsSoon(Duration),
    /// Has no `subjectAltName`, so clients refuse it.
    NoNames,
}

impl fmt::Display for CertificateWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = |time: &Duration| match time.as_secs() {
            seconds if seconds >= 2 * 86400 => format!("{} days", seconds / 86400),
            seconds => format!("{} hours", seconds.div_ceil(3600)),
        };
        match self {
            Self::Expired(since) => write!(f, "expired {} ago: clients refuse it", span(since)),
            Self::NotYetValid(time) => {
                write!(f, "becomes valid only in {}: clients refuse it, or the clock is wrong", span(time))
            }
            Self::EndsSoon(left) => write!(f, "expires in {}", span(left)),
            Self::NoNames => write!(f, "names no host (`subjectAltName`): clients refuse it"),
        }
    }
}

impl Certificate {
    /// Loads a chain and its key, both in PEM. They may be in one file.
    ///
    /// # Errors
    /// The problem, with the file's path.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        let chain = read(certificate)?;
        if certificate == key {
            return Self::from_pem(&chain, &chain, certificate, key);
        }
        Self::from_pem(&chain, &read(key)?, certificate, key)
    }

    /// Parses PEM data in memory; the paths are for error messages.
    ///
    /// # Errors
    /// The problem, with the file's path.
    pub fn from_pem(chain: &[u8], key: &[u8], chain_path: &Path, key_path: &Path) -> Result<Self, CertificateError> {
        let missing = |of: &Path, what, why: String| CertificateError::Missing { of: of.into(), what, why };
        let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|error| missing(chain_path, "certificate in PEM", format!(": {error}")))?;
        if certificates.is_empty() {
            return Err(missing(chain_path, "certificate in PEM", instead(chain, "CERTIFICATE")));
        }
        let private = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| missing(key_path, "private key in PEM", instead(key, "PRIVATE KEY")))?;
        Self::new(certificates, &private, chain_path, key_path)
    }

    /// Checks decoded data: a certificate that the server has created or obtained.
    ///
    /// # Errors
    /// The problem, with the file's path.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'static>,
        chain_path: &Path,
        key_path: &Path,
    ) -> Result<Self, CertificateError> {
        let malformed = |why: String| CertificateError::Malformed { of: chain_path.into(), why };
        let unusable = |why: String| CertificateError::Key { of: key_path.into(), why };
        let first = chain.first().ok_or_else(|| malformed("there is none".into()))?;
        let (_, parsed) = X509Certificate::from_der(first).map_err(|error| malformed(error.to_string()))?;
        let names = names(&parsed).map_err(malformed)?;
        let since_epoch = |time: x509_parser::time::ASN1Time| u64::try_from(time.timestamp()).unwrap_or(0);
        let (not_before, not_after) =
            (since_epoch(parsed.validity().not_before), since_epoch(parsed.validity().not_after));
        let signing = provider().key_provider.load_private_key(key.clone_key());
        let signing = signing.map_err(|error| unusable(error.to_string()))?;
        let key = CertifiedKey::new(chain, signing);
        match key.keys_match() {
            Ok(()) => {}
            Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                return Err(CertificateError::Mismatch { certificate: chain_path.into(), key: key_path.into() });
            }
            Err(error) => return Err(malformed(error.to_string())),
        }
        Ok(Self { key: Arc::new(key), names, not_before, not_after })
    }

    /// Warnings about the certificate.
    pub fn concerns(&self, now: SystemTime) -> Vec<CertificateWarning> {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut concerns = Vec::new();
        if now > self.not_after {
            concerns.push(CertificateWarning::Expired(Duration::from_secs(now - self.not_after)));
        } else if now < self.not_before {
            concerns.push(CertificateWarning::NotYetValid(Duration::from_secs(self.not_before - now)));
        } else if self.not_after - now < EXPIRY_WARNING && self.not_after - self.not_before > 2 * EXPIRY_WARNING {
            concerns.push(CertificateWarning::EndsSoon(Duration::from_secs(self.not_after - now)));
        }
        if self.names.is_empty() {
            concerns.push(CertificateWarning::NoNames);
        }
        concerns
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let unreadable = |error| CertificateError::Unreadable { path: path.into(), error };
    let file = File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("not a regular file")));
    }
    let mut bytes = Vec::new();
    let length = file.take(MAX_FILE_LEN + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if length as u64 > MAX_FILE_LEN {
        return Err(unreadable(io::Error::other("longer than 1 MB")));
    }
    Ok(bytes)
}

/// Describes what a PEM file contains instead of the expected content.
fn instead(pem: &[u8], wanted: &str) -> String {
    let text = String::from_utf8_lossy(pem);
    if wanted == "PRIVATE KEY" && text.contains("ENCRYPTED") {
        return ": it is encrypted; `openssl pkey -in … -out …` removes the pass phrase".into();
    }
    let label = text.lines().find_map(|line| line.strip_prefix("-----BEGIN ")?.strip_suffix("-----"));
    match label {
        Some(label) if label.len() < 64 => format!(", but a {}", label.to_ascii_lowercase()),
        _ => "; it is not a PEM file (`openssl x509 -inform der` and `openssl pkey -inform der` convert)".into(),
    }
}

/// The DNS names and IP addresses in `subjectAltName`.
fn names(certificate: &X509Certificate<'_>) -> Result<Vec<Box<str>>, String> {
    let alternative = certificate.subject_alternative_name().map_err(|error| error.to_string())?;
    let mut names: Vec<Box<str>> = Vec::new();
    for name in alternative.iter().flat_map(|extension| &extension.value.general_names) {
        match name {
            GeneralName::DNSName(name) => names.push(name.to_ascii_lowercase().into()),
            GeneralName::IPAddress(bytes) => {
                // No client sends an address as its server name. Listed so that `check` can report it.
                let address = match bytes.len() {
                    4 => <[u8; 4]>::try_from(*bytes).ok().map(|bytes| Ipv4Addr::from(bytes).to_string()),
                    16 => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| Ipv6Addr::from(bytes).to_string()),
                    _ => None,
                };
                names.extend(address.map(Box::from));
            }
            _ => {}
        }
    }
    Ok(names)
}

#[cfg(test)]
#[path = "certificate_tests.rs"]
mod tests;
