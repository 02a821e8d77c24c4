//! `howdah status`: prints the state of the running server, as text or as the server's JSON.

pub(crate) mod text;

use crate::control::client::{read_status, status_text};
use crate::output;
use anyhow::Result;
use howdah_config::AdminAddress;
use howdah_observe::escape;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

/// Prints the status once; with `watch` every second, until an error.
pub(crate) fn run(admin: &AdminAddress, json: bool, watch: bool) -> Result<ExitCode> {
    // On a terminal, each output replaces the previous one; elsewhere it is appended.
    let clear = if watch && !json && std::io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
    loop {
        let body = status_text(admin)?;
        let shown = match (json, watch) {
            (true, false) => escape::of_json(&body) + "\n",
            (true, true) => escape::of_json(&read_status(&body)?.to_string()) + "\n",
            (false, _) => text::render(&read_status(&body)?),
        };
        if !output::print_bytes(clear)? || !output::print_while_read(shown)? || !watch {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}
