//! The requests that wait for a worker, and which of them is next.
//!
//! **Fair between clients.** Requests wait in flows: one for each client address (by hash) and class of requests, short
//! or long. A request costs the time that it is expected to occupy a worker, and the flow that has spent least goes
//! first (start-time fair queueing, Goyal, Vin and Cheng 1996). So a client with two hundred requests gets no more of
//! the workers than one with two, and a client's long requests do not hold up its short ones. A flow in which nothing
//! waited begins at what the flow served last had spent: it goes first now, and what it did not use in the past it
//! cannot claim.
//!
//! **Bounded by time.** A queue is there for bursts: as long as it gets short again within `patience`, everyone waits
//! their turn. A queue that stands for longer is overload: from then on a request that has waited `target` is refused,
//! until the queue is short again. Refusing by age keeps what is served fresh enough for its client to be still there.
//! In overload all that is served has waited for as long as is allowed at all, so the target is at most half of the
//! patience: the other half is for running it. A request's age counts from its arrival, wherever it has waited since,
//! and nothing older than is allowed is begun: who comes for the next request meets those first, and refuses them.
//!
//! Requests that a worker had got and gave back, or that were taken back, go first: they were accepted before all others.

use crate::fault::{Fault, FaultKind};
use crate::queue::door::Door;
use crate::request::estimate::Expected;
use crate::request::pending::Pending;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::{Duration, Instant};

/// Flows; a power of two.
const FLOWS: usize = 512;
/// Requests that usually take longer than this, in microseconds, wait in a separate flow.
const LONG: u32 = 2_000;
/// Interval at which a queue of more than `SHRINK_BELOW` is searched for requests whose client has gone. The next ones are
/// always checked.
const SWEEP: Duration = Duration::from_secs(1);
const SHRINK_BELOW: usize = 256;

/// The queue's limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Requests that may wait.
    pub(crate) requests: usize,
    /// The longest that any request waits, and that the queue may stand.
    pub(crate) patience: Duration,
    /// The longest that a request waits once the queue has stood for longer than that.
    pub(crate) target: Duration,
}

impl Limits {
    /// The target that holds.
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
    /// For all.
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
    /// Microseconds of workers it has spent, or forgone.
    spent: u64,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct WaitingQueue {
    limits: Limits,
    flows: Box<[Flow]>,
    /// The flows in which requests wait, by what they have spent.
    order: BTreeSet<(u64, usize)>,
    /// Virtual time of the flow that was served last.
    level: u64,
    /// Requests that go before all flows, oldest first.
    returned: VecDeque<Box<Pending>>,
    len: usize,
    /// Since when the queue has not been short.
    standing_since: Option<Instant>,
    /// Requests that have waited too long and are to be refused.
    #[expect(clippy::vec_box, reason = "they stay in their boxes on their way")]
    late: Vec<Box<Pending>>,
    /// When the queue was last searched for requests whose client has gone.
    swept: Option<Instant>,
    /// Some waiting requests may have their own limit.
    has_impatient: bool,
    /// Those who wait for a place.
    pub(crate) door: Door,
}

impl Default for WaitingQueue {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

/// `true` if requests with this expectation are long.
pub(crate) const fn is_long(expected: Expected) -> bool {
    expected.mean > LONG
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
            door: Door::default(),
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

    /// True if a request that has just come may not wait here: there is no place, or others wait for the next one.
    pub(crate) fn is_full(&self) -> bool {
        !self.has_place(false)
    }

    /// True if a request may wait here. The places that become free are for those whose turn it is.
    pub(crate) fn has_place(&self, has_turn: bool) -> bool {
        self.len < self.limits.requests && (has_turn || self.door.is_empty() || self.len == 0)
    }

    /// Lets those in who wait for a place, as far as there are places.
    fn let_in(&mut self) {
        self.door.let_in(self.limits.requests.saturating_sub(self.len));
    }

    /// Adds a new request, behind those of its flow that are older.
    pub(crate) fn push(&mut self, pending: Box<Pending>) {
        self.has_impatient |= pending.limits.queue.is_some();
        let at = flow_of(&pending);
        let flow = &mut self.flows[at];
        if flow.requests.is_empty() {
            flow.spent = flow.spent.max(self.level);
            self.order.insert((flow.spent, at));
        }
        // Only one that has waited elsewhere is not the youngest.
        match flow.requests.back() {
            Some(last) if last.entered > pending.entered => {
                let at = flow.requests.partition_point(|other| other.entered <= pending.entered);
                flow.requests.insert(at, pending);
            }
            _ => flow.requests.push_back(pending),
        }
        self.len += 1;
    }

    /// Puts a request back that had left the queue: it goes before those that have not, and among its like by age.
    pub(crate) fn put_back(&mut self, pending: Box<Pending>) {
        self.has_impatient |= pending.limits.queue.is_some();
        let at = self.returned.partition_point(|other| other.entered <= pending.entered);
        self.returned.insert(at, pending);
        self.len += 1;
    }

    /// The next request whose client is still there and that has not waited for too long (`refuse_late` tells those).
    /// `may_run` says whether a request may run now; one that may not keeps its place, and its flow is passed by.
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

    /// Refuses requests that have waited too long; clients that are gone do not notice.
    pub(crate) fn refuse_late(&mut self) {
        self.late.drain(..).for_each(|pending| pending.sink.fail(Fault::new(FaultKind::QueueTimeout)));
    }

    /// When the oldest request entered.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        let of_flows = self.order.iter().filter_map(|&(_, at)| self.flows[at].requests.front());
        of_flows.chain(self.returned.front()).map(|pending| pending.entered).min()
    }

    /// All requests, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Pending> {
        self.returned.iter().chain(self.flows.iter().flat_map(|flow| &flow.requests)).map(|pending| &**pending)
    }

    /// True if the queue has stood for longer than a burst explains.
    pub(crate) fn is_overloaded(&self, now: Instant) -> bool {
        self.standing_since.is_some_and(|since| now.saturating_duration_since(since) > self.limits.patience)
    }

    /// Maximum waits at the moment.
    pub(crate) fn allowed_waits(&self, now: Instant) -> AllowedWaits {
        let most = if self.is_overloaded(now) { self.limits.target() } else { Duration::MAX };
        AllowedWaits { now, patience: self.limits.patience, most }
    }

    /// Notices whether the queue stands, and finds the requests that have waited for too long (`refuse_late` tells them),
    /// now and then also those whose client has gone. Called several times a second.
    pub(crate) fn expire(&mut self, now: Instant) {
        // Requests older than the target are refused while the queue is overloaded, so it has to get well below that.
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
        // Behind the first of a flow there may be some with less patience than it has.
        if self.has_impatient
            || self.len <= SHRINK_BELOW
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

    /// Takes every request out.
    #[expect(clippy::vec_box, reason = "they stay in their boxes on their way")]
    pub(crate) fn drain(&mut self) -> Vec<Box<Pending>> {
        self.remove_where(|_| true)
    }

    /// Takes one request out, the oldest of its flow, for which this holds.
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

    #[expect(clippy::vec_box, reason = "they stay in their boxes on their way")]
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
