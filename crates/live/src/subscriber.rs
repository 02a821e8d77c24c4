//! A subscriber: its interest, and its queue of updates, which any thread fills and one task empties.

use crate::presence::Channel;
use crate::selector::{Selector, any_matches};
use crate::update::Update;
use howdah_budget::Charge;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Capacity that an empty queue keeps.
const MAX_IDLE_CAPACITY: usize = 8;

/// The updates that a subscriber wants and may get, and its description for others.
#[derive(Debug, Default)]
pub struct Interest {
    /// The subscriber gets updates with a topic that one of these matches.
    pub selectors: Vec<Selector>,
    /// Unless it is `trusted`, the subscriber gets private updates only if one of these matches one of their topics.
    pub allowed: Vec<Selector>,
    /// The application chooses the channels, so the subscriber gets their private updates too.
    pub trusted: bool,
    /// Its id.
    pub id: Box<str>,
    /// Data about the subscriber for clients that may list subscriptions.
    pub payload: Option<Box<str>>,
    /// The selectors are matchers of Mercure 1.0, each with its own payload.
    pub payloads: Option<Box<[Option<Box<str>>]>>,
}

impl Interest {
    /// `true` if the subscriber gets this update by its selectors.
    pub fn wants(&self, update: &Update) -> bool {
        any_matches(&self.selectors, &update.topics) && self.is_allowed(update)
    }

    /// The selectors that are matchers of Mercure 1.0, with their payloads.
    pub fn matched(&self) -> impl Iterator<Item = (&Selector, Option<&str>)> {
        let payloads = self.payloads.iter().flatten().map(Option::as_deref);
        self.selectors.iter().zip(payloads)
    }

    /// `true` if the subscriber may get some private updates.
    pub(crate) fn has_authority(&self) -> bool {
        self.trusted || !self.allowed.is_empty()
    }

    fn is_allowed(&self, update: &Update) -> bool {
        (!update.private || self.trusted || any_matches(&self.allowed, &update.topics))
            && update.except.as_deref() != Some(&*self.id)
    }
}

/// Action when a subscriber's queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowPolicy {
    /// End the subscription. The client may reconnect and continue after its last update.
    Disconnect,
    /// Drop the oldest updates.
    DropOldest,
}

/// Limits of a subscriber's queue. `max_bytes` counts whole updates, although subscribers share their memory.
#[derive(Debug)]
pub struct QueueLimits {
    pub slow: SlowPolicy,
    pub max_updates: usize,
    pub max_bytes: usize,
    /// Charge for the queued bytes.
    pub charge: Charge,
}

/// A subscriber, as the hub knows it.
#[derive(Debug)]
pub struct Subscriber {
    pub(crate) number: u64,
    pub interest: Interest,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    updates: VecDeque<Arc<Update>>,
    bytes: usize,
    /// Number of the last update that was offered, so that an update that several selectors match is queued once.
    last: u64,
    queue_limits: QueueLimits,
    dropped: u64,
    state: State,
    waker: Option<Waker>,
    channels: Vec<Channel>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The hub closes; the reader has not been notified yet.
    Closing(Instant),
    /// The hub closes, and the reader has been notified.
    ClosingNotified,
    /// Nothing more is queued.
    Ended(End),
}

/// The reason for a subscriber's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was too slow; its queue is dropped.
    TooSlow,
    /// The budget has no room for its queue, which is dropped.
    OutOfMemory,
    /// `Subscriber::end` was called; queued updates are delivered first.
    Requested,
}

impl Subscriber {
    pub(crate) fn new(number: u64, interest: Interest, queue_limits: QueueLimits, last: u64) -> Self {
        let queue = Queue {
            updates: VecDeque::new(),
            bytes: 0,
            last,
            queue_limits,
            dropped: 0,
            state: State::Open,
            waker: None,
            channels: Vec::new(),
        };
        Self { number, interest, queue: Mutex::new(queue) }
    }

    /// Queues the update with this number, unless it was offered before or is not for this subscriber. Returns `true`
    /// if it was queued, and the reader's waker.
    pub(crate) fn offer(&self, number: u64, update: &Arc<Update>) -> (bool, Option<Waker>) {
        let mut queue = self.queue.lock();
        if queue.last >= number {
            return (false, None);
        }
        queue.last = number;
        if !self.interest.is_allowed(update) {
            return (false, None);
        }
        queue.push(update)
    }

