//! The order and placement of requests: the waiting queue with the line before it (`admission_queue`), the scheduler
//! that assigns requests to lanes, and the limits on requests (`quarantine`, `shares`).

pub(crate) mod admission_queue;
pub(crate) mod cold_starts;
pub(crate) mod quarantine;
pub(crate) mod scheduler;
pub(crate) mod shares;
pub(crate) mod waiting;
