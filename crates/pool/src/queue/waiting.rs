//! The queue of requests that wait for a worker, and its order.
//!
//! **Fair between clients.** Requests wait in flows: one for each client (`Request::client`, by hash) and class of
//! requests: short, long, or of one route that has a limit or weight. A request costs the time that it is expected to
//! occupy a worker, and the flow that has spent least goes first (start-time fair queueing, Goyal, Vin and Cheng 1996).
//! So a client with two hundred requests gets no more of the workers than one with two, and a client's long requests do
//! not hold up its short ones. A flow that was empty restarts at the spending of the flow served last: it goes first
//! now, but cannot claim worker time that it did not use in the past.
//!
//! **Bounded by time.** A queue absorbs bursts: as long as it gets short again within `patience`, every request waits
//! its turn. A queue that stays long is overload: from then on a request that has waited `target` is refused, until the
//! queue is short again. Refusing by age keeps served requests recent enough that their clients are still connected. In
//! overload every served request has waited almost as long as allowed, so the target is at most half of the patience:
//! the other half is for running it. A request's age counts from its arrival, wherever it has waited since. No request
//! leaves the queue for a worker beyond its limit: `pop` sets such requests aside for `refuse_late`.
//!
//! Requests that a worker gave back, or that were taken back from a lane, go first: they were accepted before all
//! others.

use crate::fault::{Fault, FaultKind};
use crate::queue::admission_queue::AdmissionQueue;
use crate::request::estimate::ExpectedDuration;
use crate::request::pending::Pending;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::{Duration, Instant};

/// Number of flows; a power of two.
const FLOWS: usize = 512;
/// Requests with a mean above this, in microseconds, are long and wait in a separate flow.
const LONG_MICROS: u32 = 2_000;
/// Interval at which a queue of more than `ALWAYS_SWEPT` requests is searched for those whose client has gone. A
/// shorter queue, or one that may hold a request with its own limit, is searched at each tick; `pop` checks the request
/// that it takes.
const SWEEP: Duration = Duration::from_secs(1);
const ALWAYS_SWEPT: usize = 256;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum number of waiting requests.
    pub(crate) requests: usize,
    /// Maximum wait of a request without its own limit. Also the time for which the queue may stay long before that
    /// counts as overload.
    pub(crate) patience: Duration,
    /// Maximum wait of a request in overload.
    pub(crate) target: Duration,
}

impl Limits {
    /// The effective target.
    fn target(&self) -> Duration {
        self.target.min(self.patience / 2)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests: usize::MAX, patience: Duration::from_secs(30), target: Duration::from_secs(2) }
    }
}

/// Maximum waits at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllowedWaits {
    now: Instant,
    /// For requests without their own limit.
    patience: Duration,
    /// For all requests; `Duration::MAX` unless the queue is overloaded.
    most: Duration,
}

impl AllowedWaits {
    /// Maximum wait of a request with this limit.
    pub(crate) fn of(&self, own: Option<Duration>) -> Duration {
        own.unwrap_or(self.patience).min(self.most)
    }

    /// True for a request that has waited for too long.
    pub(crate) fn is_over(&self, pending: &Pending) -> bool {
        self.now.saturating_duration_since(pending.entered) > self.of(pending.limits.queue)
    }
}

#[derive(Debug, Default)]
struct Flow {
    requests: VecDeque<Box<Pending>>,
    /// Worker time it has used or forgone, in microseconds.
    spent: u64,
}

#[derive(Debug)]
pub(crate) struct WaitingQueue {
    limits: Limits,
    flows: Box<[Flow]>,
    /// Flows with waiting requests, by the time they have spent.
    order: BTreeSet<(u64, usize)>,
    /// Virtual time: the time that the flow served last had spent before.
    level: u64,
    /// Requests that go before all flows, oldest first.
    returned: VecDeque<Box<Pending>>,
    len: usize,
    /// When the queue stopped being short; `None` while it is.
    standing_since: Option<Instant>,
    /// Requests removed from the queue that `refuse_late` has yet to fail.
    #[expect(clippy::vec_box, reason = "requests stay boxed")]
    late: Vec<Box<Pending>>,
    /// When the queue was last searched for requests whose client has gone.
    swept: Option<Instant>,
    /// A waiting request may have its own limit.
    has_impatient: bool,
    /// Requests that wait for a place in the full queue.
    pub(crate) admission: AdmissionQueue,
}

