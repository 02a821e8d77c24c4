//! Requests from handshakes for certificates that are not in the store.

use crate::names;
use crate::store::Store;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of handshakes that wait for the manager.
const MAX_WAITING: usize = 1024;

/// Requests certificates for handshakes.
#[derive(Debug, Clone)]
pub struct Demand {
    to: mpsc::Sender<CertificateRequest>,
    store: Arc<Store>,
}

#[derive(Debug)]
pub(super) struct CertificateRequest {
    pub(super) name: String,
    pub(super) client: u128,
    pub(super) found: oneshot::Sender<bool>,
}

impl Demand {
    pub(super) fn new(store: Arc<Store>) -> (Self, mpsc::Receiver<CertificateRequest>) {
        let (to, wanted) = mpsc::channel(MAX_WAITING);
        (Self { to, store }, wanted)
    }

    /// `true` if the store has no certificate for this name.
    pub fn lacks(&self, name: &str) -> bool {
        !self.store.has(name)
    }

    /// Obtains a certificate for this name if possible; returns `true` if the store has one now. Takes as long as an
    /// order, so the caller must set a timeout. `client` identifies the client for its separate limit.
    pub async fn wanted(&self, name: &str, client: u128) -> bool {
        let Some(name) = names::of_client(name) else { return false };
        let (found, response) = oneshot::channel();
        self.to.try_send(CertificateRequest { name, client, found }).is_ok() && response.await.unwrap_or(false)
    }
}
