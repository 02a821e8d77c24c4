//! A lane of a multiplexed worker: both ends in one process, at every boundary of the smallest rings.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use howdah_transport::awaited_bodies::TakenRequest;
use howdah_transport::control_socket::{self, ControlSocket};
use howdah_transport::wire::{
    CANCEL_CLIENT_GONE, CANCEL_DEADLINE, EncodedRequest, FrameKind, RequestBuilder, VarName, WireDone,
};
use howdah_transport::worker_end::request_parts;
use howdah_transport::{
    BodyInLane, Event, FrameReceiver, LaneSizes, RequestSender, SendError, WorkerEnd, create_lane, new_eventfd,
    new_wake_pipe,
};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

struct Server {
    sender: RequestSender,
    frames: FrameReceiver,
    eventfd: OwnedFd,
    control: ControlSocket,
}

/// A worker with the epoll in which it watches its wake pipe: edge-triggered, as the wake pipe is read only from time
/// to time.
struct Worker {
    end: WorkerEnd,
    epoll: OwnedFd,
}

impl Deref for Worker {
    type Target = WorkerEnd;

    fn deref(&self) -> &WorkerEnd {
        &self.end
    }
}

impl DerefMut for Worker {
    fn deref_mut(&mut self) -> &mut WorkerEnd {
        &mut self.end
    }
}

impl Worker {
    fn new(end: WorkerEnd) -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let wake_pipe = end.wake_fd().unwrap();
        epoll::add(&epoll, wake_pipe, epoll::EventData::new_u64(0), epoll::EventFlags::IN | epoll::EventFlags::ET)
            .unwrap();
        Self { end, epoll }
    }

    /// Waits for the wake pipe; false on a timeout.
    fn is_woken_within(&self, seconds: i64) -> bool {
        let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
        let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }];
        epoll::wait(&self.epoll, &mut events, Some(&limit)).unwrap() != 0
    }
}

fn lane(sizes: LaneSizes) -> (Server, Worker) {
    let (sender, frames, fd) = create_lane(sizes).unwrap();
    let (eventfd, (our_wake_pipe, their_wake_pipe)) = (new_eventfd().unwrap(), new_wake_pipe().unwrap());
    let (ours, theirs) = control_socket::pair().unwrap();
    let worker = WorkerEnd::attach(&fd, eventfd.try_clone().unwrap(), theirs.into()).unwrap();
    let worker = worker.with_wake_pipe(their_wake_pipe);
    (
        Server { sender: sender.with_wake_pipe(our_wake_pipe), frames, eventfd, control: ours.into() },
        Worker::new(worker),
    )
}

fn request(query: &[u8]) -> EncodedRequest {
    let mut builder = RequestBuilder::new(7, 1001, 1);
    let at = builder.var(VarName::QUERY_STRING, query);
    builder.query(at);
    builder.finish()
}

fn wait(fd: BorrowedFd<'_>) {
    let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    assert_ne!(poll(&mut fds, Some(&limit)).unwrap(), 0, "no wake-up within 20 s");
}

fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)).unwrap() != 0
}

/// Waits for the next event as a worker does.
fn next_event(worker: &mut Worker) -> Event {
    loop {
        if let Some(event) = worker.take_event().unwrap() {
            return event;
        }
        if worker.prepare_wait() {
            assert!(worker.is_woken_within(20), "no wake-up within 20 s");
            worker.woken();
        }
    }
}

fn next_request(worker: &mut Worker) -> TakenRequest {
    match next_event(worker) {
        Event::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

fn inline_body(request: &TakenRequest) -> Vec<u8> {
    // SAFETY: `request` is alive.
    let parts = unsafe { request_parts(request.request()) };
    // SAFETY: an inline body has body_len bytes after the strings.
    unsafe { std::slice::from_raw_parts(parts.body, parts.head.body_len as usize) }.to_vec()
}

impl Server {
    /// Waits for a frame like the server does; `None` if it was woken for another reason.
    fn woken(&mut self) -> Option<howdah_transport::Frame> {
        if let Some(frame) = self.frames.next_frame().unwrap() {
            self.frames.frames_taken();
            return Some(frame);
        }
        if self.frames.prepare_sleep() {
            wait(self.eventfd.as_fd());
            rustix::io::read(&self.eventfd, &mut [0; 8]).unwrap();
        }
        None
    }

    fn next(&mut self) -> howdah_transport::Frame {
        std::iter::from_fn(|| Some(self.woken())).flatten().next().unwrap()
    }
}

fn random(seed: &mut u64, below: usize) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed % below as u64) as usize
}

