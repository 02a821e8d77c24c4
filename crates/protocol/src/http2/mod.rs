//! A connection that speaks HTTP/2, with `h2`. One task for the connection and one for each request.

mod io;
mod refusals;
mod upgraded;

use crate::body::{Body, Kind};
use crate::connection::{Connection, InFlight};
use crate::exchange::{BodyError, BodySource, Handler, Head, Request, RequestBody, report_rejected};
use crate::informational::Informational;
use crate::multiplexed::{ClientTimeout, Outgoing, STREAMS, SendGuard, WINDOW, complete, length_to_keep, request_body};
use crate::rejection::Rejection;
use crate::socket::Socket;
use crate::state::Verdict;
use crate::stream_sink::{InformationalWriter, StreamSink};
use crate::target::Target;
use crate::upgrade::Upgraded;
use crate::upgraded_connection;
use bytes::Bytes;
use h2::ext::Protocol;
use h2::server::{Builder, Connection as H2, Handshake, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use howdah_budget::Share;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use io::ObservedSocket;
use refusals::Refusals;
use std::future::Future;
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use tokio::sync::Notify;
use upgraded::Client;

/// Bytes of one response that h2 may buffer for the socket, within the client's window. The rest stays at its source.
const SEND_BUFFER: usize = 128 << 10;

/// A connection being driven.
pub(crate) struct ConnectionDriver<H: Handler> {
    stage: Stage,
    handler: Arc<H>,
    connection: Arc<Connection>,
    /// The connection ends when its present requests have ended.
    finishing: bool,
    /// Notifies upgraded streams, which run in separate tasks, that they must end. `upgraded_notified` is set after
    /// that.
    upgraded: Arc<Notify>,
    upgraded_notified: bool,
    refusals: Arc<Refusals>,
}

enum Stage {
    Handshake(Handshake<ObservedSocket, Bytes>),
    Serving(H2<ObservedSocket, Bytes>),
}

impl<H: Handler> ConnectionDriver<H> {
    /// Begins the HTTP/2 handshake. `ahead` holds the bytes already read: the client's preface and what has come after
    /// it, or over TLS nothing.
    pub(crate) fn new(handler: Arc<H>, connection: Arc<Connection>, socket: Socket, ahead: Bytes) -> Self {
        connection.state.set_multiplexed();
        let _ = connection.share.set(Share::new(connection.shared.budgets));
        let mut builder = Builder::new();
        builder
            .max_concurrent_streams(STREAMS)
            // h2 refuses longer headers with 431; `refusals` detects these responses in the output.
            .max_header_list_size(u32::try_from(connection.shared.header_list).unwrap_or(u32::MAX))
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_send_buffer_size(SEND_BUFFER);
        if connection.shared.extended_connect {
            builder.enable_connect_protocol();
        }
        let refusals = Arc::<Refusals>::default();
        let noted = ObservedSocket::new(socket, connection.clone(), ahead, refusals.clone());
        let stage = Stage::Handshake(builder.handshake(noted));
        Self {
            stage,
            handler,
            connection,
            finishing: false,
            upgraded: Arc::default(),
            upgraded_notified: false,
            refusals,
        }
    }

    /// Sends GOAWAY. The connection ends when the requests that the client sent before it arrived have been answered.
    pub(crate) fn finish(&mut self) {
        self.finishing = true;
        if let Stage::Serving(connection) = &mut self.stage {
            connection.graceful_shutdown();
        }
    }

    /// Ready when the connection has ended.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        // A verdict wakes only this task, so the upgraded streams must be notified from here.
        if !self.upgraded_notified && self.connection.state.verdict() >= Verdict::Finish {
            self.upgraded_notified = true;
            self.upgraded.notify_waiters();
        }
        let polled = self.poll_stage(cx);
        let reported = |count: &AtomicU32, rejection, status| {
            for _ in 0..if count.load(Relaxed) == 0 { 0 } else { count.swap(0, Relaxed) } {
                report_rejected(&*self.handler, &self.connection, rejection, status, b"");
            }
        };
        reported(&self.refusals.too_large, Rejection::HeaderTooLarge, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        reported(&self.refusals.malformed, Rejection::Http2, StatusCode::BAD_REQUEST);
        polled
    }

    fn poll_stage(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        loop {
            match &mut self.stage {
                Stage::Handshake(handshake) => {
                    let mut connection = ready!(Pin::new(handshake).poll(cx))?;
                    if self.finishing {
                        connection.graceful_shutdown();
                    }
                    self.stage = Stage::Serving(connection);
                }
                Stage::Serving(connection) => match ready!(connection.poll_accept(cx)) {
                    Some(accepted) => {
                        let (request, respond) = accepted?;
                        let upgraded = self.upgraded.clone();
                        tokio::spawn(serve(self.handler.clone(), self.connection.clone(), request, respond, upgraded));
                    }
                    None => return connection.poll_closed(cx),
                },
            }
        }
    }
}

type Respond = StreamSink<SendResponse<Bytes>>;

impl InformationalWriter for SendResponse<Bytes> {
    fn write_informational(&mut self, status: StatusCode, fields: HeaderMap) {
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = fields;
        if let Err(error) = self.send_informational(response) {
            tracing::debug!(target: "howdah::conn", %error, "informational response not sent");
        }
    }
}

/// The body of a request.
#[derive(Debug)]
struct Incoming(RecvStream);

impl BodySource for Incoming {
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            match ready!(self.0.poll_data(cx)) {
                Some(Ok(data)) => {
                    // The client may send as much again. This fails only once the stream is gone.
                    let _ = self.0.flow_control().release_capacity(data.len());
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                // Trailers are ignored.
                None => return Poll::Ready(None),
            }
        }
    }
}