impl Default for WaitingQueue {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

/// `true` if requests with this expectation are long.
pub(crate) const fn is_long(expected: ExpectedDuration) -> bool {
    expected.mean > LONG_MICROS
}

fn flow_of(pending: &Pending) -> usize {
    let class = pending.flow.map_or(u64::from(is_long(pending.expected)), |route| 2 + u64::from(route));
    // A multiplicative hash: neighbours in an address range are spread over the flows.
    (pending.request.client.rotate_left(8).wrapping_add(class).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize
        & (FLOWS - 1)
}

impl WaitingQueue {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            flows: std::iter::repeat_with(Flow::default).take(FLOWS).collect(),
            order: BTreeSet::new(),
            level: 0,
            returned: VecDeque::new(),
            len: 0,
            standing_since: None,
            late: Vec::new(),
            swept: None,
            has_impatient: false,
            admission: AdmissionQueue::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn limit(&self) -> usize {
        self.limits.requests
    }

    /// True if a new request may not enter the queue: it is full, or other requests wait for its next place.
    pub(crate) fn is_full(&self) -> bool {
        !self.has_place(false)
    }

    /// True if a request may enter the queue. Freed places are reserved for requests whose turn it is (`has_turn`).
    pub(crate) fn has_place(&self, has_turn: bool) -> bool {
        self.len < self.limits.requests && (has_turn || self.admission.is_empty() || self.len == 0)
    }

    /// Admits requests that wait for a place, one for each free place.
    fn let_in(&mut self) {
        self.admission.let_in(self.limits.requests.saturating_sub(self.len));
    }

    /// Adds a new request after the older ones of its flow.
    pub(crate) fn push(&mut self, pending: Box<Pending>) {
        self.has_impatient |= pending.limits.queue.is_some();
        let at = flow_of(&pending);
        let flow = &mut self.flows[at];
        if flow.requests.is_empty() {
            flow.spent = flow.spent.max(self.level);
            self.order.insert((flow.spent, at));
        }
        // A request that has waited elsewhere may be older than the last one.
        match flow.requests.back() {
            Some(last) if last.entered > pending.entered => {
                let at = flow.requests.partition_point(|other| other.entered <= pending.entered);
                flow.requests.insert(at, pending);
            }
            _ => flow.requests.push_back(pending),
        }
        self.len += 1;
    }

    /// Returns a request that had left the queue. It goes before all that have not, and is ordered by age among
    /// returned ones.
    pub(crate) fn put_back(&mut self, pending: Box<Pending>) {
        self.has_impatient |= pending.limits.queue.is_some();
        let at = self.returned.partition_point(|other| other.entered <= pending.entered);
        self.returned.insert(at, pending);
        self.len += 1;
    }

    /// Takes the next request whose client is still connected and that has not waited too long; late ones are set aside
    /// for `refuse_late`. A request for which `may_run` is false keeps its place, and its flow is skipped.
    pub(crate) fn pop(&mut self, now: Instant, may_run: impl Fn(&Pending) -> bool) -> Option<Box<Pending>> {
        if self.len == 0 {
            return None;
        }
        let next = self.take(now, &may_run);
        self.let_in();
        next
    }

    fn take(&mut self, now: Instant, may_run: &impl Fn(&Pending) -> bool) -> Option<Box<Pending>> {
        let allowed = self.allowed_waits(now);
        let is_over = |pending: &Pending| allowed.is_over(pending) || pending.sink.is_gone();
        while let Some(at) = self.returned.iter().position(|pending| is_over(pending) || may_run(pending)) {
            self.len -= 1;
            let pending = self.returned.remove(at)?;
            if !is_over(&pending) {
                return Some(pending);
            }
            self.late.push(pending);
        }
        let mut from = Bound::Unbounded;
        while let Some(&(spent, at)) = self.order.range((from, Bound::Unbounded)).next() {
            let flow = &mut self.flows[at];
            while flow.requests.front().is_some_and(|pending| is_over(pending)) {
                self.late.extend(flow.requests.pop_front());
                self.len -= 1;
            }
            if flow.requests.front().is_some_and(|pending| !may_run(pending)) {
                from = Bound::Excluded((spent, at));
                continue;
            }
            self.order.remove(&(spent, at));
            let Some(pending) = flow.requests.pop_front() else { continue };
            self.len -= 1;
            self.level = spent;
            flow.spent = spent + u64::from(pending.cost.max(1));
            if !flow.requests.is_empty() {
                self.order.insert((flow.spent, at));
            }
            return Some(pending);
        }
        None
    }

    /// Fails the requests that were set aside as late. If the client has gone, that has no effect.
    pub(crate) fn refuse_late(&mut self) {
        self.late.drain(..).for_each(|pending| pending.sink.fail(Fault::new(FaultKind::QueueTimeout)));
    }

    /// When the oldest request entered.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        let of_flows = self.order.iter().filter_map(|&(_, at)| self.flows[at].requests.front());
        of_flows.chain(self.returned.front()).map(|pending| pending.entered).min()
    }

    /// All requests, in no particular order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Pending> {
        self.returned.iter().chain(self.flows.iter().flat_map(|flow| &flow.requests)).map(|pending| &**pending)
    }

