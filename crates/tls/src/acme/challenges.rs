//! How an authority sees that a name is ours: a text under a path of the plain server (HTTP-01, RFC 8555 section 8.3), or a
//! certificate that only it gets (TLS-ALPN-01, RFC 8737).

use crate::acme::storage::Storage;
use crate::provider::provider;
use crate::store::Store;
use bytes::Bytes;
use parking_lot::RwLock;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::sign::CertifiedKey;
use rustls_pki_types::PrivateKeyDer;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Tokens are some forty characters of base64url.
const LONGEST_TOKEN: usize = 128;
/// How many threads look into the directory at once, whatever clients ask for.
const LOOKS: usize = 4;
/// A token that a server has left behind when it was killed.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// The tokens that an authority may ask for now.
#[derive(Debug)]
pub struct Challenges {
    tokens: RwLock<HashMap<Box<str>, Bytes>>,
    /// Where servers leave theirs for each other: the authority comes to any of them.
    shared: Storage,
    looks: Semaphore,
}

impl Challenges {
    pub(super) fn new(shared: Storage) -> Arc<Self> {
        Arc::new(Self { tokens: RwLock::default(), shared, looks: Semaphore::new(LOOKS) })
    }

    /// What the authority wants to see under a token.
    #[must_use]
    pub fn lookup(&self, token: &str) -> Option<Bytes> {
        self.tokens.read().get(token).cloned()
    }

    /// The same, and if it is not ours that of another server with the same storage.
    pub async fn find(&self, token: &str) -> Option<Bytes> {
        if !is_token(token) {
            return None;
        }
        if let Some(found) = self.lookup(token) {
            return Some(found);
        }
        let _look = self.looks.try_acquire().ok()?;
        let (shared, token) = (self.shared.clone(), token.to_owned());
        let read = spawn_blocking(move || shared.read(&token)).await;
        read.ok()?.ok()?.map(Bytes::from)
    }

    /// Answers for a token until the value goes.
    pub(super) async fn publish_token(self: &Arc<Self>, token: &str, content: &str) -> Result<Published, String> {
        if !is_token(token) {
            return Err("the authority's token is not one".to_owned());
        }
        let (shared, name, text) = (self.shared.clone(), token.to_owned(), content.to_owned());
        let written = spawn_blocking(move || shared.write_passing(&name, text.as_bytes())).await;
        let written = written.map_err(|_| "the server ends".to_owned())?;
        written.map_err(|error| format!("cannot write a challenge: {error}"))?;
        self.tokens.write().insert(token.into(), Bytes::copy_from_slice(content.as_bytes()));
        Ok(Published::Token(self.clone(), token.to_owned()))
    }

    /// Removes what was left behind.
    pub(super) fn sweep(&self) {
        // A Redis does that by itself.
        let Storage::Directory(dir) = &self.shared else { return };
        let now = SystemTime::now();
        for token in std::fs::read_dir(dir.path("")).into_iter().flatten().flatten() {
            let age = token.metadata().ok().and_then(|meta| now.duration_since(meta.modified().ok()?).ok());
            if age.is_some_and(|age| age > STALE) {
                let _ = std::fs::remove_file(token.path());
            }
        }
    }
}

/// Base64url, and so the name of a file.
fn is_token(token: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=LONGEST_TOKEN).contains(&token.len()) && token.bytes().all(fits)
}

/// What an authority can see until this goes.
pub(super) enum Published {
    Token(Arc<Challenges>, String),
    Certificate(Arc<Store>, String),
}

impl Drop for Published {
    fn drop(&mut self) {
        match self {
            Self::Token(challenges, token) => {
                challenges.tokens.write().remove(token.as_str());
                let (shared, token) = (challenges.shared.clone(), std::mem::take(token));
                match tokio::runtime::Handle::try_current() {
                    Ok(runtime) => drop(runtime.spawn_blocking(move || shared.remove(&token))),
                    Err(_) => shared.remove(&token),
                }
            }
            Self::Certificate(store, name) => store.remove_challenge(name),
        }
    }
}

/// Serves the certificate that TLS-ALPN-01 wants, until the value goes.
pub(super) fn publish_certificate(store: &Arc<Store>, name: &str, digest: &[u8]) -> Result<Published, String> {
    let certificate = proof(name, digest).map_err(|error| format!("cannot make a challenge's certificate: {error}"))?;
    store.insert_challenge(name, Arc::new(certificate));
    Ok(Published::Certificate(store.clone(), name.to_owned()))
}

fn proof(name: &str, digest: &[u8]) -> Result<CertifiedKey, Box<dyn std::error::Error>> {
    if digest.len() != 32 {
        return Err("the digest is not SHA-256's".into());
    }
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate()?;
    let chain = vec![params.self_signed(&key)?.der().clone()];
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    // Not checked as other certificates are: it has an extension that whoever does not know it must refuse.
    Ok(CertifiedKey::new(chain, provider().key_provider.load_private_key(key)?))
}
