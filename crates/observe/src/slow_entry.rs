//! An entry of the slow log, before formatting.

use std::time::{Duration, SystemTime};

/// A stack frame.
#[derive(Debug, Clone, Copy)]
pub struct SlowFrame<'a> {
    pub function: &'a str,
    /// Empty for built-in functions.
    pub file: &'a str,
    pub line: u32,
}

/// The stack of a coroutine, innermost function first.
#[derive(Debug, Clone, Default)]
pub struct SlowStack<'a> {
    /// The coroutine's number; 0 outside of async mode.
    pub coroutine: u64,
    pub waits_for: Option<&'a str>,
    /// The query that the coroutine sends or waits for, without its values.
    pub query: Option<&'a str>,
    pub frames: Vec<SlowFrame<'a>>,
}

/// Facts about a slow request. Values are passed as they are; the log escapes them.
#[derive(Debug, Clone)]
pub struct SlowEntry<'a> {
    pub time: SystemTime,
    pub pool: &'a str,
    pub pid: u32,
    pub request_id: &'a str,
    /// The requested host.
    pub host: Option<&'a [u8]>,
    pub method: &'a [u8],
    pub target: &'a [u8],
    pub script: &'a [u8],
    /// Its running time so far.
    pub elapsed: Duration,
    /// Processor time used so far.
    pub cpu: Option<Duration>,
    /// Memory of its worker in bytes, including shared memory.
    pub memory: Option<u64>,
    /// Why the stacks are missing.
    pub no_stack: Option<&'a str>,
    pub stacks: Vec<SlowStack<'a>>,
    /// Earlier slow requests that were not logged because there were too many.
    pub left_out: u64,
}