/// Responds to each request with its inline body, a few bytes of one open request at a time, in any order.
fn echo_worker(mut worker: Worker, most: usize) {
    let mut seed = 99;
    let mut open: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut stop = false;
    worker.ready();
    while !stop || !open.is_empty() {
        while let Some(event) =
            if open.is_empty() && !stop { Some(next_event(&mut worker)) } else { worker.take_event().unwrap() }
        {
            match event {
                Event::Request(request) => open.push((request.number, inline_body(&request))),
                Event::Stop => stop = true,
                Event::Cancel { .. } => panic!("nothing was cancelled"),
                Event::Text(_) => panic!("nothing was asked"),
            }
            assert!(open.len() <= most);
            if stop {
                break;
            }
        }
        if open.is_empty() {
            continue;
        }
        let at = random(&mut seed, open.len());
        let (number, rest) = &mut open[at];
        worker.select(*number);
        if random(&mut seed, 4) == 0 {
            worker.log(6, number.to_string().as_bytes());
        }
        let n = (1 + random(&mut seed, 900)).min(rest.len());
        worker.write(&rest[..n]).unwrap();
        rest.drain(..n);
        if rest.is_empty() {
            worker.end_response(false);
            worker.done(WireDone::default());
            open.swap_remove(at);
        }
        if random(&mut seed, 8) == 0 {
            worker.publish();
        }
    }
    worker.publish();
}

fn echo_many(sizes: LaneSizes, rounds: u64, largest: usize) {
    const MAX_STREAMS: usize = 12;
    let (mut server, worker) = lane(sizes);
    let thread = std::thread::spawn(move || echo_worker(worker, MAX_STREAMS));
    assert_eq!(server.next().kind, FrameKind::Ready);
    let mut seed = 4711;
    let mut open: BTreeMap<u64, (Vec<u8>, Vec<u8>, bool)> = BTreeMap::new();
    let mut number = 0;
    while number < rounds || !open.is_empty() {
        while open.len() < MAX_STREAMS && number < rounds {
            let body: Vec<u8> =
                (0..random(&mut seed, largest)).map(|at| (at as u64 + number).wrapping_mul(31) as u8).collect();
            match server.sender.send_request(&request(b"q"), number + 1, BodyInLane::Inline(&body)) {
                Ok(_) => {
                    number += 1;
                    open.insert(number, (body, Vec::new(), false));
                }
                Err(SendError::Full) => break,
                Err(error) => panic!("{error}"),
            }
        }
        // A wake-up without a frame means that there is room for another request.
        let Some(frame) = server.woken() else { continue };
        let (sent, got, ended) = open.get_mut(&frame.number).unwrap();
        match frame.kind {
            FrameKind::Body => got.extend_from_slice(&frame.payload),
            FrameKind::Log => assert_eq!(&frame.payload[1..], frame.number.to_string().as_bytes()),
            FrameKind::End => {
                assert_eq!(got, sent);
                *ended = true;
            }
            FrameKind::Done => {
                assert!(*ended);
                open.remove(&frame.number);
            }
            other => panic!("{other:?}"),
        }
    }
    server.sender.send_stop().unwrap();
    thread.join().unwrap();
}

#[test]
fn responses_that_alternate_arrive_whole_through_the_smallest_rings() {
    echo_many(LaneSizes::TINY, 3000, 7000);
}

#[test]
fn responses_that_alternate_arrive_whole_through_the_default_rings() {
    echo_many(LaneSizes::DEFAULT, 600, 100_000);
}

#[test]
fn no_wake_up_is_lost_between_a_request_and_the_announcement_of_a_wait() {
    let (mut server, mut worker) = lane(LaneSizes::DEFAULT);
    const REQUESTS: u64 = 20_000;
    let thread = std::thread::spawn(move || {
        for number in 1..=REQUESTS {
            assert_eq!(next_request(&mut worker).number, number);
            worker.select(number);
            worker.done(WireDone::default());
            worker.publish();
        }
    });
    let mut seed = 1;
    for number in 1..=REQUESTS {
        // A little later each time, so that the request arrives at each step of the worker's way to sleep.
        for _ in 0..random(&mut seed, 300) {
            std::hint::spin_loop();
        }
        server.sender.send_request(&request(b""), number, BodyInLane::None).unwrap();
        assert_eq!(server.next().number, number);
    }
    thread.join().unwrap();
}

