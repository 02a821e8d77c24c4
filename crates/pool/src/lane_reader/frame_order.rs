//! The order of a worker's frames as one table: the kinds that may follow each other in the response to a request, and
//! limits on informational responses. A worker that breaks the order loses its lane. So anything that it sends after a
//! response's head reaches the client only as a part of that response's body.
//!
//! | at | interim | head | body | end | done | live |
//! |---|---|---|---|---|---|---|
//! | waiting | waiting, or in its parts | body, or in its parts | - | - | over, unanswered | waiting |
//! | in parts of an informational response | as above | - | - | - | - | - |
//! | in parts of the head | - | as above | - | - | - | - |
//! | body | - | - | body | ended | - | body |
//! | ended | - | - | - | - | over | ended |
//!
//! An order for connections and channels (live) may come in parts too; until its last part no other frame may come.

use howdah_transport::wire::FrameKind;

/// Limits on one request's informational responses that are passed on: number and bytes. HTTP lets a server drop them.
const MAX_INTERIM: u32 = 64;
const MAX_INTERIM_BYTES: usize = 256 * 1024;

/// Progress of a response, according to the worker's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    /// At most whole informational responses have arrived.
    #[default]
    Waiting,
    /// A part of an informational response has arrived.
    InterimParts,
    /// A part of the head has arrived.
    HeadParts,
    /// The head has arrived.
    Body,
    /// The response is complete.
    Ended,
    /// The request is done.
    Over,
}

impl Stage {
    /// The stage after a frame of this kind; `None` if the frame is not allowed. `more`: another part of it follows.
    fn after(self, kind: FrameKind, more: bool) -> Option<Self> {
        Some(match (self, kind) {
            (Self::Waiting | Self::InterimParts, FrameKind::Interim) if more => Self::InterimParts,
            (Self::Waiting | Self::InterimParts, FrameKind::Interim) => Self::Waiting,
            (Self::Waiting | Self::HeadParts, FrameKind::Head) if more => Self::HeadParts,
            (Self::Waiting | Self::HeadParts, FrameKind::Head) => Self::Body,
            (Self::Body, FrameKind::Body) => Self::Body,
            (Self::Waiting | Self::Body | Self::Ended, FrameKind::Live) => self,
            (Self::Body, FrameKind::End) => Self::Ended,
            // Done without a response: the client gets an error.
            (Self::Waiting | Self::Ended, FrameKind::Done) => Self::Over,
            _ => return None,
        })
    }
}

/// The frames of one request so far.
#[derive(Debug, Default)]
pub(crate) struct FrameOrder {
    stage: Stage,
    interim: u32,
    interim_bytes: usize,
    /// A part of an order has arrived.
    live_parts: bool,
    /// A flush was requested, and no data has arrived since.
    flushed: bool,
}

