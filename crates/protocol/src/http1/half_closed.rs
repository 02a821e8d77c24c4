//! Clients that have closed their side of a connection while a request of theirs runs. Some only say that they send
//! nothing more (`shutdown(SHUT_WR)`) and want their response; most have left. Over TCP both look alike until something is
//! sent: then the kernel of one that has left sends a reset.
//!
//! So the request goes on, the socket is watched for a reset, and when the response lets wait for itself, one informational
//! one is sent to find out (102 Processing, which HTTP/1.1 lets every client skip). A response that has begun and then
//! pauses leaves nothing to ask with: there the client counts as gone. Event streams are where that matters: every one ends
//! with a client that leaves in a pause.

use crate::connection::Connection;
use crate::socket::Socket;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

/// Time after which a half-closed client is probed: the usual response comes earlier. Not longer, because most have
/// left, and the requests of a crowd that has left would fill the queue meanwhile.
const PROBE_AFTER: Duration = Duration::from_millis(50);

/// Interval at which the progress of a response is checked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The number of such times that a response may pause.
const PAUSES: u32 = 3;

/// Notices for the watching task.
#[derive(Debug, Default)]
struct Told {
    /// Something was written.
    written: AtomicBool,
    /// The response has begun.
    responding: AtomicBool,
}

/// Watches a socket whose client has closed its side.
pub(super) struct HalfClosed {
    gone: Pin<Box<dyn Future<Output = ()> + Send>>,
    told: Arc<Told>,
}

impl HalfClosed {
    /// Begins to watch. The socket is registered a second time: the first registration is ready to read for ever now, and
    /// would tell nothing more.
    pub(super) fn new(socket: &Socket, connection: Arc<Connection>, responding: bool) -> io::Result<Self> {
        connection.state.set_half_closed();
        let socket = socket.registered_again()?;
        let told = Arc::new(Told { written: AtomicBool::new(false), responding: AtomicBool::new(responding) });
        let noted = told.clone();
        let gone = Box::pin(async move {
            tokio::select! { () = socket.reset() => {}, () = wait_and_ask(&connection, &noted) => {} }
        });
        Ok(Self { gone, told })
    }

    /// Something was written.
    pub(super) fn on_written(&self) {
        self.told.written.store(true, Relaxed);
    }

    /// Notes whether a response has begun.
    pub(super) fn on_response(&self, begun: bool) {
        self.told.responding.store(begun, Relaxed);
    }

    /// Ready when the client has left.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.gone.as_mut().poll(cx)
    }
}

/// Asks a client that waits whether it is there; ends when a response has paused for too long.
async fn wait_and_ask(connection: &Connection, told: &Told) {
    let (mut asked, mut pauses) = (false, 0);
    tokio::time::sleep(PROBE_AFTER).await;
    while pauses < PAUSES {
        if !asked && connection.informational.ask(102) {
            asked = true;
            connection.state.wake();
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        let moves =
            told.written.swap(false, Relaxed) || connection.state.is_write_blocked() || !told.responding.load(Relaxed);
        pauses = if moves { 0 } else { pauses + 1 };
    }
}
