//! Phase "compress": compresses a response body if the client accepts it and it saves enough.
//!
//! A complete body is compressed at once, or in slices if it is large. So is a stream that is ready to its end, such as
//! a file of at most `MAX_GATHERED` bytes. From the third request on, unless it was evicted, the result for a file is
//! found in the cache by the file's identity: the compressed bytes if it has at most `ONE_GO`, so it is not read, or
//! that compression is useless. Other streams are compressed as they arrive; the longest chunk that is ready is the
//! sample.

use crate::compress::{
    Admission, CompressionRequest, Compressor, EncodeResult, Encoded, Encoding, EncodingSource, FileLookup, ONE_GO,
    Whole,
};
use crate::exchange::Exchange;
use bytes::{Bytes, BytesMut};
use howdah_budget::Charge;
use howdah_observe::Metrics;
use howdah_protocol::{Body, Chunk, ChunkStream, Response, Stream, Whole as WholeBody};
use http::header;
use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll, Waker};

/// Maximum length in bytes of a stream that is collected before it is compressed, if its length is known.
const MAX_GATHERED: u64 = 2 * 1024 * 1024;

/// Bytes of any other stream that are collected, as far as they are ready, to decide if compression pays.
const SAMPLE: usize = 16 * 1024;

/// Compresses a response if that is allowed and useful.
pub(crate) fn apply(exchange: &mut Exchange, response: &mut Response) {
    let (site, head, charge) = (&*exchange.site, &exchange.head, exchange.connection.charge());
    let asked = site.compressor.asked(&head.method, &head.headers, response.status());
    exchange.coding = encode(&site.compressor, &site.server.metrics, asked, response, charge);
}

/// Compresses `response` and returns the label for the log: `zstd`, `zstd/cache`, `zstd/stream`.
fn encode(
    compressor: &Compressor,
    metrics: &Metrics,
    mut asked: CompressionRequest,
    response: &mut Response,
    charge: Charge,
) -> Option<&'static str> {
    match std::mem::replace(response.body_mut(), Body::empty()).into_whole() {
        Ok(body) => return whole(compressor, metrics, &mut asked, response, body, charge),
        Err(body) => *response.body_mut() = body,
    }
    if !compressor.may_encode(&asked, response.status(), response.headers()) {
        // Only the header fields can change.
        let status = response.status();
        let _ = compressor.stream(&asked, status, response.headers_mut(), None);
        return None;
    }
    let mut admission = None;
    if let Some(file) = response.body().file().copied() {
        let status = response.status();
        match compressor.known(&asked, status, response.headers_mut(), &file) {
            FileLookup::Encoded(bytes, encoding) => {
                metrics.compression_cache_hits.inc();
                *response.body_mut() = Body::full(bytes);
                return Some(encoding.label());
            }
            FileLookup::Plain => return None,
            FileLookup::Nothing(place) => admission = place,
        }
    }
    let label = read(compressor, metrics, &mut asked, response, charge);
    if let Some(admission) = admission {
        note(admission, &asked, response, label);
    }
    label
}

/// Caches the result for a file, unless it may differ the next time.
fn note(admission: Admission, asked: &CompressionRequest, response: &Response, label: Option<&'static str>) {
    match (label, response.body().as_full()) {
        (Some(_), Some(encoded)) => admission.complete(encoded.clone()),
        // Not cached if the budget for an encoder was exhausted, which clears the coding in `asked`.
        (None, _) if asked.encodes() => admission.useless(),
        _ => {}
    }
}

/// Compresses a body that must be read first.
fn read(
    compressor: &Compressor,
    metrics: &Metrics,
    asked: &mut CompressionRequest,
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
        ReadyChunks { end: true, chunks } => whole(compressor, metrics, asked, response, join(chunks).into(), charge),
        ReadyChunks { end: false, chunks } => {
            let charge = encoder_charge(asked, charge);
            streamed(compressor, asked, response, Resumed { chunks, rest: stream }, length, charge)
        }
    }
}

/// Bytes charged for an encoder and its pending output while its body is sent; see `compress::stream`.
const ENCODER: u64 = 512 * 1024;

/// Charges an encoder to the budget. If the budget is exhausted, the body is sent uncompressed.
fn encoder_charge(asked: &mut CompressionRequest, mut charge: Charge) -> Charge {
    if asked.encodes() && !charge.grow(ENCODER) {
        asked.take_no_coding();
    }
    charge
}

/// An encoder's output, which holds the encoder's charge until it is dropped.
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
    asked: &mut CompressionRequest,
    response: &mut Response,
    body: WholeBody,
    mut charge: Charge,
) -> Option<&'static str> {
    if body.len() > ONE_GO {
        charge = encoder_charge(asked, charge);
    }
    let EncodeResult { body, encoding } = compressor.complete(asked, response.status(), response.headers_mut(), body);
    match (&body, encoding.map(|encoding| encoding.how)) {
        (Whole::Bytes(_), Some(EncodingSource::Cached)) => metrics.compression_cache_hits.inc(),
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
    asked: &CompressionRequest,
    response: &mut Response,
    source: Resumed,
    length: Option<u64>,
    charge: Charge,
) -> Option<&'static str> {
    let status = response.status();
    if let Some(length) = length {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    // The longest chunk that is ready is the best sample of the body.
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

/// Data that a stream had ready without waiting.
struct ReadyChunks {
    chunks: VecDeque<io::Result<Chunk>>,
    /// `true` if the stream has ended without an error.
    end: bool,
}

/// Takes ready chunks until they have `enough` bytes. Uses a no-op waker; the next poll registers the real one.
fn gather(stream: &mut Stream, enough: usize) -> ReadyChunks {
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
            Poll::Ready(None) => return ReadyChunks { chunks, end: true },
            Poll::Pending => break,
        }
    }
    ReadyChunks { chunks, end: false }
}

/// Joins the chunks. Their flush flags no longer matter because the body is complete.
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

/// A stream whose first chunks were already taken.
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
                // A stream of unknown length that has arrived completely, and is not longer than a sample, is treated
                // as a whole body.
                let gathered = !waits;
                assert_eq!((label, at_hand), (Some(if gathered { "gzip" } else { "gzip/stream" }), gathered));
                assert_eq!(plain, all);
            }
        }
        // The third sighting of the same bytes, now in another kind of body.
        let (label, at_hand, plain) = send(&compressor, "gzip", Body::full(all.clone().into()));
        assert_eq!((label, at_hand), (Some("gzip/cache"), true));
        assert!(plain == all);
        assert_eq!(send(&compressor, "gzip", Body::empty()), (None, true, Vec::new()));
    }
}
