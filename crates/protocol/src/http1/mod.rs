//! A connection that speaks HTTP/1. Requests are handled one at a time: the next one is parsed after the response to
//! the previous one.
//!
//! Reading order: `serve` here (the life of a connection), `io` (input and pending output), `parse` (a request's head),
//! `incoming` (its body), `begin_response` and `finish_response` here with `head_out`, `crate::out` (how output is
//! written), `half_closed` (clients that have closed their sending side), `upgraded` (after a switch of protocols).

mod half_closed;
mod head_out;
pub(crate) mod incoming;
mod io;
pub(crate) mod parse;
mod upgraded;

use crate::body::{Body, Delivery, Kind, Whole};
use crate::connection::{Connection, InFlight};
use crate::exchange::{Handler, Request, RequestBody, Response, report_rejected};
use crate::files::{FileBody, Piece};
use crate::informational::Informational;
use crate::multiplexed::{TOO_LONG, TOO_SHORT, warn_of_length};
use crate::panics;
use crate::rejection::Rejection;
use crate::serial_body::{SerialBody, lock};
use crate::socket::Socket;
use crate::state::Verdict;
use crate::stream::Stream;
use crate::upgrade::Upgraded;
use crate::upgraded_connection;
use bytes::BytesMut;
use head_out::{Framing, ResponseContext};
use http::{Method, StatusCode, Version};
use io::{Io, Next};
use parse::Parsed;
use std::future::poll_fn;
use std::io::Result;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Instant, SystemTime};
use upgraded::Client;

/// Bytes of a body that may wait for the socket before its source is polled for more.
const AHEAD: usize = 64 * 1024;

/// Number of requests after which the task yields: pipelined ones might never make it wait.
const TURN: u32 = 16;

/// Serves a connection to its end, or until it is upgraded. `ahead` holds the bytes already read.
pub(crate) async fn serve<H: Handler>(
    handler: &H,
    connection: &Arc<Connection>,
    socket: Socket,
    ahead: BytesMut,
) -> Result<Option<UpgradedTask>> {
    let io = Arc::new(Mutex::new(Io::new(socket, connection.clone(), ahead)));
    let _ends = InformationalCloser(connection);
    let served = requests(handler, connection, &io).await;
    if matches!(served, Ok(None)) {
        lock(&io).socket.send_close_notify();
    }
    served
}

/// Closes a connection whose TLS handshake failed, once the client has been sent the reason.
pub(crate) async fn close_refused(connection: &Arc<Connection>, socket: Socket) -> Result<()> {
    let io = Mutex::new(Io::new(socket, connection.clone(), BytesMut::new()));
    close(&io, true).await
}

/// Serves requests one after the other. An error means that the socket failed, or that a request or response was cut
/// off.
async fn requests<H: Handler>(
    handler: &H,
    connection: &Arc<Connection>,
    io: &Arc<Mutex<Io>>,
) -> Result<Option<UpgradedTask>> {
    let mut turn = 0;
    loop {
        turn += 1;
        if turn % TURN == 0 {
            tokio::task::yield_now().await;
        }
        // Taken apart here, not by `?`: each further step would move the whole head.
        let Parsed { head, framing, keep_alive, expects_continue: _ } = match poll_fn(|cx| lock(io).poll_next(cx)).await
        {
            Ok(Next::Request(parsed)) => parsed,
            Ok(Next::Refused(status)) => {
                let rejection = match status {
                    StatusCode::BAD_REQUEST => Rejection::of(lock(io).unparsed()),
                    _ => Rejection::HeaderTooLarge,
                };
                report_rejected(handler, connection, rejection, status, lock(io).unparsed());
                lock(io).out.put(|out| head_out::write_refusal(out, status));
                return close(io, true).await.map(|()| None);
            }
            Ok(Next::TimedOut) => {
                let (rejection, status) = (Rejection::HeaderTimeout, StatusCode::REQUEST_TIMEOUT);
                report_rejected(handler, connection, rejection, status, lock(io).unparsed());
                return Ok(None);
            }
            Ok(Next::End) => return Ok(None),
            Err(error) => return Err(error),
        };
        let in_flight = InFlight::begin(connection);
        let (received, time) = (Instant::now(), SystemTime::now());
        let context = ResponseContext { version: head.version, is_head: head.method == Method::HEAD, time };
        let informational = (context.version == Version::HTTP_11)
            .then(|| Informational::of_connection(connection.clone(), connection.informational.open()));
        let mut handling = pin!(handler.handle(Request {
            head,
            body: body_of(io, framing),
            informational,
            variables: None,
            messages: None,
            connection: connection.clone(),
            received,
            time,
        }));
        let begun = poll_fn(|cx| match handling.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(Ok(begin_response(io, context, keep_alive, response))),
            Poll::Pending => lock(io).poll_meanwhile(cx).map(Err),
        });
        let begun = begun.await?;
        if begun.framing == Framing::Upgraded {
            return Ok(Some(Box::pin(upgrade(io.clone(), begun.body, in_flight, keep_alive))));
        }
        let goes_on = finish_response(io, context, begun).await?;
        drop(in_flight);
        if !goes_on {
            return close_after(io, keep_alive).await.map(|()| None);
        }
    }
}

