//! Clients that write their own bytes.

use crate::support::{MAX_WAIT, Server};
use quinn::{Connection, ConnectionError, ReadError, VarInt};

/// A request's head: GET / to localhost, using the static table where possible.
const GET: &[u8] = b"\0\0\xd1\xd7\xc1\x50\x09localhost";

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    assert!(kind < 64);
    [&[kind, 0x40 | (payload.len() >> 8) as u8, payload.len() as u8], payload].concat()
}

async fn closed_with(connection: &Connection) -> u64 {
    match tokio::time::timeout(MAX_WAIT, connection.closed()).await.expect("the connection goes on") {
        ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
        other => panic!("{other}"),
    }
}

/// Sends these bytes on a request stream, with or without its end; returns the response's bytes, or the code of the
/// reset.
async fn sent(connection: &Connection, bytes: &[u8], ended: bool) -> Result<Vec<u8>, u64> {
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(bytes).await.unwrap();
    if ended {
        send.finish().unwrap();
    }
    let mut all = Vec::new();
    let result = tokio::time::timeout(MAX_WAIT, async {
        while let Some(chunk) = receive.read_chunk(1 << 20, true).await? {
            all.extend_from_slice(&chunk.bytes);
        }
        Ok(())
    });
    match result.await.expect("nothing happens") {
        Ok(()) => Ok(all),
        Err(ReadError::Reset(code)) => Err(code.into_inner()),
        Err(ReadError::ConnectionLost(ConnectionError::ApplicationClosed(close))) => Err(close.error_code.into_inner()),
        Err(other) => panic!("{other}"),
    }
}

/// The status in the first frame of a response, if the static table contains it.
fn status(response: &[u8]) -> Option<&'static str> {
    assert_eq!(response[0], 1, "a HEADERS frame");
    let block = if response[1] < 64 { &response[2..] } else { &response[3..] };
    Some(match &block[2..] {
        [0xd9, ..] => "200",
        [0xff, 0x04, ..] => "400",
        [0x5f, 0x09, 3, code @ ..] if code.starts_with(b"431") => "431",
        _ => return None,
    })
}

#[tokio::test]
async fn unknown_frames_around_a_request_are_skipped() {
    let server = Server::start();
    let connection = server.connect().await;
    let response = sent(&connection, &frame(1, GET), true).await.unwrap();
    assert_eq!(status(&response), Some("200"), "{}", response.escape_ascii());
    assert!(response.ends_with(b"\x00\x05hello"));
    // Unknown frames are skipped, before and after the header and between two parts of a body.
    let post = b"\0\0\xd4\xd7\x51\x05/echo\x50\x09localhost";
    let bytes = [
        &frame(0x21, b"grease")[..],
        &frame(1, post),
        &frame(0, b""),
        &frame(0, b"ab"),
        &frame(0x21, b""),
        &frame(0, b"cd"),
        &frame(1, b"\0\0\x23abc\x01d"),
        &frame(0x21, b"x"),
    ];
    let response = sent(&connection, &bytes.concat(), true).await.unwrap();
    assert!(response.ends_with(b"\x00\x04abcd"), "{}", response.escape_ascii());
}

#[tokio::test]
async fn frames_that_break_the_rules_end_the_connection() {
    let server = Server::start();
    for (bytes, code, why) in [
        (frame(0, b"body"), 0x105, "DATA first"),
        (frame(4, b""), 0x105, "SETTINGS in a request"),
        (frame(7, b"\0"), 0x105, "GOAWAY in a request"),
        (frame(6, b""), 0x105, "PING of HTTP/2"),
        (frame(1, b"\xff"), 0x200, "a header block that is none"),
        (frame(1, b"\0\0\x80"), 0x200, "a reference to a dynamic table"),
        (frame(1, b"\0\0\x2f\xff\xff\xff\xff\xff\xff"), 0x200, "a string longer than everything"),
        (frame(1, GET)[..8].to_vec(), 0x106, "a frame that ends early"),
        ([frame(1, GET), frame(0, b"xyz")[..5].to_vec()].concat(), 0x106, "a body that ends early"),
    ] {
        let connection = server.connect().await;
        let mut bytes = bytes;
        if why == "a body that ends early" {
            bytes = [frame(1, b"\0\0\xd4\xd7\x51\x05/echo\x50\x09localhost"), bytes.split_off(3 + GET.len())].concat();
        }
        assert_eq!(sent(&connection, &bytes, true).await, Err(code), "{why}");
        assert_eq!(closed_with(&connection).await, code, "{why}");
    }
    assert_eq!(server.client().await.get("/").await.1, b"hello");
}

