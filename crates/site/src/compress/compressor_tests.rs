//! Tests of the compressor: header fields and bodies for GET and HEAD, cached, declined, large, streamed.

use super::*;
use crate::compress::decode::{bodies, decode};
use howdah_protocol::ChunkStream;
use http::header::{ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, VARY};
use std::task::{Context, Poll, Waker};

fn compressor() -> Compressor {
    Compressor::new(&CompressionSettings::default())
}

fn request(accept: &str) -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_str(accept).unwrap())])
}

fn page_head(length: usize) -> HeaderMap {
    HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=UTF-8")),
        (CONTENT_LENGTH, HeaderValue::from(length)),
        (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (ETAG, HeaderValue::from_static("\"v1\"")),
        (VARY, HeaderValue::from_static("Cookie")),
    ])
}

struct Sent {
    headers: HeaderMap,
    body: Whole,
    label: &'static str,
}

impl Sent {
    fn has(&self, name: HeaderName) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn bytes(self) -> Vec<u8> {
        match self.body {
            Whole::Bytes(body) => body.into_bytes().to_vec(),
            Whole::Slices(mut slices) => {
                let mut out = Vec::new();
                loop {
                    match slices.poll_chunk(&mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(Some(chunk)) => out.extend_from_slice(&chunk.unwrap().data),
                        Poll::Ready(None) => return out,
                        Poll::Pending => {}
                    }
                }
            }
        }
    }
}

fn send(with: &Compressor, method: Method, accept: &str, headers: HeaderMap, body: &[u8]) -> Sent {
    let mut headers = headers;
    let asked = with.asked(&method, &request(accept), StatusCode::OK);
    let done = with.complete(&asked, StatusCode::OK, &mut headers, Bytes::copy_from_slice(body).into());
    Sent { headers, body: done.body, label: done.encoding.map_or("-", Encoding::label) }
}

#[test]
fn a_page_in_every_coding() {
    let page = bodies::text(20_000);
    for (accept, algorithm) in [("gzip", Algorithm::Gzip), ("br", Algorithm::Brotli), ("zstd", Algorithm::Zstd)] {
        let got = send(&compressor(), Method::GET, accept, page_head(page.len()), &page);
        assert_eq!(got.label, accept);
        assert_eq!(got.has(CONTENT_ENCODING), accept);
        assert_eq!(got.has(VARY), "Cookie, Accept-Encoding");
        assert_eq!(got.has(ETAG), "W/\"v1\"");
        assert_eq!(got.has(CONTENT_LENGTH), "");
        assert_eq!(got.has(ACCEPT_RANGES), "");
        assert_eq!(decode(algorithm, &got.bytes()), page);
    }
}

#[test]
fn responses_that_are_sent_unchanged_keep_their_fields() {
    let page = bodies::text(20_000);
    let base64 = bodies::base64(20_000);
    let small = bodies::text(500);
    for (accept, body) in [("", &page), ("deflate", &page), ("gzip;q=0", &page), ("gzip", &base64), ("zstd", &small)] {
        let got = send(&compressor(), Method::GET, accept, page_head(body.len()), body);
        let mut expected = page_head(body.len());
        expected.insert(VARY, HeaderValue::from_static("Cookie, Accept-Encoding"));
        assert_eq!(got.headers, expected, "{accept}");
        assert_eq!(got.label, "-");
        assert_eq!(got.bytes(), *body);
    }
    let mut picture = page_head(page.len());
    picture.insert(CONTENT_TYPE, HeaderValue::from_static("image/png"));
    let got = send(&compressor(), Method::GET, "gzip", picture.clone(), &page);
    assert_eq!((got.headers.clone(), got.bytes()), (picture, page));
}

#[test]
fn disabled_compression_changes_nothing() {
    let page = bodies::text(20_000);
    let settings = CompressionSettings { enabled: false, ..Default::default() };
    for method in [Method::GET, Method::HEAD] {
        let got = send(&Compressor::new(&settings), method, "gzip", page_head(page.len()), &page);
        assert_eq!(got.headers, page_head(page.len()));
        assert_eq!(got.label, "-");
    }
}

