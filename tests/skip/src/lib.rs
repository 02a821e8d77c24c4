//! A test that this machine cannot run says so here, and nowhere else returns early: a test that passes because it looked
//! at nothing would be trusted. Each skip is appended to the file that `HOWDAH_SKIPS` names, which the Makefile prints and
//! counts at the end (`scripts/skips.sh`). With `HOWDAH_NO_SKIPS=1` it fails its test at once, unless `HOWDAH_MAY_LACK`
//! lists what is missing.

#![forbid(unsafe_code)]
// Failing a test is what this is for.
#![allow(clippy::missing_panics_doc)]

use std::fs::File;
use std::io::Write;

/// Ends a test, or a scenario's body, for want of what the first argument names; the second one says more.
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
    // Past the runner's capture, in one write each: other tests run beside this one.
    let _ = std::io::stderr().write_all(format!("\n  skipped: {line}").as_bytes());
    if let Some(path) = std::env::var_os("HOWDAH_SKIPS") {
        let written =
            File::options().create(true).append(true).open(&path).and_then(|mut f| f.write_all(line.as_bytes()));
        assert!(written.is_ok(), "{}: {written:?}", path.display());
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    assert!(
        may_skip(&variable("HOWDAH_NO_SKIPS"), &variable("HOWDAH_MAY_LACK"), lack),
        "skipped where every test must run: no {lack}: {why}"
    );
}

/// `none` is `1` where nothing may be skipped; `may_lack` lists exceptions, separated by spaces.
fn may_skip(none: &str, may_lack: &str, lack: &str) -> bool {
    none != "1" || may_lack.split_whitespace().any(|it| it == lack)
}

#[cfg(test)]
mod tests {
    use super::may_skip;

    #[test]
    fn only_what_is_listed_may_be_missing_where_all_must_run() {
        assert!(may_skip("", "", "xdebug") && may_skip("0", "", "xdebug"));
        assert!(!may_skip("1", "", "xdebug") && !may_skip("1", "apcu xdebug2", "xdebug"));
        assert!(may_skip("1", "apcu  xdebug", "xdebug"));
    }
}