#[tokio::test]
async fn a_malformed_request_ends_only_its_stream() {
    let server = Server::start();
    let connection = server.connect().await;
    let with = |line: &[u8]| frame(1, &[GET, line].concat());
    assert_eq!(sent(&connection, &frame(1, b"\0\0\xd1\xd7\xc1"), true).await, Err(0x10e), "no authority");
    assert_eq!(sent(&connection, &with(b"\xd1"), true).await, Err(0x10e), "two methods");
    assert_eq!(sent(&connection, &with(b"\x23X-A\x01b"), true).await, Err(0x10e), "capitals");
    assert_eq!(sent(&connection, &with(b"\x23abc\x03a\nb"), true).await, Err(0x10e), "a line feed");
    assert_eq!(sent(&connection, &with(b"\x27\x03connection\x05close"), true).await, Err(0x10e), "connection");
    assert_eq!(sent(&connection, &with(b"\x54\x025"), true).await, Err(0x200), "a value that ends early");
    let connection = server.connect().await;
    assert_eq!(
        sent(&connection, &with(b"\x54\x015"), true).await,
        Err(0x10e),
        "five bytes are announced and none come"
    );
    assert_eq!(sent(&connection, b"", true).await, Err(0x10d), "nothing at all");
    assert_eq!(status(&sent(&connection, &frame(1, GET), true).await.unwrap()), Some("200"));
}

#[tokio::test]
async fn a_head_that_is_too_large_gets_431_and_is_not_buffered() {
    let server = Server::start();
    let connection = server.connect().await;
    // Announces a gigabyte; the server waits for none of it.
    let response = sent(&connection, b"\x01\xc0\0\0\0\x40\0\0\0", false).await.unwrap();
    assert_eq!(status(&response), Some("431"), "{}", response.escape_ascii());
    // Short on the wire, but large in memory.
    let many = [&b"\0\0"[..], &[0xd1; 16000]].concat();
    let response = sent(&connection, &frame(1, &many), true).await.unwrap();
    assert_eq!(status(&response), Some("431"), "{}", response.escape_ascii());
    assert_eq!(status(&sent(&connection, &frame(1, GET), true).await.unwrap()), Some("200"));
}

#[tokio::test]
async fn unknown_frames_cost_no_memory() {
    let server = Server::start();
    let connection = server.connect().await;
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    // 64 MiB, far more than all windows: it arrives only if nothing is stored.
    send.write_all(b"\x21\x84\0\0\0").await.unwrap();
    let piece = vec![0; 1 << 20];
    for _ in 0..64 {
        tokio::time::timeout(MAX_WAIT, send.write_all(&piece)).await.expect("it is buffered").unwrap();
    }
    send.write_all(&frame(1, GET)).await.unwrap();
    send.finish().unwrap();
    let response = receive.read_to_end(100_000).await.unwrap();
    assert_eq!(status(&response), Some("200"));
}

#[tokio::test]
async fn waiting_for_a_head_has_a_limit() {
    let server = Server::with(1000, |settings| settings.header_timeout = std::time::Duration::from_secs(1));
    let connection = server.connect().await;
    // The server would close a whole connection that has not sent a request yet.
    assert_eq!(status(&sent(&connection, &frame(1, GET), true).await.unwrap()), Some("200"));
    assert_eq!(sent(&connection, &frame(1, GET)[..10], false).await, Err(0x10d));
}

#[tokio::test]
async fn critical_streams_must_be_unique_and_stay_open() {
    let server = Server::start();
    for (streams, code) in [
        (&[(&b"\0\x04\0"[..], false), (&b"\0\x04\0"[..], false)][..], 0x103),
        (&[(b"\x02", false), (b"\x02", false)], 0x103),
        (&[(b"\0\x04\0", true)], 0x104),
        (&[(b"\0\x07\x01\0", false)], 0x10a),
        (&[(b"\0\x04\x02\x02\0", false)], 0x109),
        (&[(b"\x01\0", false)], 0x103),
        (&[(b"\x02\x3f\xe1\x1f", false)], 0x201),
    ] {
        let connection = server.connect().await;
        let mut open = Vec::new();
        for (bytes, ended) in streams {
            let mut stream = connection.open_uni().await.unwrap();
            stream.write_all(bytes).await.unwrap();
            if *ended {
                stream.finish().unwrap();
            }
            open.push(stream);
        }
        assert_eq!(closed_with(&connection).await, code, "{streams:?}");
    }
    // Streams of other kinds are only limited by the available room.
    let connection = server.connect().await;
    for _ in 0..100 {
        let mut stream = connection.open_uni().await.unwrap();
        stream.write_all(b"\x21grease").await.unwrap();
        let _ = stream.finish();
    }
    assert_eq!(status(&sent(&connection, &frame(1, GET), true).await.unwrap()), Some("200"));
}

#[tokio::test]
async fn a_client_that_only_cancels_loses_its_connection() {
    let server = Server::start();
    let connection = server.connect().await;
    let head = frame(1, b"\0\0\xd1\xd7\x51\x05/held\x50\x09localhost");
    let cancelling = async {
        loop {
            let Ok((mut send, mut receive)) = connection.open_bi().await else { return };
            if send.write_all(&head).await.is_err() || send.finish().is_err() {
                return;
            }
            let _ = receive.stop(VarInt::from_u32(0x10c));
        }
    };
    tokio::time::timeout(MAX_WAIT, cancelling).await.expect("it may go on for ever");
    assert_eq!(closed_with(&connection).await, 0x107);
}
