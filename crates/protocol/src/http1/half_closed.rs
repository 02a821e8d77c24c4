//! Clients that have closed their side of a connection while their request runs. Some have only shut down their sending
//! side (`shutdown(SHUT_WR)`) and want the response; most have left. Over TCP, both look alike until something is sent:
//! the kernel of a client that has left then sends a reset.
//!
//! So the request continues and the socket is watched for a reset. If the response takes a while, an HTTP/1.1 client is
//! probed with one informational response (102 Processing, which every such client must accept). Once a response has
//! begun, no probe is possible: if it then pauses, the client counts as gone. That matters for event streams, which
//! nearly always end with a client that leaves during a pause.

use crate::connection::Connection;
use crate::socket::Socket;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

/// Time after which a half-closed client is probed. Most responses come earlier. Not longer, because most of these
/// clients have left, and their requests would fill the queue meanwhile.
const PROBE_AFTER: Duration = Duration::from_millis(50);

/// Interval at which the progress of a response is checked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Number of intervals without progress after which the client counts as gone.
const PAUSES: u32 = 3;

/// Notices for the watching task.
#[derive(Debug, Default)]
struct CloseNotice {
    /// Something was written.
    written: AtomicBool,
    /// The response has begun.
    responding: AtomicBool,
}

/// Watches a socket whose client has closed its side.
pub(super) struct HalfClosed {
    gone: Pin<Box<dyn Future<Output = ()> + Send>>,
    notice: Arc<CloseNotice>,
}

impl HalfClosed {
    /// Begins to watch. The socket is registered a second time, because the first registration stays readable from now
    /// on and reports nothing new.
    pub(super) fn new(socket: &Socket, connection: Arc<Connection>, responding: bool) -> io::Result<Self> {
        connection.state.set_half_closed();
        let socket = socket.registered_again()?;
        let notice = Arc::new(CloseNotice { written: AtomicBool::new(false), responding: AtomicBool::new(responding) });
        let noted = notice.clone();
        let gone = Box::pin(async move {
            tokio::select! { () = socket.reset() => {}, () = wait_and_ask(&connection, &noted) => {} }
        });
        Ok(Self { gone, notice })
    }

    /// Something was written.
    pub(super) fn on_written(&self) {
        self.notice.written.store(true, Relaxed);
    }

    /// Records that a response has begun, or ended.
    pub(super) fn on_response(&self, begun: bool) {
        self.notice.responding.store(begun, Relaxed);
    }

    /// Ready when the client has left.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.gone.as_mut().poll(cx)
    }
}

/// Probes the client once. Returns when a response has paused for too long.
async fn wait_and_ask(connection: &Connection, notice: &CloseNotice) {
    let (mut asked, mut pauses) = (false, 0);
    tokio::time::sleep(PROBE_AFTER).await;
    while pauses < PAUSES {
        if !asked && connection.informational.ask(102) {
            asked = true;
            connection.state.wake();
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        let moves = notice.written.swap(false, Relaxed)
            || connection.state.is_write_blocked()
            || !notice.responding.load(Relaxed);
        pauses = if moves { 0 } else { pauses + 1 };
    }
}
