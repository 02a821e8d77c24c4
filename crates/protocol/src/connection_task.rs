//! The task of one connection: detects the protocol, runs its driver, and acts on the I/O thread's verdicts.

use crate::certificate_wanted;
use crate::connection::Connection;
use crate::exchange::{Handler, report_rejected};
use crate::handshake::{Handshake, HandshakeResult};
use crate::http1::UpgradedTask;
use crate::rejection::Rejection;
use crate::socket::Socket;
use crate::state::{State, Verdict};
use crate::{fastcgi, http1, http2, http3};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use rustls::ServerConfig;
use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::ReadBuf;

/// First bytes from a client that uses HTTP/2 with prior knowledge.
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

thread_local! {
    /// Bytes read to detect the protocol, before they move to the connection's memory.
    static FIRST: RefCell<Box<[u8]>> = RefCell::new(vec![0; 8192].into());
}

/// Serves a connection to its end, or until it is upgraded.
pub(crate) async fn drive<H: Handler>(
    handler: Arc<H>,
    connection: Arc<Connection>,
    mut socket: Socket,
) -> Option<UpgradedTask> {
    let state = &connection.state;
    let mut ahead = BytesMut::new();
    let mut first = true;
    // A shutdown changes nothing here: a request that has been sent is still answered (see `IoThread::check`).
    let sniffed = supervise(state, |cx, verdict| {
        match speaks_h2(&mut socket, &connection, &mut ahead, std::mem::take(&mut first), cx) {
            Poll::Pending if gives_up(verdict, || socket.has_unread()) => Poll::Ready(None),
            polled => polled,
        }
    });
    let is_h2 = sniffed.await.flatten()?;
    serve(handler, connection, socket, ahead, is_h2).await
}

/// Serves a connection that was upgraded.
pub(crate) async fn drive_upgraded(connection: Arc<Connection>, mut upgraded: UpgradedTask) {
    log_error(supervise(&connection.state, |cx, _| upgraded.as_mut().poll(cx)).await);
}

/// Like `drive`, over TLS, where the handshake decides the protocol.
pub(crate) async fn drive_tls<H: Handler>(
    handler: Arc<H>,
    connection: Arc<Connection>,
    socket: Socket,
    tls: Arc<ServerConfig>,
) -> Option<UpgradedTask> {
    let Socket::Tcp(stream) = socket else { return None };
    let mut ahead = Bytes::new();
    if let Some(demand) = connection.shared.demand.get() {
        let mut waiting = pin!(certificate_wanted::wait(&stream, connection.peer.addr, demand));
        let waited = supervise(&connection.state, |cx, verdict| {
            if verdict > Verdict::Finish { Poll::Ready(None) } else { waiting.as_mut().poll(cx).map(Some) }
        });
        match waited.await.flatten() {
            Some(sent) => ahead = sent,
            None => return None,
        }
    }
    let mut handshake = match Handshake::new(stream, ahead, tls, &connection) {
        Ok(handshake) => handshake,
        Err(error) => {
            tracing::error!(target: "howdah::tls", %error, "cannot start a TLS handshake: closing the connection");
            return None;
        }
    };
    let state = &connection.state;
    let shaking = supervise(state, |cx, verdict| match handshake.poll(cx, &connection) {
        Poll::Pending if gives_up(verdict, || handshake.has_unread()) => Poll::Ready(None),
        polled => polled.map(Some),
    });
    let shaken = shaking.await.flatten()?;
    match handshake.finish(shaken, &connection) {
        HandshakeResult::Done(socket, is_h2) => serve(handler, connection, socket, BytesMut::new(), is_h2).await,
        HandshakeResult::Refused { stream, is_http } => {
            if is_http {
                report_rejected(&*handler, &connection, Rejection::HttpToTls, StatusCode::BAD_REQUEST, b"");
            }
            let mut closing = pin!(http1::close_refused(&connection, Socket::Tcp(stream)));
            supervise(state, |cx, _| closing.as_mut().poll(cx)).await;
            None
        }
        HandshakeResult::Over => None,
    }
}

/// `true` if a connection without a request must be closed. An idle one is kept if bytes have just arrived.
fn gives_up(verdict: Verdict, has_unread: impl FnOnce() -> bool) -> bool {
    verdict > Verdict::Finish && !(verdict == Verdict::Idle && has_unread())
}

