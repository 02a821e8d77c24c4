//! Requests for files, for `crate::fuzz`.

use super::coding::{Coding, Weights};
use super::conditional::{Validators, evaluate};
use super::range::{RangeSelection, parse};
use http::HeaderMap;
use http::header::RANGE;
use std::time::SystemTime;

/// Parses all fields of a request for a file of this length.
pub(crate) fn ask(headers: &HeaderMap, length: u64) {
    let _ = evaluate(headers, Validators { etag: "\"5f-3e8\"", modified: 784_111_777 }, SystemTime::now());
    let weights = Weights::of(headers);
    assert!(Coding::ALL.iter().all(|coding| weights.coded(*coding) <= 1000) && weights.identity() <= 1000);
    if let Some(field) = headers.get(RANGE)
        && let RangeSelection::Parts(parts) = parse(field, length)
    {
        assert!(!parts.is_empty() && parts.len() <= 32);
        assert!(parts.iter().all(|part| part.start < part.end && part.end <= length));
        assert!(parts.iter().map(|part| u128::from(part.len())).sum::<u128>() <= u128::from(length));
    }
}
