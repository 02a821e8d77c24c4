//! Slow log entries in PHP-FPM's format, which tools parse: the date, the pool and the process, the script, and its
//! stack with the innermost function first.

use std::fmt::Write as _;

use crate::clock::{Dashed, Moment};
use crate::escape;
use crate::slow_entry::SlowEntry;

/// Formats an entry, with at most `depth` functions.
pub(crate) fn entry(entry: &SlowEntry<'_>, depth: usize) -> String {
    let time = Dashed(Moment::from(entry.time));
    let mut out = format!("\n[{time}]  [pool {}] pid {}\nscript_filename = ", entry.pool, entry.pid);
    escape::text(&mut out, &String::from_utf8_lossy(entry.script));
    out.push('\n');
    if let Some(why) = entry.no_stack {
        let _ = writeln!(out, "; no stack: {why}");
    }
    let frames: Vec<_> = entry.stacks.iter().flat_map(|stack| &stack.frames).collect();
    let mut place = (String::new(), 0);
    for (at, frame) in frames.iter().enumerate().take(depth) {
        // Each function is printed with the place of its call; the script's top-level code has none.
        let caller = match frames.get(at + 1) {
            None if at > 0 => break,
            caller => caller.unwrap_or(frame),
        };
        if !caller.file.is_empty() {
            place = (caller.file.to_owned(), caller.line);
        }
        let function = frame.function.rsplit("->").next().unwrap_or_default().rsplit("::").next().unwrap_or_default();
        // PHP-FPM prints addresses here; these are frame numbers.
        let _ = write!(out, "[0x{at:016x}] ");
        escape::text(&mut out, if function.is_empty() { "[INCLUDE_OR_EVAL]" } else { function });
        out.push_str("() ");
        escape::text(&mut out, &place.0);
        let _ = writeln!(out, ":{}", place.1);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow_entry::{SlowFrame, SlowStack};
    use std::time::{Duration, SystemTime};

    fn of(frames: &[(&'static str, &'static str, u32)], depth: usize) -> String {
        let frames = frames.iter().map(|&(function, file, line)| SlowFrame { function, file, line }).collect();
        let slow = SlowEntry {
            time: SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_897_890),
            pool: "www",
            pid: 12515,
            request_id: "1",
            host: None,
            method: b"GET",
            target: b"/slow.php",
            script: b"/srv/slow.php",
            elapsed: Duration::from_secs(1),
            cpu: None,
            memory: None,
            no_stack: None,
            stacks: vec![SlowStack { frames, ..SlowStack::default() }],
            left_out: 0,
        };
        entry(&slow, depth)
    }

    #[test]
    fn an_entry_reads_as_one_of_php_fpm() {
        let file = "/srv/slow.php";
        let frames = [("sleep", "", 0), ("inner", file, 2), ("K->m", file, 3), ("K::s", file, 3), ("", file, 4)];
        let expected = "\n[28-Nov-2026 20:31:30]  [pool www] pid 12515\nscript_filename = /srv/slow.php\n\
            [0x0000000000000000] sleep() /srv/slow.php:2\n[0x0000000000000001] inner() /srv/slow.php:3\n\
            [0x0000000000000002] m() /srv/slow.php:3\n[0x0000000000000003] s() /srv/slow.php:4\n";
        assert_eq!(of(&frames, 20), expected);
        assert_eq!(of(&frames, 2).lines().count(), 5);
        assert!(of(&[("", file, 7)], 20).ends_with("[INCLUDE_OR_EVAL]() /srv/slow.php:7\n"));
        assert!(of(&[], 20).ends_with("slow.php\n"));
    }
}
