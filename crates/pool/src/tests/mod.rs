//! Tests of the crate as a whole, against workers that a test plays.

mod fuzz;
mod hostile;
mod live_orders;
mod multiplexed;
pub(crate) mod stage;
