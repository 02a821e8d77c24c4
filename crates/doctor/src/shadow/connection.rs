//! A client's connection: passes its requests on to the old server, one after the other, and the responses back.
//!
//! A client's connection has its own connection to the old server, which no other client uses. So a request that proxy
//! and old server parse differently affects only the client that sent it.

use super::exchange::{After, Exchange, NoResponse};
use super::head::{Refusal, RequestHead, own_response};
use super::pipe::{Failure, Pipe, Step};
use super::proxy::Proxy;
use bytes::{Buf, BytesMut};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

/// Space for reading a head, in bytes.
const READ_SIZE: usize = 8 << 10;

/// Next step of a client's connection after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Request,
    Close,
}

struct Connection<'a> {
    proxy: &'a Proxy,
    socket: TcpStream,
    client: IpAddr,
    /// Bytes of the client that are not part of an earlier request.
    read: BytesMut,
    /// The connection to the old server.
    kept: Option<TcpStream>,
    ends: watch::Receiver<bool>,
}

/// Serves a client's connection until it ends, or to the end of the current request once `ends` is `true`.
pub(super) async fn serve(socket: TcpStream, client: IpAddr, proxy: Arc<Proxy>, ends: watch::Receiver<bool>) {
    let _ = socket.set_nodelay(true);
    let mut connection = Connection { proxy: &proxy, socket, client, read: BytesMut::new(), kept: None, ends };
    while let Some(request) = connection.next_request().await {
        let next = match request {
            Ok(request) => connection.pass(request).await,
            Err(Refusal { status, why }) => connection.refuse(status, &why).await,
        };
        if next == Next::Close {
            return;
        }
    }
}

impl Connection<'_> {
    /// Reads the head of the next request; `None` if there is none.
    async fn next_request(&mut self) -> Option<Result<RequestHead, Refusal>> {
        let limit = Instant::now() + self.proxy.limits.idle;
        loop {
            match RequestHead::parse(&self.read) {
                Ok(Some((head, length))) => {
                    self.read.advance(length);
                    return Some(Ok(head));
                }
                Ok(None) => {}
                Err(refusal) => return Some(Err(refusal)),
            }
            let is_idle = self.read.is_empty();
            self.read.reserve(READ_SIZE);
            tokio::select! {
                read = timeout_at(limit, self.socket.read_buf(&mut self.read)) => match read {
                    Ok(Ok(length)) if length > 0 => {}
                    _ => return None,
                },
                _ = self.ends.wait_for(|ends| *ends), if is_idle => return None,
            }
        }
    }

    /// Passes a request on to the old server and its response back.
    async fn pass(&mut self, head: RequestHead) -> Next {
        self.proxy.tally.request();
        let tap = self.proxy.sampler.choose(&head, self.client);
        let kept = self.kept.take().filter(|socket| head.may_be_repeated() && !has_ended(socket));
        let mut exchange = Exchange::new(self.proxy, &head, self.client, std::mem::take(&mut self.read), tap);
        let (mut result, mut old) = (Err(NoResponse::Closed), None);
        if let Some(mut socket) = kept {
            result = exchange.run(&mut self.socket, &mut socket, &mut self.ends).await;
            old = Some(socket);
        }
        // The old server may have closed a used connection meanwhile.
        if let Err(NoResponse::Closed) = result {
            (result, old) = match self.connect().await {
                Ok(mut socket) => (exchange.run(&mut self.socket, &mut socket, &mut self.ends).await, Some(socket)),
                Err(why) => (Err(why), None),
            };
        }
        let mut up = exchange.into_upload();
        match result {
            Ok(After { keeps_client, keeps_old, is_uploaded }) => {
                let old = old.filter(|_| keeps_old);
                if !keeps_client && is_uploaded && up.buffer.is_empty() {
                    return Next::Close;
                }
                if !keeps_client {
                    return self.linger(&mut up, old.filter(|_| !is_uploaded)).await;
                }
                self.read = std::mem::take(&mut up.buffer);
                self.kept = old;
                Next::Request
            }
            Err(NoResponse::ClientGone | NoResponse::Ended) => Next::Close,
            Err(NoResponse::Cut) => {
                // A client must not take a part for the whole.
                let _ = rustix::net::sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
                Next::Close
            }
            Err(failed) => {
                let (status, why) = failed.response(self.proxy);
                if status == 400 {
                    self.proxy.tally.refused();
                } else {
                    self.proxy.tally.unanswered(&why);
                }
                self.respond(status, &why).await;
                self.linger(&mut up, None).await
            }
        }
    }

    async fn connect(&self) -> Result<TcpStream, NoResponse> {
        match timeout(self.proxy.limits.connect, TcpStream::connect(self.proxy.old)).await {
            Ok(Ok(socket)) => {
                let _ = socket.set_nodelay(true);
                Ok(socket)
            }
            Ok(Err(error)) => Err(NoResponse::Unreachable(error)),
            Err(_) => Err(NoResponse::ConnectTimeout),
        }
    }

    /// Responds to a request that is not passed on.
    async fn refuse(&mut self, status: u16, why: &str) -> Next {
        self.proxy.tally.refused();
        self.respond(status, why).await;
        let mut up = Pipe::new(std::mem::take(&mut self.read));
        self.linger(&mut up, None).await
    }

    async fn respond(&mut self, status: u16, why: &str) {
        let response = own_response(status, why);
        let _ = timeout(self.proxy.limits.linger, self.socket.write_all(&response)).await;
    }

    /// Ends the connection after a response. A client that still sends would lose the response if its bytes were not
    /// read; `old` still gets those that belong to the request.
    async fn linger(&mut self, up: &mut Pipe, mut old: Option<TcpStream>) -> Next {
        let limit = Instant::now() + self.proxy.limits.linger;
        let (mut client, mut response) = self.socket.split();
        let _ = response.shutdown().await;
        loop {
            let step = match &mut old {
                Some(old) if !up.is_done() => timeout_at(limit, up.step(&mut client, &mut old.split().1, |_| ())).await,
                _ => {
                    up.discard_rest();
                    // Nothing is written.
                    timeout_at(limit, up.step(&mut client, &mut response, |_| ())).await
                }
            };
            match step {
                Ok(Ok(Step::Moved)) => {}
                Ok(Err(Failure::Write)) => old = None,
                _ => return Next::Close,
            }
        }
    }
}

/// `true` if the other side has closed an idle connection, or sent data without a request.
fn has_ended(socket: &TcpStream) -> bool {
    !matches!(socket.try_read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
