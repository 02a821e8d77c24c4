//! HTTP/1.1 on a connection with a separate task: one request after the other, bodies counted and dropped.

use std::io::{Error, ErrorKind};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Response;
use crate::load::mixed::reply;

const BUFFER: usize = 64 * 1024;

/// Maximum number of buffered bytes of a reply without a length.
const MAX_RESPONSE_LEN: usize = 4 << 20;

/// A connection.
pub(super) struct Http1<S> {
    stream: S,
    buffer: Vec<u8>,
}

fn broken() -> Error {
    ErrorKind::InvalidData.into()
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http1<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, buffer: vec![0; BUFFER] }
    }

    /// Sends a request and reads its whole reply.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> std::io::Result<Response> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                if filled >= MAX_RESPONSE_LEN {
                    return Err(broken());
                }
                self.buffer.resize(2 * filled, 0);
            }
            let count = self.stream.read(&mut self.buffer[filled..]).await?;
            filled += count;
            let so_far = &self.buffer[..filled];
            if let Some(head) = reply::sized_head(so_far).map_err(|_| broken())? {
                return self.rest(head, filled).await;
            }
            if let Some(reply) = reply::parse(so_far, count == 0).map_err(|_| broken())? {
                return Ok(Response { status: reply.status, bytes: reply.length as u64, closes: reply.closes });
            }
        }
    }

    /// Drops the rest of a reply whose length is known.
    async fn rest(&mut self, head: reply::SizedHead, filled: usize) -> std::io::Result<Response> {
        let mut missing = head.length.checked_sub(filled).ok_or_else(broken)?;
        while missing > 0 {
            let most = missing.min(self.buffer.len());
            match self.stream.read(&mut self.buffer[..most]).await? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => missing -= count,
            }
        }
        Ok(Response { status: head.status, bytes: head.length as u64, closes: head.closes })
    }
}
