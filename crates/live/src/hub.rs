//! The hub connects publishers and subscribers on any threads.

use crate::history::{History, Preceding};
use crate::index::Index;
use crate::last::LastUpdates;
use crate::presence::{Noted, Presence};
use crate::rosters::Rosters;
use crate::selector::any_matches;
use crate::subscriber::{Event, Interest, QueueLimits, Subscriber};
use crate::update::Update;
use crate::waking::wake_all;
use bytes::Bytes;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Bounds of a hub.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Updates of the history.
    pub history: usize,
    /// Bytes of the history.
    pub history_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { history: 1024, history_bytes: 8 << 20 }
    }
}

/// Distributes updates to subscribers. Clones refer to the same hub.
#[derive(Debug, Clone)]
pub struct Hub(pub(crate) Arc<Shared>);

/// Observes the channels of a hub.
pub trait Watcher: std::fmt::Debug + Send + Sync {
    /// Called after each change, in order, without the hub's lock. May publish, but not join or leave.
    fn changed(&self, hub: &Hub, noted: &Noted);
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    /// Held by the thread that notifies the watcher.
    pub(crate) notifying: Mutex<()>,
    published: AtomicU64,
    share: OnceLock<Arc<dyn Share>>,
}

/// Sends updates to the hubs of all servers, including this one: each arrives through [`Hub::receive`].
pub trait Share: std::fmt::Debug + Send + Sync {
    /// Sends an update. Must not block.
    fn send(&self, update: Bytes);
}

/// A weak reference to a hub.
#[derive(Debug, Clone)]
pub struct HubRef(Weak<Shared>);

#[derive(Debug)]
pub(crate) struct State {
    /// The number of the last update.
    updates: u64,
    /// The number of the last subscriber.
    last: u64,
    all: FxHashMap<u64, Arc<Subscriber>>,
    pub(crate) index: Index,
    pub(crate) history: History,
    pub(crate) presence: Presence,
    last_updates: LastUpdates,
    pub(crate) watcher: Option<Arc<dyn Watcher>>,
    /// Changes that the watcher has not been notified of yet.
    pub(crate) changes: VecDeque<Noted>,
    /// Channels on all servers, if servers share them.
    pub(crate) rosters: Option<Box<Rosters>>,
    is_closing: bool,
}

/// A new subscription, and its position in the history.
#[derive(Debug)]
pub struct Joined {
    pub subscription: Subscription,
    /// The update before the first one that the subscriber gets; `Earliest` also if the client asked for an unknown id.
    pub preceding: Preceding,
}

impl Hub {
    /// An empty hub.
    pub fn new(limits: Limits) -> Self {
        let state = State {
            updates: 0,
            last: 0,
            all: FxHashMap::default(),
            index: Index::default(),
            history: History::new(limits.history, limits.history_bytes),
            presence: Presence::default(),
            last_updates: LastUpdates::default(),
            watcher: None,
            changes: VecDeque::new(),
            rosters: None,
            is_closing: false,
        };
        let (state, notifying) = (Mutex::new(state), Mutex::new(()));
        Self(Arc::new(Shared { state, notifying, published: AtomicU64::new(0), share: OnceLock::new() }))
    }

    /// Publishes an update on all servers and keeps it in the history. Returns the number of recipients, or 0 if the
    /// hub is shared.
    pub fn publish(&self, update: Update) -> usize {
        self.send(update, true)
    }

    /// Publishes an update on all servers without keeping it in the history or counting it.
    pub fn broadcast(&self, update: Update) -> usize {
        self.send(update, false)
    }

    fn send(&self, update: Update, is_kept: bool) -> usize {
        match self.0.share.get() {
            Some(share) => {
                share.send(update.to_bytes(is_kept));
                0
            }
            None => self.0.publish(&Arc::new(update), is_kept),
        }
    }

    /// Shares the hub with other servers' hubs from now on. Only the first call has an effect.
    pub fn share(&self, share: Arc<dyn Share>) {
        let _ = self.0.share.set(share);
    }

    /// Receives an update from any server, including this one. `is_old`: it was published before this server joined,
    /// and only goes to the history.
    pub fn receive(&self, update: Bytes, is_old: bool) {
        // The bytes are not trusted.
        let Some((update, is_kept)) = Update::from_bytes(update) else { return };
        let update = Arc::new(update);
        match (is_old, is_kept) {
            (true, true) => self.0.state.lock().history.push(&update),
            (true, false) => {}
            (false, _) => drop(self.0.publish(&update, is_kept)),
        }
    }

    /// Queues for this subscriber the last update of a topic that was published as `cached`; `false` if there is none.
    pub fn send_last(&self, subscriber: &Subscriber, topic: &str) -> bool {
        let state = self.0.state.lock();
        let Some(update) = state.last_updates.get(topic, Instant::now()) else { return false };
        // Under the lock, so that a newer update cannot overtake it.
        let waker = subscriber.catch_up(vec![update.clone()]);
        drop(state);
        wake_all(waker.into_iter().collect());
        true
    }

    /// A weak reference to the hub.
    #[must_use]
    pub fn downgrade(&self) -> HubRef {
        HubRef(Arc::downgrade(&self.0))
    }

    /// Publishes an update on this server only, without keeping it in the history or counting it.
    pub fn notify(&self, update: Update) -> usize {
        self.0.publish(&Arc::new(update), false)
    }

