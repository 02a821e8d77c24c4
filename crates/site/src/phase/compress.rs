//! Phase "compress": encodes a response's body when the client accepts it and it is worth it.
//!
//! A body at hand is encoded here and now (or in slices, if it is large). A file of moderate size is read for that, until
//! its encoded bytes, or that encoding is useless, are known by the file's identity: then it is neither read nor looked
//! at any more, and one that stays as it is goes its way through `sendfile`. Other streams are encoded as they come: what is ready of them at this moment is the sample.

use crate::compress::{Admission, Asked, Compressor, Done, Encoded, Encoding, How, Known, ONE_GO, Whole};
use crate::exchange::Exchange;
use bytes::{Bytes, BytesMut};
use howdah_budget::Charge;
use howdah_observe::Metrics;
use howdah_protocol::{Body, Chunk, ChunkStream, Response, Stream, Whole as WholeBody};
use http::header;
use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll, Waker};

/// The longest body of known length that is put together before it is encoded.
const MAX_GATHERED: u64 = 2 * 1024 * 1024;

/// As much of a longer stream is looked at before it is decided whether to encode it, if it is there.
const SAMPLE: usize = 16 * 1024;

/// Encodes a response if that is allowed and useful.
pub(crate) fn apply(exchange: &mut Exchange, response: &mut Response) {
    let (site, head, charge) = (&*exchange.site, &exchange.head, exchange.connection.charge());
    let asked = site.compressor.asked(&head.method, &head.headers, response.status());
    exchange.coding = encode(&site.compressor, &site.server.metrics, asked, response, charge);
}

/// Says how it has encoded `response`, for the log: `zstd`, `zstd/cache`, `zstd/stream`.
fn encode(
    compressor: &Compressor,
    metrics: &Metrics,
    mut asked: Asked,
    response: &mut Response,
    charge: Charge,
) -> Option<&'static str> {
    match std::mem::replace(response.body_mut(), Body::empty()).into_whole() {
        Ok(body) => return whole(compressor, metrics, &mut asked, response, body, charge),
        Err(body) => *response.body_mut() = body,
    }
    if !compressor.may_encode(&asked, response.status(), response.headers()) {
        // Only the fields can change.
        let status = response.status();
        let _ = compressor.stream(&asked, status, response.headers_mut(), None);
        return None;
    }
    let mut admission = None;
    if let Some(file) = response.body().file().copied() {
        let status = response.status();
        match compressor.known(&asked, status, response.headers_mut(), &file) {
            Known::Encoded(bytes, encoding) => {
                metrics.compression_cache_hits.inc();
                *response.body_mut() = Body::full(bytes);
                return Some(encoding.label());
            }
            Known::Plain => return None,
            Known::Nothing(place) => admission = place,
        }
    }
    let label = read(compressor, metrics, &mut asked, response, charge);
    if let Some(admission) = admission {
        note(admission, &asked, response, label);
    }
    label
}

/// Notes what became of a file, if that is the same the next time.
fn note(admission: Admission, asked: &Asked, response: &Response, label: Option<&'static str>) {
    match (label, response.body().as_full()) {
        (Some(_), Some(encoded)) => admission.complete(encoded.clone()),
        // Unless memory for an encoder was missing.
        (None, _) if asked.encodes() => admission.useless(),
        _ => {}
    }
}

/// Encodes what has to be read first.
fn read(
    compressor: &Compressor,
    metrics: &Metrics,
    asked: &mut Asked,
    response: &mut Response,
    charge: Charge,
) -> Option<&'static str> {
    let mut stream = match std::mem::replace(response.body_mut(), Body::empty()).into_stream() {
        Ok(stream) => stream,
        Err(body) => {
            *response.body_mut() = body;
            return None;
        }
    };
    let length = stream.remaining();
    let enough = if length.is_some_and(|length| length <= MAX_GATHERED) { usize::MAX } else { SAMPLE };
    let ready = gather(&mut stream, enough);
    match ready {
        Ready { end: true, chunks } => whole(compressor, metrics, asked, response, join(chunks).into(), charge),
        Ready { end: false, chunks } => {
            let charge = encoder_charge(asked, charge);
            streamed(compressor, asked, response, Resumed { chunks, rest: stream }, length, charge)
        }
    }
}

