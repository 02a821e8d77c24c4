//! Prints a failure's message at once, with its test's name: without our test runner, libtest holds back output until
//! all tests have ended, so a long run would show only `FAILED`.

use std::io::Write;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

/// Maximum number of lines printed at once; the rest, such as a server's log, is in libtest's own report.
const LINES: usize = 15;

/// From now on every panic is also printed to standard error, bypassing libtest's capture.
pub(crate) fn failures_at_once() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // One write, so that reports of tests that fail together do not mix. The reader may be gone.
            let _ = std::io::stderr().write_all(report(info).as_bytes());
            usual(info);
        }));
    });
}

fn report(info: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a thread of a test");
    let place = info.location().map_or_else(String::new, ToString::to_string);
    let message = match (info.payload().downcast_ref::<&str>(), info.payload().downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text.as_str(),
        _ => "a panic without a message",
    };
    let mut lines: Vec<&str> = message.lines().take(LINES).collect();
    if message.lines().nth(LINES).is_some() {
        lines.push("…");
    }
    format!("\n  {name}: {place}:\n    {}\n", lines.join("\n    "))
}
