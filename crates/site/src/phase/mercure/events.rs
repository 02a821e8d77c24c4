//! The body of a subscriber's response: a server-sent event per update, and comments as heartbeats.

use bytes::Bytes;
use howdah_live::{Event, Hub, Subscription};
use howdah_mercure::{event, events};
use howdah_observe::Metrics;
use howdah_protocol::{Chunk, ChunkStream};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, Sleep, sleep_until};

/// Minimum delay before disconnected clients reconnect; they wait up to twice as long.
const RETRY: Duration = Duration::from_secs(1);
/// Maximum timer for a token's expiry.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// The events of one subscriber. Dropping it ends the subscription, when the client disconnects or the stream ends.
pub(in crate::phase) struct Events {
    hub: Hub,
    subscription: Subscription,
    heartbeat: Duration,
    /// Time of the last event or comment. Updates do not reset the timer, so it may fire before a heartbeat is due.
    sent: Instant,
    timer: Pin<Box<Sleep>>,
    ends: Option<Instant>,
    is_new: bool,
    metrics: Arc<Metrics>,
}

impl Events {
    pub(in crate::phase) fn new(
        hub: Hub,
        subscription: Subscription,
        heartbeat: Duration,
        expires: Option<SystemTime>,
        metrics: Arc<Metrics>,
    ) -> Self {
        metrics.mercure_subscribers.inc();
        let now = Instant::now();
        let left = |at: SystemTime| at.duration_since(SystemTime::now()).unwrap_or_default().min(MAX_WAIT);
        let ends = expires.map(|at| now + left(at));
        let timer = Box::pin(sleep_until(ends.unwrap_or(now + heartbeat).min(now + heartbeat)));
        events(&hub, &subscription.subscriber().interest, true).for_each(|update| _ = hub.notify(update));
        Self { hub, subscription, heartbeat, sent: now, timer, ends, is_new: true, metrics }
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if std::mem::take(&mut self.is_new) {
            return Poll::Ready(Some(event::HEARTBEAT));
        }
        if self.ends.is_some_and(|ends| ends <= Instant::now()) {
            return Poll::Ready(None);
        }
        while let Poll::Ready(event) = self.subscription.poll_next(cx) {
            match event {
                // Binary messages of a channel cannot be sent as events.
                Event::Update(update) => {
                    if let Some(encoded) = event::of(&update) {
                        return Poll::Ready(Some(encoded));
                    }
                }
                Event::Closing(at) => {
                    let at = Instant::from_std(at);
                    self.ends = Some(self.ends.map_or(at, |ends| ends.min(at)));
                    self.wait();
                    let share = fastrand::f64();
                    return Poll::Ready(Some(event::retry(RETRY + RETRY.mul_f64(share))));
                }
                Event::Ended(why) => {
                    tracing::info!(target: "howdah::mercure", ?why, "subscriber disconnected");
                    return Poll::Ready(None);
                }
            }
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if self.ends.is_some_and(|ends| ends <= now) {
                return Poll::Ready(None);
            }
            if self.sent + self.heartbeat <= now {
                self.sent = now;
                self.wait();
                return Poll::Ready(Some(event::HEARTBEAT));
            }
            self.wait();
        }
        Poll::Pending
    }

    /// Sets the timer to the next heartbeat, or to the end of the subscription if that is earlier.
    fn wait(&mut self) {
        let beat = self.sent + self.heartbeat;
        self.timer.as_mut().reset(self.ends.map_or(beat, |ends| ends.min(beat)));
    }
}

impl ChunkStream for Events {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        self.next(cx).map(|data| {
            let data = data?;
            self.sent = Instant::now();
            Some(Ok(Chunk { data, flush: true }))
        })
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.metrics.mercure_subscribers.dec();
        let interest = &self.subscription.subscriber().interest;
        events(&self.hub, interest, false).for_each(|update| _ = self.hub.notify(update));
    }
}
