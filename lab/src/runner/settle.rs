//! Waiting until a system has done what a load left behind. When a generator stops, it drops its connections; a server that does
//! not see that goes on with their requests, and with slow ones that would take from what is measured next.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::interrupt::Interrupt;
use crate::record::Role;
use crate::sample::Reading;

/// How often it looks.
const EVERY: Duration = Duration::from_millis(100);

/// A system that takes less of a processor than this has nothing to do.
const IDLE: f64 = 0.1;

/// After that what is left is measured too.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Waits for it.
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
