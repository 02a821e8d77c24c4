//! `howdah upgrade`: has a new process take the running server's place.

use crate::control::client::order_within;
use anyhow::Result;
use howdah_config::AdminAddress;
use std::process::ExitCode;
use std::time::Duration;

/// Longest wait. The server gives up before, by its settings.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Returns when the new process serves, or with the reason why it does not.
pub(crate) fn run(admin: &AdminAddress) -> Result<ExitCode> {
    order_within(admin, "/upgrade", RESPONSE_TIMEOUT)
}
