//! What commands print. Whoever reads it may leave before its end (`howdah check | head -1`): the rest is for nobody then, and the
//! command goes on, since its exit status and what it does beside count as before. `println!` would panic; clippy keeps it and
//! its like out of this crate (`main.rs`).

use anyhow::{Context, Result};
use howdah_observe::escape;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Read, Write};

/// Prints all of it, if somebody reads it. What clients and scripts have put into it does not steer a terminal.
pub(crate) fn print(text: impl AsRef<str>) -> Result<()> {
    print_while_read(text).map(drop)
}

/// The same; false once nobody reads any more.
pub(crate) fn print_while_read(text: impl AsRef<str>) -> Result<bool> {
    print_bytes(escape::lines(text.as_ref()))
}

/// The same for what is no text, or is meant to steer a terminal.
pub(crate) fn print_bytes(bytes: impl AsRef<[u8]>) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    is_read(out.write_all(bytes.as_ref()).and_then(|()| out.flush()))
}

/// Prints what comes from there: as it is for a program, as text for a terminal.
pub(crate) fn copy(mut from: impl Read) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        return print(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"));
    }
    is_read(std::io::copy(&mut from, &mut out).and_then(|_| out.flush())).map(drop)
}

/// Text as the logs have it.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    escape::text(&mut plain, text);
    plain
}

/// The same for a message that may have several lines.
pub(crate) fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n    ")
}

/// A line on standard error. If that fails, there is nobody to tell.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{}", escape::lines(&line.to_string()));
}

fn is_read(written: std::io::Result<()>) -> Result<bool> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).context("cannot write to standard output"),
    }
}