/// Serves a connection whose protocol is known.
async fn serve<H: Handler>(
    handler: Arc<H>,
    connection: Arc<Connection>,
    socket: Socket,
    ahead: BytesMut,
    is_h2: bool,
) -> Option<UpgradedTask> {
    let state = &connection.state;
    if is_h2 {
        let mut driven = http2::ConnectionDriver::new(handler.clone(), connection.clone(), socket, ahead.freeze());
        let mut finishing = false;
        let serving = supervise(state, |cx, verdict| {
            if !finishing && matches!(verdict, Verdict::LastResponse | Verdict::Finish | Verdict::Idle) {
                finishing = true;
                driven.finish();
            }
            driven.poll(cx)
        });
        let ended = serving.await;
        // A library error means that h2 detected a protocol violation, as opposed to an error that the client reported.
        if let Some(Err(error)) = &ended
            && error.is_library()
            && error.reason() != Some(h2::Reason::NO_ERROR)
        {
            report_rejected(&*handler, &connection, Rejection::Http2, StatusCode::BAD_REQUEST, b"");
        }
        log_error(ended);
        None
    } else {
        let mut serving = pin!(http1::serve(&*handler, &connection, socket, ahead));
        log_error(supervise(state, |cx, _| serving.as_mut().poll(cx)).await).flatten()
    }
}

/// Logs the error with which a connection has ended. Returns its result otherwise.
fn log_error<T>(ended: Option<Result<T, impl std::fmt::Display>>) -> Option<T> {
    let ended = ended?;
    ended.inspect_err(|error| tracing::debug!(target: "howdah::conn", %error, "connection ended")).ok()
}

/// Serves a connection of a web server that speaks FastCGI.
pub(crate) async fn drive_fastcgi<H: Handler>(handler: Arc<H>, connection: Arc<Connection>, socket: Socket) {
    if !fastcgi::may_connect(&connection.peer) {
        let peer = &*connection.peer.addr_text;
        tracing::warn!(
            target: "howdah::conn", peer,
            "FastCGI connection refused: list the web server in `http.trusted_proxies`"
        );
        return;
    }
    let mut serving = pin!(fastcgi::serve(&*handler, &connection, socket));
    log_error(supervise(&connection.state, |cx, _| serving.as_mut().poll(cx)).await);
}

/// Serves a QUIC connection, which always speaks HTTP/3, to its end.
pub(crate) async fn drive_quic<H: Handler>(
    handler: Arc<H>,
    connection: Arc<Connection>,
    guest: http3::IncomingConnection,
) {
    let leave = http3::ShutdownSignal::default();
    let mut serving = pin!(http3::serve(handler, connection.clone(), guest, &leave));
    let (mut leaving, mut finishing) = (false, false);
    let served = supervise(&connection.state, |cx, verdict| {
        if !leaving && verdict != Verdict::None {
            leaving = true;
            leave.now();
        }
        if !finishing && verdict >= Verdict::Finish {
            finishing = true;
            leave.finish();
        }
        serving.as_mut().poll(cx)
    });
    log_error(served.await);
}

/// Polls `step` with the current verdict until it is ready. `None` if the verdict is to drop the connection.
async fn supervise<T>(state: &State, mut step: impl FnMut(&mut Context<'_>, Verdict) -> Poll<T>) -> Option<T> {
    let mut registered: Option<Waker> = None;
    std::future::poll_fn(move |cx| {
        // A task's waker does not change, so this registers once.
        if !registered.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.set_waker(cx.waker());
            registered = Some(cx.waker().clone());
        }
        match state.verdict() {
            Verdict::Drop => Poll::Ready(None),
            verdict => step(cx, verdict).map(Some),
        }
    })
    .await
}

/// Reads until the protocol is known; the bytes read stay in `ahead` for its driver. `None` if the client has closed or
/// the socket failed. `at_once`: try a read before the socket's readiness is known.
fn speaks_h2(
    socket: &mut Socket,
    connection: &Connection,
    ahead: &mut BytesMut,
    mut at_once: bool,
    cx: &mut Context<'_>,
) -> Poll<Option<bool>> {
    loop {
        let known = ahead.len().min(H2_PREFACE.len());
        if known > 0 && ahead[..known] != H2_PREFACE[..known] {
            return Poll::Ready(Some(false));
        }
        if known == H2_PREFACE.len() {
            return Poll::Ready(Some(true));
        }
        let more = FIRST.with_borrow_mut(|space| {
            let mut buf = ReadBuf::new(space);
            // The client's first data has usually arrived at accept, while the readiness notification needs another
            // poll of the event loop.
            if std::mem::take(&mut at_once) {
                socket.read_at_once(&mut buf);
            }
            if buf.filled().is_empty() {
                ready!(socket.poll_read(cx, &mut buf)).ok();
            }
            ahead.extend_from_slice(buf.filled());
            Poll::Ready(!buf.filled().is_empty())
        });
        if !ready!(more) {
            return Poll::Ready(None);
        }
        connection.state.on_read();
    }
}