#[test]
fn no_wait_begins_if_something_arrived_after_the_last_check() {
    let (mut server, mut worker) = lane(LaneSizes::TINY);
    assert!(worker.take_event().unwrap().is_none());
    server.sender.send_request(&request(b""), 1, BodyInLane::None).unwrap();
    assert!(!worker.is_woken_within(0), "the worker does not wait yet");
    assert!(!worker.prepare_wait());
    assert_eq!(next_request(&mut worker).number, 1);
    assert!(worker.prepare_wait());
    server.sender.send_cancel(1, CANCEL_CLIENT_GONE).unwrap();
    assert!(worker.is_woken_within(0));
    worker.woken();
}

#[test]
fn the_room_of_a_request_is_given_back_while_it_runs() {
    let (mut server, mut worker) = lane(LaneSizes::TINY);
    let big = request(&[b'q'; 4000]);
    let requests: Vec<TakenRequest> = (1..=100)
        .map(|number| {
            server.sender.send_request(&big, number, BodyInLane::Inline(&number.to_ne_bytes())).unwrap();
            next_request(&mut worker)
        })
        .collect();
    for (request, number) in requests.iter().zip(1u64..) {
        assert_eq!((request.number, inline_body(request)), (number, number.to_ne_bytes().to_vec()));
    }
}

#[test]
fn a_server_that_found_no_room_is_woken_when_half_of_it_is_free() {
    let (mut server, mut worker) = lane(LaneSizes::TINY);
    let big = request(&[b'q'; 3000]);
    let mut sent = 0;
    while server.sender.send_request(&big, sent + 1, BodyInLane::None).is_ok() {
        sent += 1;
    }
    assert!(sent >= 4, "{sent}");
    assert!(server.frames.prepare_sleep());
    next_request(&mut worker);
    assert!(!is_readable(server.eventfd.as_fd()), "no wake-up for the room of one request");
    (1..sent).for_each(|_| drop(next_request(&mut worker)));
    assert!(is_readable(server.eventfd.as_fd()));
    server.sender.send_request(&big, sent + 1, BodyInLane::None).unwrap();
}

#[test]
fn only_a_request_that_was_not_taken_can_be_taken_back() {
    let (mut server, mut worker) = lane(LaneSizes::TINY);
    let long = request(&[b'q'; 1500]);
    let first = server.sender.send_request(&long, 1, BodyInLane::None).unwrap();
    let second = server.sender.send_request(&long, 2, BodyInLane::None).unwrap();
    let third = server.sender.send_request(&long, 3, BodyInLane::None).unwrap();
    assert_eq!(next_request(&mut worker).number, 1);
    assert!(server.sender.is_begun(first) && !server.sender.take_back(first));
    assert!(!server.sender.is_begun(second) && server.sender.take_back(second));
    assert_eq!(next_request(&mut worker).number, 3);
    // Later, other requests occupy the memory of the old ones.
    for number in 4..40 {
        server.sender.send_request(&long, number, BodyInLane::None).unwrap();
        for old in [first, second, third] {
            assert!(server.sender.is_begun(old) && !server.sender.take_back(old));
        }
        assert_eq!(next_request(&mut worker).number, number);
    }
}

#[test]
fn cancels_and_the_stop_follow_their_requests() {
    let (mut server, mut worker) = lane(LaneSizes::TINY);
    server.sender.send_request(&request(b""), 1, BodyInLane::None).unwrap();
    server.sender.send_cancel(1, CANCEL_CLIENT_GONE).unwrap();
    server.sender.send_request(&request(b""), 2, BodyInLane::None).unwrap();
    server.sender.send_stop().unwrap();
    server.sender.send_cancel(2, CANCEL_DEADLINE).unwrap();
    assert_eq!(next_request(&mut worker).number, 1);
    assert!(matches!(next_event(&mut worker), Event::Cancel { number: 1, reason: CANCEL_CLIENT_GONE }));
    assert_eq!(next_request(&mut worker).number, 2);
    assert!(matches!(next_event(&mut worker), Event::Stop));
    assert!(matches!(next_event(&mut worker), Event::Cancel { number: 2, reason: CANCEL_DEADLINE }));
    assert!(worker.take_event().unwrap().is_none() && server.sender.is_empty());
}

