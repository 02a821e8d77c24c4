//! A connection that speaks HTTP/2, driven with `h2` itself: hyper, which does it with the same library, offers no interim
//! answers (103 Early Hints) to a server. One task for the connection and one for each request, as in hyper.

use super::Conn;
use super::interim::Allowance;
use super::io::ConnIo;
use crate::body::Body;
use crate::received::Received;
use crate::shard::Shard;
use crate::upstream::Upstream;
use bytes::Bytes;
use h2::server::{Builder, Connection, Handshake, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use howdah_pool::RequestId;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime};

/// How much a client may send before it is read, for one request and for all of a connection.
const WINDOW: u32 = 1 << 20;

/// How much of one answer waits for the socket here, once the client has made room for it. The rest stays where it comes from.
const SEND_BUFFER: usize = 128 << 10;

/// Requests of one connection at once: as many as RFC 9113 (6.5.2) wants at least.
const STREAMS: u32 = 100;

/// How often an answer that waits for its client looks whether it has waited for too long.
const LOOK: Duration = Duration::from_secs(1);

/// A connection being driven.
pub(super) struct Driven<U: Upstream> {
    stage: Stage,
    shard: Arc<Shard<U>>,
    conn: Arc<Conn>,
    /// The connection is to end with the requests that are there.
    finishing: bool,
}

enum Stage {
    Handshake(Handshake<ConnIo, Bytes>),
    Serving(Connection<ConnIo, Bytes>),
}

impl<U: Upstream> Driven<U> {
    /// Begins with the client's preface, which is still to be read. A header longer than `head_buffer` gets 431.
    pub(super) fn new(shard: Arc<Shard<U>>, conn: Arc<Conn>, io: ConnIo, head_buffer: usize) -> Self {
        let mut builder = Builder::new();
        builder
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(u32::try_from(head_buffer).unwrap_or(u32::MAX))
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_send_buffer_size(SEND_BUFFER);
        Self { stage: Stage::Handshake(builder.handshake(io)), shard, conn, finishing: false }
    }

    /// No further requests; the connection ends when the present ones are answered.
    pub(super) fn finish(&mut self) {
        self.finishing = true;
        if let Stage::Serving(connection) = &mut self.stage {
            connection.graceful_shutdown();
        }
    }

    /// Ready when the connection has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
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
                        tokio::spawn(answer(self.shard.clone(), self.conn.clone(), request, respond));
                    }
                    None => return connection.poll_closed(cx),
                },
            }
        }
    }
}

/// The way back to the client of one request.
struct Respond {
    conn: Arc<Conn>,
    back: Mutex<Back>,
}

struct Back {
    send: SendResponse<Bytes>,
    /// The answer has not begun: only before it there may be interim ones.
    open: bool,
    allowance: Allowance,
}

impl Respond {
    fn lock(&self) -> MutexGuard<'_, Back> {
        self.back.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Respond {
    fn drop(&mut self) {
        let back = self.back.get_mut().unwrap_or_else(PoisonError::into_inner);
        back.allowance.give_back(self.conn.interim.bytes());
    }
}

/// Where a request's interim answers go; nowhere once it is answered. Found in the request's extensions.
#[derive(Clone)]
pub(crate) struct InterimAnswers(Weak<Respond>);

impl InterimAnswers {
    /// The side that is given to whoever runs the script.
    pub(crate) fn of(&self, id: RequestId) -> OfStream {
        OfStream { respond: self.0.clone(), id }
    }
}

/// Takes the interim answers of one request, from whatever thread.
pub(crate) struct OfStream {
    respond: Weak<Respond>,
    id: RequestId,
}

impl std::fmt::Debug for OfStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OfStream({})", self.id)
    }
}

impl howdah_pool::TakesInterim for OfStream {
    fn interim(&self, status: u16, headers: &[(Bytes, Bytes)]) {
        let (Some(respond), Some(status)) = (self.respond.upgrade(), super::interim::sendable(status)) else { return };
        let Some((headers, bytes)) = super::interim::fields(headers) else { return };
        let mut answer = Response::new(());
        *answer.status_mut() = status;
        *answer.headers_mut() = headers;
        let mut back = respond.lock();
        if !back.open || !back.allowance.take(respond.conn.interim.bytes(), bytes, self.id) {
            return;
        }
        if let Err(error) = back.send.send_informational(answer) {
            tracing::debug!(target: "howdah::conn", %error, "an interim answer was not sent");
        }
    }
}

