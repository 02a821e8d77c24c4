//! Signals that end the run: what its tests have started ends with it. A test dies with the runner anyway, but its servers,
//! and what those have started, would go on and disturb the next run.

use crate::processes::{descendants, runs, signal};
use rustix::process::{Signal, getpid, set_child_subreaper};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal as listen};

/// Held while a test is started, and for good once the run ends.
static STARTING: Mutex<()> = Mutex::new(());

/// Time for killed processes to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// As shells report a command that Ctrl-C has ended.
const STATUS: i32 = 130;

/// Until the result is dropped, the run does not end; once it ends, no caller gets this any more.
pub(crate) fn starting() -> MutexGuard<'static, ()> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the run, with everything that it has started, on SIGINT, SIGTERM and SIGHUP.
pub(crate) fn watch() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let [mut interrupt, mut terminate, mut hangup] = {
        let _inside = runtime.enter();
        [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?]
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        });
        let _nothing_starts = starting();
        end_all();
        eprintln!("howdah-test-runner: ended by a signal, and all tests with it");
        #[expect(clippy::disallowed_methods, reason = "main waits for tests that are gone")]
        std::process::exit(STATUS);
    })?;
    Ok(())
}

/// Kills all descendants. Those whose parents have been killed become our children, so that they are found, too.
fn end_all() {
    let own = getpid();
    let _ = set_child_subreaper(Some(own));
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let left: Vec<i32> = descendants(own.as_raw_nonzero().get()).into_iter().filter(|pid| runs(*pid)).collect();
        if left.is_empty() {
            return;
        }
        left.iter().for_each(|pid| signal(*pid, Signal::KILL));
        std::thread::sleep(Duration::from_millis(10));
    }
}
