//! Waits until a system has finished the rest of a load. When a generator stops, it closes its connections; a server
//! that does not notice that continues with their requests, and slow ones would distort the next measurement.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::interrupt::Interrupt;
use crate::record::Role;
use crate::sample::Reading;

/// Interval between checks.
const EVERY: Duration = Duration::from_millis(100);

/// A system that uses less of a processor than this is idle.
const IDLE: f64 = 0.1;

/// After this time the rest is measured, too.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Waits until the system is idle.
pub(super) fn wait(roots: &[u32], interrupt: &Interrupt) -> Result<()> {
    let role = |_: &str| Role::Both;
    let deadline = Instant::now() + SETTLE_TIMEOUT;
    let mut before = (Instant::now(), Reading::take(roots, &role, &[]));
    loop {
        thread::sleep(EVERY);
        interrupt.check()?;
        let now = (Instant::now(), Reading::take(roots, &role, &[]));
        let spent = now.1.cpu_since(&before.1).system_seconds();
        let passed = now.0.duration_since(before.0).as_secs_f64();
        if spent < passed * IDLE || now.0 > deadline {
            return Ok(());
        }
        before = now;
    }
}
