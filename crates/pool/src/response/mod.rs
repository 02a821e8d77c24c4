//! A response from the worker's lane to the front: its head, its parts, and the sink in which they wait for a slow
//! client. Knows neither requests nor lanes.

pub(crate) mod body_copy;
pub(crate) mod head;
pub(crate) mod parts;
#[cfg(feature = "stand-in")]
pub(crate) mod prepared;
pub(crate) mod sink;
pub(crate) mod stats;
