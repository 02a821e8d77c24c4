//! The keys of a setting: one secret, one public key in PEM, or a JSON Web Key Set (RFC 7517).

use crate::key::{Key, KeyError};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

/// Maximum number of usable keys of a set: a token without `kid` may be tried with each of them.
const MAX_KEYS: usize = 32;

/// Keys that verify tokens.
#[derive(Debug)]
pub struct Keys(Vec<NamedKey>);

#[derive(Debug)]
struct NamedKey {
    /// Its `kid` in a set.
    id: Option<Box<str>>,
    /// The only algorithm that it may be used with.
    algorithm: Option<Box<str>>,
    key: Key,
}

impl Keys {
    /// Reads keys: a JSON Web Key Set or a single JSON Web Key, recognized by its first character `{`; else a public
    /// key in PEM, or any other text as a shared secret.
    ///
    /// # Errors
    /// The text is no key, or a key of the set is broken, or the set has no key that can verify tokens.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        // Never a secret, even if broken: sets of public keys are public.
        if text.trim_start().starts_with('{') {
            return set(text).map(Self);
        }
        Ok(Self(vec![NamedKey { id: None, algorithm: None, key: Key::new(text)? }]))
    }

    /// Returns the keys for a token with this `kid`. Keys without an id are for all tokens; without a `kid`, each key
    /// may be the right one.
    pub(crate) fn of<'a>(&'a self, id: Option<&'a str>) -> impl Iterator<Item = Candidate<'a>> {
        let fits = move |named: &&NamedKey| match (id, &named.id) {
            (Some(wanted), Some(own)) => wanted == &**own,
            _ => true,
        };
        self.0.iter().filter(fits).map(Candidate)
    }
}

/// A key that a token may be signed with.
pub(crate) struct Candidate<'a>(&'a NamedKey);

impl Candidate<'_> {
    /// As [`Key::verifies`].
    pub(crate) fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> Option<bool> {
        if self.0.algorithm.as_ref().is_some_and(|own| **own != *algorithm) {
            return None;
        }
        self.0.key.verifies(algorithm, message, signature)
    }
}

fn set(text: &str) -> Result<Vec<NamedKey>, KeyError> {
    let whole: Map<String, Value> =
        serde_json::from_str(text).map_err(|why| KeyError::Set(format!("is not a JSON Web Key Set: {why}")))?;
    let single = whole.contains_key("kty");
    let list = match whole.get("keys") {
        Some(Value::Array(list)) => list.as_slice(),
        None if single => &[Value::Object(whole)],
        _ => return Err(KeyError::Set("is not a JSON Web Key Set: it has no list \"keys\"".to_owned())),
    };
    let mut usable = Vec::new();
    for (at, entry) in list.iter().enumerate() {
        let name = || match entry.get("kid").and_then(Value::as_str) {
            Some(id) => format!("key \"{}\"", id.escape_debug()),
            None => format!("key {}", at + 1),
        };
        let read = entry.as_object().ok_or(KeyError::Set("is not an object".to_owned())).and_then(named);
        usable.extend(read.map_err(|why| KeyError::Set(format!("{} of the JSON Web Key Set {why}", name())))?);
    }
    match usable.len() {
        0 => {
            let why =
                "is a JSON Web Key Set without a key that can verify tokens (RSA, P-256, P-384, P-521, Ed25519 or oct)";
            Err(KeyError::Set(why.to_owned()))
        }
        1..=MAX_KEYS => Ok(usable),
        more => Err(KeyError::Set(format!("is a JSON Web Key Set of {more} keys; at most {MAX_KEYS} are allowed"))),
    }
}

/// Reads a key of a set. `None` if it is for another purpose or of an unknown kind (RFC 7517 section 5).
fn named(jwk: &Map<String, Value>) -> Result<Option<NamedKey>, KeyError> {
    let text = |name: &'static str| match jwk.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(KeyError::Set(format!("has a `{name}` that is not a string"))),
    };
    let bytes = |name: &'static str| {
        let decoded = text(name)?.and_then(|text| URL_SAFE_NO_PAD.decode(text).ok()).filter(|bytes| !bytes.is_empty());
        decoded.ok_or_else(|| KeyError::Set(format!("has no valid `{name}` (base64url)")))
    };
    let kind = text("kty")?.ok_or_else(|| KeyError::Set("has no `kty`".to_owned()))?;
    let verifies = |operations: &Value| operations.as_array().is_some_and(|all| all.iter().any(|one| one == "verify"));
    if text("use")?.is_some_and(|purpose| purpose != "sig") || !jwk.get("key_ops").is_none_or(verifies) {
        return Ok(None);
    }
    let key = match (kind, text("crv")?) {
        ("RSA" | "EC" | "OKP", _) if jwk.contains_key("d") => return Err(KeyError::Private),
        ("oct", _) => Key::secret(bytes("k")?),
        ("RSA", _) => Key::rsa(&bytes("n")?, &bytes("e")?),
        ("EC", Some(curve)) if Key::has_curve(curve) => Key::ec(curve, &bytes("x")?, &bytes("y")?),
        ("OKP", Some("Ed25519")) => Key::ed25519(bytes("x")?),
        _ => return Ok(None),
    };
    let key = key?;
    let (id, algorithm) = (text("kid")?.map(Into::into), text("alg")?);
    // Such as RSA-OAEP, a key for encryption.
    if algorithm.is_some_and(|algorithm| !key.supports(algorithm)) {
        return Ok(None);
    }
    Ok(Some(NamedKey { id, algorithm: algorithm.map(Into::into), key }))
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
