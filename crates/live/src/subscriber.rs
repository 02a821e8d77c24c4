//! A subscriber: its interest, and its queue of updates, which `publish` fills on any thread and one task empties.

use crate::selector::{Selector, any_matches};
use crate::update::Update;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Places of a queue that are kept when it is empty.
const KEPT: usize = 8;

/// A subscriber's wishes, and its description for others.
#[derive(Debug, Default)]
pub struct Interest {
    /// It gets the updates of topics that one of these matches.
    pub selectors: Vec<Selector>,
    /// It gets private updates only if one of these matches one of their topics.
    pub allowed: Vec<Selector>,
    /// Its id.
    pub id: Box<str>,
    /// Data about it for others that may see who subscribes.
    pub payload: Option<Box<str>>,
}

impl Interest {
    /// `true` if it gets this update.
    #[must_use]
    pub fn wants(&self, update: &Update) -> bool {
        any_matches(&self.selectors, &update.topics) && self.may_have(update)
    }

    fn may_have(&self, update: &Update) -> bool {
        !update.private || any_matches(&self.allowed, &update.topics)
    }
}

/// The fate of a subscriber whose queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowPolicy {
    /// Its subscription ends; it may come back and continue after the last update it has got.
    Disconnect,
    /// It loses the oldest updates.
    DropOldest,
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
    /// The number of the last update that it was offered: one that several selectors match comes once.
    last: u64,
    slow: SlowPolicy,
    dropped: u64,
    state: State,
    waker: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The hub closes; the reader does not know it yet.
    Closing(Instant),
    /// The reader knows it.
    Leaving,
    TooSlow,
}

/// Bounds of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) updates: usize,
    pub(crate) bytes: usize,
}

impl Subscriber {
    pub(crate) fn new(number: u64, interest: Interest, slow: SlowPolicy, last: u64) -> Self {
        let queue =
            Queue { updates: VecDeque::new(), bytes: 0, last, slow, dropped: 0, state: State::Open, waker: None };
        Self { number, interest, queue: Mutex::new(queue) }
    }

    /// Queues the update with this number, unless it has come already or is not for this subscriber. Returns whether it
    /// was queued, and the reader to wake.
    pub(crate) fn offer(&self, number: u64, update: &Arc<Update>, bounds: Bounds) -> (bool, Option<Waker>) {
        let mut queue = self.queue.lock();
        if queue.last >= number {
            return (false, None);
        }
        queue.last = number;
        if queue.state == State::TooSlow || !self.interest.may_have(update) {
            return (false, None);
        }
        queue.bytes += update.size();
        queue.updates.push_back(update.clone());
        // One update is always let in, however large it is.
        while queue.updates.len() > bounds.updates || (queue.bytes > bounds.bytes && queue.updates.len() > 1) {
            if queue.slow == SlowPolicy::Disconnect {
                queue.updates = VecDeque::new();
                queue.state = State::TooSlow;
                break;
            }
            queue.dropped += 1;
            queue.pop();
        }
        (queue.state != State::TooSlow, queue.waker.take())
    }

    /// Asks the reader to end at this time.
    pub(crate) fn close(&self, at: Instant) -> Option<Waker> {
        let mut queue = self.queue.lock();
        if queue.state == State::Open {
            queue.state = State::Closing(at);
        }
        queue.waker.take()
    }
}

impl Subscriber {
    /// The next event, or pending with the waker registered.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Event> {
        let mut queue = self.queue.lock();
        if let State::Closing(at) = queue.state {
            queue.state = State::Leaving;
            return Poll::Ready(Event::Closing(at));
        }
        if let Some(update) = queue.pop() {
            return Poll::Ready(Event::Update(update));
        }
        if queue.state == State::TooSlow {
            return Poll::Ready(Event::TooSlow);
        }
        match &mut queue.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Number of updates that were lost because it was slow.
    pub(crate) fn dropped(&self) -> u64 {
        self.queue.lock().dropped
    }
}

impl Queue {
    fn pop(&mut self) -> Option<Arc<Update>> {
        let update = self.updates.pop_front()?;
        self.bytes -= update.size();
        if self.updates.is_empty() && self.updates.capacity() > KEPT {
            self.updates = VecDeque::new();
        }
        Some(update)
    }
}

/// The next thing for a subscriber.
#[derive(Debug)]
pub enum Event {
    /// An update.
    Update(Arc<Update>),
    /// The hub closes: the reader should end at this time. Comes once; updates go on.
    Closing(Instant),
    /// The subscriber was too slow: nothing follows.
    TooSlow,
}
