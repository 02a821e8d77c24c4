//! A test that this machine cannot run says so here, and nowhere else returns early: a test that passes because it looked
//! at nothing would be trusted. Each skip is appended to the file that `HOWDAH_SKIPS` names, which `scripts/skips.sh`
//! prints and counts at the end of a run. `.ci/run` fails if something is skipped that `.ci/may-lack` does not list.

#![forbid(unsafe_code)]
// Failing a test is what this is for.
#![allow(clippy::missing_panics_doc)]

use std::fs::File;
use std::io::Write;

/// Ends a test, or a scenario's body, for lack of what the first argument names; the second one says more.
#[macro_export]
macro_rules! skip {
    ($lack:expr, $($why:tt)+) => {{
        $crate::record($lack, &format!($($why)+));
        return;
    }};
}

/// Records that the running test looks at less than it is there for, because this machine lacks something.
pub fn record(lack: &str, why: &str) {
    let thread = std::thread::current();
    let line = format!("{}: no {lack}: {why}\n", thread.name().unwrap_or("a test"));
    // Past the runner's capture, in one write each: other tests run at the same time.
    let _ = std::io::stderr().write_all(format!("\n  skipped: {line}").as_bytes());
    if let Some(path) = std::env::var_os("HOWDAH_SKIPS") {
        let written =
            File::options().create(true).append(true).open(&path).and_then(|mut f| f.write_all(line.as_bytes()));
        assert!(written.is_ok(), "{}: {written:?}", path.display());
    }
}
