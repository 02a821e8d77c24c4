//! `howdah reload`, `howdah upgrade` and `howdah stop`: orders to the running server.

use crate::control::client::{RESPONSE_TIMEOUT, connect, order, order_within};
use crate::output;
use anyhow::{Result, bail};
use howdah_config::{AdminAddress, ReloadFlags};
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

/// Maximum wait for an upgrade. The server's own time limit, from its settings, is shorter.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Reloads settings and code. Prints changes to standard output, or the reason for a failed reload to standard error.
pub(crate) fn reload(admin: &AdminAddress, flags: ReloadFlags) -> Result<ExitCode> {
    order(admin, &format!("/reload?{}", flags.to_query()))
}

/// Replaces the server's process. Returns when the new process serves, or with the reason for the failure.
pub(crate) fn upgrade(admin: &AdminAddress) -> Result<ExitCode> {
    order_within(admin, "/upgrade", UPGRADE_TIMEOUT)
}

/// Stops the server. Returns when it has ended, so that another one can start immediately; fails if that takes longer
/// than `RESPONSE_TIMEOUT`.
pub(crate) fn stop(admin: &AdminAddress) -> Result<ExitCode> {
    // The server's end closes this connection: connections to the admin endpoint close last.
    let mut until_the_end = connect(&admin.addr, RESPONSE_TIMEOUT)?;
    let code = order(admin, "/stop")?;
    if code == ExitCode::SUCCESS {
        match until_the_end.read(&mut [0; 1]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                bail!(
                    "the server is still finishing requests after {} s and exits after the last",
                    RESPONSE_TIMEOUT.as_secs()
                );
            }
            _ => output::print("stopped\n")?,
        }
    }
    Ok(code)
}