    /// Subscribes. Updates after the one with the id `after` are delivered first; without it, only new ones.
    #[must_use]
    pub fn subscribe(&self, mut interest: Interest, after: Option<&str>, queue_limits: QueueLimits) -> Joined {
        let mut state = self.0.state.lock();
        state.index.share(&mut interest.selectors);
        // Taken under the lock: earlier updates come from the history, later ones from the queue.
        let (preceding, mut updates) = match after {
            Some(id) => state.history.after(id),
            None => (state.history.last(), Vec::new()),
        };
        state.last += 1;
        let subscriber = Arc::new(Subscriber::new(state.last, interest, queue_limits, state.updates));
        state.index.insert(&subscriber);
        state.all.insert(subscriber.number, subscriber.clone());
        if state.is_closing {
            subscriber.close(Instant::now());
        }
        drop(state);
        updates.retain(|update| subscriber.interest.wants(update));
        let subscription = Subscription { subscriber, backlog: updates.into(), hub: Arc::downgrade(&self.0) };
        Joined { subscription, preceding }
    }

    /// Asks every subscriber to end, spread evenly over this time, so that they do not all reconnect at once.
    pub fn end_subscriptions(&self, spread: Duration) {
        self.end(spread, false);
    }

    /// Like [`Self::end_subscriptions`]; later subscribers are asked to end at once.
    pub fn close(&self, spread: Duration) {
        self.end(spread, true);
    }

    fn end(&self, spread: Duration, closes: bool) {
        let mut wakers = Vec::new();
        let mut state = self.0.state.lock();
        state.is_closing |= closes;
        if let Some(rosters) = state.rosters.as_mut().filter(|_| closes) {
            rosters.close();
        }
        let (begin, count) = (Instant::now(), state.all.len().max(1));
        for (at, subscriber) in state.all.values().enumerate() {
            let share = spread.mul_f64(at as f64 / count as f64);
            wakers.extend(subscriber.close(begin + share));
        }
        drop(state);
        wake_all(wakers);
    }

    /// `true` if a subscriber that is not `trusted` would get a private update of this topic.
    pub fn is_watched(&self, topic: &Arc<str>) -> bool {
        let topics = std::slice::from_ref(topic);
        self.0
            .state
            .lock()
            .index
            .subscribers_of(topics, true)
            .any(|subscriber| any_matches(&subscriber.interest.allowed, topics))
    }

    /// All subscribers, in the order of their subscriptions.
    pub fn subscribers(&self) -> Vec<Arc<Subscriber>> {
        let mut all: Vec<_> = self.0.state.lock().all.values().cloned().collect();
        all.sort_unstable_by_key(|subscriber| subscriber.number);
        all
    }

    /// Number of subscribers.
    pub fn len(&self) -> usize {
        self.0.state.lock().all.len()
    }

    /// Number of subscribers whose channels the application chooses: WebSocket connections.
    pub fn connections(&self) -> usize {
        self.0.state.lock().all.values().filter(|subscriber| subscriber.interest.trusted).count()
    }

    /// `true` without subscribers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of topics that have subscribers by name.
    pub fn topics_in_use(&self) -> usize {
        self.0.state.lock().index.len()
    }

    /// Number of updates that were published.
    pub fn published(&self) -> u64 {
        self.0.published.load(Relaxed)
    }

    /// The last update that was published.
    pub fn last(&self) -> Preceding {
        self.0.state.lock().history.last()
    }
}

impl HubRef {
    /// The hub, if it still exists.
    pub fn get(&self) -> Option<Hub> {
        self.0.upgrade().map(Hub)
    }
}

impl Shared {
    fn publish(&self, update: &Arc<Update>, is_kept: bool) -> usize {
        let (mut wakers, mut count) = (Vec::new(), 0);
        let mut state = self.state.lock();
        state.updates += 1;
        let number = state.updates;
        if is_kept {
            self.published.fetch_add(1, Relaxed);
            state.history.push(update);
        }
        if update.cached {
            state.last_updates.set(number, update, Instant::now());
        }
        // Under the lock, so that all subscribers get updates in the same order as the history.
        for subscriber in state.index.subscribers_of(&update.topics, update.private) {
            let (is_queued, waker) = subscriber.offer(number, update);
            count += usize::from(is_queued);
            wakers.extend(waker);
        }
        drop(state);
        wake_all(wakers);
        count
    }

    fn remove(&self, subscriber: &Arc<Subscriber>) {
        let mut state = self.state.lock();
        state.index.remove(subscriber);
        let channels = subscriber.go();
        channels.iter().for_each(|channel| state.left(subscriber, channel));
        let removed = state.all.remove(&subscriber.number);
        drop(state);
        drop(removed);
    }
}

/// The reader's end of a subscription. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Subscription {
    subscriber: Arc<Subscriber>,
    /// Updates from the history, which are delivered first.
    backlog: VecDeque<Arc<Update>>,
    hub: Weak<Shared>,
}

impl Subscription {
    /// Its subscriber.
    pub fn subscriber(&self) -> &Arc<Subscriber> {
        &self.subscriber
    }

    /// Number of updates that were lost because the subscriber was slow.
    pub fn dropped(&self) -> u64 {
        self.subscriber.dropped()
    }

    /// The next event, or pending with the waker registered.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let Some(update) = self.backlog.pop_front() else { return self.subscriber.poll_next(cx) };
        if self.backlog.is_empty() {
            self.backlog = VecDeque::new();
        }
        Poll::Ready(Event::Update(update))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.remove(&self.subscriber);
            Hub(hub).notify_watcher();
        }
    }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