/// One request: has it answered and sends the answer. Ends early when the client takes the request back.
async fn answer<U: Upstream>(
    shard: Arc<Shard<U>>,
    conn: Arc<Conn>,
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
) {
    let back = Mutex::new(Back { send: respond, open: true, allowance: Allowance::default() });
    let respond = Arc::new(Respond { conn: conn.clone(), back });
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(InterimAnswers(Arc::downgrade(&respond)));
    let method = parts.method.clone();
    let body = Received::Http2(body, announced(&parts.headers));
    let answered = {
        let mut service = pin!(crate::service::handle(shard, conn.clone(), Request::from_parts(parts, body)));
        std::future::poll_fn(|cx| match service.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(Some(response)),
            Poll::Pending => respond.lock().send.poll_reset(cx).map(|_| None),
        })
        .await
    };
    // Whoever still runs the script finds it closed, in any case.
    respond.lock().open = false;
    let Some(Ok(response)) = answered else { return };
    let (mut head, body) = response.into_parts();
    complete(&mut head.headers, head.status, &body);
    let length = length_to_keep(&method, head.status, &head.headers);
    let ended = body.is_end_stream() && length.is_none_or(|length| length == 0);
    let sent = respond.lock().send.send_response(Response::from_parts(head, ()), ended);
    let result = match sent {
        Ok(_) if ended => Ok(()),
        Ok(stream) => send(stream, body, length, &conn).await,
        Err(error) => {
            respond.lock().send.send_reset(Reason::INTERNAL_ERROR);
            Err(error)
        }
    };
    if let Err(error) = result {
        tracing::debug!(target: "howdah::conn", %error, "an answer was cut off");
    }
}

/// How long the body has to be by the answer's own word: whoever hands it on over HTTP/1 finds its end by that. The answer
/// to HEAD, and 304, tell the length of a body that is not sent.
fn length_to_keep(method: &Method, status: StatusCode, headers: &HeaderMap) -> Option<u64> {
    let bodiless = method == Method::HEAD || matches!(status, StatusCode::NOT_MODIFIED | StatusCode::NO_CONTENT);
    if bodiless { None } else { announced(headers) }
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// What every answer has in this protocol, and may not have.
fn complete(headers: &mut HeaderMap, status: StatusCode, body: &Body) {
    const OF_THE_CONNECTION: [HeaderName; 4] =
        [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, HeaderName::from_static("keep-alive")];
    for name in &OF_THE_CONNECTION {
        headers.remove(name);
    }
    if !headers.contains_key(header::DATE)
        && let Ok(now) = HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::now()))
    {
        headers.insert(header::DATE, now);
    }
    if !body.is_end_stream()
        && !headers.contains_key(header::CONTENT_LENGTH)
        && status != StatusCode::NO_CONTENT
        && let Some(length) = body.size_hint().exact()
    {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
}

