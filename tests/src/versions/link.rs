//! An HTTP/2 or HTTP/3 connection to the server under test, and one exchange on it. Windows are small, so that a client
//! that does not read is slow for the server too.

use super::Version;
use crate::tls;
use bytes::{Buf, Bytes};
use h3::error::Code;
use http::{Request, Response};
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use tokio::net::TcpStream;
use tokio::sync::watch;

const WINDOW: u32 = 65_535;

/// The stream or the connection ended prematurely.
#[derive(Debug)]
pub(super) struct Lost;

pub(super) struct Link {
    requests: Requests,
    pub(super) local_port: u16,
    ended: watch::Receiver<()>,
}

enum Requests {
    Two(h2::client::SendRequest<Bytes>),
    Three { requests: h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>, _closing: Closing },
}

/// Ends the connection at once when the scenario drops it, with all exchanges in progress.
struct Closing(quinn::Connection);

impl Drop for Closing {
    fn drop(&mut self) {
        // H3_NO_ERROR
        self.0.close(quinn::VarInt::from_u32(0x100), b"");
    }
}

fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::other(error)
}

impl Link {
    pub(super) async fn open(address: SocketAddr, version: Version) -> io::Result<Self> {
        match version {
            Version::Two => Self::two(address).await,
            Version::Three => Self::three(address).await,
        }
    }

    async fn two(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let local_port = stream.local_addr()?.port();
        let name = rustls::pki_types::ServerName::try_from("localhost").map_err(other)?;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(tls::client_config(b"h2")));
        let stream = connector.connect(name, stream).await?;
        let builder = h2::client::Builder::new().initial_window_size(WINDOW).clone();
        let (requests, connection) = builder.handshake(stream).await.map_err(other)?;
        let (ends, ended) = watch::channel(());
        tokio::spawn(async move {
            let _ = connection.await;
            drop(ends);
        });
        Ok(Self { requests: Requests::Two(requests), local_port, ended })
    }

    async fn three(address: SocketAddr) -> io::Result<Self> {
        let quic = quinn::crypto::rustls::QuicClientConfig::try_from(tls::client_config(b"h3")).map_err(other)?;
        let mut client = quinn::ClientConfig::new(Arc::new(quic));
        let mut transport = quinn::TransportConfig::default();
        transport.stream_receive_window(WINDOW.into());
        client.transport_config(Arc::new(transport));
        let endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
        let local_port = endpoint.local_addr()?.port();
        let connection = endpoint.connect_with(client, address, "localhost").map_err(other)?.await?;
        let _closing = Closing(connection.clone());
        let (mut driver, requests) = h3::client::new(h3_quinn::Connection::new(connection)).await.map_err(other)?;
        let (ends, ended) = watch::channel(());
        tokio::spawn(async move {
            let _ = poll_fn(|cx| driver.poll_close(cx)).await;
            drop(ends);
        });
        Ok(Self { requests: Requests::Three { requests, _closing }, local_port, ended })
    }

    /// Waits until the server has ended the connection.
    pub(super) async fn closed(&mut self) {
        while self.ended.changed().await.is_ok() {}
    }

    /// Sends a head; `ends`: no body follows.
    pub(super) async fn begin(&mut self, request: Request<()>, ends: bool) -> Result<(Sender, Receiver), Lost> {
        match &mut self.requests {
            Requests::Two(requests) => {
                poll_fn(|cx| requests.poll_ready(cx)).await.map_err(|_| Lost)?;
                let (response, stream) = requests.send_request(request, ends).map_err(|_| Lost)?;
                let sender = Sender { way: Up::Two(stream), ended: ends };
                Ok((sender, Receiver::Two { response, body: None }))
            }
            Requests::Three { requests, .. } => {
                let stream = requests.send_request(request).await.map_err(|_| Lost)?;
                let (up, down) = stream.split();
                let mut sender = Sender { way: Up::Three(Box::new(up)), ended: false };
                if ends {
                    sender.finish().await?;
                }
                Ok((sender, Receiver::Three(down)))
            }
        }
    }
}

type Http3Stream<S> = h3::client::RequestStream<S, Bytes>;

enum Up {
    Two(h2::SendStream<Bytes>),
    Three(Box<Http3Stream<h3_quinn::SendStream<Bytes>>>),
}

pub(super) struct Sender {
    way: Up,
    ended: bool,
}

impl Sender {
    pub(super) async fn send(&mut self, mut piece: Bytes) -> Result<(), Lost> {
        match &mut self.way {
            Up::Two(stream) => {
                while !piece.is_empty() {
                    stream.reserve_capacity(piece.len());
                    let room = poll_fn(|cx| stream.poll_capacity(cx)).await;
                    let room = room.ok_or(Lost)?.map_err(|_| Lost)?;
                    let part = piece.split_to(room.min(piece.len()));
                    stream.send_data(part, false).map_err(|_| Lost)?;
                }
                Ok(())
            }
            Up::Three(stream) => stream.send_data(piece).await.map_err(|_| Lost),
        }
    }

    pub(super) async fn finish(&mut self) -> Result<(), Lost> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        match &mut self.way {
            Up::Two(stream) => stream.send_data(Bytes::new(), true).map_err(|_| Lost),
            Up::Three(stream) => stream.finish().await.map_err(|_| Lost),
        }
    }
}

/// A truncated body must not look like a complete one: quinn ends streams that are dropped.
impl Drop for Sender {
    fn drop(&mut self) {
        if !self.ended {
            match &mut self.way {
                Up::Two(stream) => stream.send_reset(h2::Reason::CANCEL),
                Up::Three(stream) => stream.stop_stream(Code::H3_REQUEST_CANCELLED),
            }
        }
    }
}

pub(super) enum Receiver {
    Two { response: h2::client::ResponseFuture, body: Option<h2::RecvStream> },
    Three(Http3Stream<h3_quinn::RecvStream>),
}

impl Receiver {
    /// Receives the next head, informational or final.
    pub(super) async fn head(&mut self) -> Result<Response<()>, Lost> {
        match self {
            Self::Two { response, body } => {
                let head = poll_fn(|cx| {
                    if let Poll::Ready(Some(informational)) = response.poll_informational(cx) {
                        return Poll::Ready(informational.map(|head| (head, None)));
                    }
                    let final_head = std::task::ready!(std::pin::Pin::new(&mut *response).poll(cx));
                    Poll::Ready(final_head.map(|head| {
                        let (parts, body) = head.into_parts();
                        (Response::from_parts(parts, ()), Some(body))
                    }))
                });
                let (head, stream) = head.await.map_err(|_| Lost)?;
                *body = stream;
                Ok(head)
            }
            Self::Three(stream) => stream.recv_response().await.map_err(|_| Lost),
        }
    }

    /// Receives the next piece of the body; `None` at its end.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, Lost> {
        match self {
            Self::Two { body, .. } => {
                let Some(body) = body else { return Ok(None) };
                match body.data().await {
                    Some(Ok(piece)) => {
                        body.flow_control().release_capacity(piece.len()).map_err(|_| Lost)?;
                        Ok(Some(piece))
                    }
                    // A server that has responded and does not want the rest of the request's body signals it like
                    // this.
                    Some(Err(error)) if error.reason() == Some(h2::Reason::NO_ERROR) => Ok(None),
                    Some(Err(_)) => Err(Lost),
                    None => Ok(None),
                }
            }
            Self::Three(stream) => {
                let piece = stream.recv_data().await.map_err(|_| Lost)?;
                Ok(piece.map(|mut piece| piece.copy_to_bytes(piece.remaining())))
            }
        }
    }
}