    /// Queues an update for this subscriber alone.
    pub fn send(&self, update: &Arc<Update>) {
        let (_, waker) = self.queue.lock().push(update);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Queues missed updates: the newest that fit.
    pub(crate) fn catch_up(&self, missed: Vec<Arc<Update>>) -> Option<Waker> {
        let mut queue = self.queue.lock();
        let (mut updates, mut bytes) = (queue.updates.len(), queue.bytes);
        let (max_updates, max_bytes) = (queue.queue_limits.max_updates, queue.queue_limits.max_bytes);
        let fits = |update: &&Arc<Update>| {
            (updates, bytes) = (updates + 1, bytes + update.size());
            updates <= max_updates && bytes <= max_bytes
        };
        let newest = missed.iter().rev().take_while(fits).count();
        missed[missed.len() - newest..].iter().filter_map(|update| queue.push(update).1).last()
    }

    /// Asks the reader to end at this time.
    pub(crate) fn close(&self, at: Instant) -> Option<Waker> {
        let mut queue = self.queue.lock();
        if queue.state == State::Open {
            queue.state = State::Closing(at);
        }
        queue.waker.take()
    }

    /// Ends the subscription after the queued updates; nothing more is queued.
    pub fn end(&self) {
        let mut queue = self.queue.lock();
        if !matches!(queue.state, State::Ended(_)) {
            queue.state = State::Ended(End::Requested);
        }
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The reason for the subscription's end, which the reader may not have reached yet.
    pub fn ended(&self) -> Option<End> {
        match self.queue.lock().state {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// The next event, or pending with the waker registered.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Event> {
        let mut queue = self.queue.lock();
        if let State::Closing(at) = queue.state {
            queue.state = State::ClosingNotified;
            return Poll::Ready(Event::Closing(at));
        }
        if let Some(update) = queue.pop() {
            return Poll::Ready(Event::Update(update));
        }
        if let State::Ended(end) = queue.state {
            return Poll::Ready(Event::Ended(end));
        }
        match &mut queue.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// From now on at most this many updates wait, and the oldest are dropped.
    pub fn drop_oldest(&self, max_updates: usize) {
        let mut queue = self.queue.lock();
        (queue.queue_limits.slow, queue.queue_limits.max_updates) = (SlowPolicy::DropOldest, max_updates.max(1));
    }

    /// The channels that the subscriber has joined.
    pub fn channels(&self) -> Vec<Channel> {
        self.queue.lock().channels.clone()
    }

    /// Adds a channel; `false` if the subscription has ended.
    pub(crate) fn add_channel(&self, channel: Channel) -> bool {
        let mut queue = self.queue.lock();
        let is_open = !matches!(queue.state, State::Ended(_));
        if is_open {
            queue.channels.push(channel);
        }
        is_open
    }

    pub(crate) fn remove_channel(&self, topic: &str) -> Option<Channel> {
        let mut queue = self.queue.lock();
        let at = queue.channels.iter().position(|channel| *channel.topic == *topic)?;
        Some(queue.channels.swap_remove(at))
    }

    /// Called when the reader is dropped: clears the queue. Returns the channels that the subscriber leaves.
    pub(crate) fn go(&self) -> Vec<Channel> {
        let mut queue = self.queue.lock();
        queue.end(End::Requested);
        queue.queue_limits.charge.clear();
        queue.waker = None;
        std::mem::take(&mut queue.channels)
    }

    /// Number of updates dropped because the subscriber was slow.
    pub(crate) fn dropped(&self) -> u64 {
        self.queue.lock().dropped
    }
}

impl Queue {
    /// Adds an update within the limits. Returns `true` if it was queued, and the reader's waker.
    fn push(&mut self, update: &Arc<Update>) -> (bool, Option<Waker>) {
        if matches!(self.state, State::Ended(_)) {
            return (false, None);
        }
        if !self.queue_limits.charge.grow(update.size() as u64) {
            self.end(End::OutOfMemory);
            return (false, self.waker.take());
        }
        self.bytes += update.size();
        self.updates.push_back(update.clone());
        // A single update is within the limits, whatever its size.
        let (max_updates, max_bytes) = (self.queue_limits.max_updates.max(1), self.queue_limits.max_bytes);
        while self.updates.len() > max_updates || (self.bytes > max_bytes && self.updates.len() > 1) {
            if self.queue_limits.slow == SlowPolicy::Disconnect {
                self.end(End::TooSlow);
                return (false, self.waker.take());
            }
            self.dropped += 1;
            self.pop();
        }
        (true, self.waker.take())
    }

    fn pop(&mut self) -> Option<Arc<Update>> {
        let update = self.updates.pop_front()?;
        self.bytes -= update.size();
        self.queue_limits.charge.shrink(update.size() as u64);
        if self.updates.is_empty() && self.updates.capacity() > MAX_IDLE_CAPACITY {
            self.updates = VecDeque::new();
        }
        Some(update)
    }

    /// Drops the queued updates and accepts no more.
    fn end(&mut self, end: End) {
        self.queue_limits.charge.shrink(self.bytes as u64);
        (self.updates, self.bytes, self.state) = (VecDeque::new(), 0, State::Ended(end));
    }
}

/// An event for a subscriber's reader.
#[derive(Debug)]
pub enum Event {
    /// An update.
    Update(Arc<Update>),
    /// The hub closes: the reader should end at this time. Reported once; updates still follow.
    Closing(Instant),
    /// Nothing follows.
    Ended(End),
}
