//! Reports the result of a warm-up to the server: errors, and values that visitors would share. Called by the shim's
//! `snapshot/php/warmup.c`. The check runs in a fork of the booting worker, so it does not touch the worker's memory.

use crate::template;
use crate::warmup_check::{Response, Responses, shared};
use howdah_transport::zygote_protocol::{Finding, FromZygote};
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;
use zerocopy::IntoBytes;

/// A response to a warm-up request.
#[repr(C)]
struct Recorded {
    /// 0: there was no response.
    status: u32,
    head_length: u32,
    session_length: u32,
    body_length: u32,
    /// Lines "Name: value\n".
    head: [c_char; 8192],
    /// Strings of the session, "name=value\n".
    session: [c_char; 16384],
    /// Truncated.
    body: [c_char; 131072],
}

/// Index of the first of the two responses to a path where no warm-up request had run.
#[expect(unreachable_pub, reason = "else it would not be in bridge.h")]
pub const HOWDAH_RESPONSE_ALONE: usize = 0;
/// Index of the first of the two responses on the finished snapshot.
#[expect(unreachable_pub, reason = "else it would not be in bridge.h")]
pub const HOWDAH_RESPONSE_RESTORED: usize = 2;
/// Number of responses to a path.
#[expect(unreachable_pub, reason = "else it would not be in bridge.h")]
pub const HOWDAH_RESPONSES: usize = 4;

/// A path of the warm-up.
#[repr(C)]
struct RecordedPath {
    worst_status: u32,
    responses: [Recorded; HOWDAH_RESPONSES],
}

impl Recorded {
    fn response(&self) -> Response<'_> {
        fn part(bytes: &[c_char], length: u32) -> &[u8] {
            bytes[..(length as usize).min(bytes.len())].as_bytes()
        }
        Response {
            status: self.status,
            head: part(&self.head, self.head_length),
            session: part(&self.session, self.session_length),
            body: part(&self.body, self.body_length),
        }
    }
}

/// The request targets, for the messages.
static TARGETS: OnceLock<Vec<String>> = OnceLock::new();

/// Sets the request targets. Called once, before the first worker.
pub(crate) fn targets(targets: Vec<String>) {
    let _ = TARGETS.set(targets);
}

/// Snapshot mode: `true` if this worker boots for others and has not reported the result yet.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_boots_for_others() -> bool {
    template::is_expected()
}

/// Reports that the warm-up cannot be done, for the reason `why`. The server then replaces this worker with one without
/// a warm-up.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_warmup_failed(why: *const c_char) {
    // SAFETY: C passes a text that is valid for the length of the call.
    let text = unsafe { CStr::from_ptr(why) }.to_string_lossy().into_owned();
    tell(true, vec![Finding { is_error: true, text }]);
}

/// Checks the responses to the warm-up requests and reports findings to the server. `compare`: also look for values
/// that two visitors share; `removable`: the pool can do without warm-up requests in its snapshot. Returns false if
/// the findings require that. Called in a fork of the worker, which ends then.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_judge_warmup(paths: *const RecordedPath, n: usize, compare: bool, removable: bool) -> bool {
    // SAFETY: C passes an array of `n`, whose bytes are all valid values; nothing writes to it while this process, a
    // fork for which the worker waits, reads it.
    let paths = unsafe { std::slice::from_raw_parts(paths, n) };
    let none = String::new();
    let mut findings = Vec::new();
    let mut refused = false;
    for (index, path) in paths.iter().enumerate() {
        let target = TARGETS.get().and_then(|targets| targets.get(index)).unwrap_or(&none);
        findings.extend(about_status(target, path.worst_status));
        let both = |first: usize| [path.responses[first].response(), path.responses[first + 1].response()];
        let responses = Responses { alone: both(HOWDAH_RESPONSE_ALONE), restored: both(HOWDAH_RESPONSE_RESTORED) };
        for what in if compare { shared(&responses) } else { Vec::new() } {
            refused |= removable;
            let origin = if removable { "" } else { ", from the boot and not from the warm-up" };
            findings.push(Finding { is_error: true, text: format!("{target}: {what}{origin}") });
        }
    }
    if !findings.is_empty() {
        tell(refused, findings);
    }
    !refused
}

fn about_status(target: &str, status: u32) -> Option<Finding> {
    let is_error = status >= 500;
    (status >= 400).then(|| Finding { is_error, text: format!("{target} was answered with status {status}") })
}

fn tell(refused: bool, findings: Vec<Finding>) {
    template::report(|pid| FromZygote::WarmUp { pid, refused, findings });
}
