//! The TLS handshake of a connection. It runs in the connection's own task, so a slow or failing one affects no other.
//! The I/O thread applies the header timeout to it.

use crate::connection::Connection;
use crate::socket::{Socket, has_unread};
use crate::tls_socket::{ClientHello, TlsSocket, speaks_http};
use bytes::Bytes;
use howdah_tls::{ACME_TLS, Session};
use rustls::{ServerConfig, ServerConnection};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::net::TcpStream;

/// Response to a client that speaks HTTP where TLS is expected: it cannot read anything else.
const RESPONSE_400: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: 47\r\n\r\n\
    400 Bad Request: this port speaks TLS (https).\n";

/// An unfinished handshake.
#[derive(Debug)]
pub(crate) struct Handshake {
    socket: TlsSocket,
    opening: ClientHello,
}

/// Result of the handshake.
pub(crate) enum HandshakeResult {
    /// A connection, and `true` if HTTP/2 was negotiated.
    Done(Socket, bool),
    /// The connection ends: the handshake failed, or was an ACME challenge.
    Over,
    /// The client has been sent the reason. Its further data must be read and dropped: a close with unread bytes could
    /// discard the response.
    Refused {
        stream: TcpStream,
        /// The client speaks HTTP.
        is_http: bool,
    },
}

impl Handshake {
    /// `ahead` holds the bytes already read from the socket.
    pub(crate) fn new(
        stream: TcpStream,
        ahead: Bytes,
        config: Arc<ServerConfig>,
        connection: &Connection,
    ) -> Result<Self, rustls::Error> {
        let session = ServerConnection::new(config)?;
        Ok(Self { socket: TlsSocket::new(stream, session, connection.charge()), opening: ClientHello::new(ahead) })
    }

    /// Continues the handshake. Ready when it has succeeded or failed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, connection: &Connection) -> Poll<io::Result<()>> {
        let result = ready!(self.socket.poll_handshake(cx, &mut self.opening, || connection.state.on_read()));
        let metrics = &connection.shared.metrics;
        match &result {
            Ok(()) => {
                metrics.tls_handshakes.inc();
                connection.state.on_handshake_over();
            }
            Err(_) => metrics.tls_handshakes_failed.inc(),
        }
        Poll::Ready(result)
    }

    /// `true` if the socket has bytes that the handshake has not read.
    pub(crate) fn has_unread(&self) -> bool {
        has_unread(self.socket.stream().as_fd())
    }

    /// The established connection.
    pub(crate) fn finish(self, result: io::Result<()>, connection: &Connection) -> HandshakeResult {
        let Self { mut socket, opening } = self;
        if let Err(error) = result {
            tracing::debug!(target: "howdah::tls", %error, client = &*connection.peer.addr_text, "TLS handshake failed");
            if error.kind() != io::ErrorKind::InvalidData {
                return HandshakeResult::Over;
            }
            let stream = socket.into_stream();
            let is_http = speaks_http(opening.first);
            if is_http {
                let _ = stream.try_write(RESPONSE_400);
            }
            return HandshakeResult::Refused { stream, is_http };
        }
        let session = Session::of(socket.session());
        let is_challenge = socket.session().alpn_protocol() == Some(ACME_TLS);
        match session {
            // No application data is exchanged over a connection for a challenge (RFC 8737 section 3).
            Some(session) if !is_challenge => {
                if session.resumed {
                    connection.shared.metrics.tls_resumed.inc();
                }
                let is_h2 = session.h2;
                let _ = connection.session.set(Box::new(session));
                HandshakeResult::Done(Socket::Tls(Box::new(socket)), is_h2)
            }
            _ => {
                socket.send_close_notify();
                HandshakeResult::Over
            }
        }
    }
}
