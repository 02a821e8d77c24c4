//! Multiplexed lanes: choice of the lane for a request, and recovery of requests from a worker that computes.
//!
//! A request that computes holds up all others of its worker, so other requests avoid that worker. While other requests
//! arrive, computing ones share half of the workers, provided these are at least as many as processors: then sharing
//! costs computing requests nothing.

use super::{MAX_PACKED, Scheduler, TAKE_BACK_AFTER};
use crate::lane::Lane;
use crate::request::estimate::ExpectedDuration;
use crate::request::pending::Pending;
use std::time::{Duration, Instant};

/// A worker whose oldest request is older than this computes, or waits for something slow. In microseconds.
const FRESH_MICROS: u128 = 2_000;

/// Interval at which lanes with waiting requests are checked.
pub(super) const POLL_INTERVAL: Duration = Duration::from_micros(TAKE_BACK_AFTER.as_micros() as u64 / 2);

/// True if a short request may be put behind those of this lane.
pub(super) fn has_place_behind(lane: &Lane, now: Instant) -> bool {
    lane.has_place()
        && (1..MAX_PACKED).contains(&lane.in_flight.len())
        && lane.in_flight.are_short()
        && lane.in_flight.front_age(now).as_micros() < FRESH_MICROS
}

impl Scheduler {
    /// Sends the request to a lane with room, if possible to the one with the fewest requests and none that computes;
    /// returns the request if no lane may take it.
    pub(super) fn place_among_others(
        &mut self,
        mut pending: Box<Pending>,
        io_thread: usize,
        now: Instant,
    ) -> Option<Box<Pending>> {
        loop {
            let Some(index) = self.pick_among(pending.expected, io_thread, now) else { return Some(pending) };
            self.idle.retain(|&i| i != index);
            pending = self.send_behind(index, pending, now)?;
        }
    }

    fn pick_among(&self, expected: ExpectedDuration, io_thread: usize, now: Instant) -> Option<usize> {
        let together = expected.computes() && self.are_kept_together(now);
        let from_the_end = expected.computes() && self.precedence.is_mixed(now);
        let candidates = self.lanes.iter().enumerate().filter_map(|(index, lane)| {
            let lane = lane.as_ref().filter(|lane| lane.has_place())?;
            let computing = lane.in_flight.computing();
            if together && computing == 0 {
                return None;
            }
            let avoided = computing > 0 && !together;
            let rivals = if expected.computes() { computing } else { 0 };
            // A worker that has not taken its last request is busy with another.
            let busy = lane.holds_waiting_request();
            if from_the_end {
                // Always prefer the same workers; otherwise every worker would sometimes have computing requests.
                return Some((avoided, rivals, false, 0, false, usize::MAX - index, index));
            }
            Some((avoided, rivals, busy, lane.in_flight.len(), lane.home != io_thread, index, index))
        });
        candidates.min().map(|(.., index)| index)
    }

    /// True if computing requests go only to workers that already compute.
    pub(super) fn are_kept_together(&self, now: Instant) -> bool {
        self.multiplexed && self.precedence.is_mixed(now) && self.half_compute()
    }

    /// True if half of the workers have computing requests, and these workers could keep all processors busy.
    fn half_compute(&self) -> bool {
        let serving = || self.lanes.iter().flatten().filter(|lane| lane.state.is_serving());
        let computing = serving().filter(|lane| lane.in_flight.computing() > 0).count();
        computing >= self.processors && computing * 2 >= serving().count()
    }

    /// Retries what a lane had no room for, as there may be room again.
    pub(crate) fn room_made(&mut self, index: usize) {
        let Some(lane) = self.lanes.get_mut(index).and_then(Option::as_mut) else { return };
        if lane.wants_room() {
            lane.send_kept();
            self.refill(index, Instant::now());
        }
    }

    /// Called once per tick: notifies workers of disconnected clients, takes back requests that a busy worker does not
    /// take, and sends waiting requests to lanes with room. `patience` is `TAKE_BACK_AFTER`.
    pub(crate) fn sweep(&mut self, patience: Duration) {
        if !self.multiplexed {
            return;
        }
        let now = Instant::now();
        let mut untaken = Vec::new();
        for lane in self.lanes.iter_mut().flatten() {
            take_back_untaken(lane, now, patience, &mut untaken);
            let gone: Vec<u64> =
                lane.in_flight.iter().filter(|c| !c.abort_sent && c.pending.sink.is_gone()).map(|c| c.number).collect();
            for number in gone {
                lane.let_go(number);
            }
        }
        for (pending, home) in untaken {
            self.resubmit(pending, home, now);
        }
        for index in 0..self.lanes.len() {
            if let Some(lane) = self.lanes[index].as_mut() {
                lane.check_stuck();
                lane.send_kept();
                self.refill(index, now);
            }
        }
    }
}

/// Takes back requests that the worker has not taken in time. Returns the time until the next check.
pub(super) fn spread(
    lane: &mut Lane,
    now: Instant,
    patience: Duration,
    moved: &mut Vec<(Box<Pending>, usize)>,
) -> Option<Duration> {
    take_back_untaken(lane, now, patience, moved);
    (lane.check_stuck() || lane.holds_waiting_request()).then_some(POLL_INTERVAL)
}

/// Takes back requests behind another one from a worker that has taken none for longer than `patience`: one of its
/// requests computes.
fn take_back_untaken(lane: &mut Lane, now: Instant, patience: Duration, to: &mut Vec<(Box<Pending>, usize)>) {
    if lane.in_flight.len() > 1 && lane.untaken_for(now).is_some_and(|time| time > patience) {
        while let Some(pending) = lane.take_back_waiting() {
            lane.note_stuck();
            to.push((pending, lane.home));
        }
    }
}
