//! Log lines of one worker: passed on with their request, at a limited rate.

use crate::lane_reader::handle::LaneHandle;
use crate::process::log_limit::LogLimit;
use howdah_transport::Frame;
use std::time::Instant;

/// The level of syslog(3) up to which lines also go to the request's `LogSink`.
const LOG_INFO: u8 = 6;

pub(super) struct WorkerLog {
    limit: LogLimit,
    /// The first error of a boot, not logged yet: if the worker dies, the supervisor logs it with the consequence.
    pub(super) boot_error: Option<String>,
}

impl WorkerLog {
    pub(super) fn new(now: Instant) -> Self {
        Self { limit: LogLimit::new(now), boot_error: None }
    }

    /// Logs a line, the payload of a frame; `boots` until the worker is ready. Returns false if the line was malformed
    /// or dropped.
    pub(super) fn line(&mut self, lane: &LaneHandle, frame: &Frame, boots: bool, now: Instant) -> bool {
        let number = frame.number;
        let Some((&level, text)) = frame.payload.split_first() else { return false };
        let verdict = self.limit.admit(text.len(), now);
        if let Some(lines) = verdict.left_out {
            report_left_out(lane, lines);
        }
        if !verdict.pass {
            return false;
        }
        let text = String::from_utf8_lossy(text);
        let request = lane.request_name(number);
        let (id, label) = request.as_ref().map_or(("-", ""), |(id, label)| (id.as_str(), label.as_str()));
        if boots && request.is_none() && level <= 3 && self.boot_error.is_none() {
            self.boot_error = Some(text.into_owned());
            return true;
        }
        if request.is_none() && !lane.is_new_line(&text) {
            return true;
        }
        if let Some(front) = lane.log_front(number).filter(|_| level <= LOG_INFO) {
            front.line(&text);
        }
        let (pool, pid) = (lane.pool(), lane.pid());
        match level {
            0..=3 => tracing::error!(target: "php", pool, pid, request = id, label, "{text}"),
            4 => tracing::warn!(target: "php", pool, pid, request = id, label, "{text}"),
            5 | 6 => tracing::info!(target: "php", pool, pid, request = id, label, "{text}"),
            _ => tracing::debug!(target: "php", pool, pid, request = id, label, "{text}"),
        }
        true
    }

    /// Logs the error of a boot that still succeeded.
    pub(super) fn booted(&mut self, lane: &LaneHandle) {
        if let Some(text) = self.boot_error.take() {
            log_error(lane.pool(), lane.pid(), &text);
        }
    }

    /// Reports lines dropped last, after the worker's death.
    pub(super) fn end(&mut self, lane: &LaneHandle) {
        if let Some(lines) = self.limit.take_left_out() {
            report_left_out(lane, lines);
        }
    }
}

/// Logs an error of a worker's boot.
pub(crate) fn log_error(pool: &str, pid: u32, text: &str) {
    tracing::error!(target: "php", pool, pid, request = "-", label = "", "{text}");
}

/// Logs a line about a request on the server's behalf.
pub(super) fn note(lane: &LaneHandle, number: u64, text: &str) {
    let (id, label) = lane.request_name(number).unwrap_or_default();
    tracing::warn!(target: "php", request = id, label, "{text}");
}

fn report_left_out(lane: &LaneHandle, lines: u64) {
    let (pool, pid) = (lane.pool(), lane.pid());
    tracing::warn!(target: "php", pool, pid, lines, "worker logs too fast: lines were dropped");
}
