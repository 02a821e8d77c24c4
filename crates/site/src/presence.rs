//! Shares a site's channels and members with other servers, through a separate log.

use howdah_live::{Hub, HubRef};
use howdah_store::{Broker, Log, Received};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

/// Number of ticks in an interval. Changed numbers of subscribers are shared with each, a heartbeat with the first.
const TICKS: u32 = 5;
/// Size of entries, in bytes, after which their storage is awaited: the log holds at most 8 MB that are not stored.
const MAX_WAITING: usize = 1 << 20;
/// Maximum time that a stop waits until the broker has stored the last entries.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Shares the channels of a site's hub from now on.
pub(crate) fn share(hub: &Hub, site: &str, broker: &Broker, interval: Duration) -> Arc<Log> {
    let wake = hub.share_presence(fastrand::u64(1..));
    let own = hub.downgrade();
    let deliver = move |received: Received| {
        if let Some(hub) = own.get().filter(|_| !received.is_old) {
            hub.receive_presence(received.payload);
        }
    };
    let log = Arc::new(Log::open(broker, &format!("{site}:presence"), deliver));
    tokio::spawn(run(hub.downgrade(), log.clone(), wake, interval));
    log
}

/// Passes entries to the log, and changes to the hub's watcher, until the hub is gone.
async fn run(hub: HubRef, log: Arc<Log>, wake: Arc<Notify>, interval: Duration) {
    log.caught_up().await;
    if let Some(hub) = hub.get() {
        hub.begin_presence();
    }
    let mut ticks = tokio::time::interval(interval / TICKS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut tick = 0;
    while let Some(hub) = hub.get() {
        let mut waiting = 0;
        for entry in hub.presence_entries() {
            waiting += entry.len();
            log.append(entry);
            if waiting > MAX_WAITING {
                log.stored().await;
                waiting = 0;
            }
        }
        hub.notify_watcher();
        tokio::select! {
            _ = ticks.tick() => {
                hub.tick_presence(tick == 0, log.is_reachable());
                tick = (tick + 1) % TICKS;
            }
            () = wake.notified() => {}
        }
    }
}

/// Declares this server gone in these logs, and waits for the broker to store that, for at most `STORE_TIMEOUT`.
pub(crate) async fn leave(shared: Vec<(Hub, Arc<Log>)>) {
    for (hub, log) in &shared {
        hub.leave_presence();
        hub.presence_entries().into_iter().for_each(|entry| log.append(entry));
    }
    let stored = async {
        for (_, log) in &shared {
            log.stored().await;
        }
    };
    // Without these entries, the others notice the silence.
    let _ = tokio::time::timeout(STORE_TIMEOUT, stored).await;
}
