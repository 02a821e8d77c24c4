//! A handshake's way to ask for a certificate that the store does not have.

use crate::names;
use crate::store::Store;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Handshakes that wait for the manager.
const MAX_WAITING: usize = 1024;

/// Requests certificates for handshakes.
#[derive(Debug, Clone)]
pub struct Demand {
    to: mpsc::Sender<Wanted>,
    store: Arc<Store>,
}

#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) client: u128,
    pub(super) found: oneshot::Sender<bool>,
}

impl Demand {
    pub(super) fn new(store: Arc<Store>) -> (Self, mpsc::Receiver<Wanted>) {
        let (to, wanted) = mpsc::channel(MAX_WAITING);
        (Self { to, store }, wanted)
    }

    /// `true` if there is nothing for this name.
    #[must_use]
    pub fn lacks(&self, name: &str) -> bool {
        !self.store.has(name)
    }

    /// Obtains a certificate for this name if possible; returns `true` if the store has one now. Takes as long as an
    /// order: the caller must limit that. `client` identifies a client: each has a separate limit.
    pub async fn wanted(&self, name: &str, client: u128) -> bool {
        let Some(name) = names::of_client(name) else { return false };
        let (found, response) = oneshot::channel();
        self.to.try_send(Wanted { name, client, found }).is_ok() && response.await.unwrap_or(false)
    }
}
