//! Keys that verify tokens. The key determines the accepted algorithms: a token cannot select an algorithm of another
//! kind, or none.

use aws_lc_rs::{hmac, signature};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// An elliptic curve, and the only algorithm of its keys.
#[derive(Debug)]
struct Curve {
    /// Its object identifier in a public key.
    oid: &'static [u8],
    /// Its name in a JSON Web Key, and the bytes of a coordinate there.
    name: &'static str,
    size: usize,
    algorithm: &'static str,
    verifier: &'static signature::EcdsaVerificationAlgorithm,
}

const CURVES: &[Curve] = &[
    Curve {
        oid: &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        name: "P-256",
        size: 32,
        algorithm: "ES256",
        verifier: &signature::ECDSA_P256_SHA256_FIXED,
    },
    Curve {
        oid: &[0x2b, 0x81, 0x04, 0x00, 0x22],
        name: "P-384",
        size: 48,
        algorithm: "ES384",
        verifier: &signature::ECDSA_P384_SHA384_FIXED,
    },
    Curve {
        oid: &[0x2b, 0x81, 0x04, 0x00, 0x23],
        name: "P-521",
        size: 66,
        algorithm: "ES512",
        verifier: &signature::ECDSA_P521_SHA512_FIXED,
    },
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
pub(crate) struct Key(Kind);

enum Kind {
    /// A shared secret: HS256, HS384 and HS512.
    Secret(Vec<u8>),
    /// RS256 to RS512 and PS256 to PS512.
    Rsa(Vec<u8>),
    /// The algorithm of its curve.
    Ec(Vec<u8>, &'static Curve),
    /// EdDSA.
    Ed25519(Vec<u8>),
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.kind())
    }
}

/// A text that is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("is empty")]
    Empty,
    #[error("is a private key; the hub needs its public key (openssl pkey -pubout)")]
    Private,
    #[error("is not a public key in PEM")]
    Unreadable,
    #[error("is a public key of an unsupported kind; use RSA, P-256, P-384, P-521 or Ed25519")]
    Unsupported,
    /// A mistake in a JSON Web Key Set.
    #[error("{0}")]
    Set(String),
}

impl Key {
    /// Reads a key: a public key in PEM, or any other text as a shared secret.
    ///
    /// # Errors
    /// The text is not a key.
    pub(crate) fn new(text: &str) -> Result<Self, KeyError> {
        let Some((_, pem)) = text.split_once("-----BEGIN ") else {
            return Self::secret(text.as_bytes().to_vec());
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

    /// A shared secret.
    pub(crate) fn secret(secret: Vec<u8>) -> Result<Self, KeyError> {
        if secret.is_empty() { Err(KeyError::Empty) } else { Ok(Self(Kind::Secret(secret))) }
    }

    /// An RSA key with this modulus and exponent, big-endian.
    pub(crate) fn rsa(modulus: &[u8], exponent: &[u8]) -> Result<Self, KeyError> {
        let start = modulus.iter().position(|digit| *digit != 0).unwrap_or(modulus.len());
        // The sizes of `RSA_ALGORITHMS`.
        if !(256..=1024).contains(&(modulus.len() - start)) {
            return Err(KeyError::Set("has an `n` that does not have 2,048 to 8,192 bits".to_owned()));
        }
        let der = encoded(0x30, &[integer(modulus), integer(exponent)].concat());
        checked(&signature::RSA_PKCS1_2048_8192_SHA256, &der, "has a broken RSA key")?;
        Ok(Self(Kind::Rsa(der)))
    }

    /// `true` if a curve of this name in JSON Web Keys is supported.
    pub(crate) fn has_curve(name: &str) -> bool {
        CURVES.iter().any(|curve| curve.name == name)
    }

    /// A point on an elliptic curve.
    pub(crate) fn ec(curve: &str, x: &[u8], y: &[u8]) -> Result<Self, KeyError> {
        let curve = CURVES.iter().find(|own| own.name == curve).ok_or(KeyError::Unsupported)?;
        if (x.len(), y.len()) != (curve.size, curve.size) {
            return Err(KeyError::Set(format!("has coordinates that do not have {} bytes", curve.size)));
        }
        let point = [&[0x04], x, y].concat();
        checked(curve.verifier, &point, "has coordinates that are not a point of its curve")?;
        Ok(Self(Kind::Ec(point, curve)))
    }

    pub(crate) fn ed25519(key: Vec<u8>) -> Result<Self, KeyError> {
        checked(&signature::ED25519, &key, "has a broken Ed25519 key")?;
        Ok(Self(Kind::Ed25519(key)))
    }

    /// `true` if tokens of this algorithm may be signed with it.
    pub(crate) fn supports(&self, algorithm: &str) -> bool {
        match &self.0 {
            Kind::Secret(_) => matches!(algorithm, "HS256" | "HS384" | "HS512"),
            Kind::Rsa(_) => RSA_ALGORITHMS.iter().any(|(name, _)| *name == algorithm),
            Kind::Ec(_, curve) => curve.algorithm == algorithm,
            Kind::Ed25519(_) => matches!(algorithm, "EdDSA" | "Ed25519"),
        }
    }

    /// The accepted kind of algorithms, for the log.
    fn kind(&self) -> &'static str {
        match &self.0 {
            Kind::Secret(_) => "HMAC",
            Kind::Rsa(_) => "RSA",
            Kind::Ec(_, curve) => curve.algorithm,
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
            Kind::Ec(key, curve) => self.supports(algorithm).then(|| public(curve.verifier, key)),
            // RFC 9864 names the algorithm like the curve.
            Kind::Ed25519(key) => self.supports(algorithm).then(|| public(&signature::ED25519, key)),
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
            let found = CURVES.iter().find(|own| own.oid == curve).ok_or(KeyError::Unsupported)?;
            Ok(Kind::Ec(der, found))
        }
        _ => Err(KeyError::Unsupported),
    }
}

/// Checks that the members of a JSON Web Key are a valid key.
fn checked(how: &'static dyn signature::VerificationAlgorithm, key: &[u8], why: &str) -> Result<(), KeyError> {
    signature::ParsedPublicKey::new(how, key).map(drop).map_err(|_| KeyError::Set(why.to_owned()))
}

/// A positive number in DER.
fn integer(digits: &[u8]) -> Vec<u8> {
    let start = digits.iter().position(|digit| *digit != 0).unwrap_or(digits.len());
    let digits = &digits[start..];
    // The first bit is the sign.
    let is_positive = digits.first().is_some_and(|first| *first < 0x80);
    encoded(0x02, &if is_positive { digits.to_vec() } else { [&[0], digits].concat() })
}

/// A DER element with this tag and content.
fn encoded(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let digits = &length[length.iter().position(|digit| *digit != 0).unwrap_or(length.len() - 1)..];
    let mut der = vec![tag];
    if content.len() >= 0x80 {
        der.push(0x80 | digits.len() as u8);
    }
    der.extend_from_slice(digits);
    der.extend_from_slice(content);
    der
}

/// The first DER element, if it has this tag: what follows it, and its content.
pub(crate) fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
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
