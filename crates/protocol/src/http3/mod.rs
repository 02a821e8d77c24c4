//! A connection that speaks HTTP/3 (RFC 9114) over QUIC, which `quinn` implements. One task for the connection and one
//! for each of its streams.
//!
//! Reading order: `endpoint` (the UDP socket, and admission), this file (a connection from its handshake to its end),
//! `control` (messages outside of requests), `request` (one request: head, handler, response) with `body`, `respond`
//! and `response`, or `upgraded`. These use `link` (state shared by streams), `streams` (both halves of one), `frames`,
//! `head` and `qpack`.
//!
//! Frames and header blocks are parsed here instead of by the crate `h3`: its released version can be made to buffer
//! frames without limit, to end a body at an empty frame, and to panic when a stream is dropped. CONTRIBUTING.md has
//! details.

mod body;
mod code;
mod connection_ids;
mod control;
mod endpoint;
mod frames;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod head;
mod huffman;
mod link;
mod qpack;
mod request;
mod respond;
mod response;
mod shared_socket;
mod streams;
mod table;
mod upgraded;

pub use connection_ids::Mark;
pub use endpoint::{Config, ConfigError};
pub(crate) use endpoint::{Endpoint, IncomingConnection};
pub use shared_socket::{Predecessor, QuicHandle};

use crate::connection::Connection;
use crate::exchange::{Handler, report_rejected};
use crate::multiplexed::STREAMS;
use code::{Code, Fault};
use control::{Control, UniqueStreams};
use howdah_budget::Share;
use link::Link;
use quinn::{RecvStream, SendStream};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use streams::{Incoming, Outgoing};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use upgraded::UpgradedStream;

/// The largest stream id: a GOAWAY with it announces a shutdown without refusing any request (RFC 9114 5.2).
const ANY_STREAM: u64 = (1 << 62) - 4;

/// Maximum time after the first GOAWAY during which requests are still accepted, as the client may have sent them
/// before it arrived.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Asks a connection to end after its present requests and those on their way.
#[derive(Debug, Default)]
pub(crate) struct ShutdownSignal {
    leave: Notify,
    finish: Notify,
}

impl ShutdownSignal {
    pub(crate) fn now(&self) {
        self.leave.notify_one();
    }

    /// Also ends upgraded streams.
    pub(crate) fn finish(&self) {
        self.finish.notify_one();
    }
}

/// Serves a connection to its end.
pub(crate) async fn serve<H: Handler>(
    handler: Arc<H>,
    connection: Arc<Connection>,
    guest: IncomingConnection,
    leave: &ShutdownSignal,
) -> Result<(), quinn::ConnectionError> {
    connection.state.set_multiplexed();
    let _ = connection.share.set(Share::new(connection.shared.budgets));
    let IncomingConnection { incoming, local, unvalidated } = guest;
    let connecting = incoming.accept()?;
    // A server can always send 0.5-RTT data. Each request in early data is checked on its own.
    let Ok((quic, established)) = connecting.into_0rtt() else { return Ok(()) };
    let link = Arc::new(Link::new(quic, connection, local));
    // However this function ends, the client is notified.
    let _closing = Closing(link.clone());
    let mut established = Box::pin(async move {
        // A failed handshake also ends the connection, so just wait.
        if !established.await {
            pending::<()>().await;
        }
        drop(unvalidated);
    });
    let mut driven =
        StreamTasks { handler, link: link.clone(), requests: JoinSet::new(), others: JoinSet::new(), first_refused: 0 };
    let once = Arc::new(UniqueStreams::default());
    let mut stage = Stage::Open;
    let mut control = Box::pin(Control::open(&link.quic, &link.connection.shared));
    let mut opened = None;
    loop {
        tokio::select! {
            () = &mut established, if !link.is_established() => link.set_established(),
            control = &mut control, if opened.is_none() => match control {
                Ok(control) => opened = Some(control),
                Err(fault) => {
                    link.note(fault);
                    return Ok(());
                }
            },
            stream = link.quic.accept_bi() => driven.request(stream?, matches!(stage, Stage::Last)),
            stream = link.quic.accept_uni() => driven.other(stream?, &once),
            Some(ended) = driven.requests.join_next() => driven.go_on(ended.ok().flatten()),
            Some(_) = driven.others.join_next() => {}
            () = leave.finish.notified() => link.ending.notify_waiters(),
            () = leave.leave.notified(), if matches!(stage, Stage::Open) => {
                // Two GOAWAYs: requests that the client sent before it received the first one are still accepted.
                if let Some(control) = &mut opened {
                    go_away(&link, control, ANY_STREAM).await;
                }
                let farewell = (link.quic.rtt() * 2 + Duration::from_millis(10)).min(DRAIN_TIMEOUT);
                stage = Stage::Farewell(Instant::now() + farewell);
            }
            () = until(&stage) => {
                if let Some(control) = &mut opened {
                    go_away(&link, control, driven.first_refused).await;
                }
                stage = Stage::Last;
            }
        }
        if matches!(stage, Stage::Last) && driven.requests.is_empty() {
            return Ok(());
        }
    }
}

