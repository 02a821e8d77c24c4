//! The order and placement of requests: the queue (`waiting`), admission to a full queue (`admission_queue`), the
//! scheduler that assigns requests to lanes, the limits on routes and crashing paths (`shares`, `quarantine`), and the
//! measured waits for on-demand workers (`cold_starts`).

pub(crate) mod admission_queue;
pub(crate) mod cold_starts;
pub(crate) mod quarantine;
pub(crate) mod scheduler;
pub(crate) mod shares;
pub(crate) mod waiting;
