//! The arguments of `howdah reload`.

use std::time::Duration;

use clap::Args;

use crate::settings_telemetry::Ratio;
use crate::value::Value;

// In the query of the admin endpoint.
const DRY_RUN: &str = "dry-run";
const CANARY: &str = "canary";
const WATCH: &str = "watch";

const AFTER_HELP: &str = "\
If the settings are wrong, or if new workers do not start or fail a check of [deploy], nothing changes and the exit \
status is 1.

Examples:
  howdah reload --config /etc/howdah/howdah.toml
  howdah reload --dry-run
  howdah reload --canary 5% --watch 1m";

/// Flags of `howdah reload`, without those of the server's address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ReloadFlags {
    /// Check the settings and print what would change
    #[arg(long)]
    pub dry_run: bool,
    /// Serve this share of clients with new workers first; roll back if more of their responses fail
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub canary: Option<Ratio>,
    /// Time to watch them with --canary, at most an hour [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub watch: Option<Duration>,
}

fn share(text: &str) -> Result<Ratio, &'static str> {
    Ratio::from_text(text).ok_or("expected a share such as 5% or 0.05")
}

fn time(text: &str) -> Result<Duration, &'static str> {
    watch_time(text).ok_or("expected a time such as 30s or 2m, at most an hour")
}

/// A time to watch new workers, during which nothing else can be reloaded.
fn watch_time(text: &str) -> Option<Duration> {
    Duration::from_text(text).filter(|time| (Duration::from_millis(1)..=Duration::from_secs(3600)).contains(time))
}

impl ReloadFlags {
    /// As the query of `POST /reload` of the admin endpoint; empty if nothing was given.
    #[must_use]
    pub fn to_query(self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.dry_run.then(|| DRY_RUN.to_owned()));
        parts.extend(self.canary.map(|canary| format!("{CANARY}={}", canary.get())));
        parts.extend(self.watch.map(|watch| format!("{WATCH}={}ms", watch.as_millis())));
        parts.join("&")
    }

    /// Parses such a query.
    ///
    /// # Errors
    /// The unknown part, and the known ones.
    pub fn from_query(query: &str) -> Result<Self, String> {
        let mut flags = Self::default();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let wrong = || format!("?{part} means nothing here; there is {DRY_RUN}, {CANARY}=0.05 and {WATCH}=30s");
            match name {
                DRY_RUN if value.is_empty() => flags.dry_run = true,
                CANARY => flags.canary = Some(Ratio::from_text(value).ok_or_else(wrong)?),
                WATCH => flags.watch = Some(watch_time(value).ok_or_else(wrong)?),
                _ => return Err(wrong()),
            }
        }
        Ok(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reload_is_told_goes_through_a_query() {
        let (canary, watch) = (Ratio::from_text("5%"), Some(Duration::from_millis(1_500)));
        for flags in [
            ReloadFlags::default(),
            ReloadFlags { dry_run: true, ..ReloadFlags::default() },
            ReloadFlags { dry_run: false, canary, watch },
        ] {
            assert_eq!(ReloadFlags::from_query(&flags.to_query()), Ok(flags));
        }
        for query in ["dry", "dry-run=1", "canary", "canary=2", "watch=soon", "=", "dry-run&x"] {
            assert!(ReloadFlags::from_query(query).is_err(), "{query}");
        }
    }
}
