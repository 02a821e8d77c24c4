//! The signals that the running server handles, in one table. Signals outside the table keep their default action on
//! purpose: job control (`TSTP`, `TTIN`, `TTOU`), faults of the program itself (`SEGV` and the like), `KILL` and
//! `STOP`. tokio handles `CHLD`, Rust's runtime ignores `PIPE`, and the kernel ignores `WINCH` and `URG`.
//!
//! Signals are caught, not ignored: child processes would inherit an ignored signal, and for process 1 of a container
//! the kernel drops signals without a handler.

use anyhow::{Context, Result};
use rustix::process::{Signal, getpid, kill_process};
use std::future::poll_fn;
use std::ops::RangeInclusive;
use std::task::Poll;
use tokio::signal::unix::{self, SignalKind};
use tracing::info;

/// Action on a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Stop,
    Reload,
    ReopenLogs,
}

/// Real-time signals that programs may send; glibc keeps the two below for itself (signal(7)).
const REAL_TIME: RangeInclusive<i32> = 34..=64;

/// Environment variable of a server that another program starts and stops, with a pipe as standard input.
const ENDS_WITH_INPUT: &str = "HOWDAH_ENDS_WITH_INPUT";

/// With `HOWDAH_ENDS_WITH_INPUT`, sends this process SIGTERM when its standard input ends: the server then stops even if
/// the program that started it was killed.
pub(crate) fn stop_at_end_of_input() -> Result<()> {
    if std::env::var_os(ENDS_WITH_INPUT).is_none() {
        return Ok(());
    }
    let thread = std::thread::Builder::new().name("input".to_owned());
    thread.spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = kill_process(getpid(), Signal::TERM);
    })?;
    Ok(())
}

/// Signals by number and by name without `SIG`, with their action: `None` only logs the signal. Signals that arrive
/// together are handled in this order.
fn table() -> Vec<(i32, &'static str, Option<Event>)> {
    let named = [
        // Before a pending stop: log lines of the shutdown belong in the new files.
        (Signal::USR1, "USR1", Some(Event::ReopenLogs)),
        (Signal::TERM, "TERM", Some(Event::Stop)),
        (Signal::INT, "INT", Some(Event::Stop)),
        // The graceful stop of PHP-FPM and nginx, and the STOPSIGNAL of their images.
        (Signal::QUIT, "QUIT", Some(Event::Stop)),
        (Signal::HUP, "HUP", Some(Event::Reload)),
        // PHP-FPM's reload.
        (Signal::USR2, "USR2", Some(Event::Reload)),
        (Signal::ALARM, "ALRM", None),
        (Signal::VTALARM, "VTALRM", None),
        (Signal::PROF, "PROF", None),
        (Signal::IO, "IO", None),
        (Signal::POWER, "PWR", None),
        (Signal::STKFLT, "STKFLT", None),
        // Raised when a file reaches RLIMIT_FSIZE; the write then fails with an error instead.
        (Signal::XFSZ, "XFSZ", None),
        (Signal::XCPU, "XCPU", None),
    ];
    let named = named.map(|(signal, name, event)| (signal.as_raw(), name, event));
    named.into_iter().chain(REAL_TIME.map(|number| (number, "a real-time signal", None))).collect()
}

pub(crate) struct Signals(Vec<(unix::Signal, &'static str, Option<Event>)>);

impl Signals {
    /// Registers handlers for all signals in the table. Called within the runtime.
    pub(crate) fn new() -> Result<Self> {
        let listen = |(number, name, event): (_, _, Option<Event>)| match unix::signal(SignalKind::from_raw(number)) {
            Ok(signal) => Some(Ok((signal, name, event))),
            // Tracers and emulated kernels reserve some signals; those that would only be logged are skipped.
            Err(_) if event.is_none() => None,
            Err(error) => Some(Err(error).with_context(|| format!("cannot listen for the signal {name}"))),
        };
        Ok(Self(table().into_iter().filter_map(listen).collect::<Result<_>>()?))
    }

    /// Waits for a signal that has an action.
    pub(crate) async fn next(&mut self) -> Event {
        poll_fn(|context| {
            for (signal, name, event) in &mut self.0 {
                while signal.poll_recv(context).is_ready() {
                    match event {
                        Some(event) => return Poll::Ready(*event),
                        None => info!(signal = *name, "signal ignored"),
                    }
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Waits for another stop signal.
    pub(crate) async fn second_stop(&mut self) {
        while self.next().await != Event::Stop {}
    }
}
