//! One request stream: reads the head, runs the handler and sends the response.

use super::body::{Slot, Upload};
use super::code::{self, Code, Fault};
use super::frames::{Frames, kind};
use super::head;
use super::link::Link;
use super::qpack::{self, BlockError};
use super::respond::{Respond, Waiting};
use super::response::{CANCELLED, send, write};
use super::streams::{Incoming, Outgoing};
use super::upgraded::{self, UpgradedStream};
use crate::body::Body;
use crate::connection::InFlight;
use crate::exchange::{Handler, Head, Request, RequestBody, report_rejected};
use crate::informational::Informational;
use crate::multiplexed::{ClientTimeout, SendGuard, announced, complete, request_body};
use crate::rejection::Rejection;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Header of requests that may be replays by an attacker (RFC 8470 5.1).
const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// Result of reading a header.
enum HeadResult {
    Head(Box<Head>),
    /// The server responds with this status without calling the handler.
    Refused(StatusCode),
}

impl HeadResult {
    fn rejection(&self) -> Option<(Rejection, StatusCode)> {
        match self {
            Self::Head(_) => None,
            Self::Refused(StatusCode::TOO_EARLY) => Some((Rejection::EarlyData, StatusCode::TOO_EARLY)),
            Self::Refused(status) => Some((Rejection::HeaderTooLarge, *status)),
        }
    }
}

/// Serves the request of one stream. Returns the rest of a stream that was upgraded, to run in a new task, so that this
/// larger one is freed.
pub(super) async fn serve<H: Handler>(
    handler: Arc<H>,
    link: Arc<Link>,
    incoming: Incoming,
    mut out: Outgoing,
) -> Option<UpgradedStream> {
    let early = incoming.is_early() && !link.is_established();
    let mut frames = Frames::new(incoming);
    let timeout = Duration::from_millis(link.connection.timeouts().header);
    let opening = match tokio::time::timeout(timeout, open(&mut frames, &link, early)).await {
        Ok(opening) => opening,
        Err(_) => Err(Fault::Stream(Code::REQUEST_INCOMPLETE, code::HEAD_TOO_SLOW)),
    };
    if let Some((rejection, status)) = opening.as_ref().map_or_else(Fault::rejection, HeadResult::rejection) {
        report_rejected(&*handler, &link.as_seen_by(&*handler), rejection, status, b"");
    }
    let result = match opening {
        Ok(HeadResult::Head(head)) if head.is_extended_connect() => {
            let served = upgraded::serve(&*handler, &link, head, frames, out).await;
            return served.unwrap_or_else(|fault| {
                link.note_end(Err(fault));
                None
            });
        }
        Ok(HeadResult::Head(head)) => respond(&*handler, &link, *head, frames, &mut out).await,
        Ok(HeadResult::Refused(status)) => {
            let result = refuse(&link, &mut out, status).await;
            frames.source().stop(Code::NO_ERROR);
            result
        }
        Err(fault) => {
            if let Fault::Stream(code, _) = fault {
                frames.source().stop(code);
            }
            Err(fault)
        }
    };
    if let Err(Fault::Stream(code, _)) = result {
        out.reset(code);
    }
    link.note_end(result);
    None
}

