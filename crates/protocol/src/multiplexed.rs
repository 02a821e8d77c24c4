//! Common parts of HTTP/2 and 3: checks of a response's headers, reading its body, and waiting for a client. HTTP/1 and
//! FastCGI use some of them.

use crate::body::{Body, Delivery, Kind, Whole};
use crate::connection::Connection;
use crate::exchange::{BodyError, BodySource, RequestBody};
use crate::informational::Sink;
use crate::panics;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime};

/// Receive window in bytes: unread data that a client may send, per request and per connection.
pub(crate) const WINDOW: u32 = 1 << 20;

/// Maximum number of concurrent requests per connection: the minimum that RFC 9113 (6.5.2) and RFC 9114 (6.1)
/// recommend.
pub(crate) const STREAMS: u32 = 100;

/// Interval at which a response that waits for its client checks its timeout.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Registers a response's body with the connection's timeouts while it is being sent.
pub(crate) struct SendGuard<'a>(&'a Connection);

impl<'a> SendGuard<'a> {
    pub(crate) fn begin(connection: &'a Connection) -> Self {
        connection.state.sending_begins();
        Self(connection)
    }
}

impl Drop for SendGuard<'_> {
    fn drop(&mut self) {
        self.0.state.sending_ends();
    }
}

/// The length that the header announces and the body must have: recipients that forward it over HTTP/1 find its end by
/// that. `None` for responses to HEAD, 204 and 304, which have no body.
pub(crate) fn length_to_keep(method: &Method, status: StatusCode, headers: &HeaderMap) -> Option<u64> {
    let bodiless = method == Method::HEAD || matches!(status, StatusCode::NOT_MODIFIED | StatusCode::NO_CONTENT);
    if bodiless { None } else { announced(headers) }
}

/// The length of a body from `Content-Length`: `None` if it is missing, not a number, or given twice with different
/// values.
pub(crate) fn announced(headers: &HeaderMap) -> Option<u64> {
    let mut fields = headers.get_all(header::CONTENT_LENGTH).iter().map(|value| number(value.as_bytes()));
    let length = fields.next()??;
    fields.all(|other| other == Some(length)).then_some(length)
}

/// Parses a number that consists of digits only (RFC 9110 8.6).
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, &digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Reasons for which a body is cut off.
pub(crate) const TOO_LONG: &str = "the body is longer than its Content-Length";
pub(crate) const TOO_SHORT: &str = "the body is shorter than its Content-Length";

/// Logs a response whose body differs in length from its `Content-Length`. The script, or the server behind a proxy, is
/// at fault.
pub(crate) fn warn_of_length(why: &str) {
    tracing::warn!(target: "howdah::conn", "response cut off: {why}");
}

/// The body of a request whose client waits for `100 Continue` (RFC 9110 section 10.1.1). Sends that response when the
/// handler first asks for the body and no byte of it has arrived.
#[derive(Debug)]
struct ContinueBody {
    source: Box<dyn BodySource>,
    to: Option<Weak<dyn Sink>>,
}

impl BodySource for ContinueBody {
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let part = self.source.poll_part(cx);
        let to = self.to.take();
        if part.is_pending()
            && let Some(to) = to.and_then(|to| to.upgrade())
        {
            to.send(0, 100, &[]);
        }
        part
    }
}

/// Wraps a request's body for the handler.
pub(crate) fn request_body(
    source: impl BodySource + 'static,
    headers: &HeaderMap,
    back: &Weak<impl Sink + 'static>,
) -> RequestBody {
    let expects =
        headers.get(header::EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    let source: Box<dyn BodySource> = Box::new(source);
    let source = match expects {
        true => Box::new(ContinueBody { source, to: Some(back.clone()) }),
        false => source,
    };
    RequestBody::new(source, announced(headers))
}

/// Adds the fields that every HTTP/2 and HTTP/3 response has, and removes those that none may have. A wrong
/// `Content-Length` makes a response malformed (RFC 9113 8.1.1, RFC 9114 4.1.2), so it is corrected if the body's
/// length is known, as in HTTP/1.
pub(crate) fn complete(headers: &mut HeaderMap, method: &Method, status: StatusCode, body: &Body) {
    const CONNECTION_HEADERS: [HeaderName; 4] =
        [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, HeaderName::from_static("keep-alive")];
    for name in &CONNECTION_HEADERS {
        headers.remove(name);
    }
    if !headers.contains_key(header::DATE)
        && let Ok(now) = HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::now()))
    {
        headers.insert(header::DATE, now);
    }
    if status == StatusCode::NO_CONTENT || announced(headers).is_none() {
        headers.remove(header::CONTENT_LENGTH);
    }
    if let Some(length) = body.length().filter(|_| status != StatusCode::NO_CONTENT) {
        // Only the handler knows the length of a body that is not sent. An empty body needs no field.
        let is_sent = method != Method::HEAD && status != StatusCode::NOT_MODIFIED;
        if length > 0 || (is_sent && headers.contains_key(header::CONTENT_LENGTH)) {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
    }
}

