//! Starts the tracing of requests, if it is enabled.

use howdah_config::TelemetrySettings;
use howdah_observe::Metrics;
use howdah_site::Sites;
use howdah_telemetry::{Sender, Telemetry};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time to send the last spans at the server's end.
pub(crate) const LAST_SPANS: Duration = Duration::from_secs(3);

/// Starts tracing. If that fails, requests are served without it.
pub(crate) fn start(settings: &TelemetrySettings, metrics: &Arc<Metrics>, sites: &Sites) -> Option<Sender> {
    if !settings.enabled {
        return None;
    }
    match Telemetry::start(settings, metrics.clone()) {
        Ok((telemetry, sender)) => {
            sites.server.make_traces(telemetry);
            tracing::info!(target: "howdah::telemetry", "exporting traces to {}", settings.address());
            Some(sender)
        }
        Err(why) => {
            tracing::error!(target: "howdah::telemetry", "tracing is disabled: {why}");
            None
        }
    }
}
