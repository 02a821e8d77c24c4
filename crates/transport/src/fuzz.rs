//! For fuzzing: a worker that writes arbitrary data into its lane, as directed by a script of bytes. The target here is
//! the server's end; `howdah-pool` has a target for the code that reads responses.
//!
//! A script is text, so that its corpus is readable; any other bytes have a meaning too. Each line is one step:
//!
//! | line | writes |
//! |---|---|
//! | `KIND NUMBER FLAGS REPEAT TEXT` | a frame whose payload repeats the text. Kinds: see `KINDS`, or a number |
//! | `head NUMBER FLAGS STATUS A: b\|C: d`, `interim …` | a head as it is laid out on the wire |
//! | `claim LENGTH` | the next frame claims this length |
//! | `cursor VALUE`, `skip VALUE` | nothing: moves the worker's cursor to or by this value |
//! | `word PLACE VALUE` | a word of the control page |
//! | `show` | publishes and wakes the server, which reads |

use crate::ring::{FrameHeader, HEADER_LEN, Ring, frame_len};
use crate::segment::Segment;
use crate::wake;
use crate::wire::{EncodedRequest, RequestBuilder, VarName, WireDone};
use crate::{BodyInLane, FrameReceiver, HeldPayload, LaneSizes, RequestSender, RequestSlot, create_lane};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Pieces of scripts, for mutations.
pub const WORDS: &[&[u8]] = &[
    b"\nshow\n",
    b"\nclaim ",
    b"\ncursor ",
    b"\nskip 8\n",
    b"\nword ",
    b"\nhead 1 0 200 A: b\n",
    b"\nbody 1 0 ",
    b"\nend 1\n",
    b"\ndone 1\n",
    b"\ninterim 1 0 103 A: b\n",
    b"\nlog 0 0 1 x\n",
    b"\nlive 1 0 x\n",
    b"\nback 1\n",
    b"\nready\n",
    b" 4294967295 ",
    b" 2 ",
    b"|",
];

/// Names of frame kinds in scripts, with their numbers on the wire.
const KINDS: [(&str, u16); 14] = [
    ("pad", crate::wire::FrameKind::Pad as u16),
    ("call", crate::wire::FrameKind::Request as u16),
    ("stop", crate::wire::FrameKind::Stop as u16),
    ("cancel", crate::wire::FrameKind::Cancel as u16),
    ("ready", crate::wire::FrameKind::Ready as u16),
    ("head", crate::wire::FrameKind::Head as u16),
    ("interim", crate::wire::FrameKind::Interim as u16),
    ("body", crate::wire::FrameKind::Body as u16),
    ("end", crate::wire::FrameKind::End as u16),
    ("done", crate::wire::FrameKind::Done as u16),
    ("log", crate::wire::FrameKind::Log as u16),
    ("live", crate::wire::FrameKind::Live as u16),
    ("back", crate::wire::FrameKind::GiveBack as u16),
    ("need", crate::wire::FrameKind::NeedBody as u16),
];

/// Maximum number of steps in a script.
const MAX_STEPS: usize = 400;

/// One action of the worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Writes a frame after the last one.
    Frame {
        /// `FrameKind` as a number, or an invalid number.
        kind: u16,
        /// `FLAG_*` bits, or others.
        flags: u16,
        /// The request.
        number: u64,
        /// Its payload.
        payload: Vec<u8>,
        /// The length in the header, if it differs from the payload's.
        claimed: Option<u32>,
    },
    /// Moves the worker's own cursor for the end of the published frames.
    Cursor(u64),
    /// As `Cursor`, relative to its current value.
    Skip(u64),
    /// Writes a word of the control page.
    Word(usize, u64),
    /// Publishes and wakes the server.
    Show,
}

