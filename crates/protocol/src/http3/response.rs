//! Sends a response on its stream.

use super::code::{Code, Fault};
use super::frames::{kind, put_frame};
use super::head;
use super::link::Link;
use super::streams::Outgoing;
use crate::connection::Connection;
use crate::exchange::Response;
use crate::multiplexed::{self, ClientTimeout, complete, length_to_keep};
use bytes::{Bytes, BytesMut};
use http::Method;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

pub(super) const CANCELLED: Fault = Fault::Stream(Code::REQUEST_CANCELLED, "the client has cancelled the request");

/// Sends a response: pending informational responses, the head, and the body as fast as the client reads it. Each part
/// is fetched before the wait for the client.
pub(super) async fn send(
    link: &Link,
    response: Response,
    method: &Method,
    [early, rest]: [Bytes; 2],
    out: &mut Outgoing,
    mut stopped: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Fault> {
    let connection: &Connection = &link.connection;
    let (mut head, body) = response.into_parts();
    complete(&mut head.headers, method, head.status, &body);
    let length = length_to_keep(method, head.status, &head.headers);
    let mut first = BytesMut::new();
    head::put_response(&mut first, head.status, &head.headers);
    let mut timeout = ClientTimeout::new(connection);
    let mut body = multiplexed::Outgoing::new(body, length, connection);
    let mut parts = [early, rest, first.freeze(), Bytes::new()];
    if body.is_at_end() {
        write(out, &mut parts, &mut timeout).await?;
    }
    while !body.is_at_end() {
        let part = poll_fn(|cx| {
            if let Poll::Ready(part) = body.poll_next(cx) {
                return Poll::Ready(part.map(|part| part.map_err(|error| broken(&error))));
            }
            // The source is pending, so send what has accumulated.
            match out.poll_write(cx, &mut parts) {
                Poll::Ready(Err(fault)) => return Poll::Ready(Some(Err(fault))),
                Poll::Ready(Ok(_)) | Poll::Pending => {}
            }
            stopped.as_mut().poll(cx).map(|()| Some(Err(CANCELLED)))
        })
        .await;
        let data = match part {
            Some(Ok(data)) => data,
            None => break,
            Some(Err(fault)) => {
                // The client gets at least the head.
                write(out, &mut parts, &mut timeout).await?;
                return Err(fault);
            }
        };
        link.set_window(data.len());
        write(out, &mut parts, &mut timeout).await?;
        let mut frame = BytesMut::with_capacity(16);
        let length = data.len();
        put_frame(&mut frame, kind::DATA, length);
        parts = [frame.freeze(), data, Bytes::new(), Bytes::new()];
        let written = write(out, &mut parts, &mut timeout).await;
        body.went(length - parts[1].len());
        written?;
    }
    write(out, &mut parts, &mut timeout).await
}

/// Fault for a response whose body ended early.
fn broken(error: &std::io::Error) -> Fault {
    tracing::debug!(target: "howdah::conn", %error, "response body ended early");
    Fault::Stream(Code::INTERNAL_ERROR, "the body ended early")
}

/// Writes all parts as fast as the client reads them, within its time limit.
pub(super) async fn write(
    out: &mut Outgoing,
    parts: &mut [Bytes],
    timeout: &mut ClientTimeout<&Connection>,
) -> Result<(), Fault> {
    poll_fn(|cx| {
        loop {
            match out.poll_write(cx, parts)? {
                Poll::Ready(0) => return Poll::Ready(Ok(())),
                Poll::Ready(bytes) => timeout.took(bytes),
                Poll::Pending => {
                    return timeout
                        .poll_end(cx)
                        .map(|()| Err(Fault::Stream(Code::REQUEST_CANCELLED, "the client is too slow")));
                }
            }
        }
    })
    .await
}
