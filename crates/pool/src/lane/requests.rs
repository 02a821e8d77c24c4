//! The requests in one lane, oldest first.
//!
//! A serial worker ends requests in order, so both ends of a queue are enough. A multiplexed worker ends them in any
//! order: a request that ends in the middle leaves a gap, and gaps are removed once they outnumber the requests and
//! `MIN_GAPS`, or at either end.

use crate::request::pending::Pending;
use howdah_transport::{RequestSender, RequestSlot};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of gaps up to which they are not removed.
const MIN_GAPS: usize = 64;

/// Transport of a request's body to its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyState {
    /// The body is in the request, or there is none.
    InRequest,
    /// The worker will ask for the body's descriptor.
    ToBeAskedFor,
    /// The worker has asked, so it has begun the request.
    Given,
    /// The same for a request whose script may hold the client's connection.
    GivenStream,
}

#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) number: u64,
    pub(crate) slot: RequestSlot,
    pub(crate) pending: Box<Pending>,
    /// When the request became the lane's first one, as far as the server knows; in a multiplexed lane, when it was
    /// sent.
    pub(crate) since: Instant,
    /// Flags for its worker (`precedence`): `wire::REQUEST_*`.
    pub(crate) flags: u32,
    pub(crate) body: BodyState,
    /// A part of its response has arrived.
    pub(crate) responding: bool,
    /// In a multiplexed lane: the worker was notified that the client has gone.
    pub(crate) abort_sent: bool,
    /// In a multiplexed lane: when the request was found past its deadline, and its response failed.
    pub(crate) overdue: Option<Instant>,
    /// The request was found slow; the slow log's rate limit may have left it out.
    pub(crate) noted: bool,
    /// Processor time that its worker had used at the first check.
    pub(crate) cpu_before: Option<Duration>,
}

impl InFlight {
    /// True if the worker has begun this request, according to its frames and shared memory.
    pub(crate) fn is_begun(&self, sender: &RequestSender) -> bool {
        self.responding || self.body_given() || sender.is_begun(self.slot)
    }

    fn body_given(&self) -> bool {
        matches!(self.body, BodyState::Given | BodyState::GivenStream)
    }

    /// True if the worker may not have received the body that it was sent.
    pub(crate) fn may_await_body(&self) -> bool {
        self.body_given() && !self.holds_connection()
    }

    /// True if the script may hold a client's connection: then it continues after its response while the client stays.
    pub(crate) fn holds_connection(&self) -> bool {
        self.body == BodyState::GivenStream && self.pending.sink.is_delivered()
    }
}

#[derive(Debug)]
struct Entry {
    number: u64,
    request: Option<InFlight>,
}

/// Requests in order of their numbers, the oldest first. The first and the last entry are never gaps.
#[derive(Debug, Default)]
pub(crate) struct LaneRequests {
    entries: VecDeque<Entry>,
    len: usize,
    /// Expected time of all requests together, in microseconds.
    expected: u64,
    /// Number of requests that are not expected to be short.
    not_short: usize,
    /// Number of requests that are expected to compute.
    computing: usize,
}

