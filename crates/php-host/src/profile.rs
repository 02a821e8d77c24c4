//! A running profile in the zygote: samples all workers at a given rate and counts the stacks. Without a profile none
//! of this runs. Counts are sent to the server every second, or when they fill a message.

use crate::php::{Frame, Line, read_lines, read_stack};
use crate::stacks::{Names, cost_of};
use howdah_transport::php_stack::{MAX_FRAMES, MAX_RATE, Samples, StackFrame};
use howdah_transport::zygote_protocol::FromZygote;
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Interval of reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum size of a message in bytes.
const MAX_MESSAGE: usize = 40 * 1024;
/// Maximum number of coroutines of a worker in one sample; if there are more, each sampled one represents several.
const COROUTINES: usize = 16;
const MAX_COROUTINES: usize = 4096;
/// Maximum duration of a profile.
const MAX_PROFILE_TIME: Duration = Duration::from_secs(3600);

pub(crate) struct Profile {
    order: u64,
    every: Duration,
    next: Instant,
    end: Instant,
    last_report: Instant,
    names: Names,
    frames: HashMap<StackFrame, u32>,
    seen: Samples,
    stacks: HashMap<Vec<u32>, u64>,
    room: usize,
    lines: Vec<Line>,
    /// Index of the first coroutine in the next sample of a worker.
    turn: usize,
}

impl Profile {
    /// `None`: the order ends a profile.
    pub(crate) fn new(order: u64, rate: u32, milliseconds: u64) -> Option<Self> {
        let now = Instant::now();
        let length = Duration::from_millis(milliseconds).min(MAX_PROFILE_TIME);
        (rate > 0).then(|| Self {
            order,
            every: Duration::from_secs(1) / rate.min(MAX_RATE),
            next: now,
            end: now + length,
            last_report: now,
            names: Names::default(),
            frames: HashMap::new(),
            seen: Samples::default(),
            stacks: HashMap::new(),
            room: MAX_MESSAGE,
            lines: vec![Line::default(); MAX_COROUTINES],
            turn: 0,
        })
    }

    /// Time until the next sample; reports are made with one.
    pub(crate) fn due_in(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Samples the workers if it is time to, and returns a due report. `workers`: process ids with their memory.
    pub(crate) fn step<'a>(&mut self, workers: impl Iterator<Item = (i32, Option<&'a OwnedFd>)>) -> Vec<FromZygote> {
        let mut messages = Vec::new();
        let now = Instant::now();
        if now >= self.next {
            for (pid, memory) in workers {
                match memory {
                    Some(memory) => self.sample(pid, memory, &mut messages),
                    None => self.seen.unread += 1,
                }
            }
            self.next += self.every;
            // Missed samples are not made up for; otherwise they would come in a burst.
            while self.next <= now {
                self.next += self.every;
                self.seen.late += 1;
            }
        }
        if now.saturating_duration_since(self.last_report) >= REPORT_INTERVAL {
            messages.push(self.report(false));
        }
        messages
    }

    /// Returns the unreported rest.
    pub(crate) fn last(&mut self) -> FromZygote {
        self.report(true)
    }

    fn sample(&mut self, pid: i32, memory: &OwnedFd, messages: &mut Vec<FromZygote>) {
        let memory = memory.as_fd();
        let mut lines = std::mem::take(&mut self.lines);
        let (n, all) = read_lines(memory, false, &mut lines);
        let looked = n.min(COROUTINES);
        self.turn = self.turn.wrapping_add(looked);
        for at in 0..looked {
            let line = &lines[(self.turn + at) % n];
            let mut frames = [Frame::default(); MAX_FRAMES];
            let read = read_stack(memory, line.frame, &mut frames);
            if read == 0 {
                continue;
            }
            let named: Vec<_> = frames[..read].iter().map(|frame| self.names.of(pid, memory, frame)).collect();
            let stands_for = (all / looked + usize::from(at < all % looked)) as u64;
            self.count(named, stands_for, messages);
        }
        self.lines = lines;
    }

    fn count(&mut self, stack: Vec<StackFrame>, times: u64, messages: &mut Vec<FromZygote>) {
        let cost = |profile: &Self| {
            let new = stack.iter().filter(|frame| !profile.frames.contains_key(frame));
            new.map(cost_of).sum::<usize>() + 8 * stack.len() + 16
        };
        if cost(self) > self.room {
            messages.push(self.report(false));
        }
        self.room = self.room.saturating_sub(cost(self));
        let mut positions = Vec::with_capacity(stack.len());
        for frame in stack {
            let next = self.frames.len() as u32;
            let position = *self.frames.entry(frame.clone()).or_insert(next);
            if position == next {
                self.seen.frames.push(frame);
            }
            positions.push(position);
        }
        *self.stacks.entry(positions).or_default() += times;
    }

    fn report(&mut self, last: bool) -> FromZygote {
        self.last_report = Instant::now();
        self.names.forget();
        self.frames.clear();
        self.room = MAX_MESSAGE;
        let mut seen = std::mem::take(&mut self.seen);
        seen.stacks = std::mem::take(&mut self.stacks).into_iter().collect();
        FromZygote::Samples { order: self.order, seen, last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str) -> StackFrame {
        StackFrame { function: function.to_owned(), file: "/f.php".to_owned(), line: 1 }
    }

    #[test]
    fn equal_stacks_are_counted_and_messages_are_sent_when_full() {
        let (mut profile, mut messages) = (Profile::new(7, 99, 1000).unwrap(), Vec::new());
        for at in 0..1000 {
            profile.count(vec![frame(&format!("f{at:0250}")), frame("main")], 1, &mut messages);
            profile.count(vec![frame("same"), frame("main")], 2, &mut messages);
        }
        messages.push(profile.last());
        let (mut all, mut same) = (0, 0);
        for message in &messages {
            assert!(serde_json::to_vec(message).unwrap().len() < howdah_transport::control_socket::MAX_MESSAGE);
            let FromZygote::Samples { order: 7, seen, .. } = message else { panic!("{message:?}") };
            let seen = seen.clone().tidy();
            all += seen.stacks.iter().map(|(_, times)| times).sum::<u64>();
            let is_same = |stack: &Vec<u32>| seen.frames[stack[0] as usize].function == "same";
            same += seen.stacks.iter().filter(|(stack, _)| is_same(stack)).map(|(_, times)| times).sum::<u64>();
        }
        assert_eq!((all, same), (3000, 2000));
        assert!(messages.len() > 2 && Profile::new(1, 0, 1).is_none());
    }
}
