//! A worker's life as the server sees it: the states, what happens to a worker, and which of it leads where. This is the
//! only place where a state changes; the tests go through every pair.
//!
//! | state     | `Ready` | `Stop`   | `Condemn(why)`   | `Kill(why)`           |
//! |-----------|---------|----------|------------------|-----------------------|
//! | starting  | serving | draining | condemned, `why` | ending, `why`         |
//! | serving   | –       | draining | condemned, `why` | ending, `why`         |
//! | draining  | –       | –        | condemned, `why` | ending, `why`         |
//! | condemned | –       | –        | –                | ending, the first why |
//! | ending    | –       | –        | –                | –                     |

/// Where a worker is in its life.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum WorkerState {
    /// Forked, has not said that it is ready.
    #[default]
    Starting,
    /// Takes requests.
    Serving,
    /// Finishes the requests it has, then ends (reload, shrink, retire).
    Draining,
    /// Gets no more requests and will be killed for this reason, once it has told where its code is.
    Condemned(KillReason),
    /// Is being killed; whatever it still says does not count.
    Ending(KillReason),
}

/// Events of a worker. Its death is not among them: its lane goes then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkerEvent {
    /// It says that it is ready.
    Ready,
    /// It is to end after the requests it has.
    Stop,
    /// It is to be killed, but not yet.
    Condemn(KillReason),
    /// It is killed.
    Kill(KillReason),
}

/// Reason for killing a worker; decides the response to its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KillReason {
    /// Its request ran past the deadline.
    Deadline,
    /// Its request used more processor time than it may.
    CpuDeadline,
    /// It is multiplexed, and one of its requests did not end after its deadline; or it did not end itself.
    Stuck,
    /// It broke the lane's rules.
    Broken(String),
    /// The pool stops and the grace time is over.
    Stopping,
    /// It did not become ready in time.
    BootTimeout,
    /// The server's own reader of its lane panicked.
    Panicked,
    /// Its warm-up has left what a snapshot must not hold; the next one does without.
    WarmUp,
}

impl WorkerState {
    /// The state that an event leads to; `None`: it changes nothing here.
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

    /// Takes note of an event. False: nothing has changed.
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

    /// `true` if the worker takes requests or will: it was not told to end.
    pub(crate) const fn is_to_stay(&self) -> bool {
        matches!(self, Self::Starting | Self::Serving)
    }

    /// True if nothing counts any more that the worker says.
    pub(crate) const fn is_ending(&self) -> bool {
        matches!(self, Self::Ending(_))
    }

    /// Why it is or will be killed.
    pub(crate) const fn kill_reason(&self) -> Option<&KillReason> {
        match self {
            Self::Condemned(why) | Self::Ending(why) => Some(why),
            Self::Starting | Self::Serving | Self::Draining => None,
        }
    }

    /// As `status` shows it: that a worker is condemned shows as soon as it is killed.
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
    fn every_event_leads_where_the_table_says() {
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
    fn a_worker_that_was_told_to_end_never_serves_again() {
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
