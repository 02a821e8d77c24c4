//! The pool's interface for lane readers: state changes caused by a worker's frames, each under the pool's lock. A
//! reader knows only its lane, not the scheduler.

use crate::fault::{Fault, FaultKind};
use crate::lane::{BodyToSend, Lane, SnapshotWork};
use crate::lane_reader::rescue::Involvement;
use crate::process::end::Death;
use crate::process::event::Event;
use crate::process::worker_state::KillReason;
use crate::request::estimate::MeasuredDuration;
use crate::request::pending::Pending;
use crate::request::{InterimSink, LiveSink, LogSink};
use crate::response::sink::Sink;
use crate::shared::Shared;
use howdah_observe::PoolMetrics;
use howdah_transport::Mode;
use howdah_transport::control_socket::ControlSocket;
use howdah_transport::worker_events::MAX_UNRECEIVED;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Maximum number of times that a request is given back, in addition to once by each worker. Workers that booted after
/// its arrival do not give it back.
const MAX_GIVEN_BACK: usize = 2;

/// One lane of a pool.
#[derive(Debug)]
pub(crate) struct LaneHandle {
    shared: Arc<Shared>,
    index: usize,
    pid: u32,
}

/// A request whose response begins.
pub(crate) struct Begun {
    pub(crate) sink: Sink,
    /// When the request's head had arrived.
    pub(crate) received: Instant,
    /// When its worker began it, as far as the server knows.
    pub(crate) since: Instant,
    /// No worker was serving when the request arrived.
    pub(crate) cold: bool,
}

/// A body that a worker has asked for.
pub(crate) struct RequestedBody {
    pub(crate) body: std::io::Result<BodyToSend>,
    pub(crate) control: Arc<ControlSocket>,
    /// The response of the body's request.
    pub(crate) sink: Sink,
}

impl LaneHandle {
    pub(crate) const fn new(shared: Arc<Shared>, index: usize, pid: u32) -> Self {
        Self { shared, index, pid }
    }

    pub(crate) fn pool(&self) -> &str {
        self.shared.name()
    }

    pub(crate) fn metrics(&self) -> &PoolMetrics {
        self.shared.metrics()
    }

    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Notes the wait of a request that found an on-demand pool without a worker, in microseconds.
    pub(crate) fn note_cold_start(&self, waited_us: u64) {
        if self.shared.config().is_on_demand() {
            self.shared.counters.cold_starts.note(waited_us);
            self.shared.metrics().cold_starts.observe_us(waited_us);
        }
    }

    pub(crate) fn worker_ready(&self) {
        let mut scheduler = self.shared.lock();
        let Some(lane) = scheduler.lanes.get_mut(self.index).and_then(Option::as_mut) else { return };
        if !lane.note_ready() {
            return;
        }
        let (generation, worker) = (lane.generation, lane.worker);
        scheduler.down = None;
        scheduler.refill(self.index, Instant::now());
        drop(scheduler);
        self.shared.update_about(|about| about.last_error = None);
        self.shared.notify_supervisor(Event::WorkerReady { worker, generation });
    }

    /// Begins the response to request `number`; `None` if the worker has no such request.
    pub(crate) fn begin_request(&self, number: u64) -> Option<Begun> {
        let mut scheduler = self.shared.lock();
        let lane = scheduler.lanes.get_mut(self.index)?.as_mut()?;
        if lane.state.is_ending() {
            return None;
        }
        let (worker, pid) = (lane.worker, lane.pid);
        let request = lane.responded_to(number)?;
        request.responding = true;
        let pending = &request.pending;
        pending.sink.update_stats(|stats| {
            stats.worker = worker;
            stats.pid = pid;
        });
        let (sink, received, cold) = (pending.sink.clone(), pending.request.received, pending.cold);
        Some(Begun { sink, received, since: request.since, cold })
    }