/// Reads a request's head.
async fn open(frames: &mut Frames<Incoming>, link: &Link, early: bool) -> Result<HeadResult, Fault> {
    let most = link.connection.shared.header_list;
    loop {
        match poll_fn(|cx| frames.poll_frame(cx)).await? {
            Some(kind::HEADERS) => break,
            Some(kind) if kind::is_reserved(kind) => {
                return Err(Fault::Connection(Code::FRAME_UNEXPECTED, "the request does not begin with its head"));
            }
            Some(_) => {}
            None => return Err(Fault::Stream(Code::REQUEST_INCOMPLETE, "the request has no head")),
        }
    }
    // An encoded header could be longer than the decoded one, but no real client sends that.
    if frames.left() > most as u64 {
        return Ok(HeadResult::Refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
    }
    let (mut block, mut charge) = (BytesMut::new(), link.connection.charge());
    while let Some(bytes) = poll_fn(|cx| frames.poll_payload(cx)).await? {
        if !charge.grow(bytes.len() as u64) {
            return Err(Fault::Stream(Code::EXCESSIVE_LOAD, "`http.memory` has no room for the head"));
        }
        block.extend_from_slice(&bytes);
    }
    let lines = match qpack::decode(block.freeze(), most) {
        Ok(lines) => lines,
        Err(BlockError::TooLarge) => return Ok(HeadResult::Refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)),
        Err(BlockError::Invalid) => {
            return Err(Fault::Connection(Code::DECOMPRESSION_FAILED, "the header block is invalid"));
        }
    };
    let mut head = head::request(lines, link.connection.shared.extended_connect)
        .map_err(|why| Fault::Stream(Code::MESSAGE_ERROR, why))?;
    if early {
        // Early data can be replayed, so only safe methods are allowed before the handshake completes (RFC 8470 4).
        let is_safe = matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if !is_safe || head.is_extended_connect() {
            return Ok(HeadResult::Refused(StatusCode::TOO_EARLY));
        }
        head.headers.insert(EARLY_DATA, HeaderValue::from_static("1"));
    }
    Ok(HeadResult::Head(Box::new(head)))
}

/// Sends a response that is only a status.
async fn refuse(link: &Link, out: &mut Outgoing, status: StatusCode) -> Result<(), Fault> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    complete(&mut headers, &Method::GET, status, &Body::empty());
    let mut bytes = BytesMut::new();
    head::put_response(&mut bytes, status, &headers);
    write(out, &mut [bytes.freeze()], &mut ClientTimeout::new(&*link.connection)).await?;
    out.finish();
    Ok(())
}

/// Runs the handler and sends its response.
async fn respond<H: Handler>(
    handler: &H,
    link: &Link,
    head: Head,
    mut frames: Frames<Incoming>,
    out: &mut Outgoing,
) -> Result<(), Fault> {
    let connection = &link.connection;
    let _in_flight = InFlight::begin(connection);
    link.note_session();
    let mut stopped = pin!(out.stopped());
    let slot = Arc::new(Slot::default());
    let length = announced(&head.headers);
    let method = head.method.clone();
    let back = Arc::new(Respond::new(connection.clone(), Waiting::default()));
    let sink = Arc::downgrade(&back);
    let body = match Upload::begin(&mut frames, length).await? {
        true => request_body(Upload::new(frames, length, slot.clone()), &head.headers, &sink),
        false => RequestBody::none(),
    };
    let informational = Some(Informational::of_stream(sink));
    let request = Request::arrived(Box::new(head), body, informational, link.as_seen_by(handler));
    let mut early = Bytes::new();
    let response = {
        let mut handling = pin!(handler.handle(request));
        poll_fn(|cx| match handling.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(Ok(response)),
            Poll::Pending => {
                while let Some(bytes) = back.take(&mut early, cx) {
                    match out.poll_write(cx, std::slice::from_mut(bytes)) {
                        Poll::Ready(Ok(_)) => {}
                        Poll::Ready(Err(fault)) => return Poll::Ready(Err(fault)),
                        Poll::Pending => break,
                    }
                }
                stopped.as_mut().poll(cx).map(|()| Err(CANCELLED))
            }
        })
        .await
    };
    // From now on a script that still runs cannot send informational responses.
    let rest = back.close();
    let sending = SendGuard::begin(connection);
    let sent = match response {
        Ok(response) => send(link, response, &method, [early, rest], out, stopped.as_mut()).await,
        Err(fault) => Err(fault),
    };
    sent?;
    if let Some(fault) = slot.fault() {
        return Err(fault);
    }
    out.finish();
    link.served();
    slot.settle().await?;
    // The connection must stay open until the client has everything. It has as long for that as for any other part of a
    // response.
    let timeout = Duration::from_millis(connection.timeouts().write);
    let _ = tokio::time::timeout(timeout, stopped).await;
    drop(sending);
    Ok(())
}
