//! Entries on their way into a log and back, without I/O: numbers, order, duplicates, and delivery while the broker is
//! unreachable.
//!
//! An entry is delivered when it comes back from the log, so that all servers deliver in the log's order. While the
//! broker is unreachable, entries are delivered at once to this server alone and wait for the log; they are skipped
//! when they come back.

use bytes::{BufMut, Bytes, BytesMut};
use std::collections::{HashMap, VecDeque};

/// Maximum size of entries that wait for the broker, in bytes.
const MAX_WAITING: usize = 8 << 20;
/// Maximum size of an entry in bytes: NATS accepts a megabyte by default.
pub(crate) const MAX_ENTRY: usize = (1 << 20) - 1024;
/// Maximum number of servers whose numbers are known: the log holds about as many entries.
const MAX_ORIGINS: usize = 1024;
/// Bytes of an entry before its payload: the origin and the number.
const HEAD: usize = 16;

/// Called with each payload, in order, and with `true` for another server's.
pub(crate) type Deliver = dyn Fn(Bytes, bool) + Send + Sync;

/// The state of one server's end of a log.
pub(crate) struct Outbox {
    /// Random number of this run of the server.
    origin: u64,
    /// Number of the last entry; the first has number 1.
    last: u64,
    /// Number of the last entry that the broker has confirmed.
    stored: u64,
    /// Number of the last own entry that was delivered here.
    delivered: u64,
    /// Entries that are not yet both stored and delivered.
    waiting: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// The last number from each other server.
    seen: HashMap<u64, u64>,
    writes: bool,
    reads: bool,
    /// Number of own entries that the log never got, and of others' entries that it no longer had.
    pub(crate) unshared: u64,
    pub(crate) missed: u64,
}

impl Outbox {
    pub(crate) fn new(origin: u64) -> Self {
        Self {
            origin,
            last: 0,
            stored: 0,
            delivered: 0,
            waiting: VecDeque::new(),
            bytes: 0,
            seen: HashMap::new(),
            writes: true,
            reads: true,
            unshared: 0,
            missed: 0,
        }
    }

    /// Adds an entry. Returns `false` if it is too large or too many wait; then only this server delivers it.
    pub(crate) fn append(&mut self, payload: Bytes, deliver: &Deliver) -> bool {
        if payload.len() > MAX_ENTRY || self.bytes + payload.len() > MAX_WAITING {
            self.unshared += 1;
            deliver(payload, false);
            return false;
        }
        self.last += 1;
        self.bytes += payload.len();
        self.waiting.push_back((self.last, payload));
        if self.is_unreachable() {
            self.deliver_all(deliver);
        }
        true
    }

    /// Returns entries after this number in the log's format, with the number of the last one.
    pub(crate) fn after(&self, sent: u64, most: usize) -> (Vec<Bytes>, u64) {
        let unsent = self.waiting.iter().filter(|(number, _)| *number > sent).take(most);
        let mut end = sent;
        let encoded = unsent.map(|(number, payload)| {
            end = *number;
            self.encode(*number, payload)
        });
        (encoded.collect(), end)
    }

    fn encode(&self, number: u64, payload: &Bytes) -> Bytes {
        let mut entry = BytesMut::with_capacity(HEAD + payload.len());
        entry.put_u64(self.origin);
        entry.put_u64(number);
        entry.put_slice(payload);
        entry.freeze()
    }

    /// Records that the broker has confirmed all entries up to this number.
    pub(crate) fn stored(&mut self, number: u64) {
        self.stored = self.stored.max(number);
        self.writes = true;
        self.forget();
    }

    /// The last entry that the broker has confirmed.
    pub(crate) fn last_stored(&self) -> u64 {
        self.stored
    }

    /// The number of the last entry.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Handles an entry from the log, which may contain duplicates.
    pub(crate) fn received(&mut self, entry: &Bytes, deliver: &Deliver) {
        // The broker may contain anything.
        let Some((head, _)) = entry.split_first_chunk::<HEAD>() else { return };
        let (origin, number) = head.split_at(HEAD / 2);
        let read = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let (origin, number) = (read(origin), read(number));
        if origin == self.origin {
            if number > self.delivered && number <= self.last {
                self.delivered = number;
                deliver(entry.slice(HEAD..), false);
                self.forget();
            }
            return;
        }
        if let Some(last) = self.seen.get_mut(&origin) {
            if number <= *last {
                return;
            }
            self.missed += number - *last - 1;
            *last = number;
        } else {
            if self.seen.len() >= MAX_ORIGINS {
                self.seen.clear();
            }
            self.seen.insert(origin, number);
        }
        deliver(entry.slice(HEAD..), true);
    }

    /// `true` if the broker is unreachable, as far as is known.
    pub(crate) fn is_unreachable(&self) -> bool {
        !(self.writes && self.reads)
    }

    /// Records whether reading works.
    pub(crate) fn reads(&mut self, works: bool, deliver: &Deliver) {
        self.reads = works;
        if !works {
            self.deliver_all(deliver);
        }
    }

    /// Records that writing does not work. [`Self::stored`] reports that it works again.
    pub(crate) fn cannot_write(&mut self, deliver: &Deliver) {
        self.writes = false;
        self.deliver_all(deliver);
    }

    /// Delivers own entries without waiting for the log.
    fn deliver_all(&mut self, deliver: &Deliver) {
        let delivered = self.delivered;
        let left = self.waiting.iter().filter(|(number, _)| *number > delivered);
        left.for_each(|(_, payload)| deliver(payload.clone(), false));
        self.delivered = self.last;
        self.forget();
    }

    fn forget(&mut self) {
        let done = self.stored.min(self.delivered);
        while let Some((number, payload)) = self.waiting.front()
            && *number <= done
        {
            self.bytes -= payload.len();
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
