//! Connections: 0-RTT, migration, and their end.

use crate::line::Line;
use crate::support::{Client, MAX_WAIT, Server, content, response};
use howdah_protocol::front::Drained;
use http::StatusCode;
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

#[tokio::test]
async fn early_data_may_hold_safe_requests_and_others_get_425() {
    let server = Server::start();
    let mut endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    endpoint.set_default_client_config(server.client_config());
    let mut first = Client::over(endpoint.connect(server.addr, "localhost").unwrap().await.unwrap()).await;
    let (head, _) = first.get("/").await;
    assert!(!head.headers().contains_key("x-early"), "an ordinary request");
    first.quic.close(0x100u32.into(), b"");
    // No packet from the server arrives before it has processed both, so the handshake cannot complete.
    let line = Line::to(server.addr, 0, 1).await;
    line.seen.deaf.store(true, SeqCst);
    let connecting = endpoint.connect(line.addr, "localhost").unwrap();
    let (quic, accepted) = connecting.into_0rtt().unwrap_or_else(|_| panic!("no session was kept"));
    let mut client = Client::over(quic).await;
    let mut post = client.open("POST", "/echo", &[]).await;
    post.finish().await.unwrap();
    let mut get = client.open("GET", "/", &[]).await;
    get.finish().await.unwrap();
    server.seen.wait(2, 0).await;
    line.seen.deaf.store(false, SeqCst);
    let (head, _) = response(&mut get).await.unwrap();
    assert_eq!((head.status(), &head.headers()["x-early"]), (StatusCode::OK, &"1".parse().unwrap()));
    assert_eq!(response(&mut post).await.unwrap().0.status(), StatusCode::TOO_EARLY);
    assert!(accepted.await, "the server has taken the early data");
    assert_eq!(client.post("/echo", content(10)).await.0.status(), StatusCode::OK, "once it is complete");
}

#[tokio::test]
async fn a_client_may_move_to_another_address() {
    let server = Server::start();
    let mut endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    endpoint.set_default_client_config(server.client_config());
    let mut client = Client::over(endpoint.connect(server.addr, "localhost").unwrap().await.unwrap()).await;
    let port = |head: &http::Response<()>| head.headers()["x-port"].to_str().unwrap().parse::<u16>().unwrap();
    let before = port(&client.get("/").await.0);
    assert_eq!(before, endpoint.local_addr().unwrap().port());
    endpoint.rebind(std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).unwrap();
    let after = endpoint.local_addr().unwrap().port();
    assert_ne!(before, after);
    // The request that reveals the migration may be handled before the server has validated the new address.
    client.get("/").await;
    assert_eq!(client.get("/whole?1000000").await.1, content(1_000_000));
    assert_eq!(port(&client.get("/").await.0), after);
    assert_eq!(server.open_connections(), 1, "the connection is the same");
}

#[tokio::test]
async fn under_load_a_client_must_validate_its_address_first() {
    for (retry_above, retries) in [(0, true), (1000, false)] {
        let server = Server::with(retry_above, |_| {});
        let line = Line::to(server.addr, 0, 1).await;
        let mut client = Client::over(server.connect_to(line.addr).await).await;
        assert_eq!(client.get("/").await.1, b"hello");
        assert_eq!(line.seen.retries.load(SeqCst) > 0, retries, "above {retry_above}");
    }
}

#[tokio::test]
async fn clients_that_never_validate_their_address_are_dropped_and_do_not_block_others() {
    let server = Server::with(2, |settings| settings.header_timeout = Duration::from_millis(500));
    let mut endpoints = Vec::new();
    for seed in 1..4 {
        // They receive nothing from the server, as if their address were forged.
        let line = Line::to(server.addr, 0, seed).await;
        line.seen.deaf.store(true, SeqCst);
        let mut endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        endpoint.set_default_client_config(server.client_config());
        endpoints.push((endpoint.connect(line.addr, "localhost").unwrap(), line, endpoint));
    }
    let waiting = async {
        while endpoints[2].1.seen.retries.load(SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(MAX_WAIT, waiting).await.expect("the third is let in as well");
    assert_eq!(server.client().await.get("/").await.1, b"hello", "one that proves it");
    let gone = async {
        while server.open_connections() > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(MAX_WAIT, gone).await.expect("they are kept");
}

#[tokio::test]
async fn everything_arrives_over_a_network_that_loses_and_reorders_datagrams() {
    let server = Server::start();
    for seed in [7, 8] {
        let line = Line::to(server.addr, 5, seed).await;
        let mut client = Client::over(server.connect_to(line.addr).await).await;
        for length in [10, 1000, 300_000] {
            assert_eq!(client.get(&format!("/file?{length}")).await.1, content(length));
            assert_eq!(client.post("/echo", content(length)).await.1, content(length));
        }
        assert!(line.seen.lost.load(SeqCst) > 5, "nothing was lost");
    }
}

#[tokio::test]
async fn a_shutdown_lets_requests_end_and_accepts_no_new_ones() {
    let server = Server::start();
    let mut client = server.client().await;
    let mut stream = client.open("GET", "/held", &[]).await;
    stream.finish().await.unwrap();
    server.seen.wait(1, 0).await;
    let seen = server.seen.clone();
    let draining = tokio::spawn(server.shutdown());
    // The server announces its shutdown; then new requests are not sent, or not accepted.
    let refused = async {
        loop {
            let request = http::Request::get("https://localhost/").body(()).unwrap();
            let Ok(mut stream) = client.requests.send_request(request).await else { return };
            let _ = stream.finish().await;
            if response(&mut stream).await.is_err() {
                return;
            }
        }
    };
    tokio::time::timeout(MAX_WAIT, refused).await.expect("requests are still taken");
    seen.release.notify_one();
    let (head, body) = response(&mut stream).await.unwrap();
    assert_eq!((head.status(), &body[..]), (StatusCode::OK, &b"released"[..]));
    assert_eq!(draining.await.unwrap(), Drained::All);
    let error = tokio::time::timeout(MAX_WAIT, client.driver).await.unwrap().unwrap();
    assert!(error.is_h3_no_error(), "{error}");
}

#[tokio::test]
async fn an_idle_connection_is_closed_with_h3_no_error() {
    let server = Server::with(1000, |settings| settings.idle_timeout = Duration::from_millis(200));
    let mut client = server.client().await;
    assert_eq!(client.get("/").await.1, b"hello");
    let error = tokio::time::timeout(MAX_WAIT, client.driver).await.expect("it is still open").unwrap();
    assert!(error.is_h3_no_error(), "{error}");
}