/// Runs one request through the handler and sends the response. Ends early if the client resets the stream.
async fn serve<H: Handler>(
    handler: Arc<H>,
    connection: Arc<Connection>,
    request: http::Request<RecvStream>,
    respond: SendResponse<Bytes>,
    ends: Arc<Notify>,
) {
    let _in_flight = InFlight::begin(&connection);
    let respond = Arc::new(Respond::new(connection.clone(), respond));
    let BuiltRequest { request, method, stream } = BuiltRequest::of(request, &connection, &respond);
    let response = {
        let mut handling = pin!(handler.handle(request));
        std::future::poll_fn(|cx| match handling.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(Some(response)),
            Poll::Pending => respond.lock().stream.poll_reset(cx).map(|_| None),
        })
        .await
    };
    // From now on a script that still runs cannot send informational responses.
    respond.lock().open = false;
    let Some(response) = response else { return };
    let (mut head, body) = response.into_parts();
    if let Some(stream) = stream
        && (head.status == StatusCode::SWITCHING_PROTOCOLS || head.status.is_success())
    {
        return upgrade(&connection, &respond, stream, Response::from_parts(head, body), &ends).await;
    }
    complete(&mut head.headers, &method, head.status, &body);
    let length = length_to_keep(&method, head.status, &head.headers);
    let ended = body.length() == Some(0) && length.is_none_or(|length| length == 0);
    let sent = respond.lock().stream.send_response(Response::from_parts(head, ()), ended);
    let result = match sent {
        Ok(_) if ended => {
            body.open().1.complete = true;
            Ok(())
        }
        Ok(stream) => {
            let _ends = SendGuard::begin(&connection);
            send(stream, body, length, &connection).await
        }
        Err(error) => {
            respond.lock().stream.send_reset(Reason::INTERNAL_ERROR);
            Err(error)
        }
    };
    if let Err(error) = result {
        tracing::debug!(target: "howdah::conn", %error, "response cut off");
    }
}

/// The request as handlers know it.
struct BuiltRequest {
    request: Request,
    method: Method,
    /// The stream of an extended CONNECT, whose data is not a body.
    stream: Option<RecvStream>,
}

impl BuiltRequest {
    fn of(request: http::Request<RecvStream>, connection: &Arc<Connection>, respond: &Arc<Respond>) -> Self {
        let (mut parts, body) = request.into_parts();
        let sink: Weak<Respond> = Arc::downgrade(respond);
        let (body, stream) = if let Some(protocol) = parts.extensions.get::<Protocol>() {
            // See `Head::is_extended_connect`. An invalid header value is not a protocol.
            let offer = HeaderValue::from_str(protocol.as_str()).unwrap_or(HeaderValue::from_static(""));
            parts.method = Method::GET;
            parts.headers.remove(header::CONTENT_LENGTH);
            parts.headers.insert(header::UPGRADE, offer);
            (RequestBody::none(), Some(body))
        } else if body.is_end_stream() {
            (RequestBody::none(), None)
        } else {
            (request_body(Incoming(body), &parts.headers, &sink), None)
        };
        let target = Target::from_uri(&parts.uri);
        let method = parts.method.clone();
        let head = Box::new(Head { method: parts.method, target, version: parts.version, headers: parts.headers });
        let informational = Some(Informational::of_stream(sink));
        Self { request: Request::arrived(head, body, informational, connection.clone()), method, stream }
    }
}

