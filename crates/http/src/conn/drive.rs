//! The task of one connection: finds out the protocol, lets its library drive it, and acts on the shard's verdicts.

use super::Conn;
use super::http2::Driven;
use super::io::{ConnIo, Socket};
use super::state::{ConnState, Verdict};
use crate::received::ReceiveError;
use crate::shard::Shard;
use crate::upstream::Upstream;
use bytes::{Bytes, BytesMut};
use http::Request;
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// What a client that knows the server speaks HTTP/2 sends first.
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves a connection to its end.
pub(crate) async fn drive<U: Upstream>(shard: Arc<Shard<U>>, conn: Arc<Conn>, socket: Socket) {
    let mut io = ConnIo::new(socket, conn.clone());
    let site = &conn.site;
    let is_h2 = if site.settings.http.h2 {
        let mut sniffing = pin!(speaks_h2(&mut io));
        // A shutdown changes nothing here: what has been sent is going to be answered (see `Shard::look`).
        supervise(&conn.state, |cx, _| sniffing.as_mut().poll(cx)).await.flatten()
    } else {
        Some(false)
    };
    let head_buffer = site.limits.head_buffer();
    let result = match is_h2 {
        None => return,
        Some(true) => {
            io.set_multiplexed();
            let mut driven = Driven::new(shard, conn.clone(), io, site.limits.head());
            let mut finishing = false;
            supervise(&conn.state, |cx, verdict| {
                if !finishing && matches!(verdict, Verdict::Finish | Verdict::Idle) {
                    finishing = true;
                    driven.finish();
                }
                driven.poll(cx).map_err(ReceiveError::from)
            })
            .await
        }
        Some(false) => {
            let serving = conn.clone();
            let service = service_fn(move |mut request: Request<Incoming>| {
                serving.targets.on_request(&mut request);
                serving.state.on_request(!request.body().is_end_stream());
                crate::service::handle(shard.clone(), serving.clone(), request)
            });
            let mut builder = http1::Builder::new();
            // Vectored writes, always: a body may hold tokens that no one may copy (see `sendfile`). The number of
            // headers stays at hyper's 100: any other number costs two allocations per request.
            builder.max_buf_size(head_buffer).writev(true);
            let mut driven = pin!(builder.serve_connection(TokioIo::new(io), service));
            let mut finishing = false;
            supervise(&conn.state, |cx, verdict| {
                let polled = driven.as_mut().poll(cx).map_err(ReceiveError::from);
                if polled.is_ready() || finishing || verdict != Verdict::Finish {
                    return polled;
                }
                // Only now: a request that has come in by this moment has been taken, and is answered.
                finishing = true;
                driven.as_mut().graceful_shutdown();
                driven.as_mut().poll(cx).map_err(ReceiveError::from)
            })
            .await
        }
    };
    if let Some(Err(error)) = result {
        tracing::debug!(target: "howdah::conn", %error, "connection ended");
    }
}

/// Polls `step` with the current verdict until it is ready; gives up (`None`) when the verdict is to drop the connection.
async fn supervise<T>(state: &ConnState, mut step: impl FnMut(&mut Context<'_>, Verdict) -> Poll<T>) -> Option<T> {
    let mut registered: Option<std::task::Waker> = None;
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

/// Reads until it is clear which protocol the client speaks; the bytes are read again by that protocol. `None` if the
/// client closed or was too slow.
async fn speaks_h2(io: &mut ConnIo) -> Option<bool> {
    let mut ahead = BytesMut::with_capacity(8192);
    let is_h2 = std::future::poll_fn(|cx| {
        loop {
            let known = ahead.len().min(H2_PREFACE.len());
            if known > 0 && ahead[..known] != H2_PREFACE[..known] {
                return Poll::Ready(Some(false));
            }
            if known == H2_PREFACE.len() {
                return Poll::Ready(Some(true));
            }
            let mut space = [0; 8192];
            let mut buf = ReadBuf::new(&mut space);
            match ready!(Pin::new(&mut *io).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => ahead.extend_from_slice(buf.filled()),
                _ => return Poll::Ready(None),
            }
        }
    })
    .await;
    io.unread(if is_h2.is_some() { ahead.freeze() } else { Bytes::new() });
    is_h2
}