    /// Notes the end of a request at the time `now`.
    pub(crate) fn request_done(
        &self,
        number: u64,
        now: Instant,
        took: MeasuredDuration,
        retire: bool,
        snapshot: Option<SnapshotWork>,
    ) {
        self.shared.counters.requests.fetch_add(1, Ordering::Relaxed);
        self.shared.metrics().php_time.observe_us(took.php);
        if let Some(snapshot) = snapshot {
            self.shared.metrics().restores.observe_us(u64::from(snapshot.restore_ns) / 1000);
        }
        let mut scheduler = self.shared.lock();
        let lane = scheduler.lanes.get(self.index).and_then(Option::as_ref);
        let before = lane.and_then(|lane| lane.snapshot);
        scheduler.request_done(self.index, number, now, took, snapshot, retire);
        let lane = scheduler.lanes.get(self.index).and_then(Option::as_ref);
        let soon = lane.is_some_and(|lane| self.shared.config().retires_next(lane.requests));
        // The first restore always searches.
        let searched = before.is_some_and(|before| snapshot.is_some_and(|work| work.searches > before.searches));
        let target = lane.filter(|_| searched).and_then(|lane| Some(lane.last.as_ref()?.target().to_vec()));
        drop(scheduler);
        if let (Some(target), Some(demotions)) = (target, self.shared.demotions.get()) {
            demotions.note_search(&target);
        }
        if retire || soon {
            self.shared.notify_supervisor(Event::WorkerRetires);
        }
    }

    /// Handles a request that the worker gave back because its boot is outdated: the request goes to another worker,
    /// and this worker ends. An error means that the worker broke the protocol.
    pub(crate) fn request_given_back(&self, number: u64, boot_began_us: u64) -> Result<(), String> {
        let mut scheduler = self.shared.lock();
        let Some(lane) = scheduler.lanes.get_mut(self.index).and_then(Option::as_mut) else { return Ok(()) };
        if lane.state.is_ending() {
            return Ok(());
        }
        let (home, generation) = (lane.home, lane.generation);
        let may = self.shared.config().settings.mode == Mode::Snapshot;
        let has_no_response = may && lane.responded_to(number).is_some_and(|request| !request.responding);
        let request = if has_no_response { lane.in_flight.remove(number) } else { None };
        let Some(mut request) = request else { return Err("gave back an answered or unknown request".into()) };
        // Requests behind this one are newer: they go back to the queue first, so that this one ends up before them.
        scheduler.drain_lane(self.index, Instant::now());
        request.pending.given_back += 1;
        let too_often = request.pending.given_back > self.shared.config().max_workers() + MAX_GIVEN_BACK;
        let mut given_up = None;
        if too_often {
            given_up = Some(request.pending);
        } else if !request.pending.sink.is_gone() {
            self.shared.metrics().resubmitted.inc("given_back");
            scheduler.resubmit(request.pending, home, Instant::now());
        }
        // `give_up` takes the lock of the other pool.
        drop(scheduler);
        if let Some(pending) = given_up {
            self.give_up(pending);
        }
        self.shared.notify_supervisor(Event::BootOutdated { generation, boot_began_us });
        Ok(())
    }

    /// Runs a request that every worker gives back in the fallback pool, or fails it if there is none. No part of a
    /// response has been sent.
    fn give_up(&self, mut pending: Box<Pending>) {
        let Some(other) = self.shared.fallback_pool().filter(|_| !pending.sink.is_gone()) else {
            return pending.sink.fail(Fault::with(FaultKind::WorkerBroken, "every worker gave the request back"));
        };
        pending.entered = Instant::now();
        other.run_instead(pending, Instant::now());
    }

