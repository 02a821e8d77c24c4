//! A stream that leaves HTTP/3 for another protocol (RFC 9220): its handler, and its DATA frames for the upgraded
//! protocol.
//!
//! For timeouts and the shutdown it counts as a running request, as in HTTP/1. If the client does not read, the stream
//! is reset, as with a response's body.

use super::body::Parts;
use super::code::{Code, Fault};
use super::frames::{Frames, kind, put_frame};
use super::head;
use super::link::Link;
use super::response::{CANCELLED, send, write};
use super::streams::{Incoming, Outgoing};
use crate::body::{Body, Kind};
use crate::connection::{Connection, InFlight};
use crate::exchange::{Handler, Head, Request, RequestBody, Response};
use crate::multiplexed::{ClientTimeout, complete};
use crate::state::Verdict;
use crate::upgrade::Upgraded;
use crate::upgraded_connection::{self, SentBytes};
use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode};
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum length of a frame.
const MAX_FRAME: usize = 16 << 10;

/// The rest of a stream that was upgraded.
pub(super) type UpgradedStream = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves an extended CONNECT. Any 2xx status tells the client that the protocol has changed, so a response without an
/// upgrade must not reach it: the stream is reset.
pub(super) async fn serve<H: Handler>(
    handler: &H,
    link: &Arc<Link>,
    head: Box<Head>,
    frames: Frames<Incoming>,
    mut out: Outgoing,
) -> Result<Option<UpgradedStream>, Fault> {
    let in_flight = InFlight::begin(&link.connection);
    link.note_session();
    let mut stopped = Box::pin(out.stopped());
    let request = Request::arrived(head, RequestBody::none(), None, link.as_seen_by(handler));
    let response = {
        let mut handling = pin!(handler.handle(request));
        poll_fn(|cx| match handling.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(Ok(response)),
            Poll::Pending => stopped.as_mut().poll(cx).map(|()| Err(CANCELLED)),
        })
        .await
    };
    let response = response?;
    let status = response.status();
    if status == StatusCode::SWITCHING_PROTOCOLS || status.is_success() {
        let link = link.clone();
        return Ok(Some(Box::pin(async move {
            let _in_flight = in_flight;
            match upgrade(&link, response, frames, out).await {
                Ok(()) => served(&link, stopped).await,
                Err(fault) => link.note_end(Err(fault)),
            }
        })));
    }
    send(link, response, &Method::GET, [Bytes::new(), Bytes::new()], &mut out, stopped.as_mut()).await?;
    out.finish();
    served(link, stopped).await;
    Ok(None)
}

/// Keeps the connection open until the client has everything, for the write timeout at most.
async fn served(link: &Link, stopped: impl Future<Output = ()>) {
    link.served();
    let timeout = Duration::from_millis(link.connection.timeouts().write);
    let _ = tokio::time::timeout(timeout, stopped).await;
}

/// Sends the head, and runs the upgraded protocol to its end.
async fn upgrade(
    link: &Arc<Link>,
    response: Response,
    frames: Frames<Incoming>,
    mut out: Outgoing,
) -> Result<(), Fault> {
    let (mut head, body) = response.into_parts();
    let (kind, delivery) = body.open();
    if !matches!(kind, Kind::Upgrade(_)) {
        return Err(Fault::Stream(Code::INTERNAL_ERROR, "the response to an extended CONNECT has no upgrade"));
    }
    complete(&mut head.headers, &Method::GET, StatusCode::NO_CONTENT, &Body::empty());
    let mut first = BytesMut::new();
    head::put_response(&mut first, StatusCode::OK, &head.headers);
    write(&mut out, &mut [first.freeze()], &mut ClientTimeout::new(&*link.connection)).await?;
    let mut ending = pin!(link.ending.notified());
    // Registers now, so that no notification is missed.
    ending.as_mut().enable();
    let client = |sent| -> Box<dyn Upgraded> { Box::new(Client::new(link, frames, out, sent)) };
    upgraded_connection::run(kind, delivery, &link.connection.shared.metrics, client, ending).await;
    Ok(())
}

/// The stream, as the upgraded protocol sees it.
struct Client {
    link: Arc<Link>,
    timeout: ClientTimeout<Arc<Connection>>,
    incoming: Parts<Incoming>,
    /// Received data that is unread.
    ahead: Bytes,
    outgoing: Outgoing,
    /// A frame that quinn has not taken whole: its header and its payload.
    frame: [Bytes; 2],
    ended: bool,
    sent: SentBytes,
}

impl Client {
    fn new(link: &Arc<Link>, frames: Frames<Incoming>, outgoing: Outgoing, sent: SentBytes) -> Self {
        let timeout = ClientTimeout::new(link.connection.clone());
        let incoming = Parts::new(frames, None);
        let (ahead, frame) = (Bytes::new(), [Bytes::new(), Bytes::new()]);
        Self { link: link.clone(), timeout, incoming, ahead, outgoing, frame, ended: false, sent }
    }

    /// Passes the pending frame to quinn.
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.outgoing.poll_write(cx, &mut self.frame) {
                Poll::Ready(Ok(0)) => {
                    // Gives the memory back.
                    self.frame = [Bytes::new(), Bytes::new()];
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Ok(bytes)) => self.timeout.took(bytes),
                Poll::Ready(Err(fault)) => return Poll::Ready(Err(self.broken(fault))),
                Poll::Pending => return self.timeout.poll_end(cx).map(|()| Err(io::ErrorKind::TimedOut.into())),
            }
        }
    }

    fn broken(&self, fault: Fault) -> io::Error {
        self.link.note(fault);
        io::Error::new(io::ErrorKind::ConnectionReset, fault.to_string())
    }
}

impl Drop for Client {
    /// A stream dropped before its end is reset, like a connection would be (RFC 9220 3).
    fn drop(&mut self) {
        if !self.ended {
            self.outgoing.reset(Code::REQUEST_CANCELLED);
        }
    }
}

impl Upgraded for Client {
    fn is_to_end(&self) -> bool {
        self.link.connection.state.verdict() >= Verdict::Finish
    }
}

impl AsyncRead for Client {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.ahead.is_empty() {
            match ready!(this.incoming.poll(cx)) {
                Ok(Some(data)) => this.ahead = data,
                Ok(None) => return Poll::Ready(Ok(())),
                Err(fault) => return Poll::Ready(Err(this.broken(fault))),
            }
        }
        upgraded_connection::read_ahead(&mut this.ahead, buf);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Client {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_frame(cx))?;
        let bytes = &bytes[..bytes.len().min(MAX_FRAME)];
        let mut charge = this.link.connection.charge();
        if !charge.grow(bytes.len() as u64) {
            return Poll::Ready(Err(io::Error::other("no room for sent data in `http.memory`")));
        }
        let mut header = BytesMut::with_capacity(16);
        put_frame(&mut header, kind::DATA, bytes.len());
        this.frame = [header.freeze(), charge.cover(Bytes::copy_from_slice(bytes))];
        this.sent.fetch_add(bytes.len() as u64, Relaxed);
        // The next write or flush passes the rest to quinn.
        if let Poll::Ready(Err(error)) = this.poll_frame(cx) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_frame(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_frame(cx))?;
        if !this.ended {
            this.ended = true;
            this.outgoing.finish();
        }
        Poll::Ready(Ok(()))
    }
}
