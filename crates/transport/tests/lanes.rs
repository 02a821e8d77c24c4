//! Both ends of a lane in one process: every byte arrives, at every boundary of the smallest rings.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use howdah_transport::control_socket::{self, ControlSocket};
use howdah_transport::wire::{EncodedRequest, FLAG_FLUSH, FrameKind, RequestBuilder, VarName, WireDone};
use howdah_transport::worker_end::request_parts;
use howdah_transport::{
    BodyInLane, FrameReceiver, LaneSizes, RequestSender, SendError, WorkerEnd, create_lane, new_eventfd,
};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// A small random number generator with a fixed seed, so that failures are reproducible.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

struct Server {
    sender: RequestSender,
    frames: FrameReceiver,
    eventfd: OwnedFd,
    _control: ControlSocket,
}

fn lane(sizes: LaneSizes) -> (Server, WorkerEnd) {
    let (sender, frames, fd) = create_lane(sizes).unwrap();
    let eventfd = new_eventfd().unwrap();
    let (ours, theirs) = control_socket::pair().unwrap();
    let worker = WorkerEnd::attach(&fd, eventfd.try_clone().unwrap(), theirs.into()).unwrap();
    (Server { sender, frames, eventfd, _control: ours.into() }, worker)
}

fn request(query: &[u8]) -> EncodedRequest {
    let mut builder = RequestBuilder::new(7, 1001, 1);
    let at = builder.var(VarName::QUERY_STRING, query);
    builder.query(at);
    let method = builder.var(VarName::REQUEST_METHOD, b"POST");
    builder.method(method);
    builder.custom_var(b"HTTP_X_ODD", b"value");
    builder.finish()
}

impl Server {
    /// Waits for a frame like the server does: flag, check again, eventfd.
    fn next(&mut self) -> howdah_transport::Frame {
        loop {
            if let Some(frame) = self.frames.next_frame().unwrap() {
                self.frames.frames_taken();
                return frame;
            }
            if !self.frames.prepare_sleep() {
                continue;
            }
            let mut fds = [rustix::event::PollFd::new(&self.eventfd, rustix::event::PollFlags::IN)];
            let limit = rustix::event::Timespec { tv_sec: 20, tv_nsec: 0 };
            assert_ne!(rustix::event::poll(&mut fds, Some(&limit)).unwrap(), 0, "no wake-up within 20 s");
            let mut count = [0; 8];
            rustix::io::read(&self.eventfd, &mut count).unwrap();
        }
    }

