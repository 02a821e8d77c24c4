//! The calls that wait for a worker, and which of them is next.
//!
//! **Fair between clients.** Calls wait in flows: one for each client address (by hash) and class of calls, short or long. A call
//! costs the time that it is expected to occupy a worker, and the flow that has spent least goes first (start-time fair
//! queueing, Goyal, Vin and Cheng 1996). So a client with two hundred calls gets no more of the workers than one with two, and a
//! client's long calls do not hold up its short ones. A flow in which nothing waited begins at what the flow served last
//! had spent: it goes first now, and what it did not use in the past it cannot claim.
//!
//! **Bounded by time.** A queue is there for bursts: as long as it gets short again within `patience`, everyone waits
//! their turn. A queue that stands for longer is overload: from then on a call that has waited `target` is refused,
//! until the queue is short again. Refusing by age keeps what is served fresh enough for its client to be still there.
//!
//! Calls that a worker had got and gave back, or that were taken back, go first: they were accepted before all others.

use crate::estimate::Expected;
use crate::job::Job;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::{Duration, Instant};

/// Flows; a power of two.
const FLOWS: usize = 512;
/// Calls that usually take longer than this, in microseconds, wait in a flow of their own.
const LONG: u32 = 2_000;

/// What the queue is held to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Calls that may wait.
    pub(crate) calls: usize,
    /// The longest that any call waits, and that the queue may stand.
    pub(crate) patience: Duration,
    /// The longest that a call waits once the queue has stood for longer than that.
    pub(crate) target: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { calls: usize::MAX, patience: Duration::from_secs(30), target: Duration::from_secs(2) }
    }
}

#[derive(Debug, Default)]
struct Flow {
    calls: VecDeque<Box<Job>>,
    /// Microseconds of workers it has spent, or forgone.
    spent: u64,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct WaitingQueue {
    limits: Limits,
    flows: Box<[Flow]>,
    /// The flows in which calls wait, by what they have spent.
    order: BTreeSet<(u64, usize)>,
    /// What the flow that was served last had spent.
    level: u64,
    /// Calls that go before all flows, oldest first.
    returned: VecDeque<Box<Job>>,
    len: usize,
    /// Since when the queue has not been short.
    standing_since: Option<Instant>,
}

impl Default for WaitingQueue {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

/// Whether calls with this expectation are long ones.
pub(crate) const fn is_long(expected: Expected) -> bool {
    expected.mean > LONG
}

fn flow_of(job: &Job) -> usize {
    let class = job.call.route.map_or(u64::from(is_long(job.expected)), |route| 2 + u64::from(route));
    // A multiplicative hash: neighbours in an address range are spread over the flows.
    (job.call.client.rotate_left(8).wrapping_add(class).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize
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
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn limit(&self) -> usize {
        self.limits.calls
    }

    /// True if no further call may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.limits.calls
    }

    /// Adds a new call.
    pub(crate) fn push(&mut self, job: Box<Job>) {
        let at = flow_of(&job);
        let flow = &mut self.flows[at];
        if flow.calls.is_empty() {
            flow.spent = flow.spent.max(self.level);
            self.order.insert((flow.spent, at));
        }
        flow.calls.push_back(job);
        self.len += 1;
    }

    /// Puts a call back that had left the queue: it goes before those that have not, and among its like by age.
    pub(crate) fn put_back(&mut self, job: Box<Job>) {
        let at = self.returned.partition_point(|other| other.entered <= job.entered);
        self.returned.insert(at, job);
        self.len += 1;
    }

    /// The next call whose client is still there. Calls of clients that have gone are dropped on the way. `may_run` says
    /// whether a call may run now; one that may not keeps its place, and its flow is passed by.
    pub(crate) fn pop(&mut self, may_run: impl Fn(&Job) -> bool) -> Option<Box<Job>> {
        if self.len == 0 {
            return None;
        }
        self.take(&may_run)
    }

    fn take(&mut self, may_run: &impl Fn(&Job) -> bool) -> Option<Box<Job>> {
        while let Some(at) = self.returned.iter().position(|job| job.sink.is_gone() || may_run(job)) {
            self.len -= 1;
            let job = self.returned.remove(at)?;
            if !job.sink.is_gone() {
                return Some(job);
            }
        }
        let mut from = Bound::Unbounded;
        while let Some(&(spent, at)) = self.order.range((from, Bound::Unbounded)).next() {
            let flow = &mut self.flows[at];
            while flow.calls.front().is_some_and(|job| job.sink.is_gone()) {
                flow.calls.pop_front();
                self.len -= 1;
            }
            if flow.calls.front().is_some_and(|job| !may_run(job)) {
                from = Bound::Excluded((spent, at));
                continue;
            }
            self.order.remove(&(spent, at));
            let Some(job) = flow.calls.pop_front() else { continue };
            self.len -= 1;
            self.level = spent;
            flow.spent = spent + u64::from(job.cost.max(1));
            if !flow.calls.is_empty() {
                self.order.insert((flow.spent, at));
            }
            return Some(job);
        }
        None
    }

    /// When the oldest call entered.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.all().map(|job| job.entered).min()
    }