/// Closes the queue of informational responses when the connection ends: scripts may still run and send some.
struct InformationalCloser<'a>(&'a Connection);

impl Drop for InformationalCloser<'_> {
    fn drop(&mut self) {
        self.0.informational.close();
    }
}

fn body_of(io: &Arc<Mutex<Io>>, framing: parse::Framing) -> RequestBody {
    let announced = match framing {
        parse::Framing::None => return RequestBody::none(),
        parse::Framing::Length(length) => Some(length),
        parse::Framing::Chunked => None,
    };
    let request = lock(io).request();
    RequestBody::new(Box::new(SerialBody { io: io.clone(), request }), announced)
}

/// A response whose head is in the output.
struct BegunResponse {
    framing: Framing,
    body: Body,
    /// The connection may carry another request after it.
    goes_on: bool,
}

/// Adds a response's head to the output, and frees it: sending the body may take long.
fn begin_response(io: &Mutex<Io>, context: ResponseContext, keep_alive: bool, response: Response) -> BegunResponse {
    let (head, body) = response.into_parts();
    let framing = context.framing(&head, body.length());
    let mut io = lock(io);
    io.connection.informational.close();
    io.take_informational();
    let is_read = io.begin_response();
    let told_to_end = io.connection.state.verdict() != Verdict::None;
    let may_go_on =
        keep_alive && is_read && !told_to_end && !matches!(framing, Framing::UntilClose | Framing::Upgraded);
    let goes_on = io.out.put(|out| context.write(out, &head, framing, may_go_on));
    BegunResponse { framing, body, goes_on }
}

/// Sends the rest of a response. Returns `true` if the connection may carry another request.
async fn finish_response(io: &Arc<Mutex<Io>>, context: ResponseContext, begun: BegunResponse) -> Result<bool> {
    let BegunResponse { framing, body, goes_on } = begun;
    let bodiless = context.is_head || framing == Framing::None;
    let sent = send(io, framing, if bodiless { body.emptied() } else { body }).await;
    if sent.is_err() {
        // One attempt to send buffered data, but not the end that would make the response look complete.
        let _ = poll_fn(|cx| Poll::Ready(lock(io).poll_flush(cx))).await;
    }
    sent.map(|()| goes_on)
}

/// Runs an upgraded connection to its end. The caller spawns it, so that the connection's much larger task is freed:
/// most upgraded connections live long and are idle.
pub(crate) type UpgradedTask = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// Hands the connection over to the upgraded protocol. Returns when the upgraded connection has ended.
async fn upgrade(io: Arc<Mutex<Io>>, body: Body, in_flight: InFlight, keep_alive: bool) -> Result<()> {
    let (kind, delivery) = body.open();
    flush(&io).await?;
    let metrics = lock(&io).connection.shared.metrics.clone();
    let own = io.clone();
    let client = |sent| -> Box<dyn Upgraded> { Box::new(Client::new(own, sent)) };
    // Verdicts wake this task (`drive_upgraded`), so no notification is needed.
    upgraded_connection::run(kind, delivery, &metrics, client, std::future::pending()).await;
    drop(in_flight);
    close_after(&io, keep_alive).await?;
    lock(&io).socket.send_close_notify();
    Ok(())
}

/// A body that is being sent. On drop, bytes still buffered are subtracted from those reported as sent.
struct BodyInProgress<'a> {
    io: &'a Mutex<Io>,
    delivery: Delivery,
}

impl Drop for BodyInProgress<'_> {
    fn drop(&mut self) {
        if !self.delivery.complete {
            self.delivery.sent = self.delivery.sent.saturating_sub(lock(self.io).out.unsent());
        }
    }
}

/// Sends a body with its framing. Its end is reported when this future returns or is dropped.
async fn send(io: &Mutex<Io>, framing: Framing, body: Body) -> Result<()> {
    let (kind, delivery) = body.open();
    let mut underway = BodyInProgress { io, delivery };
    let delivery = &mut underway.delivery;
    match kind {
        // Upgrades are not sent.
        Kind::Empty | Kind::Upgrade(_) => {}
        Kind::Whole(whole) => {
            delivery.sent = whole.len() as u64;
            match whole {
                Whole::Memory(bytes) => lock(io).out.push(bytes),
                Whole::Held(held) => {
                    poll_fn(|cx| {
                        let Io { out, socket, connection, .. } = &mut *lock(io);
                        Poll::Ready(out.push_held(&*held, socket, connection, cx))
                    })
                    .await?;
                    drop(held);
                }
            }
        }
        Kind::Files(files) => send_files(io, files, delivery).await?,
        // The stream is dropped before its end is reported.
        Kind::Stream(stream) => send_stream(io, framing, stream, delivery).await?,
    }
    flush(io).await?;
    delivery.complete = true;
    Ok(())
}