fn body_of(number: u64) -> OwnedFd {
    let file = rustix::fs::memfd_create("body", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::io::write(&file, &number.to_ne_bytes()).unwrap();
    file
}

/// Sends the bodies that the worker has requested; returns their numbers.
fn send_bodies(server: &mut Server) -> Vec<u64> {
    let mut sent = Vec::new();
    while let Some(frame) = server.frames.next_frame().unwrap() {
        if frame.kind == FrameKind::NeedBody {
            server.control.send_body(frame.number, body_of(frame.number).as_fd()).unwrap();
            server.sender.message_sent();
            sent.push(frame.number);
        }
    }
    server.frames.frames_taken();
    sent
}

#[test]
fn each_body_goes_with_its_request_and_the_others_do_not_wait_for_it() {
    let (mut server, mut worker) = lane(LaneSizes::TINY);
    let slots: Vec<_> = (1..=5u64)
        .map(|number| server.sender.send_request(&request(b""), number, BodyInLane::Descriptor(8)).unwrap())
        .collect();
    server.sender.send_request(&request(b""), 6, BodyInLane::None).unwrap();
    assert!(server.sender.take_back(slots[3]), "the fourth");
    let first = next_request(&mut worker);
    assert!(first.number == 6 && first.body.is_none(), "it has no body to wait for");
    server.sender.send_cancel(3, CANCEL_DEADLINE).unwrap();
    server.sender.send_stop().unwrap();
    assert!(worker.take_event().unwrap().is_none(), "events about requests without their bodies are delayed");
    assert!(worker.prepare_wait());
    assert_eq!(send_bodies(&mut server), [1, 2, 3, 5]);
    assert!(worker.is_woken_within(20));
    worker.woken();
    for number in [1u64, 2, 3, 5] {
        let taken = next_request(&mut worker);
        let mut bytes = [0; 8];
        rustix::io::pread(taken.body.as_ref().unwrap(), &mut bytes, 0).unwrap();
        assert_eq!((taken.number, bytes), (number, number.to_ne_bytes()));
    }
    assert!(matches!(worker.take_event().unwrap(), Some(Event::Cancel { number: 3, .. })));
    assert!(matches!(worker.take_event().unwrap(), Some(Event::Stop)));
    assert!(server.control.all_received());
}

#[test]
fn requested_bodies_fit_into_the_socket_and_unavailable_ones_end_their_requests() {
    let (mut server, mut worker) = lane(LaneSizes::DEFAULT);
    for number in 1..=300 {
        server.sender.send_request(&request(b""), number, BodyInLane::Descriptor(8)).unwrap();
    }
    let mut taken = Vec::new();
    while taken.len() < 299 {
        while let Some(event) = worker.take_event().unwrap() {
            let Event::Request(request) = event else { panic!("{event:?}") };
            taken.push(request.number);
        }
        let mut asked = Vec::new();
        while let Some(frame) = server.frames.next_frame().unwrap() {
            match frame.kind {
                FrameKind::NeedBody => asked.push(frame.number),
                FrameKind::Done => assert_eq!(frame.number, 100),
                other => panic!("{other:?}"),
            }
        }
        server.frames.frames_taken();
        assert!(asked.len() <= 16, "{asked:?}");
        for number in asked {
            match number {
                100 => server.control.send_no_body(number).unwrap(),
                _ => server.control.send_body(number, body_of(number).as_fd()).unwrap(),
            }
        }
    }
    assert_eq!(taken, (1..=300).filter(|&number| number != 100).collect::<Vec<_>>());
}

/// Answers the questions that the worker has sent, each with its request's number; returns the numbers.
fn send_texts(server: &mut Server) -> Vec<u64> {
    let mut asked = Vec::new();
    while let Some(frame) = server.frames.next_frame().unwrap() {
        if frame.kind == FrameKind::Live {
            server.control.send_text(frame.number, body_of(frame.number).as_fd()).unwrap();
            server.sender.message_sent();
            asked.push(frame.number);
        }
    }
    server.frames.frames_taken();
    asked
}

#[test]
fn texts_arrive_in_order_and_a_blocking_wait_takes_only_its_own() {
    let (mut server, mut worker) = lane(LaneSizes::DEFAULT);
    for number in 1..=3 {
        server.sender.send_request(&request(b""), number, BodyInLane::None).unwrap();
        assert_eq!(next_request(&mut worker).number, number);
    }
    for number in [2, 1, 2] {
        worker.select(number);
        worker.ask_live_later(b"question");
    }
    assert!(worker.take_event().unwrap().is_none());
    assert!(worker.prepare_wait());
    assert_eq!(send_texts(&mut server), [2, 1, 2]);
    assert!(worker.is_woken_within(20));
    worker.woken();
    let number_in = |fd: &OwnedFd| {
        let mut bytes = [0; 8];
        rustix::io::pread(fd, &mut bytes, 0).unwrap();
        u64::from_ne_bytes(bytes)
    };
    let next_text = |worker: &mut Worker| match worker.take_event().unwrap() {
        Some(Event::Text(fd)) => number_in(&fd),
        other => panic!("{other:?}"),
    };
    assert!(!worker.prepare_wait(), "an answer has come");
    assert_eq!(next_text(&mut worker), 2);
    // A request that blocks the process gets its own answer; those before it are delivered later.
    worker.select(3);
    let own = std::thread::scope(|scope| {
        let server = scope.spawn(move || while send_texts(&mut server).is_empty() {});
        let own = worker.ask_live(b"question").unwrap();
        server.join().unwrap();
        own
    });
    assert_eq!((number_in(&own), next_text(&mut worker), next_text(&mut worker)), (3, 1, 2));
    assert!(worker.take_event().unwrap().is_none() && worker.prepare_wait());
}

/// Regression: the wake pipe was an eventfd, one file description for both sides. A worker that made it blocking and
/// filled it stopped the server.
#[test]
fn a_worker_cannot_make_the_server_block_on_the_wake_pipe() {
    let (mut server, worker) = lane(LaneSizes::DEFAULT);
    let wake_pipe = worker.wake_fd().unwrap();
    let flags = rustix::fs::fcntl_getfl(wake_pipe).unwrap();
    // The worker can fill the pipe through another description, and make that one and its own end blocking.
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&wake_pipe));
    let own =
        rustix::fs::open(path, rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK, rustix::fs::Mode::empty());
    let own = own.unwrap();
    while rustix::io::write(&own, &[0; 4096]).is_ok() {}
    while rustix::io::write(&own, &[0]).is_ok() {}
    rustix::fs::fcntl_setfl(wake_pipe, flags - rustix::fs::OFlags::NONBLOCK).unwrap();
    rustix::fs::fcntl_setfl(&own, rustix::fs::OFlags::empty()).unwrap();
    let mut worker = worker;
    assert!(worker.prepare_wait());
    // With blocking writes this would never return.
    server.sender.send_request(&request(b""), 1, BodyInLane::None).unwrap();
    server.sender.message_sent();
    assert_eq!(next_request(&mut worker).number, 1);
}

