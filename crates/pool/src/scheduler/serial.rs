//! Lanes of workers that run one request at a time: which of them a request may lie in, and for how long.

use super::{AHEAD, LOOK_AGAIN, MOST, NEXT, PATIENCE, Scheduler};
use crate::lane::Lane;
use crate::pending::Pending;
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

    /// The busy worker that will be free first, if that is soon.
    pub(super) fn pick_soon_free(&self, pending: &Pending, io_thread: usize, now: Instant) -> Option<usize> {
        let candidates = self.lanes.iter().enumerate().filter_map(|(index, lane)| {
            let lane = lane.as_ref().filter(|lane| lane.state.is_serving())?;
            let wait = lane.expected_wait(now).filter(|&wait| wait <= AHEAD)?;
            let has_place = lane.in_flight.len() < depth(lane, pending.expected.is_short());
            has_place.then_some((lane.home != io_thread, wait, index))
        });
        candidates.min().map(|(_, _, index)| index)
    }
}

/// True if such a lane may be given a request now. Behind another one it is laid only where some wait in the queue.
pub(super) fn has_place(lane: &Lane, some_wait: bool, now: Instant) -> bool {
    let is_soon_free = || lane.expected_wait(now).is_some_and(|wait| wait <= AHEAD);
    let room = lane.in_flight.len() < depth(lane, true);
    lane.state.is_serving() && (lane.in_flight.is_empty() || room && some_wait && is_soon_free())
}

/// Requests that a lane may hold, with one more that is short or not.
fn depth(lane: &Lane, short: bool) -> usize {
    if short && lane.in_flight.are_short() { MOST } else { NEXT }
}

/// Takes requests back that would wait for longer than they were expected to when they were laid there. When to look again.
pub(super) fn spread(
    lane: &mut Lane,
    now: Instant,
    idle: bool,
    moved: &mut Vec<(Box<Pending>, usize)>,
) -> Option<Duration> {
    if lane.in_flight.len() < 2 {
        return None;
    }
    // Twice the time for which requests are laid there: moving a request costs something too.
    let look = match lane.expected_wait(now) {
        Some(wait) if idle && wait <= 2 * PATIENCE => Duration::from_micros(PATIENCE),
        Some(wait) if !idle && wait <= 2 * AHEAD => Duration::from_micros(wait.min(1_000)),
        _ => {
            let home = lane.home;
            moved.extend(std::iter::from_fn(|| lane.take_back_waiting()).map(|pending| (pending, home)));
            return None;
        }
    };
    lane.holds_waiting_request().then_some(look.max(LOOK_AGAIN))
}
