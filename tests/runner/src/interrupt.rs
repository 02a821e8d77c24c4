//! Signals that end the run, with all processes that its tests have started. A test dies with the runner anyway, but
//! its servers and their children would keep running and disturb the next run.

use crate::processes::{descendants, runs, signal};
use rustix::process::{Signal, getpid, set_child_subreaper};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal as listen};

/// Held while a test is started, and permanently once the run ends.
static STARTING: Mutex<()> = Mutex::new(());

/// Time for killed processes to disappear.
const PATIENCE: Duration = Duration::from_secs(5);

/// Exit status by which shells report a command that was ended by Ctrl-C.
const STATUS: i32 = 130;

/// The run does not end while a caller holds the result. Blocks once the run is ending.
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
        eprintln!("howdah-test-runner: received a signal; killed all tests");
        #[expect(clippy::disallowed_methods, reason = "main still waits for tests that were killed")]
        std::process::exit(STATUS);
    })?;
    Ok(())
}

/// Kills all descendants. Those whose parents were killed become our children, so they are found as well.
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
