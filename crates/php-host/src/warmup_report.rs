//! Tells the server what the requests of a warm-up were answered: errors, and what visitors would share. Called by the
//! shim's `snapshot/php/warmup.c`, in a fork of the worker that boots, so nothing here touches the worker's memory.

use crate::template;
use crate::warmup_check::{Answer, Answers, shared};
use howdah_transport::zygote_protocol::{Finding, FromZygote};
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

/// `howdah_warmup_answer` of bridge.h.
#[repr(C)]
struct Recorded {
    status: u32,
    head_length: u32,
    session_length: u32,
    body_length: u32,
    head: [u8; 8192],
    session: [u8; 16384],
    body: [u8; 131_072],
}

/// `howdah_warmup_path` of bridge.h.
#[repr(C)]
struct RecordedPath {
    worst_status: u32,
    answers: [Recorded; 4],
}

impl Recorded {
    fn answer(&self) -> Answer<'_> {
        fn part(bytes: &[u8], length: u32) -> &[u8] {
            &bytes[..(length as usize).min(bytes.len())]
        }
        Answer {
            status: self.status,
            head: part(&self.head, self.head_length),
            session: part(&self.session, self.session_length),
            body: part(&self.body, self.body_length),
        }
    }
}

/// The request targets, for the messages.
static TARGETS: OnceLock<Vec<String>> = OnceLock::new();

/// Once, before the first worker.
pub(crate) fn targets(targets: &[String]) {
    let _ = TARGETS.set(targets.to_vec());
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_boots_for_others() -> bool {
    template::is_expected()
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_warmup_failed(why: *const c_char) {
    // SAFETY: C passes a text that is valid for the length of the call.
    let text = unsafe { CStr::from_ptr(why) }.to_string_lossy().into_owned();
    tell(true, vec![Finding { is_error: true, text }]);
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_judge_warmup(paths: *const RecordedPath, n: usize, compare: bool, removable: bool) -> bool {
    // SAFETY: C passes an array of `n`, whose bytes are all valid values; nobody writes to it while this process, a fork
    // for which the worker waits, looks at it.
    let paths = unsafe { std::slice::from_raw_parts(paths, n) };
    let none = String::new();
    let mut findings = Vec::new();
    let mut refused = false;
    for (index, path) in paths.iter().enumerate() {
        let target = TARGETS.get().and_then(|targets| targets.get(index)).unwrap_or(&none);
        findings.extend(about_status(target, path.worst_status));
        let [a, b, c, d] = &path.answers;
        let answers = Answers { alone: [a.answer(), b.answer()], restored: [c.answer(), d.answer()] };
        for what in if compare { shared(&answers) } else { Vec::new() } {
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
