//! An upgraded connection: copies bytes between client and server in both directions until both sides end, no data
//! moves for too long, or this server stops.
//!
//! An idle tunnel has no buffer. Data is read into a buffer of the thread; only what the other side does not take at
//! once is kept, and charged.

use crate::response::{ProgressTimeout, ResponseGuard};
use crate::transport::Transport;
use bytes::{Buf, Bytes};
use howdah_budget::Charge;
use howdah_protocol::{Upgrade, Upgraded};
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum bytes per read.
const READ: usize = 16 * 1024;

/// Maximum silence of one side after the other has ended.
const HALF_CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// When this server stops, a tunnel that is silent for this long is closed. Messages in transit still arrive, and
/// clients reconnect.
const SHUTDOWN_IDLE_TIMEOUT: Duration = Duration::from_secs(1);

thread_local! {
    static READS: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into());
}

/// An upgraded connection.
pub(crate) struct Tunnel {
    held: ResponseGuard,
    charge: Charge,
}

impl Tunnel {
    pub(crate) fn new(held: ResponseGuard, charge: Charge) -> Self {
        Self { held, charge }
    }
}

impl Upgrade for Tunnel {
    fn run(self: Box<Self>, client: Box<dyn Upgraded>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let Self { held: ResponseGuard { link, place, group, .. }, charge } = *self;
            let left = link.leave();
            let timeout = ProgressTimeout::new(group.settings.idle_timeout());
            let mut down = Pump::new(charge.beside(charge.budget()));
            down.waiting = left.ahead;
            let pair = Pair { client, server: left.stream, up: Pump::new(charge), down, timeout };
            let (proxy, server) = (group.name(), &place.server.label);
            match talk(pair).await {
                Ok(why) => {
                    tracing::debug!(target: "howdah::proxy", proxy, server, "upgraded connection ended: {why}")
                }
                Err(error) => {
                    tracing::debug!(target: "howdah::proxy", proxy, server, %error, "upgraded connection ended early");
                }
            }
        })
    }
}

/// Both ends and the data in transit.
struct Pair {
    client: Box<dyn Upgraded>,
    server: Transport,
    up: Pump,
    down: Pump,
    timeout: ProgressTimeout,
}

async fn talk(mut pair: Pair) -> io::Result<&'static str> {
    std::future::poll_fn(move |cx| {
        let Pair { client, server, up, down, timeout } = &mut pair;
        let mut moved = false;
        let to_server = up.poll(cx, client, server, &mut moved);
        let to_client = down.poll(cx, server, client, &mut moved);
        if moved {
            timeout.moved();
        }
        match (to_server, to_client) {
            (Poll::Ready(Err(error)), _) | (_, Poll::Ready(Err(error))) => return Poll::Ready(Err(error)),
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => return Poll::Ready(Ok("both sides have ended it")),
            (Poll::Ready(Ok(())), _) | (_, Poll::Ready(Ok(()))) => timeout.shorten(HALF_CLOSE_TIMEOUT),
            _ => {}
        }
        if client.is_to_end() {
            timeout.shorten(SHUTDOWN_IDLE_TIMEOUT);
        }
        timeout.poll_over(cx).map(|()| Ok("no data was transferred for too long"))
    })
    .await
}

/// One direction.
struct Pump {
    /// Data that was read and is not written yet.
    waiting: Bytes,
    charge: Charge,
    /// Written data may still be buffered in the TLS session.
    unflushed: bool,
    at_end: bool,
    done: bool,
}

impl Pump {
    fn new(charge: Charge) -> Self {
        Self { waiting: Bytes::new(), charge, unflushed: false, at_end: false, done: false }
    }

    /// Moves available data. Ready once `from` has ended and `to` has been shut down.
    fn poll<R, W>(&mut self, cx: &mut Context<'_>, from: &mut R, to: &mut W, moved: &mut bool) -> Poll<io::Result<()>>
    where
        R: AsyncRead + Unpin + ?Sized,
        W: AsyncWrite + Unpin + ?Sized,
    {
        loop {
            if self.done {
                return Poll::Ready(Ok(()));
            }
            while !self.waiting.is_empty() {
                let written = ready!(Pin::new(&mut *to).poll_write(cx, &self.waiting))?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.waiting.advance(written);
                (self.unflushed, *moved) = (true, true);
            }
            self.charge.clear();
            if self.unflushed {
                ready!(Pin::new(&mut *to).poll_flush(cx))?;
                self.unflushed = false;
            }
            if self.at_end {
                ready!(Pin::new(&mut *to).poll_shutdown(cx))?;
                self.done = true;
                continue;
            }
            ready!(READS.with_borrow_mut(|space| self.poll_some(cx, from, to, moved, space)))?;
        }
    }

    /// Reads once, and writes as much as `to` accepts.
    fn poll_some<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
        to: &mut W,
        moved: &mut bool,
        space: &mut [u8],
    ) -> Poll<io::Result<()>>
    where
        R: AsyncRead + Unpin + ?Sized,
        W: AsyncWrite + Unpin + ?Sized,
    {
        let mut buf = ReadBuf::new(space);
        ready!(Pin::new(from).poll_read(cx, &mut buf))?;
        let mut came = buf.filled();
        if came.is_empty() {
            self.at_end = true;
            return Poll::Ready(Ok(()));
        }
        *moved = true;
        while !came.is_empty() {
            match Pin::new(&mut *to).poll_write(cx, came)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(written) => {
                    came = &came[written..];
                    self.unflushed = true;
                }
                Poll::Pending => {
                    if !self.charge.grow(came.len() as u64) {
                        return Poll::Ready(Err(io::Error::other("there is no room for it in `http.memory`")));
                    }
                    self.waiting = Bytes::copy_from_slice(came);
                    return Poll::Ready(Ok(()));
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_budget::Budgets;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    #[tokio::test]
    async fn data_and_end_arrive_in_order_through_small_buffers() {
        let (mut client, mut from) = duplex(100);
        let (mut to, mut server) = duplex(7);
        let sent: Vec<u8> = (0..20_000u32).map(|number| (number % 251) as u8).collect();
        let text = sent.clone();
        let memory = Budgets::new(1 << 24, 1 << 24).memory;
        let pumped = tokio::spawn(async move {
            let (mut pump, mut moved) = (Pump::new(Charge::new(memory, None)), false);
            std::future::poll_fn(|cx| pump.poll(cx, &mut from, &mut to, &mut moved)).await.unwrap();
        });
        tokio::spawn(async move { client.write_all(&text).await.unwrap() });
        let mut came = Vec::new();
        server.read_to_end(&mut came).await.unwrap();
        assert!(came == sent);
        pumped.await.unwrap();
        assert_eq!(memory.used(), 0);
    }
}
