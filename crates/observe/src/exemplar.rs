//! Exemplars: for a bucket of a histogram, a trace that fell into it, so that from "some requests are slow" there is a way to
//! one that was.

use std::time::SystemTime;

/// A trace with its duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exemplar {
    /// The bucket, by its position among all of them.
    pub(crate) bucket: usize,
    pub(crate) trace: u128,
    pub(crate) span: u64,
    pub(crate) took_us: u64,
    pub(crate) at: SystemTime,
}

impl Exemplar {
    /// Of several for a bucket the newest.
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
