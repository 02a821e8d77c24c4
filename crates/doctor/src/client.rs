//! Requests over HTTP/1.1, each on a new connection.

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// Maximum time for a response. The server's default deadline is shorter.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(90);

/// A request to send.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// A response. If there was none, the status is 0 and the body is the reason.
#[derive(Debug, Clone, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) took: Duration,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_html(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.contains("html"))
    }
}

/// Sends requests and blocks until their responses arrive.
#[derive(Debug)]
pub(crate) struct Client {
    runtime: tokio::runtime::Runtime,
}

impl Client {
    pub(crate) fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self { runtime: runtime.context("cannot make a runtime for connections")? })
    }

    /// Sends one request to a local port.
    pub(crate) fn send(&self, port: u16, request: &Request) -> Response {
        self.send_to(local(port), request)
    }

    pub(crate) fn send_to(&self, server: SocketAddr, request: &Request) -> Response {
        self.runtime.block_on(response_to(server, request, usize::MAX))
    }

    /// Sends several requests at the same time.
    pub(crate) fn send_all(&self, port: u16, requests: &[Request]) -> Vec<Response> {
        self.runtime.block_on(async {
            let running: Vec<_> = requests
                .iter()
                .cloned()
                .map(|request| tokio::spawn(async move { response_to(local(port), &request, usize::MAX).await }))
                .collect();
            let mut responses = Vec::new();
            for task in running {
                responses.push(task.await.unwrap_or_default());
            }
            responses
        })
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Sends one request. A body over `max_body` bytes is no response.
pub(crate) async fn response_to(server: SocketAddr, request: &Request, max_body: usize) -> Response {
    let begun = Instant::now();
    let response = match tokio::time::timeout(RESPONSE_TIMEOUT, exchange(server, request, max_body)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => failed(format!("{error:#}")),
        Err(_) => failed(format!("no response within {} s", RESPONSE_TIMEOUT.as_secs())),
    };
    Response { took: begun.elapsed(), ..response }
}

fn failed(why: String) -> Response {
    Response { body: why.into_bytes(), ..Response::default() }
}

async fn exchange(server: SocketAddr, request: &Request, max_body: usize) -> Result<Response> {
    let socket = TcpStream::connect(server).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
    let connection = tokio::spawn(connection);
    let mut message = http::Request::builder().method(request.method.as_str()).uri(&request.path);
    for (name, value) in &request.headers {
        message = message.header(name, value);
    }
    let message = message.body(Full::new(Bytes::from(request.body.clone())))?;
    let (head, body) = sender.send_request(message).await?.into_parts();
    let body = Limited::new(body, max_body).collect().await.map_err(|error| anyhow!("{error}"))?.to_bytes().to_vec();
    connection.abort();
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    Ok(Response { status: head.status.as_u16(), headers, body, took: Duration::ZERO })
}
