//! Runs an upgraded protocol over any version of HTTP, and records its end.

use crate::body::{Delivery, Kind};
use crate::panics;
use crate::upgrade::Upgraded;
use bytes::Bytes;
use howdah_observe::Metrics;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::io::ReadBuf;

/// Bytes sent to the client.
pub(crate) type SentBytes = Arc<AtomicU64>;

/// Reads data that has arrived already. Returns the number of bytes.
pub(crate) fn read_ahead(ahead: &mut Bytes, buf: &mut ReadBuf<'_>) -> usize {
    let bytes = ahead.len().min(buf.remaining());
    buf.put_slice(&ahead.split_to(bytes));
    if ahead.is_empty() {
        // Gives the memory back.
        *ahead = Bytes::new();
    }
    bytes
}

/// Runs the body's upgraded protocol. `ending` becomes ready when [`Upgraded::is_to_end`] changes, for clients whose
/// reads and writes do not wake this task then.
pub(crate) async fn run(
    kind: Kind,
    mut delivery: Delivery,
    metrics: &Metrics,
    client: impl FnOnce(SentBytes) -> Box<dyn Upgraded>,
    ending: impl Future<Output = ()>,
) {
    let Kind::Upgrade(upgrade) = kind else { return };
    let sent = SentBytes::default();
    let _counted = metrics.connections_upgraded.hold();
    let recorder = SentRecorder { delivery: &mut delivery, sent: sent.clone() };
    let mut talking = upgrade.run(client(sent));
    let (mut ending, mut ends) = (pin!(ending), false);
    let ended = poll_fn(|cx| {
        // Polled first, so that the protocol sees the change in this turn.
        ends = ends || ending.as_mut().poll(cx).is_ready();
        panics::call(|| talking.as_mut().poll(cx)).map_or_else(|panic| Err(panic).into(), |polled| polled.map(Ok))
    });
    match ended.await {
        Ok(()) => recorder.delivery.complete = true,
        Err(panic) => panic.note(metrics),
    }
}

/// Records the bytes that an upgraded connection has sent, however it ends.
struct SentRecorder<'a> {
    delivery: &'a mut Delivery,
    sent: SentBytes,
}

impl Drop for SentRecorder<'_> {
    fn drop(&mut self) {
        self.delivery.sent = self.sent.load(Relaxed);
    }
}
