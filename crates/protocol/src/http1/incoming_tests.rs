//! Tests of `incoming`: bodies by length and by chunks, as a whole and byte by byte, and invalid ones.

use super::*;

/// Decodes a body whose bytes arrive in pieces of this size. Returns the body, `true` if it is complete, and the bytes
/// after it.
fn decoded(mut decoder: Decoder, bytes: &[u8], step: usize) -> Result<(Vec<u8>, bool, Vec<u8>), Broken> {
    let (mut all, mut input) = (Vec::new(), BytesMut::new());
    for piece in bytes.chunks(step) {
        input.extend_from_slice(piece);
        while let Some(data) = decoder.take(&mut input)? {
            assert!(!data.is_empty());
            all.extend_from_slice(&data);
        }
    }
    Ok((all, decoder.is_done(), input.to_vec()))
}

const STEPS: [usize; 4] = [1, 2, 7, 1000];

#[test]
fn a_body_of_known_length_ends_there() {
    for step in STEPS {
        let (body, done, rest) = decoded(Decoder::Length(5), b"helloGET /", step).unwrap();
        assert_eq!((&body[..], done, &rest[..]), (&b"hello"[..], true, &b"GET /"[..]));
        let (body, done, _) = decoded(Decoder::Length(6), b"hello", step).unwrap();
        assert_eq!((&body[..], done), (&b"hello"[..], false));
    }
    assert!(Decoder::DONE.is_done());
}

#[test]
fn chunks_are_joined_and_extensions_and_trailers_dropped() {
    for chunked in [
        "4\r\nwiki\r\n5\r\npedia\r\n0\r\n\r\n",
        "0004\r\nwiki\r\n5 \t;a=b\r\npedia\r\n000\r\n\r\n",
        "4;x=\"y\"\r\nwiki\r\n5\r\npedia\r\n0;z\r\nX-Sum: 1\r\nY: 2\r\n\r\n",
        "9\r\nwikipedia\r\n0\r\n\r\n",
    ] {
        for step in STEPS {
            let (body, done, rest) = decoded(Decoder::chunked(), format!("{chunked}GET").as_bytes(), step).unwrap();
            assert_eq!((&body[..], done, &rest[..]), (&b"wikipedia"[..], true, &b"GET"[..]), "{chunked:?}");
        }
    }
    let (body, done, _) = decoded(Decoder::chunked(), b"a\r\n0123456789\r\nA\r\n0123456789\r\n", 3).unwrap();
    assert_eq!((body.len(), done), (20, false));
}

#[test]
fn an_invalid_chunk_is_refused() {
    for (bytes, why) in [
        ("\r\n", Broken::Chunk),
        ("zz\r\n", Broken::Chunk),
        (" 4\r\nwiki\r\n", Broken::Chunk),
        ("-1\r\n", Broken::Chunk),
        ("0x4\r\nwiki\r\n", Broken::Chunk),
        ("4\nwiki\r\n", Broken::Chunk),
        ("4\r4", Broken::Chunk),
        ("4 4\r\n", Broken::Chunk),
        ("4;a\nb\r\n", Broken::Chunk),
        ("4\r\nwikiX", Broken::Chunk),
        ("4\r\nwiki\n", Broken::Chunk),
        ("4\r\nwiki\rX", Broken::Chunk),
        ("0\r\n\rX", Broken::Chunk),
        ("0\r\nA: b\rX", Broken::Chunk),
        ("0\r\nnonsense\r\n\r\n", Broken::Trailers),
        ("0\r\nA: b\nC: d\r\n\r\n", Broken::Trailers),
        ("0\r\n\n\r\n", Broken::Trailers),
        ("0\r\nA : b\r\n\r\n", Broken::Trailers),
        ("0\r\n A: b\r\n\r\n", Broken::Trailers),
        ("11111111111111111\r\n", Broken::Length),
    ] {
        for step in STEPS {
            assert_eq!(decoded(Decoder::chunked(), bytes.as_bytes(), step).unwrap_err(), why, "{bytes:?}");
        }
    }
    let long = format!("4;{}\r\n", "e".repeat(MAX_EXTENSION_BYTES));
    assert_eq!(decoded(Decoder::chunked(), long.as_bytes(), 100).unwrap_err(), Broken::Extensions);
    let long = format!("0\r\nA: {}\r\n", "e".repeat(MAX_TRAILER_BYTES));
    assert_eq!(decoded(Decoder::chunked(), long.as_bytes(), 100).unwrap_err(), Broken::Trailers);
    let many = format!("0\r\n{}\r\n", "A: b\r\n".repeat(MAX_TRAILER_LINES + 1));
    assert_eq!(decoded(Decoder::chunked(), many.as_bytes(), 100).unwrap_err(), Broken::Trailers);
}

#[test]
fn a_broken_body_stays_broken() {
    let mut decoder = Decoder::chunked();
    assert_eq!(decoder.take(&mut BytesMut::from("zz\r\n")).unwrap_err(), Broken::Chunk);
    assert_eq!(decoder.take(&mut BytesMut::from("4\r\nwiki\r\n0\r\n\r\n")).unwrap_err(), Broken::Chunk);
    assert!(!decoder.is_done());
}
