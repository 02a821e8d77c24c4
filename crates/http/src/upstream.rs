//! The border to PHP: what `service` needs from the pools, so that tests can put something else in their place.

use bytes::Bytes;
use howdah_pool::{Call, CallStats, Chunk, Fault, Reply, ReplyBody, WholeBody};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs calls. The composition root implements it on the pools.
pub trait Upstream: Send + Sync + 'static {
    /// The body of its answers.
    type Body: AnswerBody;

    /// Returns when the pool with this position in the settings has a place for a call, or has had none for a while.
    fn room(&self, pool: usize) -> impl Future<Output = ()> + Send {
        let _ = pool;
        std::future::ready(())
    }

    /// Runs `call` on the pool with this position in the settings.
    fn call(&self, pool: usize, call: Call) -> impl Future<Output = Result<Answer<Self::Body>, Fault>> + Send;
}

/// An answer: head at once, body as it comes. See `howdah_pool::Reply`.
#[derive(Debug)]
pub struct Answer<B> {
    /// The status code.
    pub status: u16,
    /// Header lines in order, not yet checked for HTTP's rules.
    pub headers: Vec<(Bytes, Bytes)>,
    /// The body.
    pub body: B,
}

impl From<Reply> for Answer<ReplyBody> {
    fn from(reply: Reply) -> Self {
        Self { status: reply.status, headers: reply.headers, body: reply.body }
    }
}

/// The body of an answer. The methods mean what those of `howdah_pool::ReplyBody` mean.
pub trait AnswerBody: Send + Unpin + 'static {
    /// The remaining body's length, if the answer has ended already.
    fn complete_len(&self) -> Option<u64>;
    /// The whole remaining body, if the answer has ended and is in memory.
    fn take_complete(&mut self) -> Option<WholeBody>;
    /// The next part.
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, Fault>>>;
    /// Where the call ran and what it took so far.
    fn stats(&self) -> CallStats;
}

impl AnswerBody for ReplyBody {
    fn complete_len(&self) -> Option<u64> {
        Self::complete_len(self)
    }

    fn take_complete(&mut self) -> Option<WholeBody> {
        Self::take_complete(self)
    }

    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, Fault>>> {
        Self::poll_chunk(self, cx)
    }

    fn stats(&self) -> CallStats {
        Self::stats(self)
    }
}
