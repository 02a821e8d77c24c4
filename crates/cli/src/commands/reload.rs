//! `howdah reload`: makes the running server reload its settings and code.

use crate::control::client::order_within;
use anyhow::Result;
use howdah_config::{AdminAddress, ReloadFlags};
use std::process::ExitCode;
use std::time::Duration;

/// Maximum wait: PHP boots again in each pool, one after the other.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);

/// Prints changes to standard output, or the reason for a failed reload to standard error.
pub(crate) fn run(admin: &AdminAddress, flags: ReloadFlags) -> Result<ExitCode> {
    order_within(admin, &format!("/reload?{}", flags.to_query()), RESPONSE_TIMEOUT)
}