    /// True if the queue has not been short for longer than `patience`, so that a burst does not explain it.
    pub(crate) fn is_overloaded(&self, now: Instant) -> bool {
        self.standing_since.is_some_and(|since| now.saturating_duration_since(since) > self.limits.patience)
    }

    pub(crate) fn allowed_waits(&self, now: Instant) -> AllowedWaits {
        let most = if self.is_overloaded(now) { self.limits.target() } else { Duration::MAX };
        AllowedWaits { now, patience: self.limits.patience, most }
    }

    /// Updates the overload state and sets late requests aside for `refuse_late`, and at intervals those whose client
    /// has gone. Called on each tick.
    pub(crate) fn expire(&mut self, now: Instant) {
        // In overload requests older than the target are refused anyway, so the queue must get well below it to count
        // as short.
        let short = if self.is_overloaded(now) { self.limits.target() / 2 } else { self.limits.target() };
        if self.oldest().is_none_or(|entered| now.saturating_duration_since(entered) <= short) {
            self.standing_since = None;
        } else {
            self.standing_since.get_or_insert(now);
        }
        let allowed = self.allowed_waits(now);
        let queues = self.flows.iter_mut().map(|flow| &mut flow.requests).chain([&mut self.returned]);
        for requests in queues {
            while requests.front().is_some_and(|pending| allowed.is_over(pending)) {
                self.late.extend(requests.pop_front());
                self.len -= 1;
            }
        }
        // Requests behind the first of a flow may have a shorter limit.
        if self.has_impatient
            || self.len <= ALWAYS_SWEPT
            || self.swept.is_none_or(|at| now.saturating_duration_since(at) >= SWEEP)
        {
            self.swept = Some(now);
            let over = self.remove_where(|pending| allowed.is_over(pending) || pending.sink.is_gone());
            self.late.extend(over);
        }
        self.has_impatient &= self.len > 0;
        self.forget_empty_flows();
        self.let_in();
    }

    /// Removes all requests.
    #[expect(clippy::vec_box, reason = "requests stay boxed")]
    pub(crate) fn drain(&mut self) -> Vec<Box<Pending>> {
        self.remove_where(|_| true)
    }

    /// Removes one request for which `which` holds, the oldest of its flow.
    pub(crate) fn remove_one(&mut self, which: impl Fn(&Pending) -> bool) -> Option<Box<Pending>> {
        let queues = self.flows.iter_mut().map(|flow| &mut flow.requests).chain([&mut self.returned]);
        let found = queues.into_iter().find_map(|requests| {
            let at = requests.iter().position(|pending| which(pending))?;
            requests.remove(at)
        })?;
        self.len -= 1;
        self.forget_empty_flows();
        self.let_in();
        Some(found)
    }

    #[expect(clippy::vec_box, reason = "requests stay boxed")]
    fn remove_where(&mut self, which: impl Fn(&Pending) -> bool) -> Vec<Box<Pending>> {
        if self.len == 0 {
            return Vec::new();
        }
        let mut removed = Vec::new();
        let queues = self.flows.iter_mut().map(|flow| &mut flow.requests).chain([&mut self.returned]);
        for requests in queues.filter(|requests| !requests.is_empty()) {
            let (out, stay): (VecDeque<_>, VecDeque<_>) =
                std::mem::take(requests).into_iter().partition(|pending| which(pending));
            *requests = stay;
            removed.extend(out);
        }
        self.len -= removed.len();
        self.forget_empty_flows();
        self.let_in();
        removed
    }

    fn forget_empty_flows(&mut self) {
        let flows = &self.flows;
        self.order.retain(|&(_, at)| !flows[at].requests.is_empty());
    }
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;
