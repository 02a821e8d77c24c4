//! Traces of requests: their start, unless they are off.

use howdah_config::TelemetrySettings;
use howdah_observe::Metrics;
use howdah_site::Sites;
use howdah_telemetry::{Sender, Telemetry};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time at the server's end for the last spans to be sent.
pub(crate) const LAST_SPANS: Duration = Duration::from_secs(3);

/// Starts tracing. On errors requests are served without.
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
