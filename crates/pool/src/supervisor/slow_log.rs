//! The slow log: each request that a tick of the supervisor finds running for longer than `slow_log_after` is noted
//! once, with its PHP stack at that moment, as far as the rate limit allows. The zygote reads the stack from the
//! worker's memory, which the worker does not notice. A request without a report in time is noted without a stack.

use crate::lane::requests::InFlight;
use crate::lane::{Lane, LaneKind};
use crate::shared::Shared;
use crate::supervisor::query_text::without_values;
use howdah_observe::{SlowEntry, SlowFrame, SlowLog, SlowStack};
use howdah_transport::php_stack::{PhpStack, RequestStacks};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Maximum time for a zygote to report a request's stack.
const REPORT_WAIT: Duration = Duration::from_secs(3);
/// Maximum number of entries per second, and in a burst.
const PER_SECOND: f64 = 10.0;
const BURST: f64 = 20.0;

/// A question for a zygote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackQuery {
    pub(crate) order: u64,
    pub(crate) generation: u64,
    pub(crate) pid: u32,
    /// The request's number on its lane.
    pub(crate) request: u64,
}

/// A slow request, as it was when it was found.
#[derive(Debug)]
struct Slow {
    time: SystemTime,
    asked: Instant,
    pid: u32,
    id: String,
    host: Option<Vec<u8>>,
    method: Vec<u8>,
    target: Vec<u8>,
    script: Vec<u8>,
    elapsed: Duration,
    left_out: u64,
}

#[derive(Debug)]
pub(crate) struct SlowRequests {
    log: Option<Arc<SlowLog>>,
    /// Slow requests that wait for their stacks, by order number.
    waiting: HashMap<u64, Slow>,
    last_order: u64,
    allowance: f64,
    filled: Instant,
    left_out: u64,
}

impl SlowRequests {
    pub(crate) fn new(log: Option<Arc<SlowLog>>) -> Self {
        let now = Instant::now();
        Self { log, waiting: HashMap::new(), last_order: 0, allowance: BURST, filled: now, left_out: 0 }
    }

    /// Finds requests that have become slow. Returns the questions to ask zygotes about them.
    pub(crate) fn find_new(&mut self, pool: &Shared) -> Vec<StackQuery> {
        if self.log.is_none() {
            return Vec::new();
        }
        let now = Instant::now();
        self.refill(now);
        let mut questions = Vec::new();
        let mut scheduler = pool.lock();
        let mut found = 0;
        for lane in scheduler.lanes.iter_mut().flatten() {
            let (pid, generation) = (lane.pid, lane.generation);
            for number in slow_requests(lane, pool, now) {
                let Some(request) = lane.in_flight.get_mut(number) else { continue };
                request.noted = true;
                found += 1;
                if self.allowance < 1.0 {
                    self.left_out += 1;
                    continue;
                }
                self.allowance -= 1.0;
                self.last_order += 1;
                let slow = Slow::of(request, pid, now, std::mem::take(&mut self.left_out));
                self.waiting.insert(self.last_order, slow);
                questions.push(StackQuery { order: self.last_order, generation, pid, request: number });
            }
        }
        scheduler.tally.slow += found;
        questions
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.allowance = (self.allowance + passed * PER_SECOND).min(BURST);
        self.filled = now;
    }

    /// Handles a zygote's answer.
    pub(crate) fn answered(&mut self, pool: &str, order: u64, found: Result<RequestStacks, String>) {
        if let Some(slow) = self.waiting.remove(&order) {
            self.note(pool, &slow, found.map(RequestStacks::tidy));
        }
    }

    /// Notes requests whose report is late, or with `all` every request without one.
    pub(crate) fn give_up(&mut self, pool: &str, all: bool) {
        let late: Vec<u64> = self
            .waiting
            .iter()
            .filter(|(_, slow)| all || slow.asked.elapsed() > REPORT_WAIT)
            .map(|(at, _)| *at)
            .collect();
        for order in late {
            self.answered(pool, order, Err("its zygote did not report the stack in time".to_owned()));
        }
    }

    fn note(&self, pool: &str, slow: &Slow, found: Result<RequestStacks, String>) {
        let Some(log) = &self.log else { return };
        let (found, why) = match found {
            Ok(found) => (found, None),
            Err(why) => (RequestStacks::default(), Some(why)),
        };
        let queries: Vec<_> = found.stacks.iter().map(|stack| stack.query.as_deref().map(without_values)).collect();
        log.log(&SlowEntry {
            time: slow.time,
            pool,
            pid: slow.pid,
            request_id: &slow.id,
            host: slow.host.as_deref(),
            method: &slow.method,
            target: &slow.target,
            script: &slow.script,
            elapsed: slow.elapsed,
            cpu: found.cpu_us.map(Duration::from_micros),
            memory: memory_of(slow.pid),
            no_stack: why.as_deref(),
            stacks: found.stacks.iter().zip(&queries).map(|(stack, query)| shown(stack, query.as_deref())).collect(),
            left_out: slow.left_out,
        });
    }
}

/// Numbers of a lane's requests that have just become slow.
fn slow_requests(lane: &Lane, pool: &Shared, now: Instant) -> Vec<u64> {
    let is_slow = |request: &&InFlight| {
        let limit = pool.config().settings.slow_log_after;
        !request.noted
            && limit.is_some_and(|limit| now.saturating_duration_since(request.since) > limit)
            && !request.holds_connection()
    };
    let numbers = |request: &InFlight| request.number;
    match lane.kind {
        // Requests behind the first have not begun.
        LaneKind::Serial(_) => lane.in_flight.front().filter(is_slow).map(numbers).into_iter().collect(),
        LaneKind::Multiplexed(_) => {
            lane.in_flight.iter().filter(is_slow).filter(|request| lane.is_begun(request)).map(numbers).collect()
        }
    }
}

impl Slow {
    fn of(request: &InFlight, pid: u32, now: Instant, left_out: u64) -> Self {
        let head = &request.pending.request.head;
        let host = head.variables().find(|(name, _)| *name == b"HTTP_HOST").map(|(_, value)| value.to_vec());
        Self {
            time: SystemTime::now(),
            asked: now,
            pid,
            id: request.pending.request.id.to_string(),
            host,
            method: head.method().to_vec(),
            target: head.uri().to_vec(),
            script: head.script().to_vec(),
            elapsed: now.saturating_duration_since(request.since),
            left_out,
        }
    }
}

fn shown<'a>(stack: &'a PhpStack, query: Option<&'a str>) -> SlowStack<'a> {
    let frames = stack.frames.iter();
    SlowStack {
        coroutine: stack.coroutine,
        waits_for: stack.waits_for.as_deref(),
        query,
        frames: frames.map(|at| SlowFrame { function: &at.function, file: &at.file, line: at.line }).collect(),
    }
}

/// Resident memory of a process, in bytes.
fn memory_of(pid: u32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_entries_is_bounded() {
        let mut slow = SlowRequests::new(None);
        let start = slow.filled;
        slow.allowance = 0.0;
        slow.refill(start + Duration::from_millis(500));
        assert!((slow.allowance - 5.0).abs() < 0.01);
        slow.refill(start + Duration::from_secs(3600));
        assert!((slow.allowance - BURST).abs() < 0.01);
    }
}
