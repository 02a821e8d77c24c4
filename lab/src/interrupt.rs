//! Ctrl-C and SIGTERM: everything that waits in the lab asks here whether it should go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};

/// A flag that is raised once and never lowered.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Raises the flag on SIGINT, SIGTERM and SIGHUP. A second signal ends the process at once; the guards then see
    /// their pipe close and end what they started.
    #[expect(clippy::disallowed_methods, reason = "asked a second time: at once")]
    pub fn on_signals() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = Self::default();
        let raised = interrupt.clone();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().build().context("cannot listen for signals")?;
        let (mut int, mut term, mut hup) = {
            let _inside = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?)
        };
        thread::spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = int.recv() => {},
                        _ = term.recv() => {},
                        _ = hup.recv() => {},
                    }
                    if raised.is_raised() {
                        std::process::exit(130);
                    }
                    eprintln!("\nstopping; what was measured is kept (once more to quit at once)");
                    raised.raise();
                }
            });
        });
        Ok(interrupt)
    }

    /// Raises the flag.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if the run must stop.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error when the flag is raised.
    pub fn check(&self) -> Result<()> {
        if self.is_raised() { Err(Interrupted.into()) } else { Ok(()) }
    }
}

/// The error of whatever was stopped by a signal.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped by a signal")
    }
}

impl std::error::Error for Interrupted {}
