//! Routes with a limit on workers or a weight.
//!
//! Running requests are recounted from the lanes each time, so that no exit from a lane can be missed. Without
//! limits nothing is counted.

use crate::lane::Lane;
use crate::request::pending::Pending;
use howdah_config::Share;

#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// By `Request::route`.
    routes: Vec<Share>,
}

impl Shares {
    pub(crate) fn new(routes: Vec<Share>) -> Self {
        Self { routes }
    }

    /// True if sending the request to a worker keeps its route within the limit.
    pub(crate) fn may_run(&self, pending: &Pending, lanes: &[Option<Lane>]) -> bool {
        let count = |which: &dyn Fn(&Pending) -> bool| {
            lanes
                .iter()
                .flatten()
                .flat_map(|lane| lane.in_flight.iter())
                .filter(|request| which(&request.pending))
                .count()
        };
        match pending.request.route.and_then(|route| self.routes.get(usize::from(route))) {
            Some(share) if share.workers > 0 => {
                count(&|other| other.request.route == pending.request.route) < share.workers
            }
            _ => true,
        }
    }

    /// The route, if its requests wait in separate flows: it has a limit or a weight.
    pub(crate) fn flow(&self, route: Option<u16>) -> Option<u16> {
        let share = |route: &u16| self.routes.get(usize::from(*route));
        route.filter(|route| share(route).is_some_and(|share| share.workers > 0 || share.weight > 1))
    }

    /// Weight of the route: a request's cost is divided by it.
    pub(crate) fn weight(&self, route: Option<u16>) -> u32 {
        route.and_then(|route| self.routes.get(usize::from(route))).map_or(1, |share| share.weight.max(1))
    }
}