/// Memory that an encoder takes as long as its body goes out, with the output that waits; see `compress::stream`.
const ENCODER: u64 = 512 * 1024;

/// Charges an encoder. Without budget for it the body goes out as it is.
fn encoder_charge(asked: &mut Asked, mut charge: Charge) -> Charge {
    if asked.encodes() && !charge.grow(ENCODER) {
        asked.take_no_coding();
    }
    charge
}

/// An encoder's output, and what the encoder is charged.
struct Charged {
    stream: Stream,
    _charge: Charge,
}

impl ChunkStream for Charged {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        self.stream.poll_chunk(cx)
    }

    fn remaining(&self) -> Option<u64> {
        self.stream.remaining()
    }
}

fn whole(
    compressor: &Compressor,
    metrics: &Metrics,
    asked: &mut Asked,
    response: &mut Response,
    body: WholeBody,
    mut charge: Charge,
) -> Option<&'static str> {
    if body.len() > ONE_GO {
        charge = encoder_charge(asked, charge);
    }
    let Done { body, encoding } = compressor.complete(asked, response.status(), response.headers_mut(), body);
    match (&body, encoding.map(|encoding| encoding.how)) {
        (Whole::Bytes(_), Some(How::Cached)) => metrics.compression_cache_hits.inc(),
        (_, Some(_)) => metrics.compression_cache_misses.inc(),
        (_, None) => {}
    }
    *response.body_mut() = match body {
        Whole::Bytes(bytes) => Body::whole(bytes),
        Whole::Slices(slices) => Body::stream(Box::new(Charged { stream: slices, _charge: charge })),
    };
    encoding.map(Encoding::label)
}

fn streamed(
    compressor: &Compressor,
    asked: &Asked,
    response: &mut Response,
    source: Resumed,
    length: Option<u64>,
    charge: Charge,
) -> Option<&'static str> {
    let status = response.status();
    if let Some(length) = length {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    // The longest part that is ready says most about the body.
    let ready = source.chunks.iter().filter_map(|chunk| chunk.as_ref().ok());
    let sample = ready.map(|chunk| chunk.data.clone()).max_by_key(Bytes::len);
    let begun = compressor.stream(asked, status, response.headers_mut(), sample.as_deref());
    let (stream, label): (Stream, _) = match begun {
        Some((encoder, encoding)) => {
            let stream: Stream = Box::new(Encoded::new(Box::new(source), encoder));
            (Box::new(Charged { stream, _charge: charge }), Some(encoding.label()))
        }
        None => (Box::new(source), None),
    };
    *response.body_mut() = Body::stream(stream);
    label
}

/// Data that a stream had ready.
struct Ready {
    chunks: VecDeque<io::Result<Chunk>>,
    /// The stream has ended, and no chunk is an error.
    end: bool,
}

/// Takes ready parts until they have `enough` bytes. The next poll of the stream registers for the rest.
fn gather(stream: &mut Stream, enough: usize) -> Ready {
    let mut chunks = VecDeque::new();
    let mut cx = Context::from_waker(Waker::noop());
    let mut bytes = 0;
    while bytes < enough {
        match stream.poll_chunk(&mut cx) {
            Poll::Ready(Some(Ok(chunk))) => {
                bytes += chunk.data.len();
                chunks.push_back(Ok(chunk));
            }
            Poll::Ready(Some(Err(error))) => {
                chunks.push_back(Err(error));
                break;
            }
            Poll::Ready(None) => return Ready { chunks, end: true },
            Poll::Pending => break,
        }
    }
    Ready { chunks, end: false }
}

/// The chunks as one piece; flushes do not matter any more once the end is there.
fn join(mut chunks: VecDeque<io::Result<Chunk>>) -> Bytes {
    if chunks.len() == 1
        && let Some(Ok(only)) = chunks.pop_front()
    {
        return only.data;
    }
    let mut all = BytesMut::with_capacity(chunks.iter().flatten().map(|chunk| chunk.data.len()).sum());
    chunks.iter().flatten().for_each(|chunk| all.extend_from_slice(&chunk.data));
    all.freeze()
}

/// A stream of which some parts have been taken already.
struct Resumed {
    chunks: VecDeque<io::Result<Chunk>>,
    rest: Stream,
}

