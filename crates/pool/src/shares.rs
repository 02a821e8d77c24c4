//! Which calls may not take all workers: routes with a limit, and slow calls as a class.
//!
//! Counted anew each time from what lies in the lanes, so that no way out of a lane can be forgotten; nobody counts
//! where nothing is limited.

use crate::config::RouteShare;
use crate::job::Job;
use crate::lane::Lane;
use std::time::Duration;

/// The limits of a pool.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// By `Call::route`.
    routes: Vec<RouteShare>,
    /// Calls that usually take longer are slow ones, in microseconds.
    slow_after: u32,
    /// Slow calls that may run at once; 0: any number.
    slow_limit: usize,
}

impl Shares {
    pub(crate) fn new(routes: Vec<RouteShare>, slow_after: Duration, slow_limit: usize) -> Self {
        let slow_after = u32::try_from(slow_after.as_micros()).unwrap_or(u32::MAX);
        Self { routes, slow_after, slow_limit }
    }

    fn is_slow(&self, job: &Job) -> bool {
        job.expected.mean > self.slow_after
    }

    /// True if a call may go to a worker, with what lies in the lanes now.
    pub(crate) fn may_run(&self, job: &Job, lanes: &[Option<Lane>]) -> bool {
        let count = |which: &dyn Fn(&Job) -> bool| {
            lanes.iter().flatten().flat_map(|lane| lane.in_flight.iter()).filter(|call| which(&call.job)).count()
        };
        if self.slow_limit > 0 && self.is_slow(job) && count(&|other| self.is_slow(other)) >= self.slow_limit {
            return false;
        }
        match job.call.route.and_then(|route| self.routes.get(usize::from(route))) {
            Some(share) if share.workers > 0 => count(&|other| other.call.route == job.call.route) < share.workers,
            _ => true,
        }
    }

    /// How many turns of others a call's turn is worth.
    pub(crate) fn weight(&self, route: Option<u16>) -> u32 {
        route.and_then(|route| self.routes.get(usize::from(route))).map_or(1, |share| share.weight.max(1))
    }

    /// Slow calls in the lanes, and how many there may be; `None`: any number.
    pub(crate) fn slow(&self, lanes: &[Option<Lane>]) -> Option<(usize, usize)> {
        let in_lanes = lanes.iter().flatten().flat_map(|lane| lane.in_flight.iter());
        (self.slow_limit > 0).then(|| (in_lanes.filter(|call| self.is_slow(&call.job)).count(), self.slow_limit))
    }
}
