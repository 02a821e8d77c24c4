//! The arguments of `howdah reload`.

use clap::Args;

// Sent in the query to the admin endpoint.
const DRY_RUN: &str = "dry-run";

const AFTER_HELP: &str = "\
If the settings are wrong, or if new workers do not start or fail a check of [deploy], nothing changes and the exit \
status is 1.

Examples:
  howdah reload --config /etc/howdah/howdah.toml
  howdah reload --dry-run";

/// Flags of `howdah reload`, without those of the server's address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ReloadFlags {
    /// Check the settings and print what would change
    #[arg(long)]
    pub dry_run: bool,
}

impl ReloadFlags {
    /// The query of `POST /reload` of the admin endpoint; may be empty.
    pub const fn to_query(self) -> &'static str {
        if self.dry_run { DRY_RUN } else { "" }
    }

    /// Parses such a query.
    ///
    /// # Errors
    /// The unknown part, and the known one.
    pub fn from_query(query: &str) -> Result<Self, String> {
        match query {
            "" => Ok(Self { dry_run: false }),
            DRY_RUN => Ok(Self { dry_run: true }),
            other => Err(format!("unknown parameter ?{other}; expected ?{DRY_RUN}")),
        }
    }
}