/// Progress of a connection's end.
enum Stage {
    Open,
    /// The first GOAWAY was sent. Until this time, the client may not have received it.
    Farewell(Instant),
    /// Further requests are refused.
    Last,
}

/// Ready when the farewell is over.
async fn until(stage: &Stage) {
    match stage {
        Stage::Farewell(end) => tokio::time::sleep_until(*end).await,
        _ => pending().await,
    }
}

async fn go_away(link: &Link, control: &mut Control, first: u64) {
    // A client whose window does not even have room for a GOAWAY does not get one.
    if let Ok(Err(fault)) = tokio::time::timeout(DRAIN_TIMEOUT, control.go_away(first)).await {
        link.note(fault);
    }
}

/// The streams of a connection. They end with it.
struct StreamTasks<H> {
    handler: Arc<H>,
    link: Arc<Link>,
    requests: JoinSet<Option<UpgradedStream>>,
    others: JoinSet<()>,
    /// The first stream that would be refused: the one after the last accepted stream.
    first_refused: u64,
}

impl<H: Handler> StreamTasks<H> {
    fn request(&mut self, (send, receive): (SendStream, RecvStream), refused: bool) {
        let number = u64::from(quinn::VarInt::from(receive.id()));
        let (mut incoming, mut outgoing) = (Incoming::new(receive), Outgoing::new(send));
        // quinn enforces the stream limit, but tasks of ended streams may still be finishing.
        if refused || self.requests.len() >= 2 * STREAMS as usize {
            incoming.stop(Code::REQUEST_REJECTED);
            outgoing.reset(Code::REQUEST_REJECTED);
            return;
        }
        self.first_refused = self.first_refused.max(number + 4);
        self.requests.spawn(request::serve(self.handler.clone(), self.link.clone(), incoming, outgoing));
    }

    /// Runs the rest of a stream that was upgraded.
    fn go_on(&mut self, upgraded: Option<UpgradedStream>) {
        if let Some(upgraded) = upgraded {
            self.requests.spawn(async move {
                upgraded.await;
                None
            });
        }
    }

    fn other(&mut self, receive: RecvStream, once: &Arc<UniqueStreams>) {
        let (link, once, handler) = (self.link.clone(), once.clone(), self.handler.clone());
        self.others.spawn(async move {
            if let Err(fault) = control::listen(Incoming::new(receive), &once).await {
                if let Some((rejection, status)) = fault.rejection() {
                    report_rejected(&*handler, &link.as_seen_by(&*handler), rejection, status, b"");
                }
                if fault != Fault::Gone {
                    tracing::debug!(target: "howdah::conn", %fault, "connection ended");
                }
                link.note(fault);
            }
        });
    }
}

/// Closes the connection when dropped.
struct Closing(Arc<Link>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close(Code::NO_ERROR, "");
    }
}
