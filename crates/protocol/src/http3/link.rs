//! State of a QUIC connection that its streams share.

use super::code::{Code, Fault};
use crate::connection::Connection;
use crate::exchange::Handler;
use crate::peer::Peer;
use howdah_tls::{ClientCertificate, Session};
use quinn::crypto::rustls::HandshakeData;
use rustls::pki_types::CertificateDer;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Minimum and maximum of the send window: bytes passed to quinn that the client has not acknowledged. In between, it
/// follows the congestion window. More would not be faster, and in QUIC it is this process's memory.
pub(super) const MIN_WINDOW: u64 = 128 << 10;
const MAX_WINDOW: u64 = 8 << 20;

/// Number of requests that a client may cancel per connection; beyond it, at most this multiple of the requests served.
const CANCELLED: u32 = 500;
const CANCELLED_OF_OTHERS: u32 = 4;

/// State shared by the streams of a connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) quic: quinn::Connection,
    /// The connection's state for timeouts and its I/O thread.
    pub(super) connection: Arc<Connection>,
    /// The client's address at the start, and the server's address.
    remote: SocketAddr,
    local: SocketAddr,
    /// The client's present address, if it has migrated (RFC 9000 9).
    moved: Mutex<Option<(SocketAddr, Arc<Connection>)>>,
    /// Notifies upgraded streams that `Upgraded::is_to_end` has changed.
    pub(super) ending: Notify,
    established: AtomicBool,
    window: AtomicU64,
    served: AtomicU32,
    cancelled: AtomicU32,
}

impl Link {
    pub(super) fn new(quic: quinn::Connection, connection: Arc<Connection>, local: SocketAddr) -> Self {
        Self {
            remote: quic.remote_address(),
            quic,
            connection,
            local,
            moved: Mutex::default(),
            ending: Notify::new(),
            established: AtomicBool::new(false),
            window: AtomicU64::new(MIN_WINDOW),
            served: AtomicU32::new(0),
            cancelled: AtomicU32::new(0),
        }
    }

    /// The handshake is complete: replays are impossible.
    pub(super) fn set_established(&self) {
        self.established.store(true, Relaxed);
    }

    pub(super) fn is_established(&self) -> bool {
        self.established.load(Relaxed)
    }

    /// The connection with the client's present address.
    pub(super) fn as_seen_by(&self, handler: &impl Handler) -> Arc<Connection> {
        let remote = self.quic.remote_address();
        if remote == self.remote {
            return self.connection.clone();
        }
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        match &*moved {
            Some((address, connection)) if *address == remote => connection.clone(),
            _ => {
                let peer = Peer::quic(remote, self.local, |peer| handler.trusts(peer));
                let connection = Arc::new(self.connection.moved(peer));
                *moved = Some((remote, connection.clone()));
                connection
            }
        }
    }

    /// Records the TLS session once the client's certificate is known, before the first request is handled. quinn does
    /// not expose the cipher.
    pub(super) fn note_session(&self) {
        self.connection.session.get_or_init(|| {
            let said = self.quic.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
            let chain = self.quic.peer_identity().and_then(|it| it.downcast::<Vec<CertificateDer<'static>>>().ok());
            Box::new(Session {
                server_name: said.and_then(|data| data.server_name).map(|name| name.to_ascii_lowercase().into()),
                version: "TLSv1.3",
                cipher: "",
                cipher_bits: "",
                h2: false,
                resumed: false,
                client: chain.and_then(|chain| ClientCertificate::of(&chain)).map(Box::new),
            })
        });
    }

    /// Called before a part of a body is sent: sets the send window to twice the congestion window, or to the minimum
    /// while memory is scarce. Short parts and small differences change nothing.
    pub(super) fn set_window(&self, part: usize) {
        const WORTH_ASKING: usize = 16 << 10;
        if part < WORTH_ASKING {
            return;
        }
        let wanted = match self.connection.shared.budgets.pressure() {
            0 => self.quic.stats().path.cwnd.saturating_mul(2).clamp(MIN_WINDOW, MAX_WINDOW),
            _ => MIN_WINDOW,
        };
        let window = self.window.load(Relaxed);
        if wanted > window + window / 4 || wanted < window / 2 {
            self.window.store(wanted, Relaxed);
            self.quic.set_send_window(wanted);
        }
    }

    /// A request has its response.
    pub(super) fn served(&self) {
        self.served.fetch_add(1, Relaxed);
    }

    /// Handles the end of a stream.
    pub(super) fn note_end(&self, result: Result<(), Fault>) {
        if let Err(fault) = result {
            tracing::debug!(target: "howdah::conn", %fault, "request or response cut off");
            self.note(fault);
        }
    }

    /// Handles a fault of one of the streams: some faults end the connection.
    pub(super) fn note(&self, fault: Fault) {
        match fault {
            Fault::Connection(code, why) => self.close(code, why),
            Fault::Stream(Code::REQUEST_CANCELLED, _) => {
                let cancelled = self.cancelled.fetch_add(1, Relaxed);
                let served = self.served.load(Relaxed);
                if cancelled > CANCELLED && cancelled / CANCELLED_OF_OTHERS > served {
                    self.close(Code::EXCESSIVE_LOAD, "too many requests are cancelled");
                }
            }
            Fault::Stream(..) | Fault::Gone => {}
        }
    }

    pub(super) fn close(&self, code: Code, why: &str) {
        self.quic.close(code.into(), why.as_bytes());
    }
}