/// Sends a body as the client takes it. A part is fetched first and then waits for the client, so that a source which has
/// nothing does not hold a share of the connection's window. A body that is not as long as was announced is cut off with
/// an error, as it must not look complete, and none of what is too much is sent.
///
/// No more goes into the stream than the client has room for: there it would wait unseen.
async fn send(
    mut stream: SendStream<Bytes>,
    body: Body,
    mut length: Option<u64>,
    conn: &Conn,
) -> Result<(), h2::Error> {
    let mut body = pin!(body);
    let mut patience = Patience::new(conn);
    loop {
        let ended = body.is_end_stream();
        let part = std::future::poll_fn(|cx| match stream.poll_reset(cx)? {
            Poll::Ready(reason) => Poll::Ready(Err(h2::Error::from(reason))),
            Poll::Pending if ended => Poll::Ready(Ok(None)),
            Poll::Pending => body.as_mut().poll_frame(cx).map(Ok),
        })
        .await?;
        let mut data = match part {
            None => {
                if length.is_some_and(|left| left > 0) {
                    cut(&mut stream, "the body is shorter than its Content-Length");
                    return Ok(());
                }
                return stream.send_data(Bytes::new(), true);
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => data,
                Err(_) => continue,
            },
            Some(Err(error)) => {
                stream.send_reset(Reason::INTERNAL_ERROR);
                tracing::debug!(target: "howdah::conn", %error, "a body broke off");
                return Ok(());
            }
        };
        if let Some(left) = &mut length {
            match left.checked_sub(data.len() as u64) {
                Some(rest) => *left = rest,
                None => {
                    cut(&mut stream, "the body is longer than its Content-Length");
                    return Ok(());
                }
            }
        }
        let last = body.is_end_stream() && length.is_none_or(|left| left == 0);
        if data.is_empty() && last {
            return stream.send_data(data, true);
        }
        while !data.is_empty() {
            stream.reserve_capacity(data.len());
            if stream.capacity() == 0 {
                match patience.room(&mut stream).await? {
                    Room::Some => {}
                    Room::Never => return Ok(()),
                    Room::TooLate => {
                        stream.send_reset(Reason::CANCEL);
                        tracing::debug!(target: "howdah::conn", "a client was too slow for an answer");
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
            conn.state.body_taken(room);
            patience.taken += room as u64;
        }
        if last {
            return Ok(());
        }
    }
}

fn cut(stream: &mut SendStream<Bytes>, why: &str) {
    stream.send_reset(Reason::INTERNAL_ERROR);
    tracing::warn!(target: "howdah::conn", "an answer was cut off: {why}");
}

/// What became of waiting for a client.
enum Room {
    /// There is some.
    Some,
    /// The stream has gone.
    Never,
    /// The client has taken too little for too long.
    TooLate,
}

/// How long an answer waits for its client, which has the same time for each stream as for a connection. A timer is armed
/// only when there is something to wait for.
struct Patience<'a> {
    conn: &'a Conn,
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
    /// How long the client has been waited for since that was last judged, and what it has taken of this answer and of all.
    waited: Duration,
    taken: u64,
    before: u64,
}

/// A client with a slow line takes one answer after the other, and those behind wait for that long at most, in times of
/// `write_timeout`.
const TURNS: u32 = 10;

impl<'a> Patience<'a> {
    fn new(conn: &'a Conn) -> Self {
        Self { conn, timer: None, waited: Duration::ZERO, taken: 0, before: conn.state.taken_of_bodies() }
    }

    /// Waits until the client has room.
    async fn room(&mut self, stream: &mut SendStream<Bytes>) -> Result<Room, h2::Error> {
        let began = Instant::now();
        let result = std::future::poll_fn(|cx| {
            if let Poll::Ready(reason) = stream.poll_reset(cx)? {
                return Poll::Ready(Err(h2::Error::from(reason)));
            }
            loop {
                match stream.poll_capacity(cx) {
                    Poll::Pending => break,
                    // It was told of room that others have taken; only what is pending is told again.
                    Poll::Ready(Some(Ok(0))) => {}
                    Poll::Ready(Some(Ok(_))) => return Poll::Ready(Ok(Room::Some)),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(None) => return Poll::Ready(Ok(Room::Never)),
                }
            }
            loop {
                let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(LOOK)));
                ready!(timer.as_mut().poll(cx));
                let now = Instant::now();
                timer.as_mut().reset((now + LOOK).into());
                if self.is_at_end(now.saturating_duration_since(began)) {
                    return Poll::Ready(Ok(Room::TooLate));
                }
            }
        })
        .await;
        self.waited += began.elapsed();
        result
    }

    /// Whether the client, which has taken nothing in the present wait, has had its time.
    fn is_at_end(&mut self, wait: Duration) -> bool {
        let timeouts = self.conn.timeouts();
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let all = ms(self.waited + wait);
        if all <= timeouts.write {
            return false;
        }
        let of_all = self.conn.state.taken_of_bodies();
        if ms(wait) > timeouts.write || timeouts.is_too_slow(self.taken, all) {
            // The others' turn, perhaps; where budgets are scarce, an answer that does not move is too much in any case.
            let others_move = !timeouts.is_too_slow(of_all.wrapping_sub(self.before), all);
            let has_time = all <= timeouts.write.saturating_mul(u64::from(TURNS));
            return !(others_move && has_time && self.conn.site.budgets.pressure() == 0);
        }
        (self.waited, self.taken, self.before) = (Duration::ZERO, 0, of_all);
        false
    }
}
