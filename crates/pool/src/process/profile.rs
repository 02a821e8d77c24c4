//! Profiles of a pool: sums of the stacks that its zygotes sampled in its workers.

use howdah_transport::php_stack::{Samples, StackFrame};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Maximum number of different stacks; further ones are only counted.
const MAX_STACKS: usize = 100_000;
/// Maximum number of different functions and lines.
const MAX_FRAMES: usize = 100_000;
/// Additional time that a zygote has for its last message.
const REPORT_GRACE: Duration = Duration::from_secs(3);

pub(crate) type SamplesSender = mpsc::UnboundedSender<Samples>;

#[derive(Debug)]
pub(crate) struct ActiveProfile {
    pub(crate) order: u64,
    pub(crate) taker: SamplesSender,
    /// Generations that have not sent their last message.
    pub(crate) generations: HashSet<u64>,
    pub(crate) until: Instant,
}

impl ActiveProfile {
    pub(crate) fn new(order: u64, taker: SamplesSender, generations: HashSet<u64>, length: Duration) -> Self {
        Self { order, taker, generations, until: Instant::now() + length + REPORT_GRACE }
    }

    /// `true` if no more samples come, or the receiver is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.generations.is_empty() || self.taker.is_closed() || Instant::now() > self.until
    }
}

/// Samples of a pool's workers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    pub pool: String,
    /// Samples per second.
    pub rate: u32,
    pub milliseconds: u64,
    pub frames: Vec<StackFrame>,
    /// Stacks as indices into `frames`, innermost first, each with its number of samples.
    pub stacks: Vec<(Vec<u32>, u64)>,
    /// Samples of workers whose memory could not be read.
    pub unread: u64,
    /// Samples that were not taken in time.
    pub late: u64,
    /// Samples beyond what a profile keeps.
    pub left_out: u64,
}

/// Adds samples up.
#[derive(Debug, Default)]
pub(crate) struct MergedSamples {
    frames: HashMap<StackFrame, u32>,
    stacks: HashMap<Vec<u32>, u64>,
    unread: u64,
    late: u64,
    left_out: u64,
}

impl MergedSamples {
    pub(crate) fn add(&mut self, samples: Samples) {
        let samples = samples.tidy();
        self.unread = self.unread.saturating_add(samples.unread);
        self.late = self.late.saturating_add(samples.late);
        for (stack, times) in samples.stacks {
            let frames = stack.iter().map(|&at| &samples.frames[at as usize]);
            let new = frames.clone().filter(|frame| !self.frames.contains_key(frame)).count();
            if self.frames.len() + new > MAX_FRAMES {
                self.left_out = self.left_out.saturating_add(times);
                continue;
            }
            let mut positions = Vec::with_capacity(stack.len());
            for frame in frames {
                let next = self.frames.len() as u32;
                positions.push(match self.frames.get(frame) {
                    Some(&known) => known,
                    None => *self.frames.entry(frame.clone()).or_insert(next),
                });
            }
            if self.stacks.len() >= MAX_STACKS && !self.stacks.contains_key(&positions) {
                self.left_out = self.left_out.saturating_add(times);
                continue;
            }
            let count = self.stacks.entry(positions).or_default();
            *count = count.saturating_add(times);
        }
    }

    pub(crate) fn into_profile(self, pool: &str, rate: u32, length: Duration) -> Profile {
        let mut frames: Vec<(StackFrame, u32)> = self.frames.into_iter().collect();
        frames.sort_unstable_by_key(|(_, at)| *at);
        let mut stacks: Vec<_> = self.stacks.into_iter().collect();
        stacks.sort_unstable();
        Profile {
            pool: pool.to_owned(),
            rate,
            milliseconds: length.as_millis() as u64,
            frames: frames.into_iter().map(|(frame, _)| frame).collect(),
            stacks,
            unread: self.unread,
            late: self.late,
            left_out: self.left_out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_several_messages_are_added_up() {
        let frame = |function: &str| StackFrame { function: function.to_owned(), file: String::new(), line: 0 };
        let samples = |frames: &[&str], stacks: Vec<(Vec<u32>, u64)>| Samples {
            frames: frames.iter().map(|name| frame(name)).collect(),
            stacks,
            unread: 1,
            late: 0,
        };
        let mut sum = MergedSamples::default();
        sum.add(samples(&["a", "main"], vec![(vec![0, 1], 3)]));
        sum.add(samples(&["main", "b", "a"], vec![(vec![2, 0], 4), (vec![1, 0], 1), (vec![9], 100)]));
        let profile = sum.into_profile("shop", 99, Duration::from_secs(1));
        let named: Vec<_> = profile
            .stacks
            .iter()
            .map(|(stack, times)| {
                let names = stack.iter().map(|&at| profile.frames[at as usize].function.as_str());
                (names.collect::<Vec<_>>().join(";"), *times)
            })
            .collect();
        assert_eq!(named, [("a;main".to_owned(), 7), ("b;main".to_owned(), 1)]);
        assert_eq!((profile.unread, profile.left_out), (2, 0));
    }
}
