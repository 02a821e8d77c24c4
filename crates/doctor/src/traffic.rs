//! Counts of requests that the doctor passed on as a proxy.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Requests that were passed on to the other server, and the results of their copies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Number of requests passed on.
    pub requests: u64,
    /// Number of those without a response.
    pub unanswered: u64,
    /// Number of malformed requests, which were not passed on.
    pub refused: u64,
    /// Number of GET requests that belong to the share to copy.
    pub chosen: u64,
    /// Number of compared copies whose responses differ.
    pub different: u64,
    /// Number of these that are not listed, as the list is full.
    pub unlisted: u64,
    /// Number of chosen requests that were not compared, by reason.
    pub skipped: BTreeMap<Skip, u64>,
}

/// Reason why a request was not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// It has cookies or credentials.
    Visitor,
    /// Its path may log out or delete something.
    Changing,
    /// Too many others were waiting.
    Busy,
    Large,
    Cut,
    Special,
    Coding,
    Ended,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Visitor => "with cookies or credentials (--sessions copies them)",
            Self::Changing => "that may log out or delete something",
            Self::Busy => "dropped as too many were waiting",
            Self::Large => "larger than 1 MiB",
            Self::Cut => "that ended early",
            Self::Special => "of another kind (range, body, not modified, event stream)",
            Self::Coding => "compressed in an unknown way",
            Self::Ended => "unfinished at the end",
        })
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests passed on", self.requests)?;
        for (count, what) in [(self.unanswered, "without a response"), (self.refused, "malformed and refused")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        write!(f, "; {} GET requests chosen", self.chosen)?;
        for (at, (why, count)) in self.skipped.iter().enumerate() {
            write!(f, "{} {count} {why}", if at == 0 { ", not compared:" } else { "," })?;
        }
        Ok(())
    }
}
