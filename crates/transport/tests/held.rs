//! Body frames that stay in the response ring until they have been used: order of release, and concurrent events.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use howdah_transport::control_socket::{self, ControlSocket};
use howdah_transport::wire::{FrameKind, RequestBuilder, VarName, WireDone};
use howdah_transport::{
    BodyInLane, FrameReceiver, HeldPayload, LaneSizes, RequestSender, WorkerEnd, create_lane, new_eventfd,
};
use std::io::{IoSlice, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// Room for a few frames of some KB each.
const SIZES: LaneSizes = LaneSizes { request: 16 * 1024, response: 64 * 1024 };

struct Lane {
    sender: RequestSender,
    frames: FrameReceiver,
    worker: WorkerEnd,
    next: u64,
    memory: OwnedFd,
    _control: ControlSocket,
}

fn lane() -> Lane {
    let (sender, frames, fd) = create_lane(SIZES).unwrap();
    let (ours, theirs) = control_socket::pair().unwrap();
    let worker = WorkerEnd::attach(&fd, new_eventfd().unwrap(), theirs.into()).unwrap();
    Lane { sender, frames, worker, next: 1, memory: fd, _control: ours.into() }
}

impl Lane {
    /// The worker begins a request.
    fn begin(&mut self) {
        let mut builder = RequestBuilder::new(1, 1001, 1);
        let method = builder.var(VarName::REQUEST_METHOD, b"GET");
        builder.method(method);
        self.sender.send_request(&builder.finish(), self.next, BodyInLane::None).unwrap();
        self.next += 1;
        self.worker.next_request().unwrap().unwrap();
    }

    /// The worker responds to a request with this body.
    fn response(&mut self, body: &[u8]) {
        self.begin();
        self.worker.write(body).unwrap();
        self.worker.end_response(false);
        self.worker.done(WireDone::default());
    }

    /// Takes the published body frames, in place.
    fn take(&mut self) -> Vec<HeldPayload> {
        let mut held = Vec::new();
        while let Some(frame) = self.frames.next_frame_in_place().unwrap() {
            assert_eq!(frame.held.is_some(), frame.kind == FrameKind::Body);
            held.extend(frame.held);
        }
        self.frames.frames_taken();
        held
    }
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8 ^ seed).collect()
}

