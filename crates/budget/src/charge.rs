//! Owners of parts of a budget: a charge for one object, a share for a connection.

use crate::Budgets;
use crate::budget::{Budget, Kind, SMALL_SHARE};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The combined usage of one connection's concurrent requests.
#[derive(Debug)]
pub struct Share {
    budgets: Budgets,
    memory: AtomicU64,
    spool: AtomicU64,
}

impl Share {
    pub fn new(budgets: Budgets) -> Arc<Self> {
        Arc::new(Self { budgets, memory: AtomicU64::new(0), spool: AtomicU64::new(0) })
    }

    /// Number of bytes that it holds of a budget.
    pub fn used(&self, kind: Kind) -> u64 {
        self.of(kind).load(Relaxed)
    }

    fn of(&self, kind: Kind) -> &AtomicU64 {
        match kind {
            Kind::Memory => &self.memory,
            Kind::Spool => &self.spool,
        }
    }

    /// Takes bytes and returns the connection's total; `None` if that would exceed its share.
    fn take(&self, kind: Kind, bytes: u64) -> Option<u64> {
        let most = match kind {
            Kind::Memory => self.budgets.memory.share(),
            Kind::Spool => self.budgets.spool.share(),
        };
        let before = self.of(kind).fetch_add(bytes, Relaxed);
        if before.saturating_add(bytes) > most {
            self.of(kind).fetch_sub(bytes, Relaxed);
            return None;
        }
        Some(before + bytes)
    }
}

/// The part of a budget that one waiting object holds. Returned when dropped.
#[derive(Debug)]
pub struct Charge {
    budget: &'static Budget,
    share: Option<Arc<Share>>,
    bytes: u64,
}

impl Charge {
    /// An empty charge; what it takes also counts towards the connection's share, if any.
    pub const fn new(budget: &'static Budget, share: Option<Arc<Share>>) -> Self {
        Self { budget, share, bytes: 0 }
    }

    pub const fn budget(&self) -> &'static Budget {
        self.budget
    }

    /// An empty charge to another budget with the same share.
    pub fn beside(&self, budget: &'static Budget) -> Self {
        Self::new(budget, self.share.clone())
    }

    /// Number of bytes that it holds.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes more bytes. Returns `false`, without taking any, if the budget or the share has no room.
    #[must_use]
    pub fn grow(&mut self, by: u64) -> bool {
        let all = self.bytes.saturating_add(by);
        let little = match &self.share {
            None => all <= SMALL_SHARE,
            Some(share) => match share.take(self.budget.kind(), by) {
                Some(of_connection) => all <= SMALL_SHARE && of_connection <= 4 * SMALL_SHARE,
                None => {
                    self.budget.note_refused();
                    return false;
                }
            },
        };
        let most = if little { self.budget.limit() } else { self.budget.soft_limit() };
        if self.budget.take(by, most) {
            self.bytes = all;
            return true;
        }
        if let Some(share) = &self.share {
            share.of(self.budget.kind()).fetch_sub(by, Relaxed);
        }
        self.budget.note_refused();
        false
    }

    /// Returns `by` bytes, at most all.
    pub fn shrink(&mut self, by: u64) {
        let by = by.min(self.bytes);
        self.bytes -= by;
        self.give(by);
    }

    /// Returns all bytes.
    pub fn clear(&mut self) {
        self.shrink(self.bytes);
    }

    /// Splits off up to `bytes` into an independent charge.
    pub fn split(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { budget: self.budget, share: self.share.clone(), bytes }
    }

    /// Takes over all that another charge to the same budget and share holds.
    pub fn join(&mut self, mut other: Self) {
        debug_assert!(self.budget == other.budget);
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Attaches the charge to the bytes: it is held until the last slice of them is dropped.
    pub fn cover(self, bytes: Bytes) -> Bytes {
        if self.bytes == 0 { bytes } else { Bytes::from_owner(ChargedBytes { bytes, _charge: self }) }
    }

    fn give(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.budget.give(bytes);
        if let Some(share) = &self.share {
            share.of(self.budget.kind()).fetch_sub(bytes, Relaxed);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.give(self.bytes);
    }
}

struct ChargedBytes {
    bytes: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn charges_are_returned_however_they_are_split() {
        let budget = Budget::new(Kind::Memory, 8 * MIB);
        let mut charge = Charge::new(budget, None);
        assert!(charge.grow(1000) && charge.grow(MIB));
        assert_eq!((charge.bytes(), budget.used()), (MIB + 1000, MIB + 1000));
        let part = charge.split(600);
        charge.shrink(400);
        assert_eq!((part.bytes(), charge.bytes(), budget.used()), (600, MIB, MIB + 600));
        let bytes = part.cover(Bytes::from(vec![b'x'; 10]));
        let slice = bytes.slice(3..5);
        drop((charge, bytes));
        assert_eq!(budget.used(), 600, "a slice of the bytes is still alive");
        drop(slice);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_last_eighth_of_a_budget_is_reserved_for_small_charges() {
        let budget = Budget::new(Kind::Memory, 8 * MIB);
        let mut big = Charge::new(budget, None);
        while big.grow(MIB / 2) {}
        assert_eq!((big.bytes(), budget.refused()), (7 * MIB, 1));
        assert!(budget.has_room(1) && !budget.has_room(MIB));
        let mut little = Vec::new();
        loop {
            let mut charge = Charge::new(budget, None);
            if !charge.grow(SMALL_SHARE) {
                break;
            }
            little.push(charge);
        }
        assert_eq!(little.len() as u64, MIB / SMALL_SHARE);
        assert!(budget.used() <= budget.limit() && budget.is_full() && budget.pressure() == 100);
        little.clear();
        assert!(!big.grow(MIB) && budget.used() == 7 * MIB);
        drop(big);
        assert_eq!((budget.used(), budget.pressure()), (0, 0));
    }

    #[test]
    fn a_connection_has_no_more_than_its_share() {
        let budgets = Budgets::new(8 * MIB, 80 * MIB);
        let share = Share::new(budgets);
        let mut charges: Vec<Charge> = (0..20).map(|_| Charge::new(budgets.memory, Some(share.clone()))).collect();
        let held: u64 = charges.iter_mut().map(|charge| u64::from(charge.grow(MIB / 8))).sum();
        assert_eq!((held, share.used(Kind::Memory)), (8, MIB));
        assert!(Charge::new(budgets.spool, Some(share.clone())).grow(2 * MIB), "budgets are independent");
        charges.clear();
        assert_eq!((share.used(Kind::Memory), share.used(Kind::Spool), budgets.memory.used()), (0, 0, 0));
    }

    #[test]
    fn a_charge_may_be_returned_by_another_thread() {
        let budget = Budget::new(Kind::Memory, 64 * MIB);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..2000 {
                        let mut charge = Charge::new(budget, None);
                        assert!(charge.grow(n * 17));
                        scope.spawn(move || drop(charge)).join().unwrap();
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
    }
}
