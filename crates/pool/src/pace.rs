//! How long calls take at the moment, and what follows from it for their places.
//!
//! A worker that runs one short call after the other keeps its caches warm and is not woken for each of them: with calls of
//! some ten microseconds that is worth more than a second worker. So, as long as calls are short, a new one is put behind
//! others although a worker is idle, if it will wait `PATIENCE` at most as far as one can tell. One cannot always tell:
//! the lanes' watch (`watch`) looks every `LOOK` and takes back what waits behind a call that turned out to be long.

use crate::pool::Pool;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a call may wait behind others while a worker is idle, as far as one can tell beforehand.
const PATIENCE: u32 = 100;
/// Calls that a lane holds at most.
pub(crate) const MOST: usize = 8;
/// A call that runs longer has turned out to be long.
pub(crate) const LONG: Duration = Duration::from_micros(500);
/// How often it is looked whether one has.
const LOOK: Duration = Duration::from_millis(1);
/// What a single call counts at most, in microseconds. So calls that are short but for one in thirty still count as short.
const CLAMP: u32 = 2_000;
/// The weight of the last call.
const WEIGHT: u32 = 16;

/// The recent calls' time.
#[derive(Debug)]
pub(crate) struct Pace {
    /// A moving average in 1/`WEIGHT` microseconds.
    average: u32,
}

impl Default for Pace {
    fn default() -> Self {
        // Nothing is known: calls are taken for long ones.
        Self { average: CLAMP * WEIGHT }
    }
}

impl Pace {
    /// A call took this long.
    pub(crate) fn note(&mut self, micros: u64) {
        let micros = u32::try_from(micros).unwrap_or(CLAMP).min(CLAMP);
        self.average = self.average - self.average / WEIGHT + micros;
    }

    /// How many calls a lane may hold while other workers are idle; 1 while calls are long.
    pub(crate) fn crowd(&self) -> usize {
        let micros = (self.average / WEIGHT).max(1);
        ((PATIENCE / micros) as usize + 1).min(MOST)
    }
}

/// Looks after calls that were put behind others. Runs until the pool is gone.
pub(crate) async fn watch(pool: Weak<Pool>, crowded: Arc<Notify>) {
    loop {
        crowded.notified().await;
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(pool) = pool.upgrade() else { return };
            if !pool.lock().spread() {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(calls: impl IntoIterator<Item = u64>) -> usize {
        let mut pace = Pace::default();
        calls.into_iter().for_each(|micros| pace.note(micros));
        pace.crowd()
    }

    #[test]
    fn only_short_calls_are_put_behind_each_other() {
        assert_eq!(after([]), 1);
        assert_eq!(after([10; 10]), 1);
        assert_eq!(after([10; 200]), MOST);
        assert_eq!(after([40; 200]), 3);
        assert_eq!(after([200; 200]), 1);
        assert_eq!(after([u64::MAX; 200]), 1);
    }

    #[test]
    fn a_long_call_counts_at_once_and_is_forgotten_after_many_short_ones() {
        assert_eq!(after([10; 200].into_iter().chain([20_000])), 1);
        assert_eq!(after([10; 200].into_iter().chain([20_000]).chain([10; 60])), MOST);
    }
}
