//! A scheduler for tests: real lanes, with workers and a clock that the test controls.

use super::{LaneKind, MeasuredDuration, Precedence, Scheduler};
use crate::lane::clock::Clock;
use crate::lane::{Lane, NewWorker};
use crate::process::launcher::Launcher;
use crate::queue::shares::Shares;
use crate::queue::waiting::Limits;
use crate::request::pending::Pending;
use crate::request::{Request, RequestId};
use crate::response::parts;
use crate::response::sink::{self, ResponseBody};
use crate::response::stats::RequestStats;
use howdah_config::Share;
use howdah_transport::control_socket::{ControlSocket, pair};
use howdah_transport::wire::{FrameKind, RequestBuilder, WireDone};
use howdah_transport::{FrameReceiver, LaneSizes, WorkerEnd, create_lane, new_eventfd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The first moment by the workers' clock.
const FIRST: u32 = 1_000;

pub(super) struct TestScheduler {
    pub(super) scheduler: Scheduler,
    pub(super) workers: Vec<Worker>,
    began: Instant,
    /// Microseconds since the beginning.
    pub(super) now: u64,
}

/// A worker that runs one request at a time.
pub(super) struct Worker {
    end: WorkerEnd,
    frames: FrameReceiver,
    /// The request that it runs, and when it began.
    pub(super) runs: Option<(u64, u64)>,
}

impl TestScheduler {
    pub(super) fn new(workers: u32) -> Self {
        Self::with(workers, Limits::default(), Shares::default())
    }

    pub(super) fn with(workers: u32, limits: Limits, shares: Shares) -> Self {
        let began = Instant::now();
        let scheduler = Scheduler::new(limits, shares, Precedence::default(), false, 1);
        let mut stage = Self { scheduler, workers: Vec::new(), began, now: 0 };
        (0..workers).for_each(|worker| stage.add_worker(worker));
        stage
    }

    pub(super) fn add_worker(&mut self, worker: u32) {
        let (sender, frames, fd) = create_lane(LaneSizes::TINY).unwrap();
        let (ours, theirs) = pair().unwrap();
        let end = WorkerEnd::attach(&fd, new_eventfd().unwrap(), theirs.into()).unwrap();
        let pidfd = Arc::new(new_eventfd().unwrap());
        let launcher = Launcher::default();
        let new = NewWorker { worker, generation: 1, pid: 0, pidfd, home: 0, concurrency: None, launcher };
        let mut lane = Lane::new(new, sender, Arc::new(ControlSocket::from(ours)));
        lane.note_ready();
        let LaneKind::Serial(serial) = &mut lane.kind else { unreachable!("a serial lane") };
        serial.clock = Clock::starting_at(self.began, FIRST);
        self.workers.push(Worker { end, frames, runs: None });
        self.scheduler.add_lane(lane);
        self.scheduler.refill(worker as usize, self.instant());
    }

    pub(super) fn instant(&self) -> Instant {
        self.began + Duration::from_micros(self.now)
    }

    pub(super) fn lane(&self, worker: usize) -> &Lane {
        self.scheduler.lanes[worker].as_ref().unwrap()
    }

    /// A request for a script. The receiver represents the client.
    pub(super) fn pending(
        &self,
        id: u64,
        script: &str,
        client: u64,
        route: Option<u16>,
    ) -> (Box<Pending>, ResponseBody) {
        let budgets = howdah_budget::Budgets::new(1 << 20, 1 << 20);
        let limits = parts::Limits { memory: 100, temp_dir: std::env::temp_dir(), budgets };
        let (sink, receiver) = sink::new(Arc::new(limits), RequestStats::default(), None);
        let mut head = RequestBuilder::new(id, 1001, 0);
        let at = head.text(script.as_bytes());
        head.script(at);
        let now = self.instant();
        let request = Request {
            repeatable: true,
            received: now,
            complete: now,
            client,
            route,
            ..Request::without_client(head.finish(), RequestId(id))
        };
        (Box::new(Pending::new(Box::new(request), sink)), receiver)
    }

    pub(super) fn submit(&mut self, id: u64, script: &str) -> ResponseBody {
        self.submit_for(id, script, 0, None)
    }

    pub(super) fn submit_for(&mut self, id: u64, script: &str, client: u64, route: Option<u16>) -> ResponseBody {
        let (pending, receiver) = self.pending(id, script, client, route);
        self.scheduler.submit(pending, 0, self.instant()).map_err(|(fault, _)| fault).unwrap();
        receiver
    }

    /// Makes the scheduler expect `micros` for requests of a script.
    pub(super) fn teach(&mut self, script: &str, micros: u64) {
        let key = self.pending(0, script, 0, None).0.key;
        (0..30)
            .for_each(|_| self.scheduler.estimates.note(key, MeasuredDuration { php: micros, cpu: None, memory: 0 }));
    }

    /// Makes the worker begin its next request, which must exist.
    pub(super) fn begin(&mut self, worker: usize) -> u64 {
        let it = &mut self.workers[worker];
        assert!(it.runs.is_none());
        it.end.next_request().unwrap().unwrap();
        it.end.set_began(FIRST.wrapping_add(self.now as u32));
        let number = it.end.number();
        it.runs = Some((number, self.now));
        number
    }

    /// True if a request is ready for the worker to begin.
    pub(super) fn can_begin(&self, worker: usize) -> bool {
        let lane = self.lane(worker);
        self.workers[worker].runs.is_none() && lane.in_flight.iter().any(|request| !lane.is_begun(request))
    }

    /// Ends the worker's request, which the server does not know yet. Returns the request's number and duration.
    pub(super) fn end(&mut self, worker: usize) -> (u64, u64) {
        let it = &mut self.workers[worker];
        let (number, since) = it.runs.take().unwrap();
        it.end.done(WireDone::default());
        (number, self.now - since)
    }

    /// Notifies the server that a request is done.
    pub(super) fn hear(&mut self, worker: usize, number: u64, micros: u64) {
        let it = &mut self.workers[worker];
        let frame = it.frames.next_frame().unwrap().unwrap();
        assert_eq!((frame.kind, frame.number), (FrameKind::Done, number));
        it.frames.frames_taken();
        let now = self.instant();
        self.scheduler.request_done(
            worker,
            number,
            now,
            MeasuredDuration { php: micros, cpu: None, memory: 0 },
            None,
            false,
        );
    }

    /// Ids of waiting requests, in the queue or behind others.
    pub(super) fn waiting(&self) -> Vec<u64> {
        let behind = self.scheduler.lanes.iter().flatten().flat_map(|lane| {
            lane.in_flight
                .iter()
                .skip(1)
                .filter(|request| !lane.is_begun(request))
                .map(|request| request.pending.request.id.0)
        });
        behind.chain(self.scheduler.queue.all().map(|pending| pending.request.id.0)).collect()
    }

    /// Ids of the requests in each lane, then of those in the queue.
    pub(super) fn places(&self) -> Vec<Vec<u64>> {
        let lanes = self.scheduler.lanes.iter().flatten();
        let lanes = lanes.map(|lane| lane.in_flight.iter().map(|request| request.pending.request.id.0).collect());
        let mut queued: Vec<u64> = self.scheduler.queue.all().map(|pending| pending.request.id.0).collect();
        queued.sort_unstable();
        lanes.chain([queued]).collect()
    }
}

pub(super) fn share(workers: usize, weight: u32) -> Share {
    Share { number: 0, workers, weight }
}
