//! Slow boots: logs PHP's current line after some seconds, and kills workers and zygotes that exceed `boot_timeout`.

use super::Supervisor;
use crate::process::worker_state::KillReason;
use howdah_transport::Mode;
use howdah_transport::php_stack::{RequestStacks, StackFrame};
use std::time::Duration;

/// A boot that takes longer than this, or than half of `boot_timeout`, is reported.
const SLOW_BOOT: Duration = Duration::from_secs(5);
/// Time after which a zygote that closed its socket is killed.
const ZYGOTE_TIMEOUT: Duration = Duration::from_secs(1);
/// Set in the order numbers of questions about boots; questions about requests count from 1.
const ABOUT_BOOT: u64 = 1 << 63;
/// Stands for code that runs before any request.
const NO_REQUEST: u64 = 0;

impl Supervisor {
    /// Reports the first slow boot of a generation, with PHP's current line.
    pub(super) fn report_slow_boots(&mut self) {
        let limit = SLOW_BOOT.min(self.pool.config().settings.boot_timeout / 2);
        let slow = self.pool.lock().lanes.iter().flatten().find_map(|lane| {
            let is_slow = lane.state.is_starting() && !lane.was_ready && lane.started.elapsed() > limit;
            (is_slow && lane.generation > self.slow_boot_reported).then_some((lane.generation, lane.pid))
        });
        let Some((number, pid)) = slow else { return };
        self.slow_boot_reported = number;
        let order = ABOUT_BOOT | u64::from(pid);
        let asked = self.generation_mut(number).map(|g| g.zygote.ask_for_stacks(order, pid, NO_REQUEST));
        if !matches!(asked, Some(Ok(()))) {
            self.slow_boot(pid, None);
        }
    }

    /// Handles a zygote's report of a PHP stack: of a slow boot or a slow request.
    pub(super) fn stacks(&mut self, order: u64, found: Result<RequestStacks, String>) {
        if order & ABOUT_BOOT == 0 {
            return self.slow.answered(self.pool.name(), order, found);
        }
        let stacks = found.map(RequestStacks::tidy).map(|found| found.stacks).unwrap_or_default();
        let frame = stacks.into_iter().flat_map(|stack| stack.frames).find(|frame| !frame.file.is_empty());
        self.slow_boot((order & !ABOUT_BOOT) as u32, frame.as_ref());
    }

    fn slow_boot(&self, pid: u32, at: Option<&StackFrame>) {
        let config = self.pool.config();
        let worker = &config.boot.worker;
        let loops = matches!(worker.mode, Mode::Worker | Mode::Async) && worker.recipe.is_empty();
        let what = match loops {
            true => format!("{} has not called frankenphp_handle_request()", worker.script.as_str()),
            false => "its boot has not ended".to_owned(),
        };
        let at = at.map(|frame| format!(", PHP is at {}:{}", frame.file, frame.line)).unwrap_or_default();
        tracing::warn!(
            pool = self.pool.name(),
            pid,
            "worker is still booting: {what}{at}; it is replaced after {:?} (boot_timeout)",
            config.settings.boot_timeout
        );
    }

    pub(super) fn kill_slow_starters(&mut self) {
        let limit = self.pool.config().settings.boot_timeout;
        for lane in self.pool.lock().lanes.iter_mut().flatten() {
            if lane.state.is_starting() && lane.started.elapsed() > limit {
                lane.kill(KillReason::BootTimeout);
            }
        }
        for generation in self.current.iter_mut().chain(self.next.iter_mut().map(|(g, _)| g)) {
            if !generation.booted && !generation.too_slow && generation.started.elapsed() > limit {
                tracing::error!(
                    pool = self.pool.name(),
                    "PHP did not start within {limit:?} (boot_timeout): killing it"
                );
                generation.too_slow = true;
                generation.zygote.kill();
            }
            if generation.closed_since.is_some_and(|since| since.elapsed() > ZYGOTE_TIMEOUT) {
                generation.zygote.kill();
            }
        }
    }

    /// Kills booting workers at a stop: they have no request to finish.
    pub(super) fn end_boots(&self) {
        for lane in self.pool.lock().lanes.iter_mut().flatten().filter(|lane| lane.state.is_starting()) {
            lane.kill(KillReason::Stopping);
        }
    }
}