/// Upgrades the stream of an extended CONNECT (RFC 8441 5). Any 2xx status tells the client that the protocol has
/// changed, so a response without an upgrade must not reach it: the stream is reset.
async fn upgrade(
    connection: &Arc<Connection>,
    respond: &Respond,
    incoming: RecvStream,
    response: crate::exchange::Response,
    ends: &Notify,
) {
    let (mut head, body) = response.into_parts();
    let (kind, delivery) = body.open();
    if !matches!(kind, Kind::Upgrade(_)) {
        respond.lock().stream.send_reset(Reason::INTERNAL_ERROR);
        return;
    }
    complete(&mut head.headers, &Method::GET, StatusCode::NO_CONTENT, &Body::empty());
    head.status = StatusCode::OK;
    let outgoing = match respond.lock().stream.send_response(Response::from_parts(head, ()), false) {
        Ok(outgoing) => outgoing,
        Err(error) => {
            tracing::debug!(target: "howdah::conn", %error, "stream not upgraded");
            return;
        }
    };
    let client = |sent| -> Box<dyn Upgraded> { Box::new(Client::new(connection, incoming, outgoing, sent)) };
    let mut ending = pin!(ends.notified());
    // Registers now, so that no notification is missed.
    ending.as_mut().enable();
    upgraded_connection::run(kind, delivery, &connection.shared.metrics, client, ending).await;
}

/// Sends a body as fast as the client reads it. A part is fetched before window capacity is reserved, so that an idle
/// source holds no share of the connection's window. A body that ends early resets the stream.
///
/// Data is passed to h2 only within the client's window, because the timeouts do not see data that waits inside h2.
async fn send(
    mut stream: SendStream<Bytes>,
    body: Body,
    length: Option<u64>,
    connection: &Connection,
) -> Result<(), h2::Error> {
    let mut body = Outgoing::new(body, length, connection);
    let mut timeout = ClientTimeout::new(connection);
    loop {
        let ended = body.is_at_end();
        let part = std::future::poll_fn(|cx| match stream.poll_reset(cx)? {
            Poll::Ready(reason) => Poll::Ready(Err(h2::Error::from(reason))),
            Poll::Pending if ended => Poll::Ready(Ok(None)),
            Poll::Pending => body.poll_next(cx).map(Ok),
        })
        .await?;
        let mut data = match part {
            None => return stream.send_data(Bytes::new(), true),
            Some(Ok(data)) => data,
            Some(Err(error)) => {
                stream.send_reset(Reason::INTERNAL_ERROR);
                tracing::debug!(target: "howdah::conn", %error, "response cut off");
                return Ok(());
            }
        };
        let last = body.is_at_end();
        if data.is_empty() && last {
            return stream.send_data(data, true);
        }
        while !data.is_empty() {
            stream.reserve_capacity(data.len());
            if stream.capacity() == 0 {
                match std::future::poll_fn(|cx| poll_room(&mut stream, &mut timeout, cx)).await? {
                    SendWindow::Some => {}
                    SendWindow::Never => return Ok(()),
                    SendWindow::TooLate => {
                        stream.send_reset(Reason::CANCEL);
                        tracing::debug!(target: "howdah::conn", "response cut off: the client reads too slowly");
                        return Ok(());
                    }
                }
            }
            let room = stream.capacity().min(data.len());
            if room == 0 {
                continue;
            }
            let part = data.split_to(room);
            stream.send_data(part, last && data.is_empty())?;
            body.went(room);
            timeout.took(room);
        }
        if last {
            return Ok(());
        }
    }
}

/// Result of waiting for a client.
enum SendWindow {
    /// The client has room.
    Some,
    /// The stream has ended.
    Never,
    /// The client has taken too little for too long.
    TooLate,
}

/// Ready when the client has room.
fn poll_room(
    stream: &mut SendStream<Bytes>,
    timeout: &mut ClientTimeout<impl Deref<Target = Connection>>,
    cx: &mut Context<'_>,
) -> Poll<Result<SendWindow, h2::Error>> {
    if let Poll::Ready(reason) = stream.poll_reset(cx)? {
        return Poll::Ready(Err(h2::Error::from(reason)));
    }
    loop {
        match stream.poll_capacity(cx) {
            Poll::Pending => break,
            // Other streams have used the reported capacity. h2 wakes the task again only after `Pending`.
            Poll::Ready(Some(Ok(0))) => {}
            Poll::Ready(Some(Ok(_))) => return Poll::Ready(Ok(SendWindow::Some)),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
            Poll::Ready(None) => return Poll::Ready(Ok(SendWindow::Never)),
        }
    }
    timeout.poll_end(cx).map(|()| Ok(SendWindow::TooLate))
}
