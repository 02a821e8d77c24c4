//! Keys that verify tokens. The key determines the accepted algorithms: a token cannot select an algorithm of another
//! kind, or none.

use aws_lc_rs::{hmac, signature};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Algorithms of elliptic curves, by the curve's object identifier in a public key.
const CURVES: &[(&[u8], &str, &signature::EcdsaVerificationAlgorithm)] = &[
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], "ES256", &signature::ECDSA_P256_SHA256_FIXED),
    (&[0x2b, 0x81, 0x04, 0x00, 0x22], "ES384", &signature::ECDSA_P384_SHA384_FIXED),
    (&[0x2b, 0x81, 0x04, 0x00, 0x23], "ES512", &signature::ECDSA_P521_SHA512_FIXED),
];
/// Object identifiers of the kinds of public keys.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

const RSA_ALGORITHMS: &[(&str, &signature::RsaParameters)] = &[
    ("RS256", &signature::RSA_PKCS1_2048_8192_SHA256),
    ("RS384", &signature::RSA_PKCS1_2048_8192_SHA384),
    ("RS512", &signature::RSA_PKCS1_2048_8192_SHA512),
    ("PS256", &signature::RSA_PSS_2048_8192_SHA256),
    ("PS384", &signature::RSA_PSS_2048_8192_SHA384),
    ("PS512", &signature::RSA_PSS_2048_8192_SHA512),
];

/// A key that verifies tokens.
pub struct Key(Kind);

enum Kind {
    /// A shared secret: HS256, HS384 and HS512.
    Secret(Vec<u8>),
    /// RS256 to RS512 and PS256 to PS512.
    Rsa(Vec<u8>),
    /// The algorithm of its curve.
    Ec(Vec<u8>, &'static str, &'static signature::EcdsaVerificationAlgorithm),
    /// EdDSA.
    Ed25519(Vec<u8>),
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.kind())
    }
}

/// A text that is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("is empty")]
    Empty,
    #[error("is a private key; the hub needs its public key (openssl pkey -pubout)")]
    Private,
    #[error("is not a public key in PEM")]
    Unreadable,
    #[error("is a public key of an unsupported kind; use RSA, P-256, P-384, P-521 or Ed25519")]
    Unsupported,
}

impl Key {
    /// Reads a key: a public key in PEM, or any other text as a shared secret.
    ///
    /// # Errors
    /// The text is not a key.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        let Some((_, pem)) = text.split_once("-----BEGIN ") else {
            let secret = text.as_bytes().to_vec();
            return if secret.is_empty() { Err(KeyError::Empty) } else { Ok(Self(Kind::Secret(secret))) };
        };
        let (label, body) = pem.split_once("-----").ok_or(KeyError::Unreadable)?;
        if label.contains("PRIVATE KEY") {
            return Err(KeyError::Private);
        }
        let body = body.split_once("-----END").map(|(body, _)| body).ok_or(KeyError::Unreadable)?;
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| KeyError::Unreadable)?;
        let kind = match label {
            "RSA PUBLIC KEY" => Kind::Rsa(der),
            "PUBLIC KEY" => public(der)?,
            _ => return Err(KeyError::Unreadable),
        };
        Ok(Self(kind))
    }

    /// The accepted kind of algorithms, for the log.
    pub fn kind(&self) -> &'static str {
        match &self.0 {
            Kind::Secret(_) => "HMAC",
            Kind::Rsa(_) => "RSA",
            Kind::Ec(_, algorithm, _) => algorithm,
            Kind::Ed25519(_) => "EdDSA",
        }
    }

    /// Verifies a signature over a message by the algorithm that the token names. `None` if the key does not support
    /// it.
    pub(crate) fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> Option<bool> {
        let public = |how: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            signature::UnparsedPublicKey::new(how, key).verify(message, signature).is_ok()
        };
        match &self.0 {
            Kind::Secret(secret) => {
                let how = match algorithm {
                    "HS256" => hmac::HMAC_SHA256,
                    "HS384" => hmac::HMAC_SHA384,
                    "HS512" => hmac::HMAC_SHA512,
                    _ => return None,
                };
                // Constant-time comparison.
                Some(hmac::verify(&hmac::Key::new(how, secret), message, signature).is_ok())
            }
            Kind::Rsa(key) => {
                let (_, how) = RSA_ALGORITHMS.iter().find(|(name, _)| *name == algorithm)?;
                Some(public(*how, key))
            }
            Kind::Ec(key, own, how) => (*own == algorithm).then(|| public(*how, key)),
            Kind::Ed25519(key) => (algorithm == "EdDSA").then(|| public(&signature::ED25519, key)),
        }
    }
}

/// Reads the kind of key from the `AlgorithmIdentifier` at the start of a `SubjectPublicKeyInfo`. The key itself is
/// parsed at verification.
fn public(der: Vec<u8>) -> Result<Kind, KeyError> {
    let (_, inside) = element(&der, 0x30).ok_or(KeyError::Unreadable)?;
    let (rest, algorithm) = element(inside, 0x30).ok_or(KeyError::Unreadable)?;
    element(rest, 0x03).ok_or(KeyError::Unreadable)?;
    let (parameters, kind) = element(algorithm, 0x06).ok_or(KeyError::Unreadable)?;
    match kind {
        RSA => Ok(Kind::Rsa(der)),
        ED25519 => Ok(Kind::Ed25519(der)),
        EC => {
            let (_, curve) = element(parameters, 0x06).ok_or(KeyError::Unsupported)?;
            let found = CURVES.iter().find(|(own, ..)| *own == curve).ok_or(KeyError::Unsupported)?;
            Ok(Kind::Ec(der, found.1, found.2))
        }
        _ => Err(KeyError::Unsupported),
    }
}

/// The first DER element, if it has this tag: what follows it, and its content.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first()?;
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(*length) {
        short if short < 0x80 => (short, rest),
        long => {
            let (digits, rest) = rest.split_at_checked(long - 0x80).filter(|(digits, _)| digits.len() <= 4)?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
    };
    let (content, after) = rest.split_at_checked(length).filter(|_| *found == tag)?;
    Some((after, content))
}