#[test]
fn the_wake_pipe_of_an_honest_worker_never_fills_up() {
    let (mut server, mut worker) = lane(LaneSizes::DEFAULT);
    for number in 1..=20_000 {
        assert!(worker.prepare_wait());
        server.sender.send_request(&request(b""), number, BodyInLane::None).unwrap();
        assert!(worker.is_woken_within(20), "wait {number}");
        worker.woken();
        assert_eq!(next_request(&mut worker).number, number);
    }
}

#[test]
fn written_data_stays_unseen_until_it_is_published_and_waiting_publishes_it() {
    let (mut server, mut worker) = lane(LaneSizes::DEFAULT);
    for number in [1, 2] {
        server.sender.send_request(&request(b""), number, BodyInLane::None).unwrap();
        next_request(&mut worker);
    }
    for number in [1, 2, 1] {
        worker.select(number);
        worker.write(b"part").unwrap();
    }
    worker.end_response(false);
    worker.done(WireDone::default());
    assert!(server.frames.next_frame().unwrap().is_none());
    assert!(worker.prepare_wait());
    let kinds: Vec<_> =
        std::iter::from_fn(|| server.frames.next_frame().unwrap()).map(|f| (f.kind, f.number)).collect();
    let body = FrameKind::Body;
    assert_eq!(kinds, [(body, 1), (body, 2), (body, 1), (FrameKind::End, 1), (FrameKind::Done, 1)]);
    worker.woken();
}

#[test]
fn a_late_wake_does_not_keep_the_worker_awake() {
    let (mut server, mut worker) = lane(LaneSizes::TINY);
    for number in 1..=50 {
        assert!(worker.prepare_wait());
        server.sender.send_request(&request(b""), number, BodyInLane::None).unwrap();
        // The worker ends its wait for another reason, whether or not it has seen the wake pipe.
        if number % 2 == 0 {
            assert!(worker.is_woken_within(0));
        }
        worker.woken();
        assert_eq!(next_request(&mut worker).number, number);
    }
    assert!(worker.prepare_wait());
    assert!(!worker.is_woken_within(0) || !worker.is_woken_within(0), "earlier wake-ups end one wait at most");
    worker.woken();
    for number in 51..=60 {
        // Although it was not read, it still ends each wait.
        assert!(worker.prepare_wait());
        server.sender.send_request(&request(b""), number, BodyInLane::None).unwrap();
        assert!(worker.is_woken_within(0));
        worker.woken();
        assert_eq!(next_request(&mut worker).number, number);
    }
}
