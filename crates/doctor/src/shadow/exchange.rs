//! One request and its response, between a client and the old server: both directions at the same time, so that a
//! response may come before the end of the request.

use super::framing::Framing;
use super::head::{RequestHead, ResponseHead};
use super::pipe::{Failure, Pipe, Step};
use super::proxy::Proxy;
use super::sample::Tap;
use anyhow::{Error, anyhow};
use bytes::{Buf, BytesMut};
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

/// State of the connections after a complete response.
#[derive(Debug)]
pub(super) struct After {
    pub(super) keeps_client: bool,
    pub(super) keeps_old: bool,
    /// `true` if the old server has got the whole request.
    pub(super) is_uploaded: bool,
}

/// Reason why a client gets no complete response of the old server.
#[derive(Debug)]
pub(super) enum NoResponse {
    /// The old server has closed the connection instead.
    Closed,
    Unreachable(io::Error),
    ConnectTimeout,
    Stalled,
    BadResponse(Error),
    BadRequest(Error),
    /// The response ended early.
    Cut,
    ClientGone,
    /// The run ends, and with it an upgraded connection.
    Ended,
}

impl NoResponse {
    /// Status and reason for the client.
    pub(super) fn response(&self, proxy: &Proxy) -> (u16, String) {
        let (old, limits) = (proxy.old, proxy.limits);
        match self {
            Self::Unreachable(error) => (502, format!("cannot connect to {old}: {error}")),
            Self::ConnectTimeout => (504, format!("no connection to {old} within {} s", limits.connect.as_secs())),
            Self::Stalled => (504, format!("nothing from {old} within {} s", limits.stalled.as_secs())),
            Self::BadResponse(error) => (502, format!("{old}: {error:#}")),
            Self::BadRequest(error) => (400, format!("malformed request: {error:#}")),
            Self::Closed | Self::Cut | Self::ClientGone | Self::Ended => {
                (502, format!("{old} has closed the connection"))
            }
        }
    }
}

/// The final response's consequences.
#[derive(Debug, Clone, Copy)]
struct Final {
    keeps_old: bool,
    closes: bool,
    is_tunnel: bool,
}

#[derive(Debug)]
pub(super) struct Exchange<'a> {
    proxy: &'a Proxy,
    head: &'a RequestHead,
    client: IpAddr,
    up: Pipe,
    down: Pipe,
    tap: Tap,
    response: Option<Final>,
    /// `true` once the old server does not take the request's bytes any more.
    upload_failed: bool,
    reads_client: bool,
    reads_old: bool,
}

enum Side {
    Up(Result<Step, Failure>),
    Down(Result<Step, Failure>),
    Ends,
}

impl<'a> Exchange<'a> {
    /// `read` are the client's bytes after the head.
    pub(super) fn new(proxy: &'a Proxy, head: &'a RequestHead, client: IpAddr, read: BytesMut, tap: Tap) -> Self {
        Self {
            proxy,
            head,
            client,
            up: Pipe::new(read),
            down: Pipe::new(BytesMut::new()),
            tap,
            response: None,
            upload_failed: false,
            reads_client: true,
            reads_old: true,
        }
    }

    /// The request's pipe, with the bytes after the request.
    pub(super) fn into_upload(self) -> Pipe {
        self.up
    }

    /// Passes the request to `old` and its response to `client`. May be called again, for a request without a body, if
    /// it returned `Closed`.
    pub(super) async fn run(
        &mut self,
        client: &mut TcpStream,
        old: &mut TcpStream,
        ends: &mut watch::Receiver<bool>,
    ) -> Result<After, NoResponse> {
        self.up.set_head(&self.head.forwarded(self.client));
        self.up.begin(self.head.framing, |_| ()).map_err(failed_request)?;
        (self.upload_failed, self.up.discards) = (false, false);
        (self.reads_client, self.reads_old) = (true, true);
        let (mut from_client, mut to_client) = client.split();
        let (mut from_old, mut to_old) = old.split();
        loop {
            let is_tunnel = self.response.is_some_and(|response| response.is_tunnel);
            let limit = if is_tunnel { Duration::MAX } else { self.proxy.limits.stalled };
            let Self { up, down, tap, reads_client, reads_old, .. } = self;
            let moved = timeout(limit, async {
                tokio::select! {
                    step = up.step(&mut from_client, &mut to_old, |_| ()), if *reads_client => Side::Up(step),
                    step = down.step(&mut from_old, &mut to_client, |data| tap.append(data)), if *reads_old => Side::Down(step),
                    _ = ends.wait_for(|ends| *ends), if is_tunnel => Side::Ends,
                }
            });
            match moved.await {
                Err(_) => return Err(if self.response.is_none() { NoResponse::Stalled } else { NoResponse::Cut }),
                Ok(Side::Ends) => return Err(NoResponse::Ended),
                Ok(Side::Up(step)) => {
                    if self.uploaded(step)? {
                        let _ = to_old.shutdown().await;
                    }
                }
                Ok(Side::Down(step)) => {
                    if self.downloaded(step, *ends.borrow())? {
                        let _ = to_client.shutdown().await;
                    }
                }
            }
            if self.is_over() {
                self.tap.complete();
                return Ok(self.after());
            }
        }
    }

