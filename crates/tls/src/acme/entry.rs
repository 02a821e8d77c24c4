//! The manager's state of one name: its certificate, its next task, its waiting clients.

use howdah_store::Version;
use rustls_pki_types::CertificateDer;
use std::time::SystemTime;
use tokio::sync::oneshot;

/// State of one name.
pub(super) struct Entry {
    pub(super) certificate: Option<Served>,
    /// Time of the next task; the name is in `due` at that time.
    pub(super) next: Option<SystemTime>,
    pub(super) working: bool,
    pub(super) failures: u32,
    pub(super) error: Option<String>,
    pub(super) on_demand: bool,
    /// The client whose handshake caused the check of this name.
    pub(super) asker: Option<u128>,
    pub(super) waiting: Vec<oneshot::Sender<bool>>,
}

/// A certificate that the store serves.
pub(super) struct Served {
    pub(super) leaf: CertificateDer<'static>,
    pub(super) from: SystemTime,
    pub(super) until: SystemTime,
    pub(super) version: Option<Version>,
    pub(super) renew_at: SystemTime,
    /// Time of the next renewal query.
    pub(super) ask_at: Option<SystemTime>,
}

impl Entry {
    pub(super) fn new(on_demand: bool) -> Self {
        let (certificate, next, error, asker) = (None, None, None, None);
        Self { certificate, next, working: false, failures: 0, error, on_demand, asker, waiting: Vec::new() }
    }

    /// `true` while a handshake's request is being worked on. Names whose orders failed wait for their next attempt and
    /// do not count.
    pub(super) const fn is_demanded(&self) -> bool {
        self.on_demand && self.working && self.certificate.is_none()
    }
}

impl Served {
    /// Time of the certificate's next task.
    pub(super) fn next(&self) -> SystemTime {
        self.ask_at.map_or(self.renew_at, |ask_at| ask_at.min(self.renew_at))
    }
}