impl LaneRequests {
    pub(crate) fn with_capacity(requests: usize) -> Self {
        Self { entries: VecDeque::with_capacity(requests), ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn expected_us(&self) -> u64 {
        self.expected
    }

    /// True if each request is expected to be a short one.
    pub(crate) fn are_short(&self) -> bool {
        self.not_short == 0
    }

    pub(crate) fn computing(&self) -> usize {
        self.computing
    }

    fn count_out(&mut self, request: Option<&InFlight>) {
        if let Some(request) = request {
            self.len -= 1;
            self.expected -= u64::from(request.pending.expected.mean);
            self.not_short -= usize::from(!request.pending.expected.is_short());
            self.computing -= usize::from(request.pending.expected.computes());
        }
    }

    /// Adds a request with a number above all others.
    pub(crate) fn push(&mut self, request: InFlight) {
        self.len += 1;
        self.expected += u64::from(request.pending.expected.mean);
        self.not_short += usize::from(!request.pending.expected.is_short());
        self.computing += usize::from(request.pending.expected.computes());
        self.entries.push_back(Entry { number: request.number, request: Some(request) });
    }

    pub(crate) fn front(&self) -> Option<&InFlight> {
        self.entries.front()?.request.as_ref()
    }

    pub(crate) fn front_mut(&mut self) -> Option<&mut InFlight> {
        self.entries.front_mut()?.request.as_mut()
    }

    /// Age of the request that the worker takes first.
    pub(crate) fn front_age(&self, now: Instant) -> Duration {
        self.front().map_or(Duration::ZERO, |front| now.saturating_duration_since(front.since))
    }

    pub(crate) fn back(&self) -> Option<&InFlight> {
        self.entries.back()?.request.as_ref()
    }

    pub(crate) fn pop_back(&mut self) -> Option<InFlight> {
        let request = self.entries.pop_back()?.request;
        self.count_out(request.as_ref());
        self.trim();
        request
    }

    fn position(&self, number: u64) -> Option<usize> {
        if self.entries.front()?.number == number {
            return Some(0);
        }
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&InFlight> {
        self.entries.get(self.position(number)?)?.request.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut InFlight> {
        let position = self.position(number)?;
        self.entries.get_mut(position)?.request.as_mut()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<InFlight> {
        let position = self.position(number)?;
        let request = self.entries.get_mut(position)?.request.take()?;
        self.count_out(Some(&request));
        self.trim();
        if self.entries.len() - self.len > self.len.max(MIN_GAPS) {
            self.entries.retain(|entry| entry.request.is_some());
        }
        Some(request)
    }

    /// Drops gaps at both ends.
    fn trim(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.request.is_none()) {
            self.entries.pop_front();
        }
        while self.entries.back().is_some_and(|entry| entry.request.is_none()) {
            self.entries.pop_back();
        }
    }

    /// All requests, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &InFlight> {
        self.entries.iter().filter_map(|entry| entry.request.as_ref())
    }

    /// Takes all requests out, oldest first.
    pub(crate) fn take(&mut self) -> impl DoubleEndedIterator<Item = InFlight> + use<> {
        (self.len, self.expected, self.not_short) = (0, 0, 0);
        std::mem::take(&mut self.entries).into_iter().filter_map(|entry| entry.request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Request, RequestId};
    use crate::response::parts::Limits;
    use crate::response::sink;
    use crate::response::stats::RequestStats;
    use howdah_transport::wire::RequestBuilder;
    use howdah_transport::{BodyInLane, LaneSizes, create_lane};
    use std::sync::Arc;

    fn slot() -> RequestSlot {
        let (mut sender, _frames, _fd) = create_lane(LaneSizes::TINY).unwrap();
        sender.send_request(&RequestBuilder::new(1, 1001, 1).finish(), 1, BodyInLane::None).unwrap()
    }

    fn in_flight(number: u64, slot: RequestSlot) -> InFlight {
        let budgets = howdah_budget::Budgets::new(1 << 20, 1 << 20);
        let limits = Limits { memory: 0, temp_dir: std::env::temp_dir(), budgets };
        let (sink, _) = sink::new(Arc::new(limits), RequestStats::default(), None);
        let now = Instant::now();
        let request = Request {
            repeatable: true,
            ..Request::without_client(RequestBuilder::new(1, 1001, 1).finish(), RequestId(number))
        };
        let pending = Box::new(Pending::new(Box::new(request), sink));
        InFlight {
            number,
            slot,
            pending,
            flags: 0,
            since: now,
            body: BodyState::InRequest,
            responding: false,
            abort_sent: false,
            overdue: None,
            noted: false,
            cpu_before: None,
        }
    }

    #[test]
    fn requests_end_in_any_order_and_gaps_are_removed_although_the_first_request_stays() {
        let (mut requests, slot) = (LaneRequests::with_capacity(2), slot());
        requests.push(in_flight(1, slot));
        for number in 2..2000 {
            requests.push(in_flight(number, slot));
            if number % 7 == 0 {
                assert_eq!(requests.remove(number).map(|request| request.number), Some(number));
                assert!(requests.remove(number).is_none() && requests.get(number).is_none());
            } else if number > 20 {
                let _ = requests.remove(number - 10);
            }
            assert!(requests.entries.len() <= requests.len() + requests.len().max(MIN_GAPS), "{number}");
            assert_eq!(requests.iter().count(), requests.len());
            assert!(requests.iter().map(|request| request.number).is_sorted());
            assert_eq!(requests.front().map(|request| request.number), Some(1));
            assert_eq!(
                requests.back().map(|request| request.number),
                requests.iter().next_back().map(|request| request.number)
            );
        }
        assert!(requests.get(0).is_none() && requests.get(5000).is_none());
        let last = requests.pop_back().map(|request| request.number);
        assert!(last > requests.back().map(|request| request.number));
        assert_eq!(requests.remove(1).map(|request| request.number), Some(1));
        assert_ne!(requests.front().map(|request| request.number), None, "no gap at the front");
        let rest = requests.len();
        assert_eq!(requests.take().count(), rest);
        assert!(requests.is_empty() && requests.front().is_none());
    }
}
