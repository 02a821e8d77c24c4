//! The calls that lie in one lane, oldest first.
//!
//! A worker that runs one call at a time ends them in order, so both ends of a queue are enough. One that runs several ends
//! them in any order: a call in the middle leaves a gap, and gaps are swept out once they outnumber the calls.

use crate::lane::InFlight;
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
}

impl Calls {
    pub(crate) fn with_capacity(calls: usize) -> Self {
        Self { entries: VecDeque::with_capacity(calls), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a call with a number above all others.
    pub(crate) fn push(&mut self, call: InFlight) {
        self.len += 1;
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
        self.len -= usize::from(call.is_some());
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
        self.len -= 1;
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
        self.len = 0;
        std::mem::take(&mut self.entries).into_iter().filter_map(|entry| entry.call)
    }
}
