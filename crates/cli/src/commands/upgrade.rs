//! `howdah upgrade`: replaces the running server with a new process.

use crate::control::client::order_within;
use anyhow::Result;
use howdah_config::AdminAddress;
use std::process::ExitCode;
use std::time::Duration;

/// Maximum wait. The server's own time limit, from its settings, is shorter.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Returns when the new process serves, or with the reason for the failure.
pub(crate) fn run(admin: &AdminAddress) -> Result<ExitCode> {
    order_within(admin, "/upgrade", RESPONSE_TIMEOUT)
}
