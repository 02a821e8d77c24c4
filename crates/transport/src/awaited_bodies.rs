//! Events for a multiplexed worker. An event that concerns a request whose body has not arrived waits here.

use crate::control_socket::Message;
use crate::wire::{REQUEST_BODY_FD, WireRequest};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use zerocopy::{FromBytes, IntoBytes};

/// Begun requests that wait for their bodies, in the order in which they were sent.
#[derive(Debug, Default)]
pub(crate) struct AwaitedBodies {
    pub(crate) requests: VecDeque<TakenRequest>,
    /// Number of requests, counted from the first, whose bodies have been requested from the server.
    pub(crate) asked: usize,
    /// Bodies received while the worker waited for an answer.
    pub(crate) received: VecDeque<(Message, Option<OwnedFd>)>,
    /// Events received in the meantime; delivered once `delays` no longer holds for them.
    pub(crate) later: VecDeque<Event>,
}

#[derive(Debug)]
pub enum Event {
    /// A request, already marked as begun.
    Request(TakenRequest),
    /// The response to this request is no longer wanted. The request may have ended already.
    Cancel {
        /// The request.
        number: u64,
        /// One of `wire::CANCEL_*`.
        reason: u32,
    },
    /// The text of the answer to the oldest unanswered question.
    Text(OwnedFd),
    /// No more requests follow: the worker ends after its last one.
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
    /// True if the event must wait until requests that were sent before it have their bodies.
    pub(crate) fn delays(&self, event: &Event) -> bool {
        match event {
            Event::Request(_) | Event::Text(_) => false,
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

    /// The fixed head, followed by the rest of the request. Valid while `self` lives, even if `self` moves.
    pub fn request(&self) -> *const WireRequest {
        self.words.as_ptr().cast()
    }

    /// The request's memory, to be passed to `recycle`.
    pub fn into_memory(self) -> Vec<u64> {
        self.words
    }
}