impl FrameOrder {
    /// Advances by one frame. An error means that the worker broke the protocol.
    pub(crate) fn note(&mut self, kind: FrameKind, more: bool) -> Result<(), &'static str> {
        if self.live_parts && kind != FrameKind::Live {
            return Err("interrupted an order for connections with another frame");
        }
        let next = self.stage.after(kind, more).ok_or(match kind {
            FrameKind::Live => "sent an order for connections in the middle of a head",
            FrameKind::Interim => "sent an informational response after the head",
            FrameKind::Head => "sent a second head",
            FrameKind::Body => "sent a body without a head, or after its end",
            FrameKind::End => "ended a response without a head",
            _ => "ended a request in the middle of its response",
        })?;
        self.stage = next;
        self.live_parts = more && kind == FrameKind::Live;
        Ok(())
    }

    /// True in the middle of a head, an informational response or an order.
    pub(crate) fn within_parts(&self) -> bool {
        self.live_parts || matches!(self.stage, Stage::InterimParts | Stage::HeadParts)
    }

    /// Counts a frame of an informational response; false if that exceeds the limits.
    pub(crate) fn takes_interim(&mut self, bytes: usize, more: bool) -> bool {
        self.interim_bytes = self.interim_bytes.saturating_add(bytes);
        self.interim = self.interim.saturating_add(u32::from(!more));
        self.interim <= MAX_INTERIM && self.interim_bytes <= MAX_INTERIM_BYTES
    }

    /// `true` if a frame of the body adds data or a new flush.
    pub(crate) fn is_useful(&mut self, empty: bool, flush: bool) -> bool {
        let new = !empty || (flush && !self.flushed);
        self.flushed = flush || (self.flushed && empty);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FrameKind::{Body, Done, End, Head, Interim, Live};

    fn follow(frames: &[(FrameKind, bool)]) -> Result<FrameOrder, usize> {
        let mut order = FrameOrder::default();
        for (at, &(kind, more)) in frames.iter().enumerate() {
            order.note(kind, more).map_err(|_| at)?;
        }
        Ok(order)
    }

    #[test]
    fn frames_of_honest_workers_are_in_order() {
        let (last, part) = (false, true);
        for frames in [
            &[(Head, last), (End, last), (Done, last)][..],
            &[(Interim, part), (Interim, last), (Interim, last), (Head, part), (Head, part), (Head, last)],
            &[(Head, last), (Body, last), (Body, last), (End, last), (Done, last)],
            &[(Done, last)],
            &[(Live, part), (Live, last), (Interim, last), (Live, last), (Head, last), (Live, last), (Body, last)],
            &[(Head, last), (End, last), (Live, part), (Live, part), (Live, last), (Done, last)],
        ] {
            assert!(follow(frames).is_ok(), "{frames:?}");
        }
    }

    #[test]
    fn every_other_order_is_refused_at_its_first_error() {
        let last = false;
        let all = [Interim, Head, Body, End, Done, Live];
        // (frames so far, kinds that may follow)
        for (before, legal) in [
            (&[][..], &[Interim, Head, Done, Live][..]),
            (&[(Interim, last)], &[Interim, Head, Done, Live]),
            (&[(Interim, true)], &[Interim]),
            (&[(Head, true)], &[Head]),
            (&[(Head, last)], &[Body, End, Live]),
            (&[(Head, last), (Body, last)], &[Body, End, Live]),
            (&[(Head, last), (End, last)], &[Done, Live]),
            (&[(Live, last)], &[Interim, Head, Done, Live]),
            (&[(Live, true)], &[Live]),
            (&[(Head, last), (Live, true)], &[Live]),
            (&[(Head, last), (End, last), (Live, true)], &[Live]),
            (&[(Head, last), (End, last), (Done, last)], &[]),
            (&[(Done, last)], &[]),
        ] {
            for kind in all {
                let mut frames = before.to_vec();
                frames.push((kind, last));
                let expected = if legal.contains(&kind) { Ok(()) } else { Err(before.len()) };
                assert_eq!(follow(&frames).map(|_| ()), expected, "{frames:?}");
            }
        }
        for kind in [FrameKind::Request, FrameKind::Pad, FrameKind::Ready, FrameKind::Log, FrameKind::GiveBack] {
            assert!(follow(&[(kind, last)]).is_err(), "{kind:?}");
        }
    }

    #[test]
    fn informational_responses_are_limited_in_number_and_bytes() {
        let mut order = FrameOrder::default();
        assert_eq!((0..200).filter(|_| order.takes_interim(10, false)).count(), MAX_INTERIM as usize);
        let mut order = FrameOrder::default();
        assert_eq!((0..200).filter(|_| order.takes_interim(MAX_INTERIM_BYTES / 10, true)).count(), 10);
    }

    #[test]
    fn consecutive_flushes_count_as_one() {
        let mut order = FrameOrder::default();
        let useful =
            [(false, false), (true, true), (true, true), (true, false), (true, true), (false, false), (true, true)]
                .map(|(empty, flush)| order.is_useful(empty, flush));
        assert_eq!(useful, [true, true, false, false, false, true, true]);
    }
}
