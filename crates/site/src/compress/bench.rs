//! Figures for the documentation, not assertions:
//! `cargo test --release -p howdah-site compress::bench -- --ignored --nocapture`.

use super::cache::{Cache, CacheLookup};
use super::decode::bodies;
use super::{Coding, Compressor, encode, negotiate, policy, sample};
use bytes::Bytes;
use howdah_config::{Algorithm, CompressionSettings};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::hint::black_box;
use std::time::Instant;

fn time<T>(name: &str, rounds: u32, mut work: impl FnMut() -> T) {
    let mut best = f64::MAX;
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..rounds {
            black_box(work());
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
    }
    println!("{name:45} {best:9.3} µs");
}

fn page_head() -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=UTF-8"),
        (header::CACHE_CONTROL, "private, must-revalidate"),
        (header::SET_COOKIE, "session=0123456789abcdef; path=/"),
        (header::SERVER, "howdah"),
        (header::VARY, "Cookie"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
}

#[test]
#[ignore = "prints figures"]
fn figures() {
    let order = [Algorithm::Zstd, Algorithm::Brotli, Algorithm::Gzip];
    time("negotiate: gzip", 10_000, || negotiate::choose([&b"gzip"[..]], black_box(&order)));
    time("negotiate: gzip, deflate, br, zstd", 10_000, || {
        negotiate::choose([black_box(&b"gzip, deflate, br, zstd"[..])], &order)
    });
    let (head, types) = (page_head(), policy::TypeList::new(&CompressionSettings::default().types));
    time("judge", 10_000, || policy::judge(StatusCode::OK, black_box(&head), &types));
    for (name, body, _) in bodies::all() {
        println!("-- {name}, {} bytes, estimated {}", body.len(), sample::estimate(&body));
        time("sample", 1000, || sample::estimate(black_box(&body)));
        for coding in [
            Coding { algorithm: Algorithm::Gzip, level: 1 },
            Coding { algorithm: Algorithm::Gzip, level: 5 },
            Coding { algorithm: Algorithm::Zstd, level: 3 },
            Coding { algorithm: Algorithm::Brotli, level: 2 },
            Coding { algorithm: Algorithm::Brotli, level: 4 },
        ] {
            let size = encode::whole(coding, &body).map_or(0, |encoded| encoded.len());
            time(&format!("{} {} -> {size}", coding.algorithm.word(), coding.level), 10, || {
                encode::whole(coding, &body)
            });
        }
    }
    hits();
}

fn hits() {
    let coding = Coding { algorithm: Algorithm::Gzip, level: 1 };
    for length in [2_000, 50_000, 521_000] {
        let cache = Cache::new(16 << 20);
        let body = bodies::text(length);
        let _ = cache.look(coding, &body);
        if let CacheLookup::Again(admission) = cache.look(coding, &body) {
            admission.complete(Bytes::from_static(b"encoded"));
        }
        time(&format!("cache hit {length}"), 200, || cache.look(coding, black_box(&body)));
        time(&format!("  of which the first hash {length}"), 200, || cache.sample(black_box(&body[..])));
        let copy = body.clone();
        time(&format!("  of which compare {length}"), 200, || black_box(&body) == black_box(&copy));
    }
    let compressor = Compressor::new(&CompressionSettings::default());
    let mut request = HeaderMap::new();
    request.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate, br, zstd"));
    let body = Bytes::from(bodies::text(50_000));
    let base64 = Bytes::from(bodies::base64(51_200));
    let head = page_head();
    let respond = |body: &Bytes| {
        let asked = compressor.asked(&Method::GET, &request, StatusCode::OK);
        let mut headers = head.clone();
        compressor.complete(&asked, StatusCode::OK, &mut headers, body.clone().into())
    };
    time("head clone (part of the next two)", 1000, || head.clone());
    time("whole phase, hit, 50 KB", 200, || respond(&body));
    time("whole phase, declined, 51 KB base64", 200, || respond(&base64));
}

/// Resident memory of idle stream encoders.
#[test]
#[ignore = "prints figures"]
fn stream_memory() {
    let resident = || -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4
    };
    for coding in [
        Coding { algorithm: Algorithm::Gzip, level: 5 },
        Coding { algorithm: Algorithm::Zstd, level: 3 },
        Coding { algorithm: Algorithm::Brotli, level: 2 },
        Coding { algorithm: Algorithm::Brotli, level: 4 },
    ] {
        let data = bodies::text(200_000);
        for length in [1000, 200_000] {
            let before = resident();
            let encoders: Vec<_> = (0..50)
                .map(|_| {
                    let mut encoder = super::StreamEncoder::new(coding, None).unwrap();
                    encoder.write(&data[..length], true).unwrap();
                    encoder
                })
                .collect();
            println!("{coding:?} after {length} bytes: {} KB each", (resident() - before) / encoders.len());
        }
    }
}