/// Parses a script. A frame with an empty text has a payload of `REPEAT` zero bytes; `done` and `back` have a fixed
/// number of them.
pub fn script(data: &[u8]) -> Vec<Step> {
    let mut claimed = None;
    let mut steps = Vec::new();
    for line in data.split(|&b| b == b'\n').filter(|line| !line.is_empty()).take(MAX_STEPS) {
        let mut words = line.splitn(5, |&b| b == b' ');
        let name = words.next().unwrap_or_default();
        let mut number = || words.next().map_or(0, parse);
        let step = match name {
            b"claim" => {
                claimed = Some(number() as u32);
                continue;
            }
            b"cursor" => Step::Cursor(number()),
            b"skip" => Step::Skip(number()),
            b"word" => Step::Word(number() as usize, number()),
            b"show" => Step::Show,
            _ => {
                let named = KINDS.iter().find(|(known, _)| known.as_bytes() == name);
                let kind = named.map_or_else(|| parse(name) as u16, |(_, kind)| *kind);
                let (request, flags, times) = (number(), number() as u16, number());
                let text = words.next().unwrap_or_default();
                let payload = match (named.map(|(name, _)| *name), text) {
                    (Some("head" | "interim"), text) => head(times as u16, text),
                    (Some("done"), []) => vec![0; size_of::<WireDone>()],
                    (Some("back"), []) => vec![0; 8],
                    (_, []) => vec![0; times.min(1 << 19) as usize],
                    (_, text) => text.repeat((times as usize).clamp(1, (1 << 19) / text.len())),
                };
                Step::Frame { kind, flags, number: request, payload, claimed: claimed.take() }
            }
        };
        steps.push(step);
    }
    steps
}

/// Parses a decimal number. Other text yields its first bytes as a number, so that every bit can be reached.
fn parse(word: &[u8]) -> u64 {
    let text = std::str::from_utf8(word).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(word).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(bytes)
    })
}

fn head(status: u16, lines: &[u8]) -> Vec<u8> {
    let mut payload = status.to_ne_bytes().to_vec();
    for line in lines.split(|&b| b == b'|').filter(|line| !line.is_empty()) {
        payload.extend_from_slice(&(line.len() as u32).to_ne_bytes());
        payload.extend_from_slice(line);
    }
    payload
}

/// The worker's side of a lane, for a worker that breaks every rule.
#[derive(Debug)]
pub struct RawWorker {
    segment: Segment,
    responses: Ring,
    head: u64,
    eventfd: OwnedFd,
}

impl RawWorker {
    /// Maps the lane; `eventfd` wakes the server.
    ///
    /// # Errors
    /// As `WorkerEnd::attach`.
    pub fn attach(lane: impl AsFd, eventfd: OwnedFd) -> io::Result<Self> {
        let segment = Segment::attach(lane)?;
        let head = segment.control().response_head.0.load(Ordering::Relaxed);
        Ok(Self { responses: segment.response_ring(), head, segment, eventfd })
    }

    /// `true` if the step would overwrite bytes that the server has not read.
    pub fn must_wait(&self, step: &Step) -> bool {
        let Step::Frame { payload, .. } = step else { return false };
        let tail = self.segment.control().response_tail.0.load(Ordering::Acquire);
        let used = self.head.wrapping_sub(tail);
        // Also counts bytes skipped at the ring's end.
        let need = 2 * frame_len(payload.len().min(self.responses.max_payload()));
        used <= self.responses.cap() as u64 && used + need as u64 > self.responses.cap() as u64
    }

    /// Executes a step.
    pub fn play(&mut self, step: &Step) {
        match step {
            Step::Frame { kind, flags, number, payload, claimed } => {
                let payload = &payload[..payload.len().min(self.responses.max_payload())];
                self.write(*kind, *flags, *number, payload, claimed.unwrap_or(payload.len() as u32));
            }
            Step::Cursor(value) => self.head = *value,
            Step::Skip(value) => self.head = self.head.wrapping_add(*value),
            Step::Word(place, value) => {
                let words = std::ptr::from_ref(self.segment.control()).cast::<AtomicU64>();
                // SAFETY: the control page has 512 words of 8 bytes, all mapped, initially zero and used only as
                // atomics; 32-bit words are read as halves of these.
                unsafe { &*words.add(place % 512) }.store(*value, Ordering::Relaxed);
            }
            Step::Show => self.show(),
        }
    }

    /// Publishes and wakes the server.
    pub fn show(&self) {
        self.segment.control().response_head.0.store(self.head, Ordering::Release);
        wake::wake_server(&self.segment.control().server_word.0, self.eventfd.as_fd());
    }

    fn write(&mut self, kind: u16, flags: u16, number: u64, payload: &[u8], len: u32) {
        // Cursors that no honest worker has would point outside the ring.
        self.head &= !7;
        let header = |kind, len| FrameHeader { len, kind, flags, number, state: 0, began: 0 };
        let room = self.responses.cap() - (self.head % self.responses.cap() as u64) as usize;
        if room < frame_len(payload.len()) {
            if room >= HEADER_LEN {
                self.responses.write_header(self.head, header(KINDS[0].1, (room - HEADER_LEN) as u32));
            }
            self.head = self.head.wrapping_add(room as u64);
        }
        self.responses.write_payload(self.head, 0, payload);
        self.responses.write_header(self.head, header(kind, len));
        self.head = self.head.wrapping_add(frame_len(payload.len()) as u64);
    }
}