    /// All calls, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Job> {
        self.returned.iter().chain(self.flows.iter().flat_map(|flow| &flow.calls)).map(|job| &**job)
    }

    /// True if the queue has stood for longer than a burst explains.
    pub(crate) fn is_overloaded(&self, now: Instant) -> bool {
        self.standing_since.is_some_and(|since| now.saturating_duration_since(since) > self.limits.patience)
    }

    /// How long a call may wait at the moment.
    pub(crate) fn allowed_wait(&self, now: Instant) -> Duration {
        if self.is_overloaded(now) { self.limits.target.min(self.limits.patience) } else { self.limits.patience }
    }

    /// Takes calls out that have waited for too long, and drops those whose client has gone. Called every now and then.
    #[expect(clippy::vec_box, reason = "they stay in their boxes on their way")]
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Box<Job>> {
        let age = |job: &Job| now.saturating_duration_since(job.entered);
        if self.oldest().is_none_or(|entered| now.saturating_duration_since(entered) <= self.limits.target) {
            self.standing_since = None;
        } else {
            self.standing_since.get_or_insert(now);
        }
        let limit = self.allowed_wait(now);
        self.remove_where(|job| age(job) > limit || job.sink.is_gone())
    }

    /// Takes every call out.
    #[expect(clippy::vec_box, reason = "they stay in their boxes on their way")]
    pub(crate) fn drain(&mut self) -> Vec<Box<Job>> {
        self.remove_where(|_| true)
    }

    /// Takes one call out, the oldest of its flow, for which this holds.
    pub(crate) fn remove_one(&mut self, which: impl Fn(&Job) -> bool) -> Option<Box<Job>> {
        let queues = self.flows.iter_mut().map(|flow| &mut flow.calls).chain([&mut self.returned]);
        let found = queues.into_iter().find_map(|calls| {
            let at = calls.iter().position(|job| which(job))?;
            calls.remove(at)
        })?;
        self.len -= 1;
        self.forget_empty_flows();
        Some(found)
    }

    #[expect(clippy::vec_box, reason = "they stay in their boxes on their way")]
    fn remove_where(&mut self, which: impl Fn(&Job) -> bool) -> Vec<Box<Job>> {
        if self.len == 0 {
            return Vec::new();
        }
        let mut removed = Vec::new();
        let queues = self.flows.iter_mut().map(|flow| &mut flow.calls).chain([&mut self.returned]);
        for calls in queues.filter(|calls| !calls.is_empty()) {
            let (out, stay): (VecDeque<_>, VecDeque<_>) = std::mem::take(calls).into_iter().partition(|job| which(job));
            *calls = stay;
            removed.extend(out);
        }
        self.len -= removed.len();
        self.forget_empty_flows();
        removed
    }

    fn forget_empty_flows(&mut self) {
        let flows = &self.flows;
        self.order.retain(|&(_, at)| !flows[at].calls.is_empty());
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
