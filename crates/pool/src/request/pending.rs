//! A request on its way through the pool, from `Pool::run` to its end, whichever queue or lane holds it.

use crate::request::Request;
use crate::request::estimate::{ExpectedDuration, RouteKey};
use crate::request::time_limits::TimeLimits;
use crate::response::sink::Sink;
use std::time::Instant;

/// A request with the sink of its response and its history so far.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) request: Box<Request>,
    pub(crate) sink: Sink,
    /// When the request arrived at the pool. Its age counts from then, and so includes its wait for a place in the
    /// queue. Reset when it is run again or moves to the fallback pool.
    pub(crate) entered: Instant,
    /// Time limits set by rules.
    pub(crate) limits: TimeLimits,
    /// The request waited to enter the full queue, and now has its turn (`admission_queue`).
    pub(crate) has_turn: bool,
    /// Workers that died while this request's code ran in them, or may have.
    pub(crate) killed: u32,
    /// Number of times that it moved to another worker because its worker had died, for any reason.
    pub(crate) resubmitted: u32,
    /// Workers that gave this request back.
    pub(crate) given_back: usize,
    /// Key of its expected duration.
    pub(crate) key: RouteKey,
    pub(crate) expected: ExpectedDuration,
    /// No worker was serving when it arrived.
    pub(crate) cold: bool,
    /// The route, if its requests wait in separate flows.
    pub(crate) flow: Option<u16>,
    /// Its cost for its flow in the waiting queue, in microseconds of a worker.
    pub(crate) cost: u32,
}

impl Pending {
    /// Creates a request without an estimate.
    pub(crate) fn new(request: Box<Request>, sink: Sink) -> Self {
        let limits = request.limits;
        let entered = request.complete.checked_sub(request.waited).unwrap_or(request.complete);
        let key = RouteKey::of(&request);
        Self {
            request,
            sink,
            entered,
            limits,
            has_turn: false,
            killed: 0,
            resubmitted: 0,
            given_back: 0,
            key,
            expected: ExpectedDuration::UNKNOWN,
            cold: false,
            flow: None,
            cost: 1,
        }
    }
}
