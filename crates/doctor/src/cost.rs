//! Costs of pages in a mode, in a server without the probe: response time, and PHP's processor time and memory.

use crate::pages::Page;
use crate::subject::{ProbeScope, Subject};
use crate::visitor::Visitor;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Number of warm-up requests, and of measured requests.
const WARM: usize = 2;
const COUNTED: usize = 5;

/// The cost of one request.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Median time until the complete response, in milliseconds.
    pub ms: f64,
    /// Mean processor time of PHP, in milliseconds.
    pub cpu_ms: f64,
    /// Private memory of the worker after these requests, in bytes.
    pub memory: u64,
}

/// Measures each page in each mode. Modes take turns, so that other load on the machine affects all of them equally.
pub(crate) fn measure(subjects: &mut [Subject<'_>], pages: &[Page]) -> Vec<Vec<Cost>> {
    let mut costs = vec![Vec::new(); subjects.len()];
    let mut visitors: Vec<Visitor> = subjects.iter().map(|_| Visitor::new(1)).collect();
    for page in pages {
        let mut took = vec![Vec::new(); subjects.len()];
        let mut processor = vec![Duration::ZERO; subjects.len()];
        for turn in 0..WARM + COUNTED {
            for (at, subject) in subjects.iter_mut().enumerate() {
                let before = subject.server.usage().processor;
                let (_, response) = subject.response(&mut visitors[at], page, ProbeScope::Memory);
                if turn >= WARM {
                    took[at].push(response.took);
                    processor[at] += subject.server.usage().processor.saturating_sub(before);
                }
            }
        }
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        for (at, subject) in subjects.iter().enumerate() {
            took[at].sort();
            costs[at].push(Cost {
                ms: milliseconds(took[at][COUNTED / 2]),
                cpu_ms: milliseconds(processor[at]) / COUNTED as f64,
                memory: subject.server.usage().memory,
            });
        }
    }
    costs
}
