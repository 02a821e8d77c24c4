//! Clients that have closed their side of a connection while a request of theirs runs. Some only say that they send
//! nothing more (`shutdown(SHUT_WR)`) and want their answer; most have left. Over TCP both look alike until something is
//! sent: then the kernel of one that has left answers with a reset.
//!
//! So the request goes on, the socket is watched for a reset, and when the answer lets wait for itself, one interim answer
//! is sent to find out (102 Processing, which HTTP/1.1 lets every client skip). An answer that has begun and then pauses
//! leaves nothing to ask with: there the client counts as gone. Event streams are where that matters: every one ends with
//! a client that leaves in a pause.

use super::Conn;
use super::io::Socket;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// How long a half-closed client waits before it is asked whether it is still there: the usual answer comes earlier. Not
/// longer, because most have left, and the calls of a crowd that has left would fill the queue meanwhile.
const ASK_AFTER: Duration = Duration::from_millis(50);

/// How often it is looked whether an answer moves on.
const LOOK: Duration = Duration::from_secs(1);

/// The number of such times that an answer may pause.
const PAUSES: u32 = 3;

/// Watches a socket whose client has closed its side.
pub(super) struct HalfClosed {
    /// `None` once it has ended: whoever reads may ask again.
    gone: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    written: Arc<AtomicBool>,
}

impl std::fmt::Debug for HalfClosed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HalfClosed")
    }
}

impl HalfClosed {
    /// Begins to watch. The socket is registered a second time: the first registration is ready to read for ever now, and
    /// would tell nothing more.
    pub(super) fn new(socket: &Socket, conn: Arc<Conn>) -> io::Result<Self> {
        conn.state.set_half_closed();
        let socket = match socket {
            Socket::Tcp(stream) => Socket::Tcp(TcpStream::from_std(stream.as_fd().try_clone_to_owned()?.into())?),
            Socket::Unix(stream) => Socket::Unix(UnixStream::from_std(stream.as_fd().try_clone_to_owned()?.into())?),
        };
        let written = Arc::new(AtomicBool::new(false));
        let noted = written.clone();
        let gone: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            let reset = async {
                match &socket {
                    Socket::Tcp(stream) => stream.ready(Interest::ERROR).await,
                    Socket::Unix(stream) => stream.ready(Interest::ERROR).await,
                }
            };
            tokio::select! { _ = reset => {}, () = wait_and_ask(&conn, &noted) => {} }
        });
        Ok(Self { gone: Some(gone), written })
    }

    /// Something was written.
    pub(super) fn on_written(&self) {
        self.written.store(true, Relaxed);
    }

    /// Ready when the client has left.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(gone) = &mut self.gone else { return Poll::Ready(()) };
        ready!(gone.as_mut().poll(cx));
        self.gone = None;
        Poll::Ready(())
    }
}

/// Asks a client that waits whether it is there; ends when an answer has paused for too long.
async fn wait_and_ask(conn: &Conn, written: &AtomicBool) {
    let (mut asked, mut pauses) = (false, 0);
    tokio::time::sleep(ASK_AFTER).await;
    while pauses < PAUSES {
        if !asked && conn.interim.ask(102) {
            asked = true;
            conn.state.wake();
        }
        tokio::time::sleep(LOOK).await;
        let moves = written.swap(false, Relaxed) || conn.state.is_write_blocked() || !conn.state.is_answering();
        pauses = if moves { 0 } else { pauses + 1 };
    }
}
