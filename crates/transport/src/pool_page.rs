//! Statistics of a worker's connection pools (`Howdah\Pool`): a page of the lane that the worker writes at any time and
//! the server reads on demand. No message, no wake-up, no lock: each value is one word.
//!
//! Each value is stored and loaded with `Relaxed`: it publishes no other data, and values written together may be
//! read partly old, partly new. A name's length is stored with `Release` after its bytes and loaded with `Acquire`, so
//! a reader that sees the length sees the name.
//!
//! The server does not trust what it reads: it leaves out names that are too long, cleans the others, and bounds
//! numbers. A worker that lies here misreports only its own pools.

use crate::wire::{POOL_NAME_LEN, POOL_NUMBERS, POOL_SLOTS};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Larger than any honest number; up to this, every integer is also exact as a floating-point number.
const MAX_NUMBER: u64 = (1 << 53) - 1;

/// One pool of the page.
#[repr(C)]
#[derive(Debug)]
struct PoolSlot {
    /// Length of the name in bytes; 0 for an unused slot. Written last.
    name_len: AtomicU32,
    reserved: AtomicU32,
    name: [AtomicU8; POOL_NAME_LEN],
    numbers: [AtomicU64; POOL_NUMBERS],
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct PoolPage {
    slots: [PoolSlot; POOL_SLOTS],
}

/// Size of the page in a lane, in bytes.
pub(crate) const POOL_PAGE_LEN: usize = 4096;

const _: () = assert!(size_of::<PoolPage>() <= POOL_PAGE_LEN);

/// A connection pool as reported by a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolReport {
    /// The name; never empty, without control characters.
    pub name: String,
    /// Indexed by `wire::PoolNumber`.
    pub numbers: [u64; POOL_NUMBERS],
}

impl PoolPage {
    /// The worker's side: names a slot, which puts it into use.
    pub(crate) fn set_name(&self, slot: usize, name: &[u8]) {
        let Some(slot) = self.slots.get(slot) else { return };
        for (to, from) in slot.name.iter().zip(name) {
            to.store(*from, Ordering::Relaxed);
        }
        slot.name_len.store(name.len().min(POOL_NAME_LEN) as u32, Ordering::Release);
    }

    /// The worker's side: writes a slot's numbers.
    pub(crate) fn set_numbers(&self, slot: usize, numbers: &[u64; POOL_NUMBERS]) {
        let Some(slot) = self.slots.get(slot) else { return };
        for (to, from) in slot.numbers.iter().zip(numbers) {
            to.store(*from, Ordering::Relaxed);
        }
    }

    /// The server's side: reads all slots in use.
    pub(crate) fn read(&self) -> Vec<PoolReport> {
        self.slots.iter().filter_map(PoolSlot::read).collect()
    }
}

impl PoolSlot {
    fn read(&self) -> Option<PoolReport> {
        let len = self.name_len.load(Ordering::Acquire) as usize;
        if len == 0 || len > POOL_NAME_LEN {
            return None;
        }
        let bytes: Vec<u8> = self.name[..len].iter().map(|byte| byte.load(Ordering::Relaxed)).collect();
        let name = String::from_utf8_lossy(&bytes).replace(char::is_control, "?");
        let numbers = std::array::from_fn(|at| self.numbers[at].load(Ordering::Relaxed).min(MAX_NUMBER));
        Some(PoolReport { name, numbers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::PoolNumber;
    use crate::{LaneSizes, WorkerEnd, create_lane};

    /// A page as the kernel provides it: zeroed.
    fn page() -> Box<PoolPage> {
        Box::new(PoolPage {
            slots: std::array::from_fn(|_| PoolSlot {
                name_len: AtomicU32::new(0),
                reserved: AtomicU32::new(0),
                name: std::array::from_fn(|_| AtomicU8::new(0)),
                numbers: std::array::from_fn(|_| AtomicU64::new(0)),
            }),
        })
    }

    #[test]
    fn the_server_reads_the_pools_that_a_worker_writes() {
        let (sender, _receiver, fd) = create_lane(LaneSizes::TINY).unwrap();
        let (_ours, theirs) = crate::control_socket::pair().unwrap();
        let worker = WorkerEnd::attach(&fd, crate::new_eventfd().unwrap(), theirs.into()).unwrap();
        assert!(sender.pools().is_empty());
        let mut numbers = [0; POOL_NUMBERS];
        numbers[PoolNumber::Open as usize] = 3;
        worker.set_pool_name(1, "kunden-ä".as_bytes());
        worker.set_pool_numbers(1, &numbers);
        assert_eq!(sender.pools(), [PoolReport { name: "kunden-ä".into(), numbers }]);
    }

    #[test]
    fn output_that_no_honest_worker_writes_is_bounded() {
        let page = page();
        page.set_name(0, b"evil\x1b[2J\n\xff");
        page.set_numbers(0, &[u64::MAX; POOL_NUMBERS]);
        // A slot outside of the page, a name that is too long, and a false length.
        page.set_name(POOL_SLOTS, b"nowhere");
        page.set_numbers(usize::MAX, &[1; POOL_NUMBERS]);
        page.set_name(1, &[b'x'; 3 * POOL_NAME_LEN]);
        page.slots[2].name_len.store(POOL_NAME_LEN as u32 + 1, Ordering::Relaxed);
        page.slots[3].name_len.store(u32::MAX, Ordering::Relaxed);
        let read = page.read();
        let names: Vec<_> = read.iter().map(|pool| pool.name.as_str()).collect();
        assert_eq!(names, ["evil?[2J?\u{fffd}", "x".repeat(POOL_NAME_LEN).as_str()]);
        assert_eq!(read[0].numbers, [MAX_NUMBER; POOL_NUMBERS]);
    }
}
