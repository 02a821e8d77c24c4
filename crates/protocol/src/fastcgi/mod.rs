//! A connection of a web server that speaks FastCGI, as it does to PHP-FPM: one request after the other.
//!
//! Reading order: `serve` here (the life of a connection), `io` (input and pending output), `decoder` (turns records
//! into requests and their bodies, without I/O), `crate::params` (a request's variables), `head` (from variables to a
//! request's head, and a response's head), `record` (record headers).

pub mod decoder;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod head;
mod io;
pub mod record;

use crate::body::Body;
use crate::connection::{Connection, InFlight};
use crate::exchange::{Handler, Request, RequestBody, Response, StandardError, report_rejected};
use crate::messages::Messages;
use crate::multiplexed::Outgoing;
use crate::params::Params;
use crate::peer::Peer;
use crate::rejection::Rejection;
use crate::serial_body::{SerialBody, lock};
use crate::socket::Socket;
use crate::state::Verdict;
use bytes::Bytes;
use decoder::RequestStart;
use http::{Method, StatusCode, header};
use io::{Interrupted, Io, Next};
use record::{Header, MAX_CONTENT, kind};
use std::future::poll_fn;
use std::io::{Error, Result};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Poll, ready};
use std::time::{Instant, SystemTime};

/// Bytes of a body that may wait for the socket before its source is polled for more.
const FLUSH_THRESHOLD: usize = 64 * 1024;

/// Returns `true` if the peer may connect: over a Unix socket, from a loopback address, or listed in
/// `http.trusted_proxies` (PHP-FPM's `listen.allowed_clients`). Restricted because a FastCGI client chooses the script
/// to run.
pub(crate) fn may_connect(peer: &Peer) -> bool {
    peer.trusted || peer.addr.is_none_or(|addr| addr.is_loopback())
}

/// Serves a connection to its end.
pub(crate) async fn serve<H: Handler>(handler: &H, connection: &Arc<Connection>, socket: Socket) -> Result<()> {
    connection.state.set_copies_bodies();
    let io = Arc::new(Mutex::new(Io::new(socket, connection.clone())));
    loop {
        let begun = match poll_fn(|cx| lock(&io).poll_next(cx)).await? {
            Next::Request(begun) => begun,
            Next::TooLarge(id) => {
                let (rejection, status) = (Rejection::HeaderTooLarge, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
                report_rejected(handler, connection, rejection, status, b"");
                refuse(&io, id, status);
                return close(&io, true).await;
            }
            Next::Malformed => {
                let (rejection, status) = (Rejection::FastCgi, StatusCode::BAD_REQUEST);
                report_rejected(handler, connection, rejection, status, lock(&io).unread());
                return close(&io, true).await;
            }
            Next::TimedOut => {
                let (rejection, status) = (Rejection::HeaderTimeout, StatusCode::REQUEST_TIMEOUT);
                report_rejected(handler, connection, rejection, status, b"");
                return Ok(());
            }
            Next::End => return Ok(()),
        };
        if !run(handler, connection, &io, begun).await? {
            let linger = lock(&io).has_unread();
            return close(&io, linger).await;
        }
    }
}

/// Runs the handler and sends the response. Returns `true` if the connection may carry another request.
async fn run<H: Handler>(
    handler: &H,
    connection: &Arc<Connection>,
    io: &Arc<Mutex<Io>>,
    begun: RequestStart,
) -> Result<bool> {
    let in_flight = InFlight::begin(connection);
    let RequestStart { id, keep_connection, params } = begun;
    let head = match head::head(&params) {
        Ok(head) => head,
        Err(why) => {
            let status = StatusCode::BAD_REQUEST;
            report_rejected(handler, connection, Rejection::FastCgi, status, why.as_bytes());
            refuse(io, id, status);
            return Ok(false);
        }
    };
    let is_head = head.method == Method::HEAD;
    let body = body_of(io, &params);
    let messages = Arc::new(Messages::default());
    let request = Request {
        head: Box::new(head),
        body,
        informational: None,
        variables: Some(Box::new(params)),
        messages: Some(messages.clone()),
        connection: connection.clone(),
        received: Instant::now(),
        time: SystemTime::now(),
    };
    let response = {
        let mut handling = pin!(handler.handle(request));
        poll_fn(|cx| match handling.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(Ok(response)),
            Poll::Pending => lock(io).poll_interruption(cx).map(Err),
        })
        .await
    };
    let responded = match response {
        Ok(response) => respond(io, id, is_head, response, &messages).await,
        Err(interrupted) => Err(interrupted),
    };
    let is_read = match responded {
        Ok(is_read) => is_read,
        Err(Interrupted::Aborted) => {
            let mut io = lock(io);
            let is_read = io.begin_response();
            io.end();
            is_read
        }
        Err(Interrupted::Error(error)) => {
            // One attempt to send buffered data, but not the end that would make the response look complete.
            let _ = poll_fn(|cx| Poll::Ready(lock(io).poll_flush(cx))).await;
            return Err(error);
        }
    };
    poll_fn(|cx| lock(io).poll_flush(cx)).await?;
    drop(in_flight);
    Ok(keep_connection && is_read && connection.state.verdict() == Verdict::None)
}

