//! Responses to ACME challenges: a text under a path of the plain HTTP server (HTTP-01, RFC 8555 section 8.3), or a
//! certificate for clients whose only protocol is `acme-tls/1` (TLS-ALPN-01, RFC 8737).

use crate::provider::provider;
use crate::store::Store;
use bytes::Bytes;
use howdah_store::Storage;
use parking_lot::RwLock;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::sign::CertifiedKey;
use rustls_pki_types::PrivateKeyDer;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::spawn_blocking;

/// Maximum length of a token; usual tokens have some forty characters of base64url.
const MAX_TOKEN_LEN: usize = 128;
/// Minimum interval between reads of the announced tokens, however many clients request one.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Age at which a token is removed: a killed server has left it behind.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// The tokens that an authority may currently request.
#[derive(Debug)]
pub struct Challenges {
    tokens: RwLock<HashMap<Box<str>, Bytes>>,
    /// Storage in which servers share their tokens: the authority may connect to any of the servers.
    shared: Storage,
    announced: tokio::sync::Mutex<Announced>,
}

/// The tokens of all servers at the last poll.
#[derive(Debug, Default)]
struct Announced {
    began: Option<Instant>,
    tokens: HashSet<String>,
}

impl Challenges {
    pub(super) fn new(shared: Storage) -> Arc<Self> {
        Arc::new(Self { tokens: RwLock::default(), shared, announced: tokio::sync::Mutex::default() })
    }

    /// The response for one of this server's tokens.
    pub fn lookup(&self, token: &str) -> Option<Bytes> {
        self.tokens.read().get(token).cloned()
    }

    /// The response for a token of any server with the same storage. One poll of the announced names serves all
    /// concurrent requests, so that made-up tokens do not delay real ones.
    pub async fn find(&self, token: &str) -> Option<Bytes> {
        if !is_token(token) {
            return None;
        }
        if let Some(found) = self.lookup(token) {
            return Some(found);
        }
        if !self.is_announced(token, Instant::now()).await {
            return None;
        }
        let (shared, token) = (self.shared.clone(), token.to_owned());
        let read = spawn_blocking(move || shared.read(&token)).await;
        read.ok()?.ok()?.map(Bytes::from)
    }

    /// Uses a poll that began at `asked` or later, because a token may have been announced since the last poll.
    async fn is_announced(&self, token: &str, asked: Instant) -> bool {
        let mut announced = self.announced.lock().await;
        if announced.began.is_none_or(|began| began < asked) {
            if let Some(began) = announced.began {
                tokio::time::sleep_until((began + POLL_INTERVAL).into()).await;
            }
            let (shared, began) = (self.shared.clone(), Instant::now());
            let Ok(Ok(tokens)) = spawn_blocking(move || shared.announced()).await else { return false };
            *announced = Announced { began: Some(began), tokens };
        }
        announced.tokens.contains(token)
    }

    /// Serves the response for a token until the returned value is dropped.
    pub(super) async fn publish_token(self: &Arc<Self>, token: &str, content: &str) -> Result<Published, String> {
        if !is_token(token) {
            return Err("the authority's token is invalid".to_owned());
        }
        let (shared, name, text) = (self.shared.clone(), token.to_owned(), content.to_owned());
        let written = spawn_blocking(move || shared.announce(&name, text.as_bytes())).await;
        let written = written.map_err(|_| "the server is stopping".to_owned())?;
        written.map_err(|error| format!("cannot write a challenge: {error}"))?;
        self.tokens.write().insert(token.into(), Bytes::copy_from_slice(content.as_bytes()));
        Ok(Published::Token(self.clone(), token.to_owned()))
    }

    /// Removes stale tokens of killed servers.
    pub(super) fn sweep(&self) {
        // Brokers expire tokens themselves.
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

/// `true` for base64url, which is also safe as a file name.
fn is_token(token: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=MAX_TOKEN_LEN).contains(&token.len()) && token.bytes().all(fits)
}

/// A published challenge response. Dropping it withdraws the response.
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
                    Ok(runtime) => drop(runtime.spawn_blocking(move || shared.withdraw(&token))),
                    Err(_) => shared.withdraw(&token),
                }
            }
            Self::Certificate(store, name) => store.remove_challenge(name),
        }
    }
}

/// Serves the TLS-ALPN-01 certificate until the returned value is dropped.
pub(super) fn publish_certificate(store: &Arc<Store>, name: &str, digest: &[u8]) -> Result<Published, String> {
    let certificate =
        proof(name, digest).map_err(|error| format!("cannot create a challenge's certificate: {error}"))?;
    store.insert_challenge(name, Arc::new(certificate));
    Ok(Published::Certificate(store.clone(), name.to_owned()))
}

fn proof(name: &str, digest: &[u8]) -> Result<CertifiedKey, Box<dyn std::error::Error>> {
    if digest.len() != 32 {
        return Err("the digest is not a SHA-256 digest".into());
    }
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate()?;
    let chain = vec![params.self_signed(&key)?.der().clone()];
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    // Not checked like other certificates: a critical extension makes clients that do not know it refuse the
    // certificate.
    Ok(CertifiedKey::new(chain, provider().key_provider.load_private_key(key)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_store::StateDir;

    #[test]
    fn invented_tokens_do_not_delay_challenges_of_another_server() {
        let dir = tempfile::tempdir().unwrap();
        let storage = || Storage::Directory(StateDir::open(dir.path()).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (ours, theirs) = (Challenges::new(storage()), Challenges::new(storage()));
            let made_up = |number: usize| {
                let ours = ours.clone();
                tokio::spawn(async move { ours.find(&format!("made-up-{number}")).await })
            };
            let flood: Vec<_> = (0..500).map(made_up).collect();
            tokio::task::yield_now().await;
            // The token is announced after the flood's first poll has begun.
            let published = theirs.publish_token("token", "proof").await.ok().unwrap();
            let more: Vec<_> = (500..1000).map(made_up).collect();
            assert_eq!(ours.find("token").await.as_deref(), Some(&b"proof"[..]));
            for asked in flood.into_iter().chain(more) {
                assert_eq!(asked.await.unwrap(), None);
            }
            drop(published);
        });
    }
}
