//! Exemplars: for a bucket of a histogram, a trace that fell into it. They lead from "some requests are slow" to one
//! slow request.

use std::time::SystemTime;

/// A trace with its duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exemplar {
    /// The bucket's index.
    pub(crate) bucket: usize,
    pub(crate) trace: u128,
    pub(crate) span: u64,
    pub(crate) took_us: u64,
    pub(crate) at: SystemTime,
}

impl Exemplar {
    /// Keeps the newest exemplar of each bucket.
    pub(crate) fn newest(all: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut newest: Vec<Self> = Vec::new();
        for exemplar in all {
            match newest.iter_mut().find(|known| known.bucket == exemplar.bucket) {
                Some(known) if known.at < exemplar.at => *known = exemplar,
                Some(_) => {}
                None => newest.push(exemplar),
            }
        }
        newest
    }
}
