//! Decides about the requests of a dead worker: which may have killed it, which are run again, and how often.
//!
//! **A number in shared memory is a claim.** The worker's reports about running requests are trusted only within
//! limits: the request that a worker takes first always counts as begun, and each reason to run a request again has a
//! maximum.

use crate::fault::{Fault, FaultKind};
use crate::lane::Lane;
use crate::lane::requests::InFlight;
use crate::process::end::Death;
use crate::process::event::Event;
use crate::process::worker_state::KillReason;
use crate::queue::quarantine;
use crate::request::pending::Pending;
use crate::shared::Shared;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A request that its dead worker had not begun moves to another worker unless it has moved this often already, for any
/// reason: for requests that may not run twice, and for those that may.
const MAX_NOT_BEGUN: [u32; 2] = [2, 8];
/// A begun request is not run again once it has moved this often, for any reason.
const MAX_BYSTANDER: u32 = 8;
/// Pause before a request whose code was running in two dead workers goes to another. Workers may die together, with
/// their zygote or for lack of memory, and their deaths are noticed one by one: without a pause the third worker could
/// already be dead too.
const THIRD_TRY_DELAY: Duration = Duration::from_millis(20);

/// A request's part in the death of its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Involvement {
    /// The worker had not begun the request.
    NotBegun,
    /// The request waited while the code of another one ran.
    Bystander,
    /// The worker was ended because the zygote had died. A script may have killed the zygote, so the request counts for
    /// quarantine, but not for `replay`.
    Orphaned,
    /// The request's code was running, or may have been.
    Suspect,
    /// The request's code ran past `max_execution_time`. After `hard_timeout` more, PHP ends the process.
    TimedOut,
}

/// Each request's part in the death of its worker, in the order of the requests.
pub(crate) fn parts(lane: &Lane) -> Vec<Involvement> {
    let selected = lane.selected().filter(|&number| lane.in_flight.get(number).is_some());
    let orphaned = lane.has_lost_its_zygote();
    let part = |(at, request): (usize, &InFlight)| {
        if !lane.is_begun(request) && !lane.takes_first(at) {
            Involvement::NotBegun
        } else if lane.is_timed_out(request.number) {
            Involvement::TimedOut
        } else if orphaned {
            Involvement::Orphaned
        } else if selected.is_some_and(|number| number != request.number) {
            Involvement::Bystander
        } else {
            Involvement::Suspect
        }
    };
    lane.in_flight.iter().enumerate().map(part).collect()
}

impl Death {
    /// Decides about a request whose worker has died: run it again, or fail it.
    pub(crate) fn rescue(&self, pool: &Arc<Shared>, pending: Box<Pending>, part: Involvement) {
        let refused = self.note_suspect(pool, &pending, part);
        if pending.sink.is_gone() {
            return;
        }
        if !refused && self.may_run_again(pool, &pending, part) {
            self.run_again(pool, pending, part);
            return;
        }
        let Some(pending) = self.give_back(pool, pending, part) else { return };
        let fault = self.fault(part);
        if !matches!(fault.kind, FaultKind::Deadline | FaultKind::CpuDeadline) {
            let id = pending.request.id;
            tracing::error!(pool = pool.name(), pid = self.pid, request = %id, label = pending.request.label(), "{fault}");
        }
        pending.sink.fail(fault);
    }

    /// Notes a request that may have killed its worker. Returns true if requests like it are now refused.
    fn note_suspect(&self, pool: &Shared, pending: &Pending, part: Involvement) -> bool {
        let by_itself = matches!(self.reason, None | Some(KillReason::Broken(_)));
        if !matches!(part, Involvement::Suspect | Involvement::Orphaned) || !by_itself {
            return false;
        }
        if let Some(demotions) = pool.demotions.get().filter(|_| part == Involvement::Suspect) {
            demotions.note_death(pending.request.target(), pending.killed > 0);
        }
        let path = quarantine::key(&pending.request);
        let now = Instant::now();
        let mut scheduler = pool.lock();
        let pause = scheduler.quarantine.note_request(path.clone(), now);
        let refused = scheduler.quarantine.refuses(&path, now).is_some();
        if pause.is_some() {
            // Waiting requests for the same path would kill the next workers.
            let is_same = |pending: &Pending| quarantine::key(&pending.request) == path;
            while let Some(waiting) = scheduler.queue.remove_one(is_same) {
                waiting.sink.fail(Fault::new(FaultKind::Quarantined));
            }
        }
        drop(scheduler);
        if let Some(pause) = pause {
            let text = "requests for this path kill their workers: refusing them with 502 for a while";
            tracing::warn!(pool = pool.name(), path, seconds = pause.as_secs(), "{text}");
        }
        refused
    }

