//! The proxy's time limits, with an old server that stalls.

use super::*;
use crate::shadow::proxy::Limits;
use crate::shadow::sample::Sampler;
use crate::shadow::tally::Tally;
use std::net::Ipv4Addr;
use tokio::net::TcpListener;

/// Long enough for what a test waits for, on any machine.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

/// Sends `request` through the proxy to an old server that sends `response`, then nothing. Returns the text that the
/// client gets until the connection ends, and `false` if the connection was reset.
async fn client_gets(limits: Limits, request: &str, response: &'static str) -> (String, bool, Arc<Tally>) {
    let old = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let front = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let tally = Arc::new(Tally::default());
    let (sampler, _samples) = Sampler::new(100, false, Arc::clone(&tally));
    let place = old.local_addr().unwrap();
    let proxy = Arc::new(Proxy { old: place, sampler: Arc::new(sampler), tally: Arc::clone(&tally), limits });
    let silent = tokio::spawn(async move {
        let (mut socket, _) = old.accept().await.unwrap();
        socket.write_all(response.as_bytes()).await.unwrap();
        // Keeps the connection.
        (socket, old)
    });
    let mut client = TcpStream::connect(front.local_addr().unwrap()).await.unwrap();
    let (socket, address) = front.accept().await.unwrap();
    let (_end, ends) = watch::channel(false);
    let serving = tokio::spawn(serve(socket, address.ip(), proxy, ends));
    client.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    let is_whole = client.read_to_end(&mut read).await.is_ok();
    drop(client);
    serving.await.unwrap();
    silent.abort();
    (String::from_utf8(read).unwrap(), is_whole, tally)
}

fn test(check: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(LONG, check).await.unwrap() });
}

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn a_silent_old_server_is_a_504() {
    test(async {
        let limits = Limits { stalled: SHORT, ..Limits::default() };
        let (text, is_whole, tally) = client_gets(limits, REQUEST, "").await;
        assert!(is_whole && text.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"), "{text}");
        assert!(text.contains("\r\nConnection: close\r\n") && text.contains("howdah doctor: nothing from"), "{text}");
        assert_eq!(tally.traffic().unanswered, 1);
    });
}

#[test]
fn a_response_that_stalls_is_cut_and_does_not_look_complete() {
    test(async {
        let limits = Limits { stalled: SHORT, ..Limits::default() };
        let (text, is_whole, tally) = client_gets(limits, REQUEST, "HTTP/1.0 200 OK\r\n\r\nhalf").await;
        assert!(!is_whole, "{text}");
        assert_eq!(tally.traffic().skipped.into_iter().collect::<Vec<_>>(), [(crate::traffic::Skip::Cut, 1)]);
    });
}

#[test]
fn a_client_without_a_complete_request_is_disconnected() {
    test(async {
        for request in ["", "GET / HTTP/1.1\r\nHo"] {
            let limits = Limits { idle: SHORT, ..Limits::default() };
            let (text, _, tally) = client_gets(limits, request, "").await;
            assert_eq!((text.as_str(), tally.traffic().requests), ("", 0));
        }
    });
}
