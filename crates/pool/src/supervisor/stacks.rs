//! Questions to zygotes about workers' PHP stacks: for slow requests and for profiles.

use super::Supervisor;
use crate::process::profile::{ActiveProfile, SamplesSender};
use crate::supervisor::slow_log::StackQuery;
use howdah_transport::php_stack::Samples;
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::oneshot;

impl Supervisor {
    /// Notes requests that have become slow.
    pub(super) fn look_for_slow_requests(&mut self) {
        for StackQuery { order, generation, pid, request } in self.slow.find_new(&self.pool.clone()) {
            let asked = self.generation_mut(generation).map(|g| g.zygote.ask_for_stacks(order, pid, request));
            let why = match asked {
                Some(Ok(())) => continue,
                Some(Err(error)) => format!("cannot send an order to its zygote: {error}"),
                None => "its zygote has ended".to_owned(),
            };
            self.slow.answered(self.pool.name(), order, Err(why));
        }
        self.slow.give_up(self.pool.name(), false);
    }

    pub(super) fn begin_profile(
        &mut self,
        rate: u32,
        length: Duration,
        taker: SamplesSender,
        begun: oneshot::Sender<Result<(), String>>,
    ) {
        let outcome = self.order_profile(rate, length, taker);
        // The requester may have gone; the next tick ends profiles without a receiver.
        let _ = begun.send(outcome);
    }

    fn order_profile(&mut self, rate: u32, length: Duration, taker: SamplesSender) -> Result<(), String> {
        if self.profile.is_some() {
            return Err("this pool is already being profiled; try again when that has ended".to_owned());
        }
        self.last_profile += 1;
        let order = self.last_profile;
        let mut asked = HashSet::new();
        for generation in self.current.iter().chain(&self.old).filter(|generation| generation.booted) {
            if generation.zygote.profile(order, rate, length).is_ok() {
                asked.insert(generation.number);
            }
        }
        if asked.is_empty() {
            return Err("PHP has not started in this pool: there is nothing to profile".to_owned());
        }
        self.profile = Some(ActiveProfile::new(order, taker, asked, length));
        Ok(())
    }

    pub(super) fn profiled(&mut self, generation: u64, order: u64, seen: Samples, last: bool) {
        let Some(profile) = self.profile.as_mut().filter(|profile| profile.order == order) else { return };
        if !profile.generations.contains(&generation) {
            return;
        }
        let _ = profile.taker.send(seen);
        if last {
            profile.generations.remove(&generation);
        }
        self.end_profile();
    }

    /// A profile ends when all zygotes have sent their last message, or the receiver is gone.
    pub(super) fn end_profile(&mut self) {
        let live: HashSet<u64> = self.current.iter().chain(&self.old).map(|generation| generation.number).collect();
        if let Some(profile) = self.profile.as_mut() {
            profile.generations.retain(|generation| live.contains(generation));
        }
        let Some(profile) = self.profile.take_if(|profile| profile.is_over()) else { return };
        for number in profile.generations {
            if let Some(generation) = self.generation_mut(number) {
                // If the zygote is gone, its part of the profile is too.
                let _ = generation.zygote.profile(profile.order, 0, Duration::ZERO);
            }
        }
    }
}