    /// `true` once the response is complete; after an upgrade, once both sides have ended.
    fn is_over(&self) -> bool {
        match self.response {
            None => false,
            Some(Final { is_tunnel: true, .. }) => !self.reads_client && !self.reads_old,
            Some(_) => self.down.is_flushed() && (self.down.is_done() || !self.reads_old),
        }
    }

    fn after(&self) -> After {
        let is_uploaded = self.up.is_done() && !self.upload_failed;
        let (keeps_old, closes) = self.response.map_or((false, true), |response| (response.keeps_old, response.closes));
        After {
            keeps_client: !closes && is_uploaded,
            // The old server still gets the rest of a request.
            keeps_old: !self.upload_failed && (!is_uploaded || keeps_old && self.down.buffer.is_empty()),
            is_uploaded,
        }
    }

    /// Returns `true` if the client has ended its side.
    fn uploaded(&mut self, step: Result<Step, Failure>) -> Result<bool, NoResponse> {
        match step {
            Ok(Step::Moved) => {}
            Ok(Step::Ended) => {
                self.reads_client = false;
                return Ok(true);
            }
            Err(Failure::Read(_)) => return Err(NoResponse::ClientGone),
            // It may have responded already.
            Err(Failure::Write) => (self.upload_failed, self.up.discards) = (true, true),
            Err(Failure::Malformed(why)) if self.response.is_none() => return Err(NoResponse::BadRequest(why)),
            Err(Failure::Malformed(_)) => return Err(NoResponse::Cut),
        }
        Ok(false)
    }

    /// Returns `true` if the old server has ended its side of a tunnel.
    fn downloaded(&mut self, step: Result<Step, Failure>, ends: bool) -> Result<bool, NoResponse> {
        let error = match step {
            Ok(Step::Moved) => {
                self.read_heads(ends)?;
                return Ok(false);
            }
            Ok(Step::Ended) => None,
            Err(Failure::Read(error)) => Some(error),
            Err(Failure::Write) => return Err(NoResponse::ClientGone),
            Err(Failure::Malformed(_)) => return Err(NoResponse::Cut),
        };
        self.reads_old = false;
        match (self.response, error) {
            // The old server closed because the client did.
            (None, _) if !self.reads_client => Err(NoResponse::ClientGone),
            (None, _) if self.down.buffer.is_empty() => Err(NoResponse::Closed),
            (None, Some(error)) => Err(NoResponse::BadResponse(error.into())),
            (None, None) => Err(NoResponse::BadResponse(anyhow!("the head of the response ended early"))),
            (Some(response), None) if self.down.ends_with_connection() => Ok(response.is_tunnel),
            (Some(_), _) => Err(NoResponse::Cut),
        }
    }

    /// Parses the response heads in the buffer and queues them for the client, without interim ones if it speaks
    /// HTTP/1.0. With `ends`, its connection closes after this response.
    fn read_heads(&mut self, ends: bool) -> Result<(), NoResponse> {
        while self.response.is_none() {
            let parsed = ResponseHead::parse(&self.down.buffer, &self.head.method).map_err(NoResponse::BadResponse)?;
            let Some((head, length)) = parsed else { return Ok(()) };
            self.down.buffer.advance(length);
            if head.is_interim() {
                if self.head.takes_interim() {
                    self.down.push_head(&head.forwarded(false));
                }
                continue;
            }
            let is_tunnel = head.status == 101;
            if is_tunnel && !self.head.is_upgrade() {
                return Err(NoResponse::BadResponse(anyhow!("it upgraded the connection without a request to do so")));
            }
            let is_delimited = head.framing != Framing::UntilClose && !is_tunnel;
            let closes = ends || !is_delimited || !self.head.keeps_connection() || !self.up.is_done();
            self.response = Some(Final { keeps_old: head.keeps_connection() && is_delimited, closes, is_tunnel });
            self.down.push_head(&head.forwarded(closes));
            self.tap.begin(&head);
            let framing = if is_tunnel { Framing::UntilClose } else { head.framing };
            let tap = &mut self.tap;
            self.down.begin(framing, |data| tap.append(data)).map_err(failed_response)?;
            if is_tunnel {
                self.up.begin(Framing::UntilClose, |_| ()).map_err(failed_request)?;
            }
        }
        Ok(())
    }
}

fn failed_request(failure: Failure) -> NoResponse {
    match failure {
        Failure::Malformed(why) => NoResponse::BadRequest(why),
        Failure::Read(_) | Failure::Write => NoResponse::ClientGone,
    }
}

/// The head has not been written yet, but the client must not get it without a body.
fn failed_response(failure: Failure) -> NoResponse {
    match failure {
        Failure::Malformed(why) => NoResponse::BadResponse(why),
        Failure::Read(_) | Failure::Write => NoResponse::Cut,
    }
}
