//! HTTP/2 without TLS and with prior knowledge.

use crate::support::{DEADLINE, Server, eventually, settings};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{Request, StatusCode};
use std::time::Duration;

pub(crate) fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE, future).await.expect("in time") })
}

pub(crate) async fn connect(server: &Server) -> (SendRequest<Bytes>, tokio::task::JoinHandle<Result<(), h2::Error>>) {
    let stream = tokio::net::TcpStream::connect(server.tcp()).await.unwrap();
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    (sender.ready().await.unwrap(), tokio::spawn(connection))
}

pub(crate) async fn body(mut stream: h2::RecvStream) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data.unwrap();
        stream.flow_control().release_capacity(data.len()).unwrap();
        all.extend_from_slice(&data);
    }
    all
}

pub(crate) fn request(method: &str, path: &str) -> Request<()> {
    Request::builder().method(method).uri(format!("http://h2.example:8080{path}")).body(()).unwrap()
}

#[test]
fn prior_knowledge_is_understood_and_streams_run_concurrently() {
    let server = Server::start();
    run(async {
        let (mut sender, _connection) = connect(&server).await;
        let (hanging, _) = sender.send_request(request("GET", "/hang.php"), true).unwrap();
        let (vars, _) = sender.send_request(request("GET", "/vars.php?x"), true).unwrap();
        let (echo, mut upload) = sender.send_request(request("POST", "/echo.php"), false).unwrap();
        upload.send_data(Bytes::from(vec![b'u'; 40_000]), true).unwrap();
        let response = vars.await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let text = String::from_utf8(body(response.into_body()).await).unwrap();
        for line in ["SERVER_PROTOCOL=HTTP/2.0", "HTTP_HOST=h2.example:8080", "SERVER_NAME=h2.example"] {
            assert!(text.contains(&format!("\n{line}\n")), "{line} in {text}");
        }
        assert_eq!(body(echo.await.unwrap().into_body()).await, vec![b'u'; 40_000]);
        drop(hanging);
    });
}

#[test]
fn a_body_that_is_too_large_gets_413() {
    let server = Server::start();
    run(async {
        let (mut sender, _connection) = connect(&server).await;
        let mut large = request("POST", "/echo.php");
        large.headers_mut().insert("content-length", 100_001.into());
        let (response, _upload) = sender.send_request(large, false).unwrap();
        assert_eq!(response.await.unwrap().status(), 413);
        let (response, _) = sender.send_request(request("GET", "/a.txt"), true).unwrap();
        assert_eq!(body(response.await.unwrap().into_body()).await, b"static content");
    });
}

#[test]
fn a_shutdown_sends_goaway_and_lets_running_streams_end() {
    let mut server = Server::start();
    let pipe = server.stand.pipe.clone();
    let (tell, told) = tokio::sync::oneshot::channel();
    let client = {
        let addr = server.tcp();
        std::thread::spawn(move || {
            run(async move {
                let stream = tokio::net::TcpStream::connect(addr).await.unwrap();
                let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
                let connection = tokio::spawn(connection);
                let (response, _) = sender.send_request(request("GET", "/stream.php"), true).unwrap();
                let response = response.await.unwrap();
                tell.send(()).unwrap();
                let text = body(response.into_body()).await;
                connection.await.unwrap().unwrap();
                text
            })
        })
    };
    told.blocking_recv().unwrap();
    let ender = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        pipe.push("last words", false);
        pipe.end();
    });
    assert_eq!(server.shutdown(DEADLINE), howdah_protocol::front::Drained::All);
    ender.join().unwrap();
    assert_eq!(client.join().unwrap(), b"last words");
}

#[test]
fn a_client_that_takes_no_data_is_dropped() {
    let mut settings = settings();
    settings.http.client_timeout = Duration::from_millis(200);
    let server = Server::with(settings);
    std::fs::write(server.root.path().join("large.txt"), vec![b'x'; 1_000_000]).unwrap();
    run(async {
        let (mut sender, connection) = connect(&server).await;
        let (response, _) = sender.send_request(request("GET", "/large.txt"), true).unwrap();
        // The window's 65,535 bytes arrive, but their capacity is never released.
        let body = response.await.unwrap().into_body();
        let _ = connection.await.unwrap();
        drop(body);
    });
    eventually("dropping the client", || server.front().open_connections() == 0);
}
