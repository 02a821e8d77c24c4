//! A client's connection in one of the protocols: one request after the other, bodies counted and dropped.

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::{Buf, Bytes};
use http::{HeaderMap, Request};
use rustls::{ClientConfig, HandshakeKind};
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Response;
use super::http1::Http1;
use super::session;
use crate::cases::{Connections, Protocol};
use crate::certificate::NAME;
use crate::load::{Target, Tls};

/// rustls reads 4 KiB at a time; with a buffer, these reads are not system calls.
const READ_AHEAD: usize = 64 * 1024;

/// Flow-control window of a client in HTTP/2 and HTTP/3, large enough that the client does not slow the server down.
const WINDOW: u32 = 8 << 20;

/// A connection.
pub(super) enum Link {
    Http1 { over: Box<Http1<TlsStream<BufReader<TcpStream>>>>, request: Vec<u8> },
    Http2(h2::client::SendRequest<Bytes>),
    Http3 { requests: h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>, _endpoint: quinn::Endpoint },
}

impl Link {
    /// Connects. The kind of handshake is reported for TLS over TCP only.
    pub(super) async fn open(
        target: &Target,
        tls: &Tls,
        config: Arc<ClientConfig>,
    ) -> Result<(Self, Option<HandshakeKind>)> {
        if tls.protocol == Protocol::Http3 {
            return Ok((http3(target.address, config).await?, None));
        }
        let tcp = TcpStream::connect(target.address).await?;
        tcp.set_nodelay(true)?;
        let tcp = BufReader::with_capacity(READ_AHEAD, tcp);
        let stream = TlsConnector::from(config).connect(session::name()?, tcp).await?;
        let (_, state) = stream.get_ref();
        let handshake = state.handshake_kind();
        if tls.protocol == Protocol::Http1 {
            return Ok((
                Self::Http1 { over: Box::new(Http1::new(stream)), request: request_text(target, tls) },
                handshake,
            ));
        }
        if state.alpn_protocol() != Some(tls.protocol.alpn()) {
            bail!("the system did not negotiate {}", tls.protocol.description());
        }
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
        let (requests, connection) = builder.handshake(stream).await?;
        // Ends with the last handle for requests.
        spawn_local(connection);
        Ok((Self::Http2(requests), handshake))
    }

    /// Sends a request and reads its whole response.
    pub(super) async fn exchange(&mut self, target: &Target) -> Result<Response> {
        match self {
            Self::Http1 { over, request } => Ok(over.exchange(request).await?),
            Self::Http2(requests) => exchange_http2(requests, target).await,
            Self::Http3 { requests, .. } => exchange_http3(requests, target).await,
        }
    }
}

/// Returns the request as bytes of HTTP/1.1.
fn request_text(target: &Target, tls: &Tls) -> Vec<u8> {
    let mut text = target.request();
    if tls.connections != Connections::Kept {
        text.truncate(text.len() - 2);
        text.extend_from_slice(b"Connection: close\r\n\r\n");
    }
    text
}

fn request(target: &Target) -> Result<Request<()>> {
    Ok(Request::get(target.url()).header("accept-encoding", &target.accept_encoding).body(())?)
}

/// Returns the size of headers in HTTP/1.1's format.
fn head_bytes(headers: &HeaderMap) -> u64 {
    let lines = headers.iter().map(|(name, value)| (name.as_str().len() + value.len() + 4) as u64);
    "HTTP/1.1 200 OK\r\n\r\n".len() as u64 + lines.sum::<u64>()
}

async fn exchange_http2(requests: &mut h2::client::SendRequest<Bytes>, target: &Target) -> Result<Response> {
    poll_fn(|cx| requests.poll_ready(cx)).await?;
    let (response, _) = requests.send_request(request(target)?, true)?;
    let (head, mut body) = response.await?.into_parts();
    let mut bytes = head_bytes(&head.headers);
    while let Some(part) = body.data().await {
        let part = part?;
        bytes += part.len() as u64;
        body.flow_control().release_capacity(part.len())?;
    }
    Ok(Response { status: head.status.as_u16(), bytes, closes: false })
}

async fn http3(address: SocketAddr, config: Arc<ClientConfig>) -> Result<Link> {
    let quic = quinn::crypto::rustls::QuicClientConfig::try_from(config)?;
    let mut client = quinn::ClientConfig::new(Arc::new(quic));
    let mut transport = quinn::TransportConfig::default();
    transport.receive_window(WINDOW.into()).stream_receive_window(WINDOW.into());
    client.transport_config(Arc::new(transport));
    let endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).context("no UDP socket")?;
    let connection = endpoint.connect_with(client, address, NAME)?.await?;
    let (mut driver, requests) = h3::client::new(h3_quinn::Connection::new(connection)).await?;
    spawn_local(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    Ok(Link::Http3 { requests, _endpoint: endpoint })
}

async fn exchange_http3(
    requests: &mut h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>,
    target: &Target,
) -> Result<Response> {
    let mut stream = requests.send_request(request(target)?).await?;
    stream.finish().await?;
    let head = stream.recv_response().await?;
    let mut bytes = head_bytes(head.headers());
    while let Some(part) = stream.recv_data().await? {
        bytes += part.remaining() as u64;
    }
    Ok(Response { status: head.status().as_u16(), bytes, closes: false })
}
