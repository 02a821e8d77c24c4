//! Signals that end the run: the servers have to be ended, and the copy of the application removed.

use anyhow::{Result, bail};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on signals that end a program end the run at its next step.
pub(crate) fn watch() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
            let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals else { return };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            INTERRUPTED.store(true, Ordering::Relaxed);
        });
    })?;
    Ok(())
}

/// # Errors
/// If a signal has come.
pub(crate) fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}