#[test]
fn the_third_response_comes_from_the_cache() {
    let with = compressor();
    let page = bodies::text(50_000);
    let labels: Vec<_> = (0..4)
        .map(|_| {
            let got = send(&with, Method::GET, "gzip", page_head(page.len()), &page);
            let seen = (got.label, got.has(CONTENT_ENCODING).to_owned(), got.has(ETAG).to_owned());
            assert_eq!(decode(Algorithm::Gzip, &got.bytes()), page);
            assert_eq!((seen.1.as_str(), seen.2.as_str()), ("gzip", "W/\"v1\""));
            seen.0
        })
        .collect();
    assert_eq!(labels, ["gzip", "gzip", "gzip/cache", "gzip/cache"]);
    let other = send(&with, Method::GET, "br", page_head(page.len()), &page);
    assert_eq!(other.label, "br");
}

#[test]
fn large_bodies_go_in_slices_and_into_the_cache() {
    let with = compressor();
    let page = bodies::text(ONE_GO * 3);
    for label in ["zstd/stream", "zstd/stream", "zstd/cache"] {
        let got = send(&with, Method::GET, "zstd", page_head(page.len()), &page);
        assert_eq!(got.label, label);
        assert_eq!(got.has(CONTENT_LENGTH), "");
        assert_eq!(decode(Algorithm::Zstd, &got.bytes()), page);
    }
}

#[test]
fn a_body_that_compression_does_not_shrink_is_not_tried_again() {
    let with = compressor();
    // Repeats in the middle of each quarter, where a body is sampled, so that compression seems worthwhile.
    let mut noise = bodies::random(100_000);
    for quarter in noise.chunks_exact_mut(25_000) {
        quarter[12_000..13_000].fill(b'x');
    }
    for _ in 0..4 {
        let got = send(&with, Method::GET, "gzip", page_head(noise.len()), &noise);
        assert_eq!((got.label, got.has(CONTENT_LENGTH)), ("-", "100000"));
        assert_eq!(got.bytes(), noise);
    }
    assert_eq!(with.cache.usage().0, 1);
}

#[test]
fn head_has_the_fields_of_get_and_no_body() {
    let with = compressor();
    let page = bodies::text(50_000);
    let small = bodies::text(500);
    let base64 = bodies::base64(50_000);
    let mut cached = 0;
    for _ in 0..4 {
        for body in [&page, &small, &base64] {
            let head = send(&with, Method::HEAD, "gzip", page_head(body.len()), body);
            let get = send(&with, Method::GET, "gzip", page_head(body.len()), body);
            let mut fields = head.headers.clone();
            if head.label == "gzip/cache" {
                cached += 1;
                assert_eq!(fields.remove(CONTENT_LENGTH).unwrap(), get_length(&with, body).as_str());
            }
            assert_eq!(fields, get.headers);
            assert!(head.bytes().is_empty());
        }
    }
    assert!(cached > 0);
}

fn get_length(with: &Compressor, body: &[u8]) -> String {
    send(with, Method::GET, "gzip", page_head(body.len()), body).bytes().len().to_string()
}

#[test]
fn head_without_a_body_gets_no_fields_that_may_be_wrong() {
    let with = compressor();
    let got = send(&with, Method::HEAD, "gzip", page_head(50_000), b"");
    assert_eq!(got.headers.len(), 3, "{:?}", got.headers);
    assert_eq!((got.has(ETAG), got.has(VARY)), ("W/\"v1\"", "Cookie, Accept-Encoding"));
    // Too small, or not requested: the response stays unchanged.
    for (accept, length) in [("gzip", 900), ("", 50_000)] {
        let got = send(&with, Method::HEAD, accept, page_head(length), b"");
        assert_eq!(got.has(CONTENT_LENGTH), length.to_string());
        assert_eq!((got.has(ETAG), got.has(VARY)), ("\"v1\"", "Cookie, Accept-Encoding"));
    }
}