#[test]
fn a_body_can_be_read_compared_and_sent_in_place() {
    let mut lane = lane();
    let body = pattern(20_000, 1);
    lane.response(&body);
    let held = lane.take().remove(0);
    assert_eq!(held.len(), body.len());
    assert!(held.copy_from(0) == body && held.copy_from(19_990) == body[19_990..]);
    let mut part = [0; 100];
    held.copy_to(777, &mut part);
    assert_eq!(part[..], body[777..877]);
    let mut other = body.clone();
    assert!(held.equals(&other) && !held.equals(&other[1..]));
    other[19_999] ^= 1;
    assert!(!held.equals(&other));

    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let before = [IoSlice::new(b"head"), IoSlice::new(b"er")];
    assert_eq!(held.send_after(&before, ours.as_fd()).unwrap(), 20_006);
    let mut received = vec![0; 20_006];
    theirs.read_exact(&mut received).unwrap();
    assert!(received == [b"header", &body[..]].concat());
    drop(theirs);
    let error = held.send_after(&[], ours.as_fd()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn held_bodies_are_never_overwritten_whatever_the_order_of_release() {
    let mut lane = lane();
    for round in 0..300_usize {
        let bodies: Vec<_> =
            (0..3).map(|n| pattern(1_100 + (round * 37 + n * 911) % 3_000, (round + n) as u8)).collect();
        for body in &bodies {
            lane.response(body);
        }
        // A body at the end of the ring is split into two pieces.
        let mut held = lane.take();
        let lengths: usize = held.iter().map(HeldPayload::len).sum();
        assert_eq!(lengths, bodies.concat().len());
        let all: Vec<u8> = held.iter().flat_map(|held| held.copy_from(0)).collect();
        assert!(all == bodies.concat());
        // The last one is released first: that frees no room, and the first stays intact during another response.
        held.rotate_left(round % 3);
        let kept = held.pop().unwrap();
        let copy = kept.copy_from(0);
        drop(held);
        let small = pattern(2_000, 99);
        lane.response(&small);
        assert!(lane.take().iter().flat_map(|held| held.copy_from(0)).eq(small));
        assert!(kept.equals(&copy), "round {round}");
    }
}

#[test]
fn a_worker_that_waits_for_room_is_woken_when_a_body_is_released() {
    let mut lane = lane();
    lane.response(&pattern(30_000, 1));
    lane.response(&pattern(25_000, 2));
    let held = lane.take();
    let third = pattern(31_000, 3);
    std::thread::scope(|scope| {
        let Lane { frames, worker, .. } = &mut lane;
        let third = &third;
        let writer = scope.spawn(move || {
            worker.write(third).unwrap();
            worker.publish();
        });
        // There is only room for a part of it.
        let mut received = Vec::new();
        drop(held);
        while received.len() < third.len() {
            while let Some(frame) = frames.next_frame().unwrap() {
                received.extend(frame.payload);
            }
            frames.frames_taken();
        }
        assert!(&received == third);
        writer.join().unwrap();
    });
}

#[test]
fn a_response_that_fits_is_published_in_one_piece_although_it_waits_for_room() {
    let mut lane = lane();
    for size in [30_000, 25_000] {
        lane.response(&pattern(size, 1));
    }
    let held = lane.take();
    std::thread::scope(|scope| {
        let Lane { frames, worker, .. } = &mut lane;
        let writer = scope.spawn(move || {
            worker.write(&pattern(12_000, 3)).unwrap();
            worker.end_response(true);
        });
        // A part for which there is room is never published while other responses hold the rest.
        for _ in 0..200 {
            assert!(frames.next_frame().unwrap().is_none());
            std::thread::yield_now();
        }
        drop(held);
        writer.join().unwrap();
        let kinds: Vec<_> = std::iter::from_fn(|| frames.next_frame().unwrap())
            .map(|frame| (frame.kind, frame.payload.len()))
            .collect();
        assert_eq!(kinds.last().unwrap().0, FrameKind::End);
        assert_eq!(kinds.iter().map(|(_, len)| len).sum::<usize>(), 12_000);
    });
}

#[test]
fn a_held_body_outlives_its_lane() {
    let mut lane = lane();
    let body = pattern(9_000, 5);
    lane.response(&body);
    let held = lane.take();
    drop(lane);
    assert!(held[0].equals(&body));
    drop(held);
}

#[test]
fn bytes_that_change_while_they_are_used_do_no_harm() {
    let mut lane = lane();
    lane.response(&pattern(20_000, 1));
    let held = lane.take().remove(0);
    // A hostile worker writes to the memory at any time.
    let memory = std::fs::File::from(lane.memory.try_clone().unwrap());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                round += 1;
                memory.write_all_at(&pattern(30_000, round as u8), 8192 + u64::from(SIZES.request)).unwrap();
            }
        });
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        for _ in 0..500 {
            let sent = held.send_after(&[IoSlice::new(b"head")], ours.as_fd()).unwrap();
            let mut received = vec![0; sent];
            theirs.read_exact(&mut received).unwrap();
            assert!(sent == 20_004 && received.starts_with(b"head"));
            let _ = held.equals(&received[4..]);
            assert_eq!(held.copy_from(0).len(), 20_000);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_skip_at_the_rings_end_publishes_no_half_response() {
    let mut lane = lane();
    // A frame for each line, as a script prints them; in total less than what is published early.
    let line = pattern(1000, 3);
    for request in 0..100 {
        lane.begin();
        for _ in 0..12 {
            lane.worker.write(&line).unwrap();
            assert!(lane.frames.next_frame().unwrap().is_none(), "request {request}: a part came alone");
        }
        lane.worker.end_response(false);
        lane.worker.done(WireDone::default());
        assert_eq!(lane.take().iter().map(HeldPayload::len).sum::<usize>(), 12_000);
    }
}
