//! The server's end against a worker that dies at any instruction or writes arbitrary data: it must report errors,
//! never fail itself.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use howdah_transport::control_socket;
use howdah_transport::wire::{FrameKind, RequestBuilder, VarName, WireDone};
use howdah_transport::{
    BodyInLane, FrameReceiver, HeldPayload, LaneSizes, WorkerEnd, create_lane, new_eventfd, new_wake_pipe,
};
use rustix::mm::{MapFlags, ProtFlags};
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};

/// Offset of the request ring, after the control page and the pool page.
const RINGS_AT: usize = 8192;

/// Set in the child of `a_worker_killed_at_any_moment_leaves_only_whole_frames`.
const CHILD: &str = "HOWDAH_TEST_KILLED_PEER";

fn some_request() -> howdah_transport::wire::EncodedRequest {
    let mut builder = RequestBuilder::new(1, 1001, 1);
    let method = builder.var(VarName::REQUEST_METHOD, b"GET");
    builder.method(method);
    builder.finish()
}

/// Takes all published frames; returns the number of body bytes, or the error.
fn drain(frames: &mut FrameReceiver) -> Result<usize, String> {
    let mut bytes = 0;
    while let Some(frame) = frames.next_frame().map_err(|e| e.to_string())? {
        if frame.kind == FrameKind::Body {
            if frame.payload.iter().any(|&b| b != b'x') {
                return Err("a body byte that was never written".into());
            }
            bytes += frame.payload.len();
        }
    }
    frames.frames_taken();
    Ok(bytes)
}

/// Code of the killed process, not a test. Its standard input is the lane.
#[test]
fn child_that_writes_until_it_is_killed() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let stdin = std::io::stdin();
    let (_ours, theirs) = control_socket::pair().unwrap();
    let mut worker = WorkerEnd::attach(stdin.as_fd(), new_eventfd().unwrap(), theirs.into()).unwrap();
    println!("\nwriting");
    worker.next_request().unwrap();
    let mut len = 1;
    loop {
        worker.write(&vec![b'x'; len]).unwrap();
        if len % 5 == 0 {
            worker.flush();
        }
        len = len % 2000 + 7;
    }
}

#[test]
fn a_worker_killed_at_any_moment_leaves_only_whole_frames() {
    for round in 0..40u32 {
        let (mut sender, mut frames, fd) = create_lane(LaneSizes::TINY).unwrap();
        sender.send_request(&some_request(), 1, BodyInLane::None).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_writes_until_it_is_killed", "--nocapture"])
            .env(CHILD, "1")
            .stdin(Stdio::from(fd))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap() == "writing"));
        // A different amount of work in each round varies the moment of death.
        let mut bytes = 0;
        while bytes < 3000 * round as usize {
            bytes += drain(&mut frames).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        drain(&mut frames).unwrap();
        assert_eq!(drain(&mut frames).unwrap(), 0);
    }
}

/// A writable mapping of a lane, as a compromised worker has.
struct View {
    base: *mut u8,
    len: usize,
}

impl View {
    fn of(fd: &OwnedFd) -> Self {
        let len = rustix::fs::fstat(fd).unwrap().st_size as usize;
        // SAFETY: a fresh shared mapping.
        let base = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, fd, 0)
        };
        Self { base: base.unwrap().cast(), len }
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len);
        // SAFETY: inside the mapping; the test uses one thread.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(at), bytes.len()) };
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`, not used afterwards.
        unsafe { rustix::mm::munmap(self.base.cast(), self.len) }.unwrap();
    }
}

fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// One attack: an honest exchange, then random bytes at random positions (mostly cursors and headers), then the server
/// reads and sends again. Any outcome but a panic or crash is acceptable.
fn attack(mut seed: u64) {
    let (sender, mut frames, fd) = create_lane(LaneSizes::TINY).unwrap();
    let is_multiplexed = seed.is_multiple_of(2);
    let mut sender = if is_multiplexed { sender.with_wake_pipe(new_wake_pipe().unwrap().0) } else { sender };
    let (_ours, theirs) = control_socket::pair().unwrap();
    let mut worker = WorkerEnd::attach(&fd, new_eventfd().unwrap(), theirs.into()).unwrap();
    let view = View::of(&fd);
    let (mut slots, mut held) = (Vec::new(), Vec::new());
    for round in 0..6 {
        if let Ok(slot) = sender.send_request(&some_request(), round + 1, BodyInLane::Inline(&[b'b'; 700])) {
            slots.push(slot);
        }
        // An honest response while the lane is intact; later an honest worker would wait for requests that never
        // arrive.
        if round == 0 && worker.next_request().unwrap().is_some() {
            let _ = worker.write(&vec![b'x'; 900]);
            worker.done(WireDone::default());
        }
        for _ in 0..1 + next(&mut seed) % 4 {
            let place = match next(&mut seed) % 4 {
                0 => 128 * (next(&mut seed) % 11) as usize, // a cursor or a word
                1 => RINGS_AT + 16 * 1024 + (next(&mut seed) % 512 * 8) as usize, // a frame header of the response ring
                2 => RINGS_AT + (next(&mut seed) % 512 * 8) as usize, // one of the request ring
                _ => (next(&mut seed) as usize % (view.len - 8)) & !7,
            };
            let value = match next(&mut seed) % 5 {
                0 => 0,
                1 => u64::MAX,
                2 => next(&mut seed) % 8192,
                3 => next(&mut seed) & !7 & 0xffff,
                _ => next(&mut seed),
            };
            view.write(place, &value.to_ne_bytes());
        }
        // Payloads held in earlier rounds are unchanged, whatever was written since.
        held.retain(|held: &HeldPayload| {
            assert!(held.copy_from(0).len() == held.len() && held.len() <= 4096);
            next(&mut seed).is_multiple_of(2)
        });
        for _ in 0..64 {
            let frame = if round % 2 == 0 { frames.next_frame_in_place() } else { frames.next_frame() };
            match frame {
                Ok(Some(frame)) => {
                    assert!(frame.payload.len() <= 4096);
                    held.extend(frame.held);
                }
                Ok(None) | Err(_) => break,
            }
        }
        frames.frames_taken();
        let _ = frames.prepare_sleep();
        for slot in &slots {
            let _ = (sender.is_begun(*slot), sender.take_back(*slot));
        }
        if is_multiplexed {
            let _ = (sender.send_cancel(round + 1, 1), sender.is_empty(), sender.selected());
            sender.want_room();
        } else {
            sender.abort(round + 1);
        }
    }
}

/// `HOWDAH_FUZZ_ROUNDS=10000000 cargo test -p howdah-transport --release` runs longer.
#[test]
fn nothing_a_worker_writes_harms_the_server() {
    let rounds = std::env::var("HOWDAH_FUZZ_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(4000);
    for seed in 1..=rounds {
        attack(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
    }
}