    /// Sends a request, waiting for room.
    fn send(&mut self, request: &EncodedRequest, number: u64, body: &[u8]) {
        loop {
            match self.sender.send_request(request, number, BodyInLane::Inline(body)) {
                Ok(_) => return,
                Err(SendError::Full) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Responds to each request with its inline body, in writes of random sizes, some flushed.
fn echo_worker(mut worker: WorkerEnd, seed: u64) {
    let mut random = Random(seed);
    worker.ready();
    while let Some(at) = worker.next_request().unwrap() {
        // SAFETY: returned by next_request, and `done` comes last.
        let parts = unsafe { request_parts(at) };
        // SAFETY: an inline body has body_len bytes in the frame.
        let body = unsafe { std::slice::from_raw_parts(parts.body, parts.head.body_len as usize) }.to_vec();
        worker.head(false, &200u16.to_ne_bytes());
        let mut rest = body.as_slice();
        while !rest.is_empty() {
            let n = (1 + random.below(3000)).min(rest.len());
            worker.write(&rest[..n]).unwrap();
            rest = &rest[n..];
            if random.below(8) == 0 {
                worker.flush();
            }
            if random.below(16) == 0 {
                worker.log(6, b"still here");
            }
        }
        worker.end_response(false);
        worker.done(WireDone { php_ns: 5, ..WireDone::default() });
    }
}

fn echo_many(sizes: LaneSizes, rounds: u64, largest: usize) {
    let (mut server, worker) = lane(sizes);
    let thread = std::thread::spawn(move || echo_worker(worker, 99));
    assert_eq!(server.next().kind, FrameKind::Ready);
    let mut random = Random(4711);
    for number in 1..=rounds {
        let (len, query_len) = (random.below(largest), random.below(200));
        let (body, query) = (random.bytes(len), random.bytes(query_len));
        server.send(&request(&query), number, &body);
        let mut got = Vec::new();
        loop {
            let frame = server.next();
            assert_eq!(frame.number, number);
            match frame.kind {
                FrameKind::Head => assert_eq!(frame.payload, 200u16.to_ne_bytes()),
                FrameKind::Body => got.extend_from_slice(&frame.payload),
                FrameKind::Log => assert_eq!(frame.payload, b"\x06still here"),
                FrameKind::End => assert_eq!(got, body),
                FrameKind::Done => break,
                other => panic!("{other:?}"),
            }
        }
    }
    server.sender.send_stop().unwrap();
    thread.join().unwrap();
}

#[test]
fn every_byte_arrives_through_the_smallest_rings() {
    echo_many(LaneSizes::TINY, 3000, 7000);
}

#[test]
fn every_byte_arrives_through_the_default_rings() {
    echo_many(LaneSizes::DEFAULT, 600, 120_000);
}

#[test]
fn a_request_taken_back_is_not_run_and_the_next_one_is() {
    let (mut server, mut worker) = lane(LaneSizes::TINY);
    let first = server.sender.send_request(&request(b"first"), 1, BodyInLane::None).unwrap();
    server.sender.send_request(&request(b"second"), 2, BodyInLane::None).unwrap();
    assert!(!server.sender.is_begun(first));
    assert!(server.sender.take_back(first));
    assert!(!server.sender.take_back(first), "only once");
    worker.next_request().unwrap().unwrap();
    assert_eq!(worker.number(), 2);
}

#[test]
fn a_request_that_runs_cannot_be_taken_back() {
    let (mut server, mut worker) = lane(LaneSizes::TINY);
    let slot = server.sender.send_request(&request(b"x"), 1, BodyInLane::None).unwrap();
    worker.next_request().unwrap().unwrap();
    assert!(server.sender.is_begun(slot));
    assert!(!server.sender.take_back(slot));
}

#[test]
fn a_full_lane_refuses_requests_until_the_worker_is_done() {
    let (mut server, mut worker) = lane(LaneSizes::TINY);
    let request = request(&[b'q'; 4000]);
    let mut sent = 0;
    while server.sender.send_request(&request, sent + 1, BodyInLane::None).is_ok() {
        sent += 1;
    }
    assert!((2..=4).contains(&sent), "{sent}");
    worker.next_request().unwrap().unwrap();
    worker.done(WireDone::default());
    server.sender.send_request(&request, sent + 1, BodyInLane::None).unwrap();
}

#[test]
fn a_request_too_large_for_any_lane_is_refused() {
    let (mut server, _worker) = lane(LaneSizes::TINY);
    let error = server.sender.send_request(&request(&[b'q'; 9000]), 1, BodyInLane::None).unwrap_err();
    assert_eq!(error, SendError::TooLarge);
}

#[test]
fn a_worker_that_waits_for_room_notices_a_disconnected_client() {
    let (mut server, mut worker) = lane(LaneSizes::TINY);
    server.sender.send_request(&request(b"x"), 1, BodyInLane::None).unwrap();
    let thread = std::thread::spawn(move || {
        worker.next_request().unwrap().unwrap();
        worker.write(&[b'x'; 100_000]).is_err()
    });
    // The first full ring has arrived: the worker waits for room or is about to.
    while server.frames.prepare_sleep() {
        std::thread::yield_now();
    }
    server.sender.abort(1);
    // It may have been about to sleep; it sees the flag at its next check in any case.
    while !thread.is_finished() {
        server.sender.abort(1);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(thread.join().unwrap());
}

#[test]
fn a_flush_reaches_the_server_before_the_request_is_done() {
    let (mut server, mut worker) = lane(LaneSizes::DEFAULT);
    server.sender.send_request(&request(b"x"), 1, BodyInLane::None).unwrap();
    worker.next_request().unwrap().unwrap();
    worker.write(b"part").unwrap();
    assert!(server.frames.next_frame().unwrap().is_none(), "nothing is published without a reason");
    worker.flush();
    let frame = server.next();
    assert_eq!((frame.kind, frame.flags, frame.payload.as_slice()), (FrameKind::Body, FLAG_FLUSH, &b"part"[..]));
}

#[test]
fn a_body_is_sent_to_a_worker_that_has_begun_its_request() {
    let (mut sender, mut frames, fd) = create_lane(LaneSizes::TINY).unwrap();
    let (ours, theirs) = control_socket::pair().unwrap();
    let mut worker = WorkerEnd::attach(&fd, new_eventfd().unwrap(), theirs.into()).unwrap();
    let control = ControlSocket::from(ours);
    let first = sender.send_request(&request(b"1"), 1, BodyInLane::Descriptor(3)).unwrap();
    sender.send_request(&request(b"2"), 2, BodyInLane::Descriptor(3)).unwrap();
    sender.send_request(&request(b"3"), 3, BodyInLane::Descriptor(3)).unwrap();
    assert!(sender.take_back(first), "its body is never sent");
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            worker.next_request().unwrap().unwrap();
            let body = worker.receive_body().unwrap().unwrap();
            let mut text = [0; 3];
            rustix::io::pread(&body, &mut text, 0).unwrap();
            worker.done(WireDone::default());
            worker.next_request().unwrap().unwrap();
            (text, worker.receive_body().unwrap().is_none(), worker.number())
        });
        let mut asked = |number| loop {
            match frames.next_frame().unwrap() {
                Some(frame) if frame.kind == FrameKind::NeedBody => break assert_eq!(frame.number, number),
                Some(_) => {}
                None => std::thread::yield_now(),
            }
        };
        asked(2);
        let fd = rustix::fs::memfd_create("body", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::io::write(&fd, b"two").unwrap();
        control.send_body(2, fd.as_fd()).unwrap();
        asked(3);
        assert!(control.all_received());
        control.send_no_body(3).unwrap();
        assert_eq!(worker.join().unwrap(), (*b"two", true, 3));
    });
}

#[test]
fn a_worker_cannot_change_the_size_of_its_lane() {
    let (_sender, _frames, fd) = create_lane(LaneSizes::TINY).unwrap();
    assert!(rustix::fs::ftruncate(&fd, 0).is_err());
    assert!(rustix::fs::ftruncate(&fd, 1 << 30).is_err());
}

#[test]
fn a_long_response_after_a_short_one_is_not_published_head_first() {
    for short in [5, 300, 5_000, 60_000, 130_000] {
        let (mut server, mut worker) = lane(LaneSizes::DEFAULT);
        server.sender.send_request(&request(b"short"), 1, BodyInLane::None).unwrap();
        let thread = std::thread::spawn(move || {
            for len in [short, 100_000] {
                worker.next_request().unwrap().unwrap();
                worker.head(false, &200u16.to_ne_bytes());
                worker.write(&vec![b'x'; len]).unwrap();
                worker.done(WireDone::default());
            }
        });
        while server.next().kind != FrameKind::Done {}
        // The second request is sent only now, with the ring empty.
        server.sender.send_request(&request(b"long"), 2, BodyInLane::None).unwrap();
        assert_eq!(server.next().kind, FrameKind::Head);
        // The head of the second response was just read; a large part of its body was published with it.
        let body = server.frames.next_frame().unwrap().map(|frame| (frame.kind, frame.payload.len()));
        assert!(body.is_some_and(|(kind, len)| kind == FrameKind::Body && len >= 16 * 1024), "{short}: {body:?}");
        while server.next().kind != FrameKind::Done {}
        thread.join().unwrap();
    }
}
