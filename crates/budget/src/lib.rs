//! Data that waits in the server is charged to a budget: one for memory, one for temporary files (`Budgets`). A
//! `Charge` is one object's part of a budget. It grows and shrinks with the object and returns everything when dropped.
//! Where several requests share a connection, the connection has a `Share`, so that no connection can exhaust the
//! budget.
//!
//! Data that a budget refuses is not kept: a request gets 503, a response goes to a file, waits in its worker, or
//! fails. As a budget fills up, slow clients are disconnected earlier. Reading order: `Budget` (the numbers), `Charge`
//! (their owners), `machine` (the defaults).
#![forbid(unsafe_code)]

mod budget;
mod charge;
mod control_group;
pub mod machine;
mod pressure;

pub use budget::{Budget, Kind};
pub use charge::{Charge, Share};
pub use pressure::MemoryPressure;

/// The budgets of a server. Copied freely: see `Budget::new`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    /// Bytes of memory.
    pub memory: &'static Budget,
    /// Bytes of temporary files.
    pub spool: &'static Budget,
}

impl Budgets {
    /// Budgets of `memory` and `spool` bytes.
    pub fn new(memory: u64, spool: u64) -> Self {
        Self { memory: Budget::new(Kind::Memory, memory), spool: Budget::new(Kind::Spool, spool) }
    }

    /// The higher pressure of the two budgets, see `Budget::pressure`.
    pub fn pressure(&self) -> u64 {
        self.memory.pressure().max(self.spool.pressure())
    }
}
