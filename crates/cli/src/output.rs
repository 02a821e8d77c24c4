//! Output of commands. The reader may close it early (`howdah check | head -1`). The rest of the output is then dropped
//! and the command continues, because its exit status and side effects still count. `println!` would panic; clippy
//! forbids it and similar macros in this crate (`main.rs`).

use anyhow::{Context, Result};
use howdah_observe::escape;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Read, Write};

/// Prints a text; succeeds even if the reader has closed the output. Control characters from clients and scripts are
/// escaped.
pub(crate) fn print(text: impl AsRef<str>) -> Result<()> {
    print_while_read(text).map(drop)
}

/// Prints, and returns `false` once the reader has closed the output.
pub(crate) fn print_while_read(text: impl AsRef<str>) -> Result<bool> {
    print_bytes(escape::lines(text.as_ref()))
}

/// Prints bytes that are not text, or that control a terminal.
pub(crate) fn print_bytes(bytes: impl AsRef<[u8]>) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    is_read(out.write_all(bytes.as_ref()).and_then(|()| out.flush()))
}

/// Copies a reader to standard output: unchanged for a program, as escaped text for a terminal.
pub(crate) fn copy(mut from: impl Read) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        return print(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"));
    }
    is_read(std::io::copy(&mut from, &mut out).and_then(|_| out.flush())).map(drop)
}

/// Escapes a text as the logs do.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    escape::text(&mut plain, text);
    plain
}

/// Escapes a message of several lines.
pub(crate) fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n    ")
}

/// `true` if standard output is systemd's journal.
pub(crate) fn is_journal() -> bool {
    let Some(stream) = std::env::var_os("JOURNAL_STREAM") else { return false };
    let place = |found: rustix::fs::Stat| format!("{}:{}", found.st_dev, found.st_ino);
    rustix::fs::fstat(std::io::stdout()).is_ok_and(|found| stream == *place(found))
}

/// Prints a line to standard error, ignoring failures.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{}", escape::lines(&line.to_string()));
}

fn is_read(written: std::io::Result<()>) -> Result<bool> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).context("cannot write to standard output"),
    }
}
