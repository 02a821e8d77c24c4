//! The lane of a worker that runs many requests at once and ends them in any order. The server never waits for it:
//! messages without room in its ring are kept, and requests behind another that it does not take are taken back.

use crate::lane::requests::LaneRequests;
use howdah_transport::wire::{CANCEL_CLIENT_GONE, CANCEL_DEADLINE};
use howdah_transport::{RequestSender, SendError};
use std::time::{Duration, Instant};

/// State of multiplexed lanes only.
#[derive(Debug)]
pub(crate) struct MultiplexedLane {
    /// Maximum number of requests in the lane.
    depth: usize,
    /// The request ring had no room for the last request or message.
    full: bool,
    /// Requests were taken back because the worker did not take them in time. Reset once it ends a request or has taken
    /// everything.
    pub(crate) stuck: bool,
    /// The first request that the worker has not taken, and since when it has been the first.
    untaken: Option<(u64, Instant)>,
    unsent: Vec<Unsent>,
}

/// Notices that did not fit into the request ring but must reach the worker.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unsent {
    ClientGone(u64),
    Overdue(u64),
    Stop,
}

impl MultiplexedLane {
    pub(super) const fn new(depth: usize) -> Self {
        Self { depth, full: false, stuck: false, untaken: None, unsent: Vec::new() }
    }

    pub(super) const fn depth(&self) -> usize {
        self.depth
    }

    /// True if there is room for another request.
    pub(super) fn has_place(&self, requests: &LaneRequests) -> bool {
        requests.len() < self.depth && !self.full && !self.stuck
    }

    /// Notes that the request ring had no room for a request.
    pub(super) fn note_full(&mut self) {
        self.full = true;
    }

    /// Notes the end of a request: the worker is not stuck.
    pub(super) fn note_done(&mut self) {
        self.stuck = false;
    }

    /// Clears `stuck` if the worker has taken everything it was sent.
    pub(super) fn check_stuck(&mut self, sender: &RequestSender) {
        self.stuck = self.stuck && !sender.is_empty();
    }

    /// Time for which the worker has taken none of the waiting requests; `None` if none wait.
    pub(super) fn untaken_for(
        &mut self,
        requests: &LaneRequests,
        sender: &RequestSender,
        now: Instant,
    ) -> Option<Duration> {
        let first = requests.iter().rev().take_while(|request| !request.is_begun(sender)).last();
        let Some((number, sent)) = first.map(|request| (request.number, request.since)) else {
            self.untaken = None;
            return None;
        };
        let since = match self.untaken {
            Some((other, since)) if other == number => since,
            // The worker has taken some since the last check: it is slow but not stuck.
            Some(_) => now,
            None => sent,
        };
        self.untaken = Some((number, since));
        Some(now.saturating_duration_since(since))
    }

    /// True if a message or request waits for room in the request ring.
    pub(super) const fn wants_room(&self) -> bool {
        self.full || !self.unsent.is_empty()
    }

    pub(super) fn send_or_keep(&mut self, message: Unsent, sender: &mut RequestSender) -> Result<(), SendError> {
        self.unsent.push(message);
        self.send_kept(sender)
    }

    /// Sends the kept messages. An error means that the lane is broken.
    pub(super) fn send_kept(&mut self, sender: &mut RequestSender) -> Result<(), SendError> {
        self.full = false;
        while let Some(&message) = self.unsent.first() {
            let sent = match message {
                Unsent::ClientGone(number) => sender.send_cancel(number, CANCEL_CLIENT_GONE),
                Unsent::Overdue(number) => sender.send_cancel(number, CANCEL_DEADLINE),
                Unsent::Stop => sender.send_stop(),
            };
            match sent {
                Ok(()) => self.unsent.remove(0),
                Err(SendError::Full) => {
                    self.full = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }
}
