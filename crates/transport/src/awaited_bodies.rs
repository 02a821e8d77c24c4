//! Events for a multiplexed worker, and those that wait until the bodies of their requests have arrived.

use crate::wire::{REQUEST_BODY_FD, WireRequest};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use zerocopy::{FromBytes, IntoBytes};

/// Requests that are begun and wait for their bodies, in the order in which they were sent.
#[derive(Debug, Default)]
pub(crate) struct AwaitedBodies {
    pub(crate) requests: VecDeque<TakenRequest>,
    /// Of these, so many have been asked for, from the first on.
    pub(crate) asked: usize,
    /// Events received meanwhile, to be delivered after them.
    pub(crate) later: VecDeque<Event>,
}

#[derive(Debug)]
pub enum Event {
    /// A request, begun.
    Request(TakenRequest),
    /// The response to a request is not wanted any more. The request may be over already.
    Cancel {
        /// The request.
        number: u64,
        /// One of `wire::CANCEL_*`.
        reason: u32,
    },
    /// No request follows: the worker ends with the last one it has.
    Stop,
}

/// A request in owned memory.
#[derive(Debug)]
pub struct TakenRequest {
    /// Its number on the lane.
    pub number: u64,
    /// The request as it lay in the ring; see `request_parts`.
    words: Vec<u64>,
    /// Its body, if that travels as a descriptor.
    pub body: Option<OwnedFd>,
}

impl AwaitedBodies {
    /// True if this has to wait until requests that were sent before it have their bodies.
    pub(crate) fn delays(&self, event: &Event) -> bool {
        match event {
            Event::Request(_) => false,
            Event::Cancel { number, .. } => self.requests.iter().any(|request| request.number == *number),
            Event::Stop => !self.requests.is_empty(),
        }
    }
}

impl TakenRequest {
    pub(crate) const fn new(number: u64, words: Vec<u64>) -> Self {
        Self { number, words, body: None }
    }

    pub(crate) fn awaits_body(&self) -> bool {
        WireRequest::ref_from_prefix(self.words.as_bytes())
            .is_ok_and(|(request, _)| request.flags & REQUEST_BODY_FD != 0)
    }

    /// The request's fixed head, with the rest behind it. Valid as long as `self`, also when that is moved.
    #[must_use]
    pub fn request(&self) -> *const WireRequest {
        self.words.as_ptr().cast()
    }

    /// The request's memory, to be given to `recycle`.
    #[must_use]
    pub fn into_memory(self) -> Vec<u64> {
        self.words
    }
}
