//! A pool for tests, with multiplexed workers that the tests control. A process that only waits represents each worker.

use crate::config::PoolConfig;
use crate::fault::{Fault, FaultKind};
use crate::io_threads::IoThreads;
use crate::lane::{Lane, NewWorker};
use crate::lane_reader::LaneReader;
use crate::lane_reader::handle::LaneHandle;
use crate::pool::Pool;
use crate::process::end::Death;
use crate::process::event::Event;
use crate::request::{Request, RequestBody, RequestId};
use crate::response::sink::Response;
use crate::shared::Shared;
use howdah_config::{PoolSettings, WorkerRange};
use howdah_observe::Metrics;
use howdah_transport::control_socket;
use howdah_transport::wire::{RequestBuilder, VarName, WireDone};
use howdah_transport::zygote_protocol::BootSpec;
use howdah_transport::{
    Event as Sent, LaneSizes, Mode, WorkerEnd, WorkerSpec, create_lane, new_eventfd, new_wake_pipe,
};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub(crate) type PendingResponse = JoinHandle<Result<Response, Fault>>;

/// A pool without a supervisor, and the events that it would get.
pub(crate) struct TestPool {
    pub(crate) pool: Arc<Pool>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) events: mpsc::UnboundedReceiver<Event>,
    pub(crate) sizes: LaneSizes,
}

/// A worker that the test controls.
pub(crate) struct TestWorker {
    pub(crate) end: WorkerEnd,
    pub(crate) life: Child,
    pub(crate) index: usize,
    /// Its lane, and the eventfd that wakes the server: for workers that break the protocol.
    pub(crate) lane: OwnedFd,
    pub(crate) eventfd: OwnedFd,
}

impl Drop for TestWorker {
    fn drop(&mut self) {
        let _ = self.life.kill();
        let _ = self.life.wait();
    }
}

pub(crate) fn config(concurrency: u32) -> PoolConfig {
    let worker = WorkerSpec { mode: Mode::Async, concurrency, ..WorkerSpec::default() };
    PoolConfig {
        settings: PoolSettings {
            name: "test".to_owned(),
            mode: Mode::Async,
            workers: WorkerRange { min: 1, max: 1 },
            concurrency: concurrency as usize,
            deadline: None,
            queue: 1000,
            queue_timeout: Duration::from_secs(60),
            shrink_after: Duration::from_secs(60),
            ..PoolSettings::default()
        },
        state: None,
        boot: BootSpec { pool: "test".into(), worker, ..BootSpec::default() },
        env: Vec::new(),
        routes: Vec::new(),
        response_memory: 1 << 16,
        temp_dir: std::env::temp_dir(),
        budgets: howdah_budget::Budgets::new(1 << 30, 1 << 30),
        privileges: howdah_transport::privileges::Privileges::default(),
    }
}

impl TestPool {
    pub(crate) fn new(concurrency: usize) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let io_threads = IoThreads::new(vec![tokio::runtime::Handle::current()]);
        let pool = Pool::following(config(concurrency as u32), io_threads, Metrics::new().pool("test"), sender, None);
        // Test workers take requests when the test does, not as soon as they can.
        let shared = pool.shared().clone();
        shared.lock().untaken = Duration::from_secs(3600);
        Self { pool, shared, events, sizes: LaneSizes::DEFAULT }
    }

    /// Adds a serving worker.
    pub(crate) async fn worker(&mut self) -> TestWorker {
        let index = self.shared.lock().lanes.len();
        let (sender, frames, fd) = create_lane(self.sizes).unwrap();
        let (eventfd, (our_wake_pipe, their_wake_pipe)) = (new_eventfd().unwrap(), new_wake_pipe().unwrap());
        let (ours, theirs) = control_socket::pair().unwrap();
        let own_eventfd = eventfd.try_clone().unwrap();
        let end = WorkerEnd::attach(&fd, eventfd.try_clone().unwrap(), theirs.into()).unwrap();
        let life = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&life);
        let pidfd = Arc::new(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap());
        let new = NewWorker {
            worker: index as u32,
            generation: 1,
            pid: life.id(),
            pidfd,
            home: 0,
            concurrency: self.pool.config().lane_depth(),
            launcher: crate::process::launcher::Launcher::default(),
        };
        let reader = LaneReader::new(LaneHandle::new(self.shared.clone(), index, new.pid), &new, frames, eventfd);
        let lane = Lane::new(new, sender.with_wake_pipe(our_wake_pipe), Arc::new(ours.into()));
        self.shared.lock().add_lane(lane);
        tokio::spawn(reader.run());
        let mut worker =
            TestWorker { end: end.with_wake_pipe(their_wake_pipe), life, index, lane: fd, eventfd: own_eventfd };
        worker.end.ready();
        assert!(matches!(self.event().await, Event::WorkerReady { .. }));
        worker
    }

    /// The supervisor's next event.
    pub(crate) async fn event(&mut self) -> Event {
        let limit = Duration::from_secs(60);
        loop {
            let event = tokio::time::timeout(limit, self.events.recv()).await.expect("an event within 60 s").unwrap();
            if !matches!(event, Event::RequestsWait) {
                return event;
            }
        }
    }

    /// Waits for the end of a worker and returns the label of the reason.
    pub(crate) async fn reported_end(&mut self) -> Option<&'static str> {
        loop {
            if let Event::WorkerGone(Death { reason, .. }) = self.event().await {
                return reason.map(|reason| reason.label());
            }
        }
    }

    pub(crate) async fn submit(&self, request: Box<Request>) -> PendingResponse {
        let pool = self.pool.clone();
        let response = tokio::spawn(async move { pool.run(request).await });
        tokio::task::yield_now().await;
        response
    }

    pub(crate) async fn get(&self) -> PendingResponse {
        self.submit(request(true, RequestBody::Empty)).await
    }

    /// Id and label of one of the worker's requests.
    pub(crate) fn request_name(&self, worker: &TestWorker, number: u64) -> Option<(String, String)> {
        LaneHandle::new(self.shared.clone(), worker.index, worker.life.id()).request_name(number)
    }

    pub(crate) fn running(&self, worker: &TestWorker) -> usize {
        self.shared.lock().lanes[worker.index].as_ref().map_or(0, |lane| lane.in_flight.len())
    }
}

