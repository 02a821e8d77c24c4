//! Tests of the whole crate, against workers that a test controls.

mod fuzz;
mod hostile;
mod live_orders;
mod multiplexed;
pub(crate) mod test_pool;