/// The body of an outgoing response. If its length differs from the announced one, it fails, so that it cannot look
/// complete. Waits for its source are recorded in the connection's state, as they are not the client's fault.
pub(crate) struct Outgoing<'a> {
    kind: Kind,
    delivery: Delivery,
    /// Bytes of the parts that were handed out.
    fetched: u64,
    /// Rest of the required length.
    left: Option<u64>,
    waits: bool,
    connection: &'a Connection,
}

impl<'a> Outgoing<'a> {
    /// See [`length_to_keep`] for its length.
    pub(crate) fn new(body: Body, left: Option<u64>, connection: &'a Connection) -> Self {
        let (kind, delivery) = body.open();
        Self { kind, delivery, fetched: 0, left, waits: false, connection }
    }

    /// Counts bytes that have been passed to the client's stream.
    pub(crate) fn went(&mut self, bytes: usize) {
        self.delivery.sent += bytes as u64;
    }

    /// `true` if all of the body has been fetched.
    pub(crate) fn is_at_end(&self) -> bool {
        self.left.unwrap_or(0) == 0
            && match &self.kind {
                Kind::Empty | Kind::Upgrade(_) => true,
                Kind::Whole(_) => false,
                Kind::Stream(stream) => stream.remaining() == Some(0),
                Kind::Files(files) => files.remaining() == 0,
            }
    }

    /// The next part; `None` at the end.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<std::io::Result<Bytes>>> {
        let part = panics::call(|| self.poll_part(cx)).unwrap_or_else(|panic| {
            panic.note(&self.connection.shared.metrics);
            // A source that has panicked must not be polled again.
            self.kind = Kind::Empty;
            Poll::Ready(Some(Err(std::io::Error::other("the body's source panicked"))))
        });
        self.note(part.is_pending());
        part.map(|part| self.keep_length(part))
    }

    /// Enforces the announced length: a part that would exceed it is not sent.
    fn keep_length(&mut self, part: Option<std::io::Result<Bytes>>) -> Option<std::io::Result<Bytes>> {
        let why = match (&part, &mut self.left) {
            (Some(Ok(data)), Some(left)) => match left.checked_sub(data.len() as u64) {
                Some(rest) => {
                    *left = rest;
                    return part;
                }
                None => TOO_LONG,
            },
            (None, Some(left)) if *left > 0 => TOO_SHORT,
            _ => return part,
        };
        warn_of_length(why);
        Some(Err(std::io::Error::other(why)))
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<std::io::Result<Bytes>>> {
        let part = match &mut self.kind {
            // Neither HTTP/2 nor HTTP/3 has 101 (RFC 9113 8.6, RFC 9114 4.5).
            Kind::Empty | Kind::Upgrade(_) => None,
            Kind::Whole(_) => match std::mem::replace(&mut self.kind, Kind::Empty) {
                Kind::Whole(whole) => Some(Ok(Whole::into_bytes(whole))),
                _ => None,
            },
            Kind::Stream(stream) => loop {
                match ready!(stream.poll_chunk(cx)) {
                    Some(Ok(chunk)) if chunk.data.is_empty() => {}
                    part => break part.map(|chunk| chunk.map(|chunk| chunk.data)),
                }
            },
            // Charged, because the part waits in memory until its stream has room.
            Kind::Files(files) => files.next().map(|data| {
                let (data, mut charge) = (data?, self.connection.charge());
                match charge.grow(data.len() as u64) {
                    true => Ok(charge.cover(data)),
                    false => Err(std::io::Error::other("no room for more of the file in `http.memory`")),
                }
            }),
        };
        match &part {
            Some(Ok(data)) => self.fetched += data.len() as u64,
            Some(Err(_)) => {}
            None => self.kind = Kind::Empty,
        }
        Poll::Ready(part)
    }

    fn note(&mut self, waits: bool) {
        let state = &self.connection.state;
        if waits != self.waits {
            self.waits = waits;
            state.source_waits(waits);
        } else if !waits {
            state.body_moved();
        }
    }
}