/// Returns when everything has been written.
async fn flush(io: &Mutex<Io>) -> Result<()> {
    poll_fn(|cx| lock(io).poll_flush(cx)).await
}

async fn send_files(io: &Mutex<Io>, mut files: FileBody, delivery: &mut Delivery) -> Result<()> {
    while let Some(piece) = files.next_piece() {
        let full = {
            let out = &mut lock(io).out;
            match piece? {
                Piece::Memory(bytes) => {
                    delivery.sent += bytes.len() as u64;
                    out.push(bytes);
                    out.waiting() >= AHEAD
                }
                Piece::File(part) => {
                    delivery.sent += part.end - part.start;
                    out.push_file(part);
                    true
                }
            }
        };
        if full {
            flush(io).await?;
        }
    }
    Ok(())
}

async fn send_stream(io: &Mutex<Io>, framing: Framing, mut stream: Stream, delivery: &mut Delivery) -> Result<()> {
    let mut left = match framing {
        Framing::Length(length) => Some(length),
        _ => None,
    };
    loop {
        let next = poll_fn(|cx| poll_part(io, &mut stream, cx)).await?;
        let Some(mut data) = next else { break };
        let mut is_cut = false;
        if let Some(left) = &mut left {
            // Data beyond the announced length is not sent.
            is_cut = data.len() as u64 > *left;
            if is_cut {
                warn_of_length(TOO_LONG);
            }
            data.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= data.len() as u64;
        }
        if data.is_empty() && left == Some(0) {
            return Ok(());
        }
        delivery.sent += data.len() as u64;
        let full = {
            let out = &mut lock(io).out;
            if framing == Framing::Chunked {
                let length = data.len();
                out.put(|out| head_out::write_chunk_length(out, length));
                out.push(data);
                out.put(|out| out.extend_from_slice(b"\r\n"));
            } else {
                out.push(data);
            }
            out.waiting() >= AHEAD
        };
        if full {
            flush(io).await?;
        }
        if left == Some(0) && stream.remaining().is_none_or(|remaining| remaining == 0) {
            // The whole announced length is in the output. One more poll, only to log an excess.
            let more = poll_fn(|cx| Poll::Ready(poll_part(io, &mut stream, cx))).await;
            if !is_cut && matches!(more, Poll::Ready(Ok(Some(_)))) {
                warn_of_length(TOO_LONG);
            }
            return Ok(());
        }
    }
    if left.is_some_and(|left| left > 0) {
        warn_of_length(TOO_SHORT);
        return Err(std::io::Error::other(TOO_SHORT));
    }
    if framing == Framing::Chunked {
        lock(io).out.put(|out| out.extend_from_slice(b"0\r\n\r\n"));
    }
    Ok(())
}

/// The next non-empty part of a stream. While the source has none, pending output is written and the client is watched.
fn poll_part(io: &Mutex<Io>, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<Result<Option<bytes::Bytes>>> {
    loop {
        let polled = match panics::call(|| stream.poll_chunk(cx)) {
            Ok(polled) => polled,
            Err(panic) => {
                panic.note(&lock(io).connection.shared.metrics);
                return Poll::Ready(Err(std::io::Error::other("the body's source panicked")));
            }
        };
        match polled {
            Poll::Ready(Some(Ok(chunk))) if chunk.data.is_empty() => {}
            Poll::Ready(Some(Ok(chunk))) => return Poll::Ready(Ok(Some(chunk.data))),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
            Poll::Ready(None) => return Poll::Ready(Ok(None)),
            Poll::Pending => return lock(io).poll_meanwhile(cx).map(Err),
        }
    }
}

/// Closes the connection after its last response.
async fn close_after(io: &Mutex<Io>, keep_alive: bool) -> Result<()> {
    let linger = {
        let io = lock(io);
        // A client that announced its last request has sent nothing after it.
        io.has_unread_body() || (keep_alive && io.has_requests_ahead())
    };
    close(io, linger).await
}

/// Writes pending output and closes the connection. With `linger`, further input from the client is read and dropped
/// first.
async fn close(io: &Mutex<Io>, linger: bool) -> Result<()> {
    flush(io).await?;
    // Without unread input, a plain close delivers everything written before it.
    if linger {
        poll_fn(|cx| {
            let mut io = lock(io);
            ready!(io.socket.poll_shutdown(cx))?;
            Poll::Ready(Ok::<_, std::io::Error>(()))
        })
        .await?;
        poll_fn(|cx| lock(io).poll_linger(cx)).await;
    }
    Ok(())
}
