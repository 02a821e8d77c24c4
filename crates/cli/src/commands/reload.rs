//! `howdah reload`: has the running server read its settings and code again.

use crate::control::client::order_within;
use anyhow::Result;
use howdah_config::{AdminAddress, ReloadFlags};
use std::process::ExitCode;
use std::time::Duration;

/// Longest wait: each pool's PHP boots anew, one after the other.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);

/// Changes go to standard output, the reason why nothing changes to standard error.
pub(crate) fn run(admin: &AdminAddress, flags: ReloadFlags) -> Result<ExitCode> {
    order_within(admin, &format!("/reload?{}", flags.to_query()), RESPONSE_TIMEOUT)
}