impl Drop for Outgoing<'_> {
    fn drop(&mut self) {
        self.delivery.complete = self.is_at_end() && self.delivery.sent == self.fetched;
        // The stream is dropped before its end is reported.
        self.kind = Kind::Empty;
        self.note(false);
    }
}

/// Timeout of a response that waits for its client: per stream, the same limits as for a connection. The timer starts
/// with the first wait.
pub(crate) struct ClientTimeout<C> {
    connection: C,
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
    /// Start of the present wait for the client.
    began: Option<Instant>,
    /// Time waited since the last check, without the present wait; bytes that the client has taken of this response
    /// since then; and `State::taken_of_bodies` at that check.
    waited: Duration,
    taken: u64,
    before: u64,
}

/// Maximum wait of a response while the client reads others, in multiples of `client_timeout`. A client on a slow line
/// may read one response after the other.
const TURNS: u32 = 10;

impl<C: Deref<Target = Connection>> ClientTimeout<C> {
    pub(crate) fn new(connection: C) -> Self {
        let before = connection.state.taken_of_bodies();
        Self { connection, timer: None, began: None, waited: Duration::ZERO, taken: 0, before }
    }

    /// Records that the client has taken `bytes`.
    pub(crate) fn took(&mut self, bytes: usize) {
        self.connection.state.body_taken(bytes);
        self.taken += bytes as u64;
        if let Some(began) = self.began.take() {
            self.waited += began.elapsed();
        }
    }

    /// Polled whenever the client has no room. Ready when the client's time is up.
    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let began = *self.began.get_or_insert_with(Instant::now);
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(POLL_INTERVAL)));
            ready!(timer.as_mut().poll(cx));
            let now = Instant::now();
            timer.as_mut().reset((now + POLL_INTERVAL).into());
            if self.is_at_end(now.saturating_duration_since(began)) {
                return Poll::Ready(());
            }
        }
    }

    /// `true` if the client, which has taken nothing in the present wait, has used up its time.
    fn is_at_end(&mut self, wait: Duration) -> bool {
        let timeouts = self.connection.timeouts();
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let all = ms(self.waited + wait);
        if all <= timeouts.write {
            return false;
        }
        let of_all = self.connection.state.taken_of_bodies();
        if ms(wait) > timeouts.write || timeouts.is_too_slow(self.taken, all) {
            // The client may be reading other responses first. While budgets are scarce, that is not an excuse.
            let others_move = !timeouts.is_too_slow(of_all.wrapping_sub(self.before), all);
            let has_time = all <= timeouts.write.saturating_mul(u64::from(TURNS));
            return !(others_move && has_time && self.connection.shared.budgets.pressure() == 0);
        }
        (self.waited, self.taken, self.before) = (Duration::ZERO, 0, of_all);
        false
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_one_number_of_digits() {
        for (fields, expected) in [
            (&["4"][..], Some(4)),
            (&["4", "4"], Some(4)),
            (&["4", "5"], None),
            (&["4", "x"], None),
            (&["+4"], None),
            (&[""], None),
            (&["18446744073709551616"], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(header::CONTENT_LENGTH, HeaderValue::from_static(field));
            }
            assert_eq!(announced(&headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_length_that_is_not_the_bodys_is_corrected_where_it_is_known() {
        for (method, status, told, body, expected) in [
            (Method::GET, 200, None, "four", Some("4")),
            (Method::GET, 200, Some("4"), "four", Some("4")),
            (Method::GET, 200, Some("3"), "four", Some("4")),
            (Method::GET, 200, Some("9"), "four", Some("4")),
            (Method::GET, 200, Some("0"), "four", Some("4")),
            (Method::GET, 200, Some("4"), "", Some("0")),
            (Method::GET, 200, Some("four"), "four", Some("4")),
            (Method::HEAD, 200, Some("+4"), "", None),
            (Method::GET, 200, None, "", None),
            (Method::HEAD, 200, Some("4"), "", Some("4")),
            (Method::GET, 304, Some("4"), "", Some("4")),
            (Method::GET, 204, Some("4"), "", None),
        ] {
            let mut headers = HeaderMap::new();
            told.map(|told| headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static(told)));
            let status = StatusCode::from_u16(status).unwrap();
            complete(&mut headers, &method, status, &Body::whole(Bytes::from_static(body.as_bytes()).into()));
            let length = headers.get(header::CONTENT_LENGTH).map(|length| length.to_str().unwrap());
            assert_eq!(length, expected, "{method} {status} {told:?} {body:?}");
        }
    }
}
