//! Serial lanes: choice of the idle worker for a request, and the maximum wait behind another request.

use super::{LAY_BEHIND_LIMIT, MAX_PACKED, Scheduler};
use crate::lane::Lane;
use crate::request::pending::Pending;
use std::time::{Duration, Instant};

/// Score of an idle lane at home whose `gives_way` is as requested.
const FITS: usize = 3;

impl Scheduler {
    /// Picks the most recently used idle worker. Prefers one whose `gives_way` is as requested, then one at home.
    pub(super) fn pick_idle(&mut self, io_thread: usize, gives_way: bool) -> Option<usize> {
        let mut best: Option<(usize, usize)> = None;
        for (position, &index) in self.idle.iter().enumerate().rev() {
            let fit = self.lanes[index]
                .as_ref()
                .map_or(0, |lane| 2 * usize::from(lane.gives_way() == gives_way) + usize::from(lane.home == io_thread));
            if best.is_none_or(|(most, _)| fit > most) {
                best = Some((fit, position));
            }
            // Nearly always true for the first lane, so requests rarely search all idle lanes.
            if fit == FITS {
                break;
            }
        }
        let (_, position) = best?;
        Some(self.idle.remove(position))
    }

    /// Number of lanes whose workers give way, and of all lanes.
    pub(super) fn giving_way(&self) -> (usize, usize) {
        let lanes = self.lanes.iter().flatten();
        (lanes.clone().filter(|lane| lane.gives_way()).count(), lanes.count())
    }
}

/// True if a short request may be put behind those of this lane.
pub(super) fn has_place_behind(lane: &Lane, now: Instant) -> bool {
    lane.state.is_serving()
        && (1..MAX_PACKED).contains(&lane.in_flight.len())
        && lane.in_flight.are_short()
        && lane.expected_wait(now).is_some_and(|wait| wait <= LAY_BEHIND_LIMIT)
}

/// Takes back requests that would wait longer than expected when they were sent. Returns the time until the next check.
pub(super) fn spread(lane: &mut Lane, now: Instant, moved: &mut Vec<(Box<Pending>, usize)>) -> Option<Duration> {
    if lane.in_flight.len() < 2 {
        return None;
    }
    // Twice the limit for sending them there: moving a request has a cost too.
    if lane.expected_wait(now).is_none_or(|wait| wait > 2 * LAY_BEHIND_LIMIT) {
        let home = lane.home;
        moved.extend(std::iter::from_fn(|| lane.take_back_waiting()).map(|pending| (pending, home)));
        return None;
    }
    lane.holds_waiting_request().then_some(Duration::from_micros(LAY_BEHIND_LIMIT))
}
