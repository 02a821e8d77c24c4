//! An entry of the slow log, before formatting. The fields are those of its JSON form.
#![expect(clippy::ref_option, reason = "serde passes fields like this")]

use crate::clock::{Iso, Moment};
use serde::{Serialize, Serializer};
use std::time::{Duration, SystemTime};

/// A stack frame.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SlowFrame<'a> {
    pub function: &'a str,
    /// Empty for built-in functions.
    #[serde(serialize_with = "unless_empty")]
    pub file: &'a str,
    pub line: u32,
}

/// The stack of a coroutine, innermost function first.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SlowStack<'a> {
    /// The coroutine's number; 0 outside of async mode.
    pub coroutine: u64,
    pub waits_for: Option<&'a str>,
    /// The query that the coroutine sends or waits for, without its values.
    pub query: Option<&'a str>,
    pub frames: Vec<SlowFrame<'a>>,
}

/// Facts about a slow request. Values are passed as they are; the log escapes them.
#[derive(Debug, Clone, Serialize)]
pub struct SlowEntry<'a> {
    #[serde(serialize_with = "iso")]
    pub time: SystemTime,
    pub pool: &'a str,
    pub request_id: &'a str,
    /// The requested host.
    #[serde(serialize_with = "lossy_if_any")]
    pub host: Option<&'a [u8]>,
    #[serde(serialize_with = "lossy")]
    pub method: &'a [u8],
    #[serde(serialize_with = "lossy")]
    pub target: &'a [u8],
    #[serde(serialize_with = "lossy")]
    pub script: &'a [u8],
    /// Reason why the stacks are missing.
    pub no_stack: Option<&'a str>,
    pub pid: u32,
    /// Its running time so far.
    #[serde(rename = "elapsed_ms", serialize_with = "milliseconds")]
    pub elapsed: Duration,
    /// Processor time used so far.
    #[serde(rename = "cpu_ms", serialize_with = "milliseconds_if_any")]
    pub cpu: Option<Duration>,
    /// Memory of its worker in bytes, including shared memory.
    pub memory: Option<u64>,
    /// Earlier slow requests that were not logged because there were too many.
    pub left_out: u64,
    pub stacks: Vec<SlowStack<'a>>,
}

fn iso<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&Iso(Moment::from(*time)))
}

fn lossy<S: Serializer>(text: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&String::from_utf8_lossy(text))
}

fn lossy_if_any<S: Serializer>(text: &Option<&[u8]>, to: S) -> Result<S::Ok, S::Error> {
    text.map(String::from_utf8_lossy).serialize(to)
}

fn unless_empty<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    Some(text).filter(|text| !text.is_empty()).serialize(to)
}

fn milliseconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(time.as_millis() as u64)
}

fn milliseconds_if_any<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_millis() as u64).serialize(to)
}
