//! `howdah stop`: stops the running server.

use crate::control::client::{RESPONSE_TIMEOUT, connect, order};
use crate::output;
use anyhow::{Result, bail};
use howdah_config::AdminAddress;
use std::io::ErrorKind;
use std::process::ExitCode;

/// Returns when the server has ended, so that another one can start immediately.
pub(crate) fn run(admin: &AdminAddress) -> Result<ExitCode> {
    // The server's end closes this connection: connections to the admin endpoint close last.
    let mut until_the_end = connect(&admin.addr, RESPONSE_TIMEOUT)?;
    let code = order(admin, "/stop")?;
    if code == ExitCode::SUCCESS {
        match until_the_end.read(&mut [0; 1]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                bail!("the server still finishes requests after {} s; it exits after them", RESPONSE_TIMEOUT.as_secs());
            }
            _ => output::print("stopped\n")?,
        }
    }
    Ok(code)
}
