//! What pages cost in a mode, in a server without the probe: time until the response, processor time and memory of PHP.

use crate::pages::Page;
use crate::subject::{Look, Subject};
use crate::visitor::Visitor;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Requests before those that count, and those.
const WARM: usize = 2;
const COUNTED: usize = 5;

/// The cost of one request.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Milliseconds until the whole response was there, the median.
    pub ms: f64,
    /// Milliseconds of processor time in PHP, the mean.
    pub cpu_ms: f64,
    /// Memory of the worker that is nobody else's, after these requests.
    pub memory: u64,
}

/// What each page costs.
pub(crate) fn measure(subject: &mut Subject<'_>, pages: &[Page]) -> Vec<Cost> {
    let mut visitor = Visitor::new(1);
    let mut one = |page: &Page| {
        for _ in 0..WARM {
            subject.response(&mut visitor, page, Look::Memory);
        }
        let before = subject.server.usage();
        let mut took: Vec<Duration> =
            (0..COUNTED).map(|_| subject.response(&mut visitor, page, Look::Memory).1.took).collect();
        let after = subject.server.usage();
        took.sort();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        Cost {
            ms: milliseconds(took[COUNTED / 2]),
            cpu_ms: milliseconds(after.processor.saturating_sub(before.processor)) / COUNTED as f64,
            memory: after.memory,
        }
    };
    pages.iter().map(&mut one).collect()
}
