//! What becomes of the calls of a worker that has died: which of them may have killed it, which are run again, and how
//! often.
//!
//! **A number in shared memory is a claim.** What the worker's words say about who ran is believed only where that cannot
//! make a call run more often than its pool allows: the call that a worker takes first counts as begun whatever they say,
//! and each way to be run again has a bound of its own.

use crate::calls::InFlight;
use crate::fault::{Fault, FaultKind};
use crate::job::Job;
use crate::lane::Lane;
use crate::quarantine;
use crate::shared::Shared;
use crate::worker_state::KillReason;
use std::time::Instant;

/// How often a call is given to another worker because its own died before it had begun it: a call that may not be run
/// twice, and one that may.
const MAX_NOT_BEGUN: [u32; 2] = [2, 8];
/// How often a call is run again if it was the code of other calls that killed the worker, or the zygote died.
const MAX_BYSTANDER: u32 = 8;

/// What a call had to do with the death of its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The worker had not begun it.
    NotBegun,
    /// It waited while the code of another call ran.
    Bystander,
    /// Its worker was ended because the zygote had died. A script may have killed that: so it is noted, but it does not count as one
    /// that kills its worker.
    Orphaned,
    /// Its own code ran, or nobody knows whose.
    Suspect,
    /// Its own code ran, and had run past PHP's time limit, at the second of which PHP ends the process.
    TimedOut,
}

/// A worker's death.
#[derive(Debug)]
pub(crate) struct Death<'a> {
    pub(crate) pid: u32,
    pub(crate) home: usize,
    /// Why the server killed it, if it did.
    pub(crate) reason: Option<&'a KillReason>,
}

/// What each call of a dead worker had to do with its death, in the order of the calls.
pub(crate) fn parts(lane: &Lane) -> Vec<Part> {
    let selected = lane.selected().filter(|&number| lane.in_flight.get(number).is_some());
    let orphaned = lane.has_lost_its_zygote();
    let part = |(at, call): (usize, &InFlight)| {
        if !lane.is_begun(call) && !lane.takes_first(at) {
            Part::NotBegun
        } else if lane.is_timed_out(call.number) {
            Part::TimedOut
        } else if orphaned {
            Part::Orphaned
        } else if selected.is_some_and(|number| number != call.number) {
            Part::Bystander
        } else {
            Part::Suspect
        }
    };
    lane.in_flight.iter().enumerate().map(part).collect()
}

impl Death<'_> {
    /// Decides about a call whose worker has died: run it again, or fail it.
    pub(crate) fn rescue(&self, pool: &Shared, job: Box<Job>, part: Part) {
        let refused = self.note_suspect(pool, &job, part);
        if job.sink.is_gone() {
            return;
        }
        if !refused && self.may_run_again(pool, &job, part) {
            self.run_again(pool, job, part);
            return;
        }
        let fault = self.fault(part);
        if fault.kind != FaultKind::Deadline {
            let id = job.call.id;
            tracing::error!(pool = pool.name(), pid = self.pid, request = %id, label = job.call.label(), "{fault}");
        }
        job.sink.fail(fault);
    }

    /// Takes note of a call that may have killed its worker. True: calls like it are refused.
    fn note_suspect(&self, pool: &Shared, job: &Job, part: Part) -> bool {
        let by_itself = matches!(self.reason, None | Some(KillReason::Broken(_)));
        if !matches!(part, Part::Suspect | Part::Orphaned) || !by_itself {
            return false;
        }
        let path = quarantine::key(job.call.head.method(), job.call.head.uri());
        let now = Instant::now();
        let mut scheduler = pool.lock();
        let pause = scheduler.quarantine.note_call(path.clone(), now);
        let refused = scheduler.quarantine.refuses(&path, now).is_some();
        if pause.is_some() {
            // Those that wait would be next.
            let is_same = |job: &Job| quarantine::key(job.call.head.method(), job.call.head.uri()) == path;
            while let Some(waiting) = scheduler.queue.remove_one(is_same) {
                waiting.sink.fail(Fault::new(FaultKind::Quarantined));
            }
        }
        drop(scheduler);
        if let Some(pause) = pause {
            let text = "requests for this path kill their workers: answered 502 at once for a while";
            tracing::warn!(pool = pool.name(), path, seconds = pause.as_secs(), "{text}");
        }
        refused
    }

    fn may_run_again(&self, pool: &Shared, job: &Job, part: Part) -> bool {
        if part == Part::NotBegun {
            return job.resubmitted < MAX_NOT_BEGUN[usize::from(job.call.repeatable)];
        }
        let ends_calls =
            matches!(self.reason, Some(KillReason::Deadline | KillReason::Stopping | KillReason::Panicked));
        let allowed = match part {
            Part::TimedOut => false,
            Part::Bystander | Part::Orphaned => job.resubmitted < MAX_BYSTANDER && pool.config().replay > 0,
            _ => job.killed < pool.config().replay && job.resubmitted < MAX_BYSTANDER,
        };
        allowed && job.call.repeatable && !ends_calls && !job.sink.is_delivered()
    }

    fn run_again(&self, pool: &Shared, mut job: Box<Job>, part: Part) {
        let why = match part {
            Part::NotBegun => "not_begun",
            Part::Bystander | Part::Orphaned => "bystander",
            Part::Suspect | Part::TimedOut => "worker_died",
        };
        pool.metrics().resubmitted.inc(why);
        job.resubmitted += 1;
        if part != Part::NotBegun {
            let (id, label) = (job.call.id, job.call.label());
            tracing::warn!(pool = pool.name(), pid = self.pid, request = %id, label, "worker died; the call is run again");
            pool.metrics().replays.inc();
            job.sink.reset();
            job.killed += u32::from(part == Part::Suspect);
            // It waits anew: the time it has run does not count as waiting.
            job.entered = Instant::now();
        }
        pool.lock().resubmit(job, self.home, Instant::now());
    }

    /// What the client of a call is told that is not run again.
    fn fault(&self, part: Part) -> Fault {
        let pid = self.pid;
        match self.reason {
            Some(KillReason::Deadline) => Fault::new(FaultKind::Deadline),
            Some(KillReason::Broken(what)) => Fault::with(FaultKind::WorkerBroken, format!("worker {pid}: {what}")),
            Some(KillReason::Panicked) => Fault::with(
                FaultKind::WorkerBroken,
                format!("worker {pid}: its answers made the server's reader panic"),
            ),
            Some(KillReason::Stopping) => Fault::new(FaultKind::Stopping),
            Some(KillReason::Stuck) => {
                Fault::with(FaultKind::WorkerDied, format!("worker {pid} was killed: another call did not end"))
            }
            Some(KillReason::BootTimeout | KillReason::WarmUp) | None if part == Part::TimedOut => Fault::with(
                FaultKind::WorkerDied,
                format!("worker {pid} ended itself: the script ran past max_execution_time and then past hard_timeout"),
            ),
            Some(KillReason::BootTimeout | KillReason::WarmUp) | None => {
                Fault::with(FaultKind::WorkerDied, format!("worker {pid} died during the call"))
            }
        }
    }
}