#[test]
fn not_modified() {
    let with = compressor();
    let mut asked_with = request("gzip");
    asked_with.insert(IF_NONE_MATCH, HeaderValue::from_static("W/\"v1\""));
    for method in [Method::GET, Method::HEAD] {
        let asked = with.asked(&method, &asked_with, StatusCode::NOT_MODIFIED);
        let mut headers = page_head(7);
        headers.remove(CONTENT_LENGTH);
        let done = with.complete(&asked, StatusCode::NOT_MODIFIED, &mut headers, Bytes::new().into());
        assert!(done.encoding.is_none());
        assert_eq!(headers[ETAG], "W/\"v1\"");
        assert_eq!(headers[VARY], "Cookie, Accept-Encoding");
        assert!(!headers.contains_key(CONTENT_ENCODING));
    }
}

#[test]
fn partial_content_is_not_compressed_and_varies_as_the_whole_does() {
    let with = compressor();
    let mut headers = page_head(5000);
    let asked = with.asked(&Method::GET, &request("gzip"), StatusCode::PARTIAL_CONTENT);
    let body = Bytes::from(bodies::text(5000));
    let done = with.complete(&asked, StatusCode::PARTIAL_CONTENT, &mut headers, body.clone().into());
    assert!(matches!(done.body, Whole::Bytes(sent) if sent.equals(&body)));
    assert_eq!(headers[VARY], "Cookie, Accept-Encoding");
    headers.insert(VARY, page_head(5000)[VARY].clone());
    assert_eq!(headers, page_head(5000));
}

#[test]
fn streams() {
    let with = compressor();
    let page = bodies::text(5000);
    let base64 = bodies::base64(5000);
    let begin = |method: Method, accept: &str, declared: Option<usize>, first: Option<&[u8]>| {
        let mut headers = page_head(declared.unwrap_or(0));
        if declared.is_none() {
            headers.remove(CONTENT_LENGTH);
        }
        let asked = with.asked(&method, &request(accept), StatusCode::OK);
        let begun = with.stream(&asked, StatusCode::OK, &mut headers, first);
        assert_eq!(headers[VARY], "Cookie, Accept-Encoding");
        (begun.map_or("-", |(_, encoding)| encoding.label()), headers)
    };
    for (declared, first) in [(None, None), (None, Some(&page[..])), (Some(5000), None), (None, Some(&base64[..300]))] {
        let (label, headers) = begin(Method::GET, "br", declared, first);
        assert_eq!(label, "br/stream");
        assert_eq!(
            (&headers[CONTENT_ENCODING], &headers[ETAG]),
            (&"br".parse().unwrap(), &"W/\"v1\"".parse().unwrap())
        );
        assert!(!headers.contains_key(CONTENT_LENGTH) && !headers.contains_key(ACCEPT_RANGES));
    }
    for (accept, declared, first) in [("", None, None), ("br", Some(700), None), ("br", None, Some(&base64[..]))] {
        let (label, headers) = begin(Method::GET, accept, declared, first);
        assert_eq!(label, "-");
        assert!(!headers.contains_key(CONTENT_ENCODING) && headers.contains_key(ACCEPT_RANGES));
        assert_eq!(headers[ETAG], "\"v1\"");
    }
    let (label, headers) = begin(Method::HEAD, "br", None, None);
    assert_eq!((label, headers.contains_key(CONTENT_ENCODING), headers.len()), ("-", false, 3));
}

#[test]
fn a_declared_length_that_is_wrong_does_not_break_the_stream() {
    use crate::compress::stream::{Encoded, SingleChunk};
    for accept in ["gzip", "br", "zstd"] {
        let with = compressor();
        let asked = with.asked(&Method::GET, &request(accept), StatusCode::OK);
        for (declared, real) in [(5000, 9000), (9000, 5000)] {
            let mut headers = page_head(declared);
            let (encoder, encoding) = with.stream(&asked, StatusCode::OK, &mut headers, None).unwrap();
            let body = bodies::text(real);
            let slices = Box::new(Encoded::new(Box::new(SingleChunk::new(body.clone().into())), encoder));
            let sent = Sent { headers, body: Whole::Slices(slices), label: "" }.bytes();
            assert_eq!(decode(encoding.algorithm, &sent), body, "{accept} {declared}");
        }
    }
}