    /// Returns the body that a worker asks for, and the socket to send it to; `None` if the worker is being killed. An
    /// error means that the worker broke the protocol.
    pub(crate) fn requested_body(&self, number: u64) -> Result<Option<RequestedBody>, &'static str> {
        let mut scheduler = self.shared.lock();
        let Some(lane) = scheduler.lanes.get_mut(self.index).and_then(Option::as_mut) else { return Ok(None) };
        if lane.state.is_ending() {
            return Ok(None);
        }
        let body = lane.give_body(number)?;
        let sink = lane.responded_to(number).map(|request| request.pending.sink.clone());
        Ok(sink.map(|sink| RequestedBody { body, control: lane.control.clone(), sink }))
    }

    /// Returns the pool's status that a request's worker asks for, and the socket to send it to; `None` if the worker
    /// is being killed. An error means that the worker broke the protocol.
    pub(crate) fn requested_status(&self, number: u64) -> Result<Option<(String, Arc<ControlSocket>)>, &'static str> {
        let may_ask = !self.shared.config().is_multiplexed();
        let refusal = "requested the pool's status although it may not wait for it";
        let control = self.socket_for_text(number, may_ask, refusal)?;
        Ok(control.map(|control| (self.shared.report().unwrap_or_default(), control)))
    }

    /// Returns the socket for the answer to a request's question; `None` if the worker is being killed. An error means
    /// that the worker broke the protocol.
    pub(crate) fn text_wanted(&self, number: u64) -> Result<Option<Arc<ControlSocket>>, &'static str> {
        self.socket_for_text(number, true, "asked a question without reading earlier answers")
    }

    /// Returns the socket for a text that a request waits for, or `refusal`.
    fn socket_for_text(
        &self,
        number: u64,
        may_ask: bool,
        refusal: &'static str,
    ) -> Result<Option<Arc<ControlSocket>>, &'static str> {
        let scheduler = self.shared.lock();
        let Some(lane) = scheduler.lanes.get(self.index).and_then(Option::as_ref) else { return Ok(None) };
        if lane.state.is_ending() {
            return Ok(None);
        }
        // Only a multiplexed worker may have bodies and other answers under way when it asks.
        let most = if self.shared.config().is_multiplexed() { MAX_UNRECEIVED } else { 0 };
        if !may_ask || lane.in_flight.get(number).is_none() || lane.control.unreceived() > most {
            return Err(refusal);
        }
        Ok(Some(lane.control.clone()))
    }

    /// Wakes a multiplexed worker after a message was sent over the lane's control socket.
    pub(crate) fn message_sent(&self) {
        if let Some(Some(lane)) = self.shared.lock().lanes.get(self.index) {
            lane.message_sent();
        }
    }

    pub(crate) fn abort_request(&self, number: u64) {
        if let Some(Some(lane)) = self.shared.lock().lanes.get_mut(self.index) {
            lane.abort(number);
        }
    }

    /// Id and label of a request, for the log.
    pub(crate) fn request_name(&self, number: u64) -> Option<(String, String)> {
        let scheduler = self.shared.lock();
        let lane = scheduler.lanes.get(self.index)?.as_ref()?;
        let request = lane.in_flight.get(number)?;
        Some((request.pending.request.id.to_string(), request.pending.request.label()))
    }

    /// `true` unless a booting worker repeats a line that another one logged since a worker was last ready.
    pub(crate) fn is_new_line(&self, line: &str) -> bool {
        let ready = self.shared.lock().lanes.get(self.index).and_then(Option::as_ref).is_none_or(|lane| lane.was_ready);
        ready || self.shared.boot_log.is_new(line)
    }

    /// The receiver of informational responses of a running request.
    pub(crate) fn interim_front(&self, number: u64) -> Option<Arc<dyn InterimSink>> {
        let scheduler = self.shared.lock();
        let lane = scheduler.lanes.get(self.index)?.as_ref()?;
        lane.in_flight.get(number)?.pending.request.interim.clone()
    }

    /// The receiver of a running request's log lines.
    pub(crate) fn log_front(&self, number: u64) -> Option<Arc<dyn LogSink>> {
        let scheduler = self.shared.lock();
        let lane = scheduler.lanes.get(self.index)?.as_ref()?;
        lane.in_flight.get(number)?.pending.request.log.clone()
    }

    /// The receiver of a running request's orders for connections and channels, if the request exists and has one.
    pub(crate) fn live_front(&self, number: u64) -> Option<Arc<dyn LiveSink>> {
        let scheduler = self.shared.lock();
        let lane = scheduler.lanes.get(self.index)?.as_ref()?;
        lane.in_flight.get(number)?.pending.request.live.clone()
    }

    pub(crate) fn has_requests(&self) -> bool {
        self.shared.lock().lanes.get(self.index).and_then(Option::as_ref).is_some_and(|lane| !lane.in_flight.is_empty())
    }

    /// Sends waiting messages and requests, as the lane's request ring may have room again.
    pub(crate) fn room_made(&self) {
        self.shared.lock().room_made(self.index);
    }

    /// Kills the worker if the lane is still its.
    pub(crate) fn kill(&self, reason: KillReason) {
        self.shared.lock().kill_lane(self.index, self.pid, reason);
    }

    /// Removes and returns the dead worker's lane with its requests.
    pub(crate) fn remove(&self) -> Option<Lane> {
        self.shared.lock().remove_lane(self.index)
    }

    /// Notes the death of the worker, which served or had requests.
    pub(crate) fn note_death(&self) {
        self.shared.lock().quarantine.note_death(Instant::now());
    }

    /// Reruns or fails a request of the dead worker.
    pub(crate) fn rescue(&self, pending: Box<Pending>, part: Involvement, death: &Death) {
        death.rescue(&self.shared, pending, part);
    }

    /// Notifies the supervisor of the worker's death.
    pub(crate) fn report_death(&self, death: Death) {
        self.shared.notify_supervisor(Event::WorkerGone(death));
    }
}