pub(crate) fn request(repeatable: bool, body: RequestBody) -> Box<Request> {
    let mut head = RequestBuilder::new(5, 1001, 1);
    head.var(VarName::QUERY_STRING, &[b'q'; 700]);
    Box::new(Request { body, repeatable, ..Request::without_client(head.finish(), RequestId(5)) })
}

impl TestWorker {
    /// Takes all requests that were sent.
    pub(crate) fn take(&mut self) -> Vec<u64> {
        let events = std::iter::from_fn(|| self.end.take_event().unwrap());
        events
            .map(|event| match event {
                Sent::Request(request) => request.number,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    /// Waits for `number` requests and takes all. Requests may be delayed after their workers' deaths.
    pub(crate) async fn take_at_least(&mut self, number: usize) -> Vec<u64> {
        let end = Instant::now() + Duration::from_secs(20);
        let mut taken = Vec::new();
        while taken.len() < number {
            assert!(Instant::now() < end, "requests within 20 s: {taken:?} of {number}");
            taken.extend(self.take());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        taken
    }

    /// Takes all requests and cancellations with their reasons; requests have reason 0.
    pub(crate) fn take_all(&mut self) -> Vec<(u64, u32)> {
        let events = std::iter::from_fn(|| self.end.take_event().unwrap());
        events
            .map(|event| match event {
                Sent::Request(request) => (request.number, 0),
                Sent::Cancel { number, reason } => (number, reason),
                Sent::Stop => (0, 0),
                Sent::Text(_) => panic!("nothing was asked"),
            })
            .collect()
    }

    pub(crate) fn begin_response(&mut self, number: u64, body: &[u8]) {
        self.end.select(number);
        self.end.head(false, &200u16.to_ne_bytes());
        self.end.write(body).unwrap();
    }

    pub(crate) fn end_response(&mut self, number: u64) {
        self.end.select(number);
        self.end.end_response(false);
        self.end.done(WireDone::default());
        self.end.publish();
    }

    /// Asks for a body, even of an invalid request.
    pub(crate) fn request_body(&mut self, number: u64) {
        self.end.request_body(number);
        self.end.publish();
    }

    pub(crate) fn respond(&mut self, number: u64) {
        self.begin_response(number, number.to_string().as_bytes());
        self.end_response(number);
    }
}

pub(crate) async fn finish(response: PendingResponse) -> Result<String, FaultKind> {
    let response =
        tokio::time::timeout(Duration::from_secs(20), response).await.expect("a response within 20 s").unwrap();
    let mut body = response.map_err(|fault| fault.kind)?.body;
    let mut text = Vec::new();
    while let Some(chunk) = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_chunk(cx)).await {
        text.extend_from_slice(&chunk.map_err(|fault| fault.kind)?.data);
    }
    Ok(String::from_utf8(text).unwrap())
}

pub(crate) async fn finish_all(responses: Vec<PendingResponse>) -> Vec<Result<String, FaultKind>> {
    let mut results = Vec::new();
    for response in responses {
        results.push(finish(response).await);
    }
    results
}
