//! Which request runs next, and where: the waiting queue with its door, the scheduler that gives requests to lanes, and
//! the requests and routes that it keeps back.

pub(crate) mod cold_starts;
pub(crate) mod door;
pub(crate) mod quarantine;
pub(crate) mod scheduler;
pub(crate) mod shares;
pub(crate) mod waiting;
