//! Requests and responses of clients that obey the protocol.

use crate::support::{MAX_WAIT, Server, content, response};
use bytes::Bytes;
use http::{StatusCode, Version};
use tokio::sync::mpsc;

#[tokio::test]
async fn a_request_gets_its_response() {
    let server = Server::start();
    let mut client = server.client().await;
    let (head, body) = client.get("/").await;
    assert_eq!((head.status(), head.version(), &body[..]), (StatusCode::OK, Version::HTTP_3, &b"hello"[..]));
    assert_eq!(head.headers()["content-length"], "5");
    assert!(head.headers().contains_key("date"));
    assert_eq!(client.get("/missing").await.0.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn bodies_of_every_kind_and_size_arrive() {
    let server = Server::start();
    let mut client = server.client().await;
    for length in [0, 1, 1000, 100_000, 5_000_000] {
        let expected = content(length);
        assert_eq!(client.get(&format!("/whole?{length}")).await.1, expected, "{length} bytes of memory");
        assert_eq!(client.get(&format!("/file?{length}")).await.1, expected, "{length} bytes of a file");
        assert_eq!(client.post("/echo", expected.clone()).await.1, expected, "{length} bytes there and back");
    }
}

#[tokio::test]
async fn many_requests_share_a_connection() {
    let server = Server::start();
    let client = server.client().await;
    let mut running = tokio::task::JoinSet::new();
    for number in 0..300usize {
        let mut requests = client.requests.clone();
        running.spawn(async move {
            let length = number * 100;
            let request = http::Request::get(format!("https://localhost/whole?{length}")).body(()).unwrap();
            let mut stream = requests.send_request(request).await.unwrap();
            stream.finish().await.unwrap();
            assert_eq!(response(&mut stream).await.unwrap().1, content(length));
        });
    }
    while let Some(result) = running.join_next().await {
        result.unwrap();
    }
}

#[tokio::test]
async fn flushed_output_arrives_while_the_script_runs() {
    let server = Server::start();
    let (parts, receiver) = mpsc::unbounded_channel();
    *server.seen.parts.lock().unwrap() = Some(receiver);
    let mut client = server.client().await;
    let mut stream = client.open("GET", "/stream", &[]).await;
    stream.finish().await.unwrap();
    let head = stream.recv_response().await.unwrap();
    assert!(!head.headers().contains_key("content-length"));
    for number in 0..5 {
        let text = Bytes::from(format!("data: {number}\n\n"));
        parts.send(text.clone()).unwrap();
        let mut part = stream.recv_data().await.unwrap().unwrap();
        assert_eq!(bytes::Buf::copy_to_bytes(&mut part, text.len()), text);
    }
    drop(parts);
    assert!(stream.recv_data().await.unwrap().is_none());
}

#[tokio::test]
async fn an_informational_response_arrives_before_the_response() {
    let server = Server::start();
    let mut client = server.client().await;
    let mut stream = client.open("GET", "/hints", &[]).await;
    stream.finish().await.unwrap();
    let hints = stream.recv_response().await.unwrap();
    assert_eq!(
        (hints.status(), &hints.headers()["link"]),
        (StatusCode::EARLY_HINTS, &"</a.css>; rel=preload".parse().unwrap())
    );
    server.seen.release.notify_one();
    let (head, body) = response(&mut stream).await.unwrap();
    assert_eq!((head.status(), &body[..]), (StatusCode::OK, &b"hinted"[..]));
}

#[tokio::test]
async fn a_response_may_come_before_the_body_of_its_request() {
    let server = Server::start();
    let mut client = server.client().await;
    // More than is ever read of an unwanted body: the client is stopped after the response.
    let (head, body) = client.post("/", content(20_000_000)).await;
    assert_eq!((head.status(), &body[..]), (StatusCode::OK, &b"hello"[..]));
    // A short body arrives as a whole.
    let (head, _) = client.post("/", content(100)).await;
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(client.get("/").await.1, b"hello", "the connection goes on");
}

#[tokio::test]
async fn a_request_that_its_client_cancels_is_dropped() {
    let server = Server::start();
    let mut client = server.client().await;
    let mut stream = client.open("GET", "/held", &[]).await;
    stream.finish().await.unwrap();
    server.seen.wait(1, 0).await;
    stream.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
    server.seen.wait(1, 1).await;
    assert_eq!(client.get("/").await.1, b"hello");
}

#[tokio::test]
async fn requests_of_a_client_that_leaves_are_dropped() {
    let server = Server::start();
    let mut client = server.client().await;
    let mut stream = client.open("GET", "/held", &[]).await;
    stream.finish().await.unwrap();
    server.seen.wait(1, 0).await;
    client.quic.close(0x100u32.into(), b"");
    server.seen.wait(1, 1).await;
}

#[tokio::test]
async fn a_response_whose_length_is_wrong_is_cut() {
    let server = Server::start();
    let mut client = server.client().await;
    for path in ["/long", "/short", "/panic"] {
        let mut stream = client.open("GET", path, &[]).await;
        stream.finish().await.unwrap();
        assert!(response(&mut stream).await.is_err(), "{path}");
    }
    assert_eq!(client.get("/").await.1, b"hello", "other streams are unaffected");
    let (head, body) = client.get("/corrected").await;
    assert_eq!((&head.headers()["content-length"], &body[..]), (&"5".parse().unwrap(), &b"hello"[..]));
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
    let server = Server::with(1000, |settings| settings.client_timeout = std::time::Duration::from_millis(300));
    let mut client = server.client().await;
    // More than fits into all windows.
    let mut stream = client.open("GET", "/whole?50000000", &[]).await;
    stream.finish().await.unwrap();
    stream.recv_response().await.unwrap();
    // The client reads no more; the server must still end the connection.
    tokio::time::timeout(MAX_WAIT, client.quic.closed()).await.expect("the server still waits");
}
