//! Password hashes in the formats of `htpasswd`: bcrypt (`-B`), `$apr1$` (MD5, its default) and `{SHA}` (`-s`); and
//! argon2. `$apr1$` and `{SHA}` are weak, but existing files contain them.

use argon2::{Argon2, PasswordVerifier};
use base64::Engine as _;
use md5::{Digest as _, Md5};
use sha1::Sha1;
use std::hint::black_box;

/// Maximum accepted cost of bcrypt: some seconds per verification.
const MAX_BCRYPT_COST: u32 = 15;
/// Maximum accepted memory of an argon2 hash in KB, and maximum passes.
const MAX_ARGON2: (u32, u32) = (128 * 1024, 16);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Hash {
    Bcrypt(Box<str>, u32),
    Argon2(Box<str>),
    /// Salt and digest.
    Apr1(Box<str>, Box<str>),
    Sha1(Vec<u8>),
}

impl Hash {
    /// Parses a hash.
    ///
    /// # Errors
    /// If the format is unknown, or verification would be too expensive.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        if ["$2y$", "$2a$", "$2b$"].iter().any(|prefix| text.starts_with(prefix)) {
            let cost = text.get(4..6).and_then(|cost| cost.parse().ok()).filter(|_| text.len() == 60);
            return match cost {
                Some(cost) if (4..=MAX_BCRYPT_COST).contains(&cost) => Ok(Self::Bcrypt(text.into(), cost)),
                Some(_) => Err(format!("has a bcrypt cost outside of 4 to {MAX_BCRYPT_COST}")),
                None => Err("is a broken bcrypt hash".to_owned()),
            };
        }
        if text.starts_with("$argon2") {
            let hash = argon2::PasswordHash::new(text).map_err(|_| "is a broken argon2 hash".to_owned())?;
            let params = argon2::Params::try_from(&hash).map_err(|_| "is a broken argon2 hash".to_owned())?;
            if params.m_cost() > MAX_ARGON2.0 || params.t_cost() > MAX_ARGON2.1 {
                return Err(
                    "takes too much memory or time to verify: argon2 may use at most 128 MB and 16 passes".to_owned()
                );
            }
            return Ok(Self::Argon2(text.into()));
        }
        if let Some((salt, digest)) = text.strip_prefix("$apr1$").and_then(|rest| rest.split_once('$')) {
            if salt.len() > 8 || digest.len() != 22 {
                return Err("is a broken $apr1$ hash".to_owned());
            }
            return Ok(Self::Apr1(salt.into(), digest.into()));
        }
        if let Some(digest) = text.strip_prefix("{SHA}") {
            let digest = base64::engine::general_purpose::STANDARD.decode(digest).ok().filter(|it| it.len() == 20);
            return digest.map(Self::Sha1).ok_or_else(|| "is a broken {SHA} hash".to_owned());
        }
        Err("has an unsupported hash: use `htpasswd -B` (bcrypt)".to_owned())
    }

    /// `true` if this is the password's hash. A wrong password takes as long as the correct one.
    pub(crate) fn verify(&self, password: &[u8]) -> bool {
        match self {
            Self::Bcrypt(hash, _) => bcrypt::verify(password, hash).unwrap_or(false),
            Self::Argon2(hash) => argon2::PasswordHash::new(hash)
                .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok()),
            Self::Apr1(salt, digest) => same(apr1(password, salt.as_bytes()).as_bytes(), digest.as_bytes()),
            Self::Sha1(digest) => same(&Sha1::digest(password), digest),
        }
    }

    /// Relative cost of a verification.
    pub(crate) const fn cost(&self) -> u32 {
        match self {
            Self::Argon2(_) => 100,
            Self::Bcrypt(_, cost) => *cost,
            Self::Apr1(..) => 1,
            Self::Sha1(_) => 0,
        }
    }
}

/// Compares in constant time.
fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
    a.len() == b.len() && difference == 0
}

/// Apache's variant of the MD5 crypt of FreeBSD (apr_md5_encode in apr-util).
fn apr1(password: &[u8], salt: &[u8]) -> String {
    let inner = Md5::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut context = Md5::new().chain_update(password).chain_update(b"$apr1$").chain_update(salt);
    for at in (0..password.len()).step_by(16) {
        context.update(&inner[..(password.len() - at).min(16)]);
    }
    let mut bits = password.len();
    while bits > 0 {
        context.update(if bits & 1 == 1 { &[0] } else { password.get(..1).unwrap_or(&[0]) });
        bits >>= 1;
    }
    let mut digest = context.finalize();
    for round in 0..1000 {
        let mut context = Md5::new();
        let odd = round % 2 == 1;
        context.update(if odd { password } else { &digest[..] });
        if round % 3 != 0 {
            context.update(salt);
        }
        if round % 7 != 0 {
            context.update(password);
        }
        context.update(if odd { &digest[..] } else { password });
        digest = context.finalize();
    }
    let mut text = String::with_capacity(22);
    let mut write = |bytes: [u8; 3], letters: usize| {
        const LETTERS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut number = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        for _ in 0..letters {
            text.push(char::from(LETTERS[(number & 63) as usize]));
            number >>= 6;
        }
    };
    for [a, b, c] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        write([digest[a], digest[b], digest[c]], 4);
    }
    write([0, 0, digest[11]], 2);
    text
}
