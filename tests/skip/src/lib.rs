//! Tests that this machine cannot run report that here. They return early in no other way, because a test that passes
//! without checking anything would be trusted. Each skip is appended to the file that `HOWDAH_SKIPS` names, which
//! `scripts/skips.sh` prints and counts at the end of a run. `.ci/run` fails if something is skipped that
//! `.ci/may-lack` does not list.

#![forbid(unsafe_code)]
// Panics fail the test, as intended.
#![allow(clippy::missing_panics_doc)]

use std::fs::File;
use std::io::Write;

/// Ends a test or a scenario's body because something is missing: its name, then a formatted explanation.
#[macro_export]
macro_rules! skip {
    ($lack:expr, $($why:tt)+) => {{
        $crate::record($lack, &format!($($why)+));
        return;
    }};
}

/// Records that the running test checks less than intended, because this machine lacks something.
pub fn record(lack: &str, why: &str) {
    let thread = std::thread::current();
    let line = format!("{}: no {lack}: {why}\n", thread.name().unwrap_or("a test"));
    // Bypasses libtest's capture. One write each, as other tests run concurrently.
    let _ = std::io::stderr().write_all(format!("\n  skipped: {line}").as_bytes());
    if let Some(path) = std::env::var_os("HOWDAH_SKIPS") {
        let written =
            File::options().create(true).append(true).open(&path).and_then(|mut f| f.write_all(line.as_bytes()));
        assert!(written.is_ok(), "{}: {written:?}", path.display());
    }
}