    fn may_run_again(&self, pool: &Shared, pending: &Pending, part: Involvement) -> bool {
        if part == Involvement::NotBegun {
            return pending.resubmitted < MAX_NOT_BEGUN[usize::from(pending.request.repeatable)];
        }
        let ends_requests = matches!(
            self.reason,
            Some(KillReason::Deadline | KillReason::CpuDeadline | KillReason::Stopping | KillReason::Panicked)
        );
        let allowed = match part {
            Involvement::TimedOut => false,
            Involvement::Bystander | Involvement::Orphaned => {
                pending.resubmitted < MAX_BYSTANDER && pool.config().settings.replay > 0
            }
            _ => pending.killed < pool.config().settings.replay && pending.resubmitted < MAX_BYSTANDER,
        };
        allowed && pending.request.repeatable && !ends_requests && !pending.sink.is_delivered()
    }

    /// Moves a request whose worker died to the fallback pool. Returns the request if there is none, or if it may not
    /// run there.
    fn give_back(&self, pool: &Shared, mut pending: Box<Pending>, part: Involvement) -> Option<Box<Pending>> {
        let by_itself = self.reason.is_none() && part != Involvement::TimedOut && pool.config().settings.replay > 0;
        let may_run = by_itself && pending.request.repeatable && !pending.sink.is_delivered();
        let Some(other) = pool.fallback_pool().filter(|_| may_run) else { return Some(pending) };
        let (id, label) = (pending.request.id, pending.request.label());
        tracing::warn!(pool = pool.name(), pid = self.pid, request = %id, label, "worker died: running the request in pool {}", other.name());
        pool.metrics().replays.inc();
        pending.sink.reset();
        pending.resubmitted += 1;
        pending.entered = Instant::now();
        other.run_instead(pending, Instant::now());
        None
    }

    fn run_again(&self, pool: &Arc<Shared>, mut pending: Box<Pending>, part: Involvement) {
        let why = match part {
            Involvement::NotBegun => "not_begun",
            Involvement::Bystander | Involvement::Orphaned => "bystander",
            Involvement::Suspect | Involvement::TimedOut => "worker_died",
        };
        pool.metrics().resubmitted.inc(why);
        pending.resubmitted += 1;
        if part != Involvement::NotBegun {
            let (id, label) = (pending.request.id, pending.request.label());
            tracing::warn!(pool = pool.name(), pid = self.pid, request = %id, label, "worker died: running the request again");
            pool.metrics().replays.inc();
            pending.sink.reset();
            pending.killed += u32::from(part == Involvement::Suspect);
            // Its wait restarts: the time that it ran does not count as waiting.
            pending.entered = Instant::now();
        }
        if pending.killed < 2 {
            pool.lock().resubmit(pending, self.home, Instant::now());
            return;
        }
        let (pool, home) = (pool.clone(), self.home);
        tokio::spawn(async move {
            tokio::time::sleep(THIRD_TRY_DELAY).await;
            run_after_pause(&pool, pending, home);
        });
    }

    /// The fault for the client of a request that is not run again.
    fn fault(&self, part: Involvement) -> Fault {
        let pid = self.pid;
        match &self.reason {
            Some(KillReason::Deadline) => Fault::new(FaultKind::Deadline),
            Some(KillReason::CpuDeadline) => Fault::new(FaultKind::CpuDeadline),
            Some(KillReason::Broken(what)) => Fault::with(FaultKind::WorkerBroken, format!("worker {pid}: {what}")),
            Some(KillReason::Panicked) => Fault::with(
                FaultKind::WorkerBroken,
                format!("worker {pid}: the server panicked while it read the responses"),
            ),
            Some(KillReason::Stopping) => Fault::new(FaultKind::Stopping),
            Some(KillReason::Stuck) => {
                Fault::with(FaultKind::WorkerDied, format!("worker {pid} was killed: another request did not end"))
            }
            Some(KillReason::BootTimeout | KillReason::WarmUp) | None if part == Involvement::TimedOut => Fault::with(
                FaultKind::WorkerDied,
                format!("worker {pid} ended itself: the script ran past max_execution_time and then past hard_timeout"),
            ),
            Some(KillReason::BootTimeout | KillReason::WarmUp) | None => {
                Fault::with(FaultKind::WorkerDied, format!("worker {pid} died during the request"))
            }
        }
    }
}

fn run_after_pause(pool: &Shared, pending: Box<Pending>, home: usize) {
    let mut scheduler = pool.lock();
    if scheduler.stopping && !scheduler.serves() {
        drop(scheduler);
        return pending.sink.fail(Fault::new(FaultKind::Stopping));
    }
    scheduler.resubmit(pending, home, Instant::now());
    if scheduler.wants_workers() {
        pool.notify_supervisor(Event::RequestsWait);
    }
}
