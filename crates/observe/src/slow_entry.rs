//! An entry of the slow log, before it has a form.

use std::time::{Duration, SystemTime};

/// A function of a stack.
#[derive(Debug, Clone, Copy)]
pub struct SlowFrame<'a> {
    pub function: &'a str,
    /// Empty for functions of PHP itself.
    pub file: &'a str,
    pub line: u32,
}

/// A line of execution, innermost function first.
#[derive(Debug, Clone, Default)]
pub struct SlowStack<'a> {
    /// The coroutine's number; 0 outside of async mode.
    pub coroutine: u64,
    pub waits_for: Option<&'a str>,
    /// The query that it sends or waits for, without the values in it.
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
    /// The host that it asked for.
    pub host: Option<&'a [u8]>,
    pub method: &'a [u8],
    pub target: &'a [u8],
    pub script: &'a [u8],
    /// Its running time so far.
    pub elapsed: Duration,
    /// Processor time that it had had.
    pub cpu: Option<Duration>,
    /// Bytes of memory that its worker had in use, shared ones included.
    pub memory: Option<u64>,
    /// Why there are no stacks.
    pub no_stack: Option<&'a str>,
    pub stacks: Vec<SlowStack<'a>>,
    /// Slow requests before it that were not noted, as there were too many.
    pub left_out: u64,
}
