//! The calls that lie in one lane, oldest first.
//!
//! A worker that runs one call at a time ends them in order, so both ends of a queue are enough. One that runs several ends
//! them in any order: a call in the middle leaves a gap, and gaps are swept out once they outnumber the calls.

use crate::lane::InFlight;
use crate::scheduler;
use std::collections::VecDeque;

/// Gaps that are not worth a sweep.
const FEW: usize = 64;

#[derive(Debug)]
struct Entry {
    number: u64,
    call: Option<InFlight>,
}

/// Calls by number, which grow from front to back. The first and the last entry are never gaps.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    entries: VecDeque<Entry>,
    len: usize,
    /// The time that all of them are expected to take, in microseconds.
    expected: u64,
    /// Those that are not expected to be short.
    not_short: usize,
}

impl Calls {
    pub(crate) fn with_capacity(calls: usize) -> Self {
        Self { entries: VecDeque::with_capacity(calls), ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The time that all calls together are expected to take, in microseconds.
    pub(crate) fn expected_us(&self) -> u64 {
        self.expected
    }

    /// True if each call is expected to be a short one.
    pub(crate) fn are_short(&self) -> bool {
        self.not_short == 0
    }

    fn count_out(&mut self, call: Option<&InFlight>) {
        if let Some(call) = call {
            self.len -= 1;
            self.expected -= u64::from(call.job.expected.mean);
            self.not_short -= usize::from(!scheduler::is_short(call.job.expected));
        }
    }

    /// Adds a call with a number above all others.
    pub(crate) fn push(&mut self, call: InFlight) {
        self.len += 1;
        self.expected += u64::from(call.job.expected.mean);
        self.not_short += usize::from(!scheduler::is_short(call.job.expected));
        self.entries.push_back(Entry { number: call.number, call: Some(call) });
    }

    pub(crate) fn front(&self) -> Option<&InFlight> {
        self.entries.front()?.call.as_ref()
    }

    pub(crate) fn front_mut(&mut self) -> Option<&mut InFlight> {
        self.entries.front_mut()?.call.as_mut()
    }

    pub(crate) fn back(&self) -> Option<&InFlight> {
        self.entries.back()?.call.as_ref()
    }

    pub(crate) fn pop_back(&mut self) -> Option<InFlight> {
        let call = self.entries.pop_back()?.call;
        self.count_out(call.as_ref());
        self.trim();
        call
    }

    fn position(&self, number: u64) -> Option<usize> {
        if self.entries.front()?.number == number {
            return Some(0);
        }
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&InFlight> {
        self.entries.get(self.position(number)?)?.call.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut InFlight> {
        let position = self.position(number)?;
        self.entries.get_mut(position)?.call.as_mut()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<InFlight> {
        let position = self.position(number)?;
        let call = self.entries.get_mut(position)?.call.take()?;
        self.count_out(Some(&call));
        self.trim();
        if self.entries.len() - self.len > self.len.max(FEW) {
            self.entries.retain(|entry| entry.call.is_some());
        }
        Some(call)
    }

    /// Drops gaps at both ends.
    fn trim(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.call.is_none()) {
            self.entries.pop_front();
        }
        while self.entries.back().is_some_and(|entry| entry.call.is_none()) {
            self.entries.pop_back();
        }
    }

    /// All calls, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &InFlight> {
        self.entries.iter().filter_map(|entry| entry.call.as_ref())
    }

    /// Takes all calls out, oldest first.
    pub(crate) fn take(&mut self) -> impl DoubleEndedIterator<Item = InFlight> + use<> {
        (self.len, self.expected, self.not_short) = (0, 0, 0);
        std::mem::take(&mut self.entries).into_iter().filter_map(|entry| entry.call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, CallStats, RequestBody, RequestId};
    use crate::lane::{BodyWay, Job};
    use crate::reply_parts::Limits;
    use crate::reply_sink;
    use howdah_transport::wire::CallBuilder;
    use howdah_transport::{BodyInLane, CallSlot, LaneSizes, create_lane};
    use std::sync::Arc;
    use std::time::Instant;

    fn slot() -> CallSlot {
        let (mut sender, _frames, _fd) = create_lane(LaneSizes::TINY).unwrap();
        sender.send_call(&CallBuilder::new(1, 1001, 1).finish(), 1, BodyInLane::None).unwrap()
    }

    fn in_flight(number: u64, slot: CallSlot) -> InFlight {
        let budgets = howdah_budget::Budgets::new(1 << 20, 1 << 20);
        let limits = Limits { memory: 0, temp_dir: std::env::temp_dir(), budgets };
        let (sink, _) = reply_sink::new(Arc::new(limits), CallStats::default(), None);
        let now = Instant::now();
        let call = Call {
            head: CallBuilder::new(1, 1001, 1).finish(),
            body: RequestBody::Empty,
            repeatable: true,
            id: RequestId(number),
            received: now,
            complete: now,
            client: 0,
            route: None,
            interim: None,
            share: None,
        };
        let job = Box::new(Job::new(call, sink));
        InFlight {
            number,
            slot,
            job,
            flags: 0,
            since: now,
            body: BodyWay::InCall,
            answering: false,
            told_gone: false,
            overdue: None,
        }
    }

    #[test]
    fn calls_end_in_any_order_and_one_that_stays_does_not_keep_the_gaps() {
        let (mut calls, slot) = (Calls::with_capacity(2), slot());
        calls.push(in_flight(1, slot));
        for number in 2..2000 {
            calls.push(in_flight(number, slot));
            if number % 7 == 0 {
                assert_eq!(calls.remove(number).map(|call| call.number), Some(number));
                assert!(calls.remove(number).is_none() && calls.get(number).is_none());
            } else if number > 20 {
                let _ = calls.remove(number - 10);
            }
            assert!(calls.entries.len() <= calls.len() + calls.len().max(FEW), "{number}");
            assert_eq!(calls.iter().count(), calls.len());
            assert!(calls.iter().map(|call| call.number).is_sorted());
            assert_eq!(calls.front().map(|call| call.number), Some(1));
            assert_eq!(calls.back().map(|call| call.number), calls.iter().next_back().map(|call| call.number));
        }
        assert!(calls.get(0).is_none() && calls.get(5000).is_none());
        let last = calls.pop_back().map(|call| call.number);
        assert!(last > calls.back().map(|call| call.number));
        assert_eq!(calls.remove(1).map(|call| call.number), Some(1));
        assert_ne!(calls.front().map(|call| call.number), None, "no gap at the front");
        let rest = calls.len();
        assert_eq!(calls.take().count(), rest);
        assert!(calls.is_empty() && calls.front().is_none());
    }
}