fn some_request() -> EncodedRequest {
    let mut builder = RequestBuilder::new(1, 1001, 1);
    let method = builder.var(VarName::REQUEST_METHOD, b"GET");
    builder.method(method);
    builder.finish()
}

/// The server's side of a lane.
struct Server {
    sender: RequestSender,
    frames: FrameReceiver,
    slots: Vec<RequestSlot>,
    held: Vec<HeldPayload>,
    /// End of the bytes read.
    seen: u64,
}

impl Server {
    /// Does everything that a server does with a lane in which this much is published; false if the lane is broken.
    fn turn(&mut self, published: u64, in_place: bool) -> bool {
        let number = self.slots.len() as u64 + 1;
        self.slots.extend(self.sender.send_request(&some_request(), number, BodyInLane::Inline(b"body")).ok());
        let (new, mut read) = (published.wrapping_sub(self.seen), 0);
        loop {
            let frame = if in_place { self.frames.next_frame_in_place() } else { self.frames.next_frame() };
            let Ok(frame) = frame else { return false };
            let Some(frame) = frame else { break };
            read += frame_len(frame.payload.len() + frame.held.as_ref().map_or(0, HeldPayload::len)) as u64;
            assert!(new <= LaneSizes::TINY.response.into() && read <= new, "{read} bytes are read of {new}");
            self.held.extend(frame.held);
        }
        for payload in &self.held {
            assert_eq!(payload.copy_from(0).len(), payload.len());
        }
        self.seen = published;
        if published.is_multiple_of(16) {
            self.held.clear();
        }
        self.frames.frames_taken();
        let _ = self.frames.prepare_sleep();
        for slot in &self.slots {
            let _ = (self.sender.is_begun(*slot), self.sender.ran_us(*slot, 7), self.sender.take_back(*slot));
        }
        let _ = (self.sender.send_cancel(1, 1), self.sender.is_empty(), self.sender.selected(), self.sender.pools());
        self.sender.abort(1);
        true
    }
}

/// Runs the server's end against a worker that follows this script. The server must read only published bytes,
/// and each of its steps must end.
///
/// # Panics
/// If a rule is broken.
pub fn worker_frames(data: &[u8]) {
    let steps = script(data);
    for in_place in [false, true] {
        let lane = create_lane(LaneSizes::TINY).and_then(|(sender, frames, fd)| {
            let worker = RawWorker::attach(fd, crate::new_eventfd()?)?;
            Ok((Server { sender, frames, slots: Vec::new(), held: Vec::new(), seen: 0 }, worker))
        });
        let Ok((mut server, mut worker)) = lane else { panic!("no lane") };
        for step in steps.iter().chain([&Step::Show]) {
            if *step == Step::Show || worker.must_wait(step) {
                worker.show();
                // If all room in the lane is held, waiting frees none.
                if !server.turn(worker.head, in_place) || worker.must_wait(step) {
                    break;
                }
            }
            worker.play(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_fuzz_driver::Target;

    #[test]
    fn nothing_in_a_lane_breaks_the_servers_end() {
        let target = Target { name: "worker_frames", corpus: "worker_frames", words: WORDS, run: worker_frames };
        howdah_fuzz_driver::drive(&target, 3000);
    }

    #[test]
    fn a_script_is_parsed_as_documented() {
        let steps = script(b"head 1 0 200 A: b|C: d\nbody 1 1 3 ab\nclaim 9\n77 2\nword 5 6\nshow\ndone 1");
        let frame = |kind, flags, number, payload: &[u8], claimed| Step::Frame {
            kind,
            flags,
            number,
            payload: payload.to_vec(),
            claimed,
        };
        let head = [&200u16.to_ne_bytes()[..], &4u32.to_ne_bytes(), b"A: b", &4u32.to_ne_bytes(), b"C: d"].concat();
        let kind = |name| KINDS.iter().find(|(known, _)| *known == name).unwrap().1;
        let expected = [
            frame(kind("head"), 0, 1, &head, None),
            frame(kind("body"), 1, 1, b"ababab", None),
            frame(77, 0, 2, b"", Some(9)),
            Step::Word(5, 6),
            Step::Show,
            frame(kind("done"), 0, 1, &[0; size_of::<WireDone>()], None),
        ];
        assert_eq!(steps, expected);
    }
}
