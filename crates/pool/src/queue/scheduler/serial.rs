//! Lanes of workers that run one request at a time: which idle worker gets a request, and how long one may lie behind
//! another.

use super::{LAY_BEHIND_LIMIT, MAX_PACKED, Scheduler};
use crate::lane::Lane;
use crate::request::pending::Pending;
use std::time::{Duration, Instant};

/// An idle lane that is at home and gives way as wanted.
const FITS: usize = 3;

impl Scheduler {
    /// An idle worker, the one used last: best one that gives way already if the request is to, else one that does not, and
    /// best at home.
    pub(super) fn pick_idle(&mut self, io_thread: usize, gives_way: bool) -> Option<usize> {
        let mut best: Option<(usize, usize)> = None;
        for (position, &index) in self.idle.iter().enumerate().rev() {
            let fit = self.lanes[index]
                .as_ref()
                .map_or(0, |lane| 2 * usize::from(lane.gives_way() == gives_way) + usize::from(lane.home == io_thread));
            if best.is_none_or(|(most, _)| fit > most) {
                best = Some((fit, position));
            }
            // Nearly always the first one looked at: idle lanes are not searched for each request.
            if fit == FITS {
                break;
            }
        }
        let (_, position) = best?;
        Some(self.idle.remove(position))
    }

    /// Lanes whose workers give way, and all.
    pub(super) fn giving_way(&self) -> (usize, usize) {
        let lanes = self.lanes.iter().flatten();
        (lanes.clone().filter(|lane| lane.gives_way()).count(), lanes.count())
    }
}

/// True if a short request may lie behind those of this lane.
pub(super) fn has_place_behind(lane: &Lane, now: Instant) -> bool {
    lane.state.is_serving()
        && (1..MAX_PACKED).contains(&lane.in_flight.len())
        && lane.in_flight.are_short()
        && lane.expected_wait(now).is_some_and(|wait| wait <= LAY_BEHIND_LIMIT)
}

/// Takes requests back that would wait for longer than they were expected to when they were laid there. When to look again.
pub(super) fn spread(lane: &mut Lane, now: Instant, moved: &mut Vec<(Box<Pending>, usize)>) -> Option<Duration> {
    if lane.in_flight.len() < 2 {
        return None;
    }
    // Twice the time for which requests are laid there: moving a request costs something too.
    if lane.expected_wait(now).is_none_or(|wait| wait > 2 * LAY_BEHIND_LIMIT) {
        let home = lane.home;
        moved.extend(std::iter::from_fn(|| lane.take_back_waiting()).map(|pending| (pending, home)));
        return None;
    }
    lane.holds_waiting_request().then_some(Duration::from_micros(LAY_BEHIND_LIMIT))
}
