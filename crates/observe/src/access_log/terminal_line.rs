//! Access log lines for a developer's terminal: status, method, time, memory and target, in columns.

use super::AccessEntry;
use crate::escape;
use std::io::Write as _;

const OFF: &str = "\x1b[0m";
const DIM: &str = "\x1b[2m";

/// Appends the line. Writing to a Vec cannot fail.
pub(super) fn write(entry: &AccessEntry<'_>, colour: bool, line: &mut Vec<u8>) {
    let (status, dim, off) = if colour { (colour_of(entry.status), DIM, OFF) } else { ("", "", "") };
    let _ = write!(line, "{status}{}{off} ", entry.status);
    let before = line.len();
    escape::combined(line, entry.method.as_bytes());
    while line.len() < before + 6 {
        line.push(b' ');
    }
    let time = entry.total_us as f64 / 1000.0;
    let memory = match entry.memory {
        Some(bytes) => format!("{:.1} MB", bytes as f64 / f64::from(1 << 20)),
        // A static file, or a request that PHP did not answer.
        None => "-".to_owned(),
    };
    let _ = write!(line, " {dim}{time:>9.1} ms {memory:>9}{off}  ");
    escape::combined(line, entry.target);
    line.push(b'\n');
}

/// Green, cyan, yellow and red, as in other tools.
const fn colour_of(status: u16) -> &'static str {
    match status {
        0..300 => "\x1b[32m",
        300..400 => "\x1b[36m",
        400..500 => "\x1b[33m",
        _ => "\x1b[1;31m",
    }
}
