//! The responses that have begun in one lane. A serial worker has one at a time. Frames of a multiplexed worker
//! alternate between responses: one response is current and the others are set aside.

use crate::lane_reader::frame_order::FrameOrder;
use crate::lane_reader::handle::Begun;
use crate::response::head::HeadParts;
use crate::response::sink::Sink;
use howdah_transport::RequestMap;
use std::time::Instant;

/// A response that has begun.
pub(super) struct OpenResponse {
    pub(super) number: u64,
    pub(super) sink: Sink,
    pub(super) received: Instant,
    pub(super) since: Instant,
    /// No worker was serving when its request arrived.
    pub(super) cold: bool,
    pub(super) order: FrameOrder,
    /// Collected parts of a head.
    pub(super) head: HeadParts,
    /// The front has not been notified of added data.
    pub(super) unseen: bool,
    /// The front gets no more data.
    pub(super) ended: bool,
}

/// The current response and the ones set aside.
pub(super) struct OpenResponses {
    /// The response whose frames are arriving.
    pub(super) current: Option<OpenResponse>,
    /// Other responses that have begun; only for multiplexed workers.
    others: Option<OtherResponses>,
}

#[derive(Default)]
struct OtherResponses {
    open: RequestMap<OpenResponse>,
    /// Responses whose front has not been notified of data in this batch.
    unseen: Vec<u64>,
}

impl OpenResponses {
    pub(super) fn new(multiplexed: bool) -> Self {
        Self { current: None, others: multiplexed.then(OtherResponses::default) }
    }

    /// True if frames of different responses may alternate.
    pub(super) const fn are_multiplexed(&self) -> bool {
        self.others.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.current.is_none() && self.others.as_ref().is_none_or(|others| others.open.is_empty())
    }

    /// Makes the response to request `number` the current one; `begin` finds the request if its response has not begun.
    pub(super) fn turn_to(&mut self, number: u64, begin: impl FnOnce() -> Option<Begun>) -> Result<(), String> {
        let open = match &mut self.others {
            Some(others) => {
                if let Some(last) = self.current.take() {
                    others.put(last)?;
                }
                others.open.remove(&number)
            }
            None => None,
        };
        self.current = Some(match open {
            Some(open) => open,
            None => OpenResponse::new(number, begin().ok_or("responded to a request that it does not have")?),
        });
        Ok(())
    }

    /// `true` if the current response has unnotified data and is not complete.
    pub(super) fn is_within_response(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.unseen && !current.ended)
    }

    /// Notifies fronts of added data. Returns `true` if the current response's front was notified.
    pub(super) fn show(&mut self) -> bool {
        let notified = self.current.as_mut().is_some_and(OpenResponse::show);
        if let Some(others) = &mut self.others {
            for number in others.unseen.drain(..) {
                others.open.get_mut(&number).map(OpenResponse::show);
            }
        }
        notified
    }

    /// True if the response to this request is complete or was given up.
    pub(super) fn has_ended(&self, number: u64) -> bool {
        let current = self.current.as_ref().filter(|current| current.number == number);
        let open = current.or_else(|| self.others.as_ref().and_then(|others| others.open.get(&number)));
        open.is_some_and(|open| open.ended)
    }
}

impl OtherResponses {
    fn put(&mut self, last: OpenResponse) -> Result<(), String> {
        // Otherwise a hostile worker could have a long head or order collected for each of its requests.
        if last.order.within_parts() {
            return Err("interrupted a head or an order with another request's frame".into());
        }
        if last.unseen {
            self.unseen.push(last.number);
        }
        self.open.insert(last.number, last);
        Ok(())
    }
}

impl OpenResponse {
    fn new(number: u64, Begun { sink, received, since, cold }: Begun) -> Self {
        let (order, head) = (FrameOrder::default(), HeadParts::default());
        Self { number, sink, received, since, cold, order, head, unseen: false, ended: false }
    }

    /// Notifies the front of added data; returns false if there was none.
    fn show(&mut self) -> bool {
        let unseen = std::mem::take(&mut self.unseen);
        if unseen {
            self.sink.wake();
        }
        unseen
    }
}
