//! The time of an upgraded connection, in whatever version of HTTP it has begun: runs what talks over it, and notes its end.

use crate::body::{Delivery, Kind};
use crate::panics;
use crate::upgrade::Upgraded;
use howdah_observe::Metrics;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes that went to the client.
pub(crate) type Sent = Arc<AtomicU64>;

/// Has what the body brings talk to the client. `ending` is ready when the client says something new about its end
/// ([`Upgraded::is_to_end`]) of which its reads and writes do not wake this task.
pub(crate) async fn run(
    kind: Kind,
    mut delivery: Delivery,
    metrics: &Metrics,
    client: impl FnOnce(Sent) -> Box<dyn Upgraded>,
    ending: impl Future<Output = ()>,
) {
    let Kind::Upgrade(upgrade) = kind else { return };
    let sent = Sent::default();
    let _counted = metrics.connections_upgraded.hold();
    let told = Told { delivery: &mut delivery, sent: sent.clone() };
    let mut talking = upgrade.run(client(sent));
    let (mut ending, mut ends) = (pin!(ending), false);
    let ended = poll_fn(|cx| {
        // Before it is polled: it may get the end from here on.
        ends = ends || ending.as_mut().poll(cx).is_ready();
        panics::call(|| talking.as_mut().poll(cx)).map_or_else(|panic| Err(panic).into(), |polled| polled.map(Ok))
    });
    match ended.await {
        Ok(()) => told.delivery.complete = true,
        Err(panic) => panic.note(metrics),
    }
}

/// Notes what an upgraded connection has sent, however it ends.
struct Told<'a> {
    delivery: &'a mut Delivery,
    sent: Sent,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.delivery.sent = self.sent.load(Relaxed);
    }
}
