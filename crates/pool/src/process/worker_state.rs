//! A worker's states as the server sees them, its events, and the transitions. This is the only place where a state
//! changes; the tests cover every pair.
//!
//! | state     | `Ready` | `Stop`   | `Condemn(why)`   | `Kill(why)`           |
//! |-----------|---------|----------|------------------|-----------------------|
//! | starting  | serving | draining | condemned, `why` | ending, `why`         |
//! | serving   | –       | draining | condemned, `why` | ending, `why`         |
//! | draining  | –       | –        | condemned, `why` | ending, `why`         |
//! | condemned | –       | –        | –                | ending, the first why |
//! | ending    | –       | –        | –                | –                     |

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum WorkerState {
    /// Forked, but not ready yet.
    #[default]
    Starting,
    /// Takes requests.
    Serving,
    /// Finishes the requests it has, then ends (reload, shrink, retire, stop).
    Draining,
    /// Gets no more requests and will be killed for this reason, once it was asked for its stack.
    Condemned(KillReason),
    /// Is being killed; its further messages are ignored.
    Ending(KillReason),
}

/// Events of a worker, except its death, which removes its lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkerEvent {
    Ready,
    /// The worker is to exit after its current requests.
    Stop,
    /// The worker will be killed once it was asked for its stack.
    Condemn(KillReason),
    /// The worker is killed now.
    Kill(KillReason),
}

/// Reason for killing a worker; decides the response to its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KillReason {
    /// The worker's request ran past the deadline.
    Deadline,
    /// The worker's request exceeded its limit on processor time.
    CpuDeadline,
    /// A multiplexed worker's request did not end after its deadline, or a worker did not exit.
    Stuck,
    /// The worker broke the lane's protocol. The text completes the message `worker PID: …`.
    Broken(String),
    /// The pool stops and the grace time is over or the worker was booting, the worker's generation was given up, or
    /// its lane had no room for the order to stop.
    Stopping,
    /// The worker did not become ready in time.
    BootTimeout,
    /// The server's reader of the lane panicked.
    Panicked,
    /// The warm-up left state that a snapshot must not hold; the next worker skips the warm-up.
    WarmUp,
}

impl WorkerState {
    /// The next state after an event; `None` if the event changes nothing.
    fn after(&self, event: WorkerEvent) -> Option<Self> {
        use WorkerEvent::{Condemn, Kill, Ready, Stop};
        use WorkerState::{Condemned, Draining, Ending, Serving, Starting};
        match (self, event) {
            (Starting, Ready) => Some(Serving),
            (Starting | Serving, Stop) => Some(Draining),
            (Starting | Serving | Draining, Condemn(why)) => Some(Condemned(why)),
            (Starting | Serving | Draining, Kill(why)) => Some(Ending(why)),
            (Condemned(first), Kill(_)) => Some(Ending(first.clone())),
            _ => None,
        }
    }

    /// Applies an event. Returns false if nothing changed.
    pub(crate) fn note(&mut self, event: WorkerEvent) -> bool {
        let next = self.after(event);
        let changes = next.is_some();
        if let Some(next) = next {
            *self = next;
        }
        changes
    }

    pub(crate) const fn is_starting(&self) -> bool {
        matches!(self, Self::Starting)
    }

    /// True if the worker takes requests.
    pub(crate) const fn is_serving(&self) -> bool {
        matches!(self, Self::Serving)
    }

    /// `true` if the worker takes requests or will, and was not asked to exit.
    pub(crate) const fn is_to_stay(&self) -> bool {
        matches!(self, Self::Starting | Self::Serving)
    }

    /// True if the worker's messages are ignored.
    pub(crate) const fn is_ending(&self) -> bool {
        matches!(self, Self::Ending(_))
    }

    /// The reason why the worker is or will be killed.
    pub(crate) const fn kill_reason(&self) -> Option<&KillReason> {
        match self {
            Self::Condemned(why) | Self::Ending(why) => Some(why),
            Self::Starting | Self::Serving | Self::Draining => None,
        }
    }

    /// Name in `status`, where a condemned worker counts as draining.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Draining | Self::Condemned(_) => "draining",
            Self::Ending(_) => "ending",
        }
    }
}

impl KillReason {
    /// The label in metrics.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::CpuDeadline => "cpu_deadline",
            Self::Stuck => "stuck",
            Self::Broken(_) => "broken",
            Self::Stopping => "stopping",
            Self::BootTimeout => "boot_timeout",
            Self::Panicked => "panicked",
            Self::WarmUp => "warm_up",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KillReason::{Deadline, Stopping, Stuck};
    use super::WorkerEvent::{Condemn, Kill, Ready, Stop};
    use super::WorkerState::{Condemned, Draining, Ending, Serving, Starting};

    #[test]
    fn every_event_follows_the_table() {
        let events = [Ready, Stop, Condemn(Stuck), Kill(Stopping)];
        let table = [
            (Starting, [Some(Serving), Some(Draining), Some(Condemned(Stuck)), Some(Ending(Stopping))]),
            (Serving, [None, Some(Draining), Some(Condemned(Stuck)), Some(Ending(Stopping))]),
            (Draining, [None, None, Some(Condemned(Stuck)), Some(Ending(Stopping))]),
            (Condemned(Deadline), [None, None, None, Some(Ending(Deadline))]),
            (Ending(Deadline), [None, None, None, None]),
        ];
        for (state, row) in table {
            for (event, expected) in events.iter().zip(row) {
                let mut after = state.clone();
                assert_eq!(after.note(event.clone()), expected.is_some(), "{state:?}, {event:?}");
                assert_eq!(after, expected.unwrap_or_else(|| state.clone()), "{state:?}, {event:?}");
            }
        }
    }

    #[test]
    fn a_worker_ordered_to_end_never_serves_again() {
        for state in [Draining, Condemned(Deadline), Ending(Deadline)] {
            for event in [Ready, Stop, Condemn(Stuck), Kill(Stopping)] {
                let mut after = state.clone();
                after.note(event.clone());
                assert!(!after.is_to_stay(), "{state:?}, {event:?}");
            }
        }
    }

    #[test]
    fn the_first_reason_is_the_one_that_counts() {
        let mut state = Serving;
        assert!(state.note(Condemn(Deadline)) && !state.note(Condemn(Stuck)) && state.note(Kill(Stopping)));
        assert_eq!((state.kill_reason(), state.is_ending()), (Some(&Deadline), true));
    }
}
