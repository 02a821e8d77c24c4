//! Which requests may not take all workers: routes with a limit, and slow requests as a class.
//!
//! Counted anew each time from what lies in the lanes, so that no way out of a lane can be forgotten; nobody counts
//! where nothing is limited.

use crate::config::RouteShare;
use crate::lane::Lane;
use crate::request::pending::Pending;
use std::time::Duration;

/// The limits of a pool.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// By `Request::route`.
    routes: Vec<RouteShare>,
    /// Requests that usually take longer are slow ones, in microseconds.
    slow_after: u32,
    /// Slow requests that may run at once; 0: any number.
    slow_limit: usize,
}

impl Shares {
    pub(crate) fn new(routes: Vec<RouteShare>, slow_after: Duration, slow_limit: usize) -> Self {
        let slow_after = u32::try_from(slow_after.as_micros()).unwrap_or(u32::MAX);
        Self { routes, slow_after, slow_limit }
    }

    fn is_slow(&self, pending: &Pending) -> bool {
        pending.expected.mean > self.slow_after
    }

    /// True if a request may go to a worker, with what lies in the lanes now.
    pub(crate) fn may_run(&self, pending: &Pending, lanes: &[Option<Lane>]) -> bool {
        let count = |which: &dyn Fn(&Pending) -> bool| {
            lanes
                .iter()
                .flatten()
                .flat_map(|lane| lane.in_flight.iter())
                .filter(|request| which(&request.pending))
                .count()
        };
        if self.slow_limit > 0 && self.is_slow(pending) && count(&|other| self.is_slow(other)) >= self.slow_limit {
            return false;
        }
        match pending.request.route.and_then(|route| self.routes.get(usize::from(route))) {
            Some(share) if share.workers > 0 => {
                count(&|other| other.request.route == pending.request.route) < share.workers
            }
            _ => true,
        }
    }

    /// The route, if its requests share one turn, whichever client they are from.
    pub(crate) fn flow(&self, route: Option<u16>) -> Option<u16> {
        let share = |route: &u16| self.routes.get(usize::from(*route));
        route.filter(|route| share(route).is_some_and(|share| share.is_own_flow()))
    }

    /// How many turns of others a request's turn is worth.
    pub(crate) fn weight(&self, route: Option<u16>) -> u32 {
        route.and_then(|route| self.routes.get(usize::from(route))).map_or(1, |share| share.weight.max(1))
    }

    /// Slow requests in the lanes, and how many there may be; `None`: any number.
    pub(crate) fn slow(&self, lanes: &[Option<Lane>]) -> Option<(usize, usize)> {
        let in_lanes = lanes.iter().flatten().flat_map(|lane| lane.in_flight.iter());
        (self.slow_limit > 0)
            .then(|| (in_lanes.filter(|request| self.is_slow(&request.pending)).count(), self.slow_limit))
    }
}