fn body_of(io: &Arc<Mutex<Io>>, params: &Params) -> RequestBody {
    let announced = head::body_length(params);
    let (is_over, request) = {
        let mut io = lock(io);
        (io.is_body_complete(), io.request())
    };
    if is_over || announced == Some(0) {
        return RequestBody::none();
    }
    RequestBody::new(Box::new(SerialBody { io: io.clone(), request }), announced)
}

/// Sends a response. Returns `true` if the connection is ready for another request.
async fn respond(
    io: &Arc<Mutex<Io>>,
    id: u16,
    is_head: bool,
    response: Response,
    messages: &Messages,
) -> std::result::Result<bool, Interrupted> {
    let (mut head, body) = response.into_parts();
    let bodiless = is_head || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let length = body.length().filter(|length| !bodiless || *length > 0);
    let error = head.extensions.remove::<StandardError>();
    let closes = head.headers.get(header::CONNECTION).is_some_and(|value| value == "close");
    let is_read = {
        let mut io = lock(io);
        let is_read = io.begin_response();
        io.out.put(|out| {
            if let Some(StandardError(text)) = &error {
                record::write(out, kind::STDERR, id, text);
            }
            write_messages(out, id, messages);
            let mut text = Vec::with_capacity(512);
            head::write(&mut text, &head, length);
            record::write(out, kind::STDOUT, id, &text);
        });
        is_read && !closes
    };
    drop(head);
    send(io, id, if bodiless { body.emptied() } else { body }, messages).await?;
    let mut io = lock(io);
    io.out.put(|out| {
        write_messages(out, id, messages);
        record::write(out, kind::STDOUT, id, b"");
    });
    io.end();
    Ok(is_read)
}

/// Adds pending messages for the web server's log, in order with the parts of the response.
fn write_messages(out: &mut Vec<u8>, id: u16, messages: &Messages) {
    let text = messages.take();
    if !text.is_empty() {
        record::write(out, kind::STDERR, id, &text);
    }
}

/// Sends a body. Its end is reported when this future returns or is dropped.
async fn send(io: &Arc<Mutex<Io>>, id: u16, body: Body, messages: &Messages) -> std::result::Result<(), Interrupted> {
    let connection = lock(io).connection.clone();
    let mut body = Outgoing::new(body, None, &connection);
    loop {
        let part = poll_fn(|cx| match body.poll_next(cx) {
            Poll::Ready(part) => Poll::Ready(part.transpose().map_err(Interrupted::Error)),
            Poll::Pending => lock(io).poll_interruption(cx).map(Err),
        });
        let Some(part) = part.await? else { return Ok(()) };
        lock(io).out.put(|out| write_messages(out, id, messages));
        push(io, id, part);
        if lock(io).out.waiting() >= FLUSH_THRESHOLD {
            poll_fn(|cx| lock(io).poll_flush(cx)).await.map_err(Interrupted::Error)?;
        }
    }
}

/// Adds a part of a body to the output.
fn push(io: &Mutex<Io>, id: u16, mut part: Bytes) {
    let out = &mut lock(io).out;
    while !part.is_empty() {
        let content = part.split_to(part.len().min(MAX_CONTENT));
        // Never longer than a record.
        let header = Header::bytes(kind::STDOUT, id, content.len() as u16);
        out.put(|out| out.extend_from_slice(&header));
        out.push(content);
    }
}

/// Responds to input that is not a valid request.
fn refuse(io: &Mutex<Io>, id: u16, status: StatusCode) {
    let text = format!("Status: {status}\r\nContent-Type: text/plain\r\n\r\n{status}\n");
    let mut io = lock(io);
    io.id = id;
    io.out.put(|out| {
        record::write(out, kind::STDOUT, id, text.as_bytes());
        record::write(out, kind::STDOUT, id, b"");
    });
    io.end();
}

/// Writes pending output and closes the connection. With `linger`, further input is read and dropped first.
async fn close(io: &Mutex<Io>, linger: bool) -> Result<()> {
    poll_fn(|cx| lock(io).poll_flush(cx)).await?;
    if linger {
        poll_fn(|cx| {
            ready!(lock(io).socket.poll_shutdown(cx))?;
            Poll::Ready(Ok::<_, Error>(()))
        })
        .await?;
        poll_fn(|cx| lock(io).poll_linger(cx)).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn web_servers_of_other_machines_are_refused_unless_they_are_trusted() {
        let peer = |address: &str, trusted| {
            may_connect(&Peer::tcp(address.parse().unwrap(), ([10, 0, 0, 5], 9000).into(), |_| trusted))
        };
        assert!(may_connect(&Peer::unix(Path::new("/run/s"), |_| false)));
        for (address, trusted, may) in [
            ("127.0.0.1:5000", false, true),
            ("[::1]:5000", false, true),
            ("[::ffff:127.0.0.1]:5000", false, true),
            ("10.0.0.4:5000", false, false),
            ("10.0.0.4:5000", true, true),
        ] {
            assert_eq!(peer(address, trusted), may, "{address} {trusted}");
        }
    }
}
