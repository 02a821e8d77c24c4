//! The signals that the running server handles: one table. A signal that is not in it has its default action on purpose:
//! job control of a terminal (`TSTP`, `TTIN`, `TTOU`), faults of the program itself (`SEGV` and the like), `KILL` and
//! `STOP`. `CHLD` is tokio's, `PIPE` is ignored by Rust's runtime, `WINCH` and `URG` by the kernel.
//!
//! Handled means caught, not ignored: programs that the server starts would inherit an ignored signal, and the kernel drops
//! signals without a handler for process 1 of a container.

use anyhow::{Context, Result};
use rustix::process::Signal;
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

/// Signals, by number and by name without `SIG`, and the action on each: `None` only logs it. Those that have come at the
/// same time are handled in this order.
fn table() -> Vec<(i32, &'static str, Option<Event>)> {
    let named = [
        // Before a stop that has come meanwhile: what is logged until its end belongs into the new files.
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
        // A file that has reached RLIMIT_FSIZE: the write fails instead.
        (Signal::XFSZ, "XFSZ", None),
        (Signal::XCPU, "XCPU", None),
    ];
    let named = named.map(|(signal, name, event)| (signal.as_raw(), name, event));
    named.into_iter().chain(REAL_TIME.map(|number| (number, "a real-time signal", None))).collect()
}

/// The signals that are listened for.
pub(crate) struct Signals(Vec<(unix::Signal, &'static str, Option<Event>)>);

impl Signals {
    /// Must be called within the runtime. From now on no signal of the table has its default action.
    pub(crate) fn new() -> Result<Self> {
        let listen = |(number, name, event): (_, _, Option<Event>)| match unix::signal(SignalKind::from_raw(number)) {
            Ok(signal) => Some(Ok((signal, name, event))),
            // An uncatchable signal is not ignored: tracers and emulated kernels keep some for themselves.
            Err(_) if event.is_none() => None,
            Err(error) => Some(Err(error).with_context(|| format!("cannot listen for the signal {name}"))),
        };
        Ok(Self(table().into_iter().filter_map(listen).collect::<Result<_>>()?))
    }

    /// Waits for a signal that asks for something.
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

    /// Waits for a signal that asks to stop.
    pub(crate) async fn second_stop(&mut self) {
        while self.next().await != Event::Stop {}
    }
}
