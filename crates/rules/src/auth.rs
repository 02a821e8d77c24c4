//! The action `auth`: HTTP Basic authentication (RFC 7617) against an htpasswd file or the users in a rule.
//!
//! Verifying a password can take seconds, depending on its hash, so it does not run on an I/O thread. [`Auth::ask`]
//! answers at once from the cache, refuses a request without credentials, or returns a [`Verification`]. The site runs
//! verifications elsewhere, a few at a time; they also read changed files. A correct password is cached for up to five
//! minutes, or until its hash changes. For an unknown user the most expensive hash of the table is verified.

use crate::password::Hash;
use crate::users::{Table, Users};
use base64::Engine as _;
use http::HeaderValue;
use parking_lot::Mutex;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for which a correct password is remembered.
const CACHE_TIME: Duration = Duration::from_secs(300);
/// Maximum number of cached passwords; the oldest is removed.
const MAX_CACHED: usize = 1024;
/// Maximum length of the encoded name and password, in bytes.
const MAX_CREDENTIALS_LEN: usize = 1024;

/// Authentication.
#[derive(Debug)]
pub struct Auth {
    /// The value of `WWW-Authenticate`.
    challenge: HeaderValue,
    users: Users,
    /// The admitted users; empty for all.
    only: Vec<Box<str>>,
    seeds: [RandomState; 2],
    known: Mutex<Vec<VerifiedPassword>>,
}

#[derive(Debug)]
struct VerifiedPassword {
    user: Arc<str>,
    /// Digest of name, password and stored hash, with a secret seed.
    digest: u128,
    until: Instant,
}

/// Result of `Auth::ask`.
#[derive(Debug)]
pub enum AuthResult {
    /// Answer 401.
    Refused,
    /// Authenticated as this user.
    User(Arc<str>),
    /// The password has to be verified first.
    Verify(Verification),
}

/// A password to verify.
#[derive(Debug)]
pub struct Verification {
    auth: Arc<Auth>,
    user: Arc<str>,
    password: Vec<u8>,
    asked: Instant,
}

impl Auth {
    /// Creates authentication for users of a file or a rule.
    ///
    /// # Errors
    /// A realm that is invalid in a header.
    pub fn new(realm: &str, users: Users, only: Vec<Box<str>>) -> Result<Self, String> {
        let quoted = realm.replace('\\', "\\\\").replace('"', "\\\"");
        let challenge = HeaderValue::from_str(&format!("Basic realm=\"{quoted}\", charset=\"UTF-8\""))
            .map_err(|_| "has a realm with characters that are not allowed in a header".to_owned())?;
        let seeds = [RandomState::new(), RandomState::new()];
        Ok(Self { challenge, users, only, seeds, known: Mutex::default() })
    }

    /// The value of `WWW-Authenticate`.
    pub const fn challenge(&self) -> &HeaderValue {
        &self.challenge
    }

    /// Checks the value of `Authorization` against the cache.
    pub fn ask(self: &Arc<Self>, authorization: Option<&HeaderValue>, now: Instant) -> AuthResult {
        let Some((user, password)) = authorization.and_then(|value| credentials(value.as_bytes())) else {
            return AuthResult::Refused;
        };
        let user: Arc<str> = user.into();
        if let Some(table) = self.users.fresh(now) {
            let Some((hash, exists)) = self.hash(&table, &user) else { return AuthResult::Refused };
            if exists && self.is_known(&user, self.digest(&user, &password, hash), now) {
                return AuthResult::User(user);
            }
        }
        AuthResult::Verify(Verification { auth: self.clone(), user, password, asked: now })
    }

    /// The hash of a user's password, and `true`. For an unknown or excluded user: the most expensive hash and `false`,
    /// so that a quick refusal does not reveal which users exist.
    fn hash<'t>(&self, table: &'t Table, user: &str) -> Option<(&'t Hash, bool)> {
        let stored = if self.admits(user) { table.hash(user) } else { None };
        stored.map(|hash| (hash, true)).or_else(|| table.costliest().map(|hash| (hash, false)))
    }

    fn admits(&self, user: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| **name == *user)
    }

    fn digest(&self, user: &str, password: &[u8], hash: &Hash) -> u128 {
        let [high, low] = [0, 1].map(|at| u128::from(self.seeds[at].hash_one((user, password, hash))));
        high << 64 | low
    }

    fn is_known(&self, user: &str, digest: u128, now: Instant) -> bool {
        let known = self.known.lock();
        known.iter().any(|known| known.digest == digest && *known.user == *user && known.until > now)
    }

    fn learn(&self, user: &Arc<str>, digest: u128, now: Instant) {
        let mut known = self.known.lock();
        known.retain(|known| known.until > now && known.digest != digest);
        if known.len() >= MAX_CACHED {
            known.remove(0);
        }
        known.push(VerifiedPassword { user: user.clone(), digest, until: now + CACHE_TIME });
    }
}

impl Verification {
    /// Verifies the password, and returns the user if it is correct. Takes up to seconds.
    pub fn run(self) -> Option<Arc<str>> {
        let table = self.auth.users.read_again(self.asked);
        let (hash, exists) = self.auth.hash(&table, &self.user)?;
        let digest = self.auth.digest(&self.user, &self.password, hash);
        if exists && self.auth.is_known(&self.user, digest, self.asked) {
            return Some(self.user); // the file changed, but not this user's hash
        }
        let right = hash.verify(&self.password) && exists;
        if right {
            self.auth.learn(&self.user, digest, Instant::now());
        }
        right.then_some(self.user)
    }
}

/// Decodes name and password from a value of `Authorization`.
fn credentials(value: &[u8]) -> Option<(String, Vec<u8>)> {
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") || rest.len() > MAX_CREDENTIALS_LEN {
        return None;
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(rest.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|&b| b == b':')?;
    let user = String::from_utf8(decoded[..colon].to_vec()).ok()?;
    let password = &decoded[colon + 1..];
    let sendable = !user.is_empty() && !user.bytes().chain(password.iter().copied()).any(|b| b < b' ' || b == 0x7f);
    sendable.then(|| (user, password.to_vec()))
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