impl ChunkStream for Resumed {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        match self.chunks.pop_front() {
            Some(chunk) => Poll::Ready(Some(chunk)),
            None => self.rest.poll_chunk(cx),
        }
    }

    fn remaining(&self) -> Option<u64> {
        let taken: u64 = self.chunks.iter().flatten().map(|chunk| chunk.data.len() as u64).sum();
        self.rest.remaining().map(|rest| rest + taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, Method};
    use std::io::Read;

    /// Parts, of which those before a `None` are ready at once.
    struct Parts {
        parts: VecDeque<Option<Bytes>>,
        known: bool,
    }

    impl ChunkStream for Parts {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
            match self.parts.pop_front() {
                None => Poll::Ready(None),
                Some(None) => Poll::Pending,
                Some(Some(data)) => Poll::Ready(Some(Ok(Chunk { data, flush: false }))),
            }
        }

        fn remaining(&self) -> Option<u64> {
            self.known.then(|| self.parts.iter().flatten().map(|part| part.len() as u64).sum())
        }
    }

    fn page(number: usize) -> Bytes {
        format!("<p>This is line {number} of a page that repeats itself.</p>\n").repeat(60).into()
    }

    /// The response for a client with this `Accept-Encoding`: label, whether the body is complete, its bytes.
    fn send(compressor: &Compressor, accept: &'static str, body: Body) -> (Option<&'static str>, bool, Vec<u8>) {
        let mut response = Response::new(body);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
        let request = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(accept))]);
        let charge = Charge::new(howdah_budget::Budgets::new(1 << 30, 1 << 30).memory, None);
        let asked = compressor.asked(&Method::GET, &request, response.status());
        let label = encode(compressor, &Metrics::new(), asked, &mut response, charge);
        let (head, body) = response.into_parts();
        assert_eq!(head.headers[header::VARY], "Accept-Encoding");
        assert_eq!(head.headers.contains_key(header::CONTENT_ENCODING), label.is_some());
        let whole = body.as_full().cloned();
        let at_hand = whole.is_some();
        let sent = whole.map_or_else(|| drain(body.into_stream().ok().unwrap()), |bytes| bytes.to_vec());
        let plain = match label {
            None => sent,
            Some(_) => {
                let mut plain = Vec::new();
                flate2::read::GzDecoder::new(&sent[..]).read_to_end(&mut plain).unwrap();
                plain
            }
        };
        (label, at_hand, plain)
    }

    fn drain(mut stream: Stream) -> Vec<u8> {
        let mut all = Vec::new();
        for _ in 0..1000 {
            match stream.poll_chunk(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(chunk)) => all.extend_from_slice(&chunk.unwrap().data),
                Poll::Ready(None) => return all,
                Poll::Pending => {}
            }
        }
        panic!("no end");
    }

    fn stream(known: bool, waits: bool) -> Body {
        let mut parts: VecDeque<_> = (1..4).map(|number| Some(page(number))).collect();
        if waits {
            parts.insert(2, None);
        }
        Body::stream(Box::new(Parts { parts, known }))
    }

    #[test]
    fn each_kind_of_body_arrives() {
        let compressor = Compressor::new(&howdah_config::CompressionSettings::default());
        let all = [page(1), page(2), page(3)].concat();
        for known in [true, false] {
            for waits in [true, false] {
                assert_eq!(send(&compressor, "", stream(known, waits)), (None, false, all.clone()));
                let (label, at_hand, plain) = send(&compressor, "gzip", stream(known, waits));
                // A stream of unknown length that is there to its end, and not longer than a sample, is a whole body.
                let gathered = !waits;
                assert_eq!((label, at_hand), (Some(if gathered { "gzip" } else { "gzip/stream" }), gathered));
                assert_eq!(plain, all);
            }
        }
        // The third sighting of the same bytes, whichever kind of body they came in.
        let (label, at_hand, plain) = send(&compressor, "gzip", Body::full(all.clone().into()));
        assert_eq!((label, at_hand), (Some("gzip/cache"), true));
        assert!(plain == all);
        assert_eq!(send(&compressor, "gzip", Body::empty()), (None, true, Vec::new()));
    }
}
