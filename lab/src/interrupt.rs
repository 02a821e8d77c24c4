//! Ctrl-C and SIGTERM: every wait in the lab checks this flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};

/// A flag that is set once and never cleared.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Sets the flag on SIGINT, SIGTERM and SIGHUP. A second signal ends the process at once; the guards then see their
    /// pipe close and end what they started.
    #[expect(clippy::disallowed_methods, reason = "a second signal ends the process at once")]
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

    /// Sets the flag.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the run must stop.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns an error if the flag is set.
    pub fn check(&self) -> Result<()> {
        if self.is_raised() { Err(Interrupted.into()) } else { Ok(()) }
    }
}

/// The error of an operation that a signal has stopped.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped by a signal")
    }
}

impl std::error::Error for Interrupted {}
