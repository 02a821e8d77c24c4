//! Lanes of workers that run one call at a time: which of them a call may lie in, and for how long.

use super::{AHEAD, LOOK_AGAIN, MOST, NEXT, PATIENCE, Scheduler};
use crate::job::Job;
use crate::lane::Lane;
use std::time::{Duration, Instant};

impl Scheduler {
    /// An idle worker, the one used last: best one that gives way already if the call is to, else one that does not, and
    /// best at home.
    pub(super) fn pick_idle(&mut self, io_thread: usize, gives_way: bool) -> Option<usize> {
        let fits = |&index: &usize| {
            self.lanes[index]
                .as_ref()
                .map_or(0, |lane| 2 * usize::from(lane.gives_way() == gives_way) + usize::from(lane.home == io_thread))
        };
        // Of equals `max_by_key` takes the last.
        let (position, _) = self.idle.iter().enumerate().max_by_key(|(_, index)| fits(index))?;
        Some(self.idle.remove(position))
    }

    /// Lanes whose workers give way, and all.
    pub(super) fn giving_way(&self) -> (usize, usize) {
        let lanes = self.lanes.iter().flatten();
        (lanes.clone().filter(|lane| lane.gives_way()).count(), lanes.count())
    }

    /// The busy worker that will be free first, if that is soon.
    pub(super) fn pick_soon_free(&self, job: &Job, io_thread: usize, now: Instant) -> Option<usize> {
        let candidates = self.lanes.iter().enumerate().filter_map(|(index, lane)| {
            let lane = lane.as_ref().filter(|lane| lane.state.is_serving())?;
            let wait = lane.expected_wait(now).filter(|&wait| wait <= AHEAD)?;
            let has_place = lane.in_flight.len() < depth(lane, job.expected.is_short());
            has_place.then_some((lane.home != io_thread, wait, index))
        });
        candidates.min().map(|(_, _, index)| index)
    }
}

/// True if such a lane may be given a call now. Behind another one it is laid only where some wait in the queue.
pub(super) fn has_place(lane: &Lane, some_wait: bool, now: Instant) -> bool {
    let is_soon_free = || lane.expected_wait(now).is_some_and(|wait| wait <= AHEAD);
    let room = lane.in_flight.len() < depth(lane, true);
    lane.state.is_serving() && (lane.in_flight.is_empty() || room && some_wait && is_soon_free())
}

/// Calls that a lane may hold, with one more that is short or not.
fn depth(lane: &Lane, short: bool) -> usize {
    if short && lane.in_flight.are_short() { MOST } else { NEXT }
}

/// Takes calls back that would wait for longer than they were expected to when they were laid there. When to look again.
pub(super) fn spread(
    lane: &mut Lane,
    now: Instant,
    idle: bool,
    moved: &mut Vec<(Box<Job>, usize)>,
) -> Option<Duration> {
    if lane.in_flight.len() < 2 {
        return None;
    }
    // Twice the time for which calls are laid there: moving a call costs something too.
    let look = match lane.expected_wait(now) {
        Some(wait) if idle && wait <= 2 * PATIENCE => Duration::from_micros(PATIENCE),
        Some(wait) if !idle && wait <= 2 * AHEAD => Duration::from_micros(wait.min(1_000)),
        _ => {
            let home = lane.home;
            moved.extend(std::iter::from_fn(|| lane.take_back_waiting()).map(|job| (job, home)));
            return None;
        }
    };
    lane.holds_waiting_call().then_some(look.max(LOOK_AGAIN))
}
