//! Signals that end the run: the doctor must stop its servers and remove the copy of the application.

use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::signal::unix::{SignalKind, signal};

/// Exit status after a second signal: that of a program ended by SIGINT.
const ENDED_AT_ONCE: i32 = 130;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The doctor's directory.
static DIRECTORY: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Handles termination signals from now on: the run ends at its next step. A second one ends the process immediately. A
/// closed terminal may send several, so it only counts as the first.
pub(crate) fn watch() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
            let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals else { return };
            loop {
                let may_be_second = tokio::select! {
                    _ = interrupt.recv() => true,
                    _ = terminate.recv() => true,
                    _ = hangup.recv() => false,
                };
                if INTERRUPTED.swap(true, Ordering::Relaxed) && may_be_second {
                    end_at_once();
                }
            }
        });
    })?;
    Ok(())
}

/// Names the directory to remove before the process ends immediately.
pub(crate) fn remove_in_any_case(directory: &Path) {
    *DIRECTORY.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory.to_owned());
}

/// The servers end with this process.
#[expect(clippy::disallowed_methods, reason = "a second signal ends at once")]
fn end_at_once() -> ! {
    if let Some(directory) = &*DIRECTORY.lock().unwrap_or_else(PoisonError::into_inner) {
        let _ = std::fs::remove_dir_all(directory);
    }
    std::process::exit(ENDED_AT_ONCE)
}

/// # Errors
/// A signal has arrived.
pub(crate) fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}
