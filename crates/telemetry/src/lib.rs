//! Traces of requests, by OpenTelemetry. Reading order: `context` (whose trace a request belongs to, and whether it is sampled),
//! `span` (what is known of a request that has ended, as spans), `export` (spans wait for the thread that sends them), `collector`
//! and `http_client` (how they are sent). No request waits for any of it: what has no room is dropped and counted.
#![forbid(unsafe_code)]

mod collector;
mod context;
mod export;
mod http_client;
mod span;

use crate::context::Contexts;
use crate::export::{Outbox, Sending};
use howdah_config::TelemetrySettings;
use howdah_observe::Metrics;
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;

pub use context::Trace;
pub use opentelemetry::trace::TraceId;
pub use span::{Ended, Inner};

/// Makes the traces of a server's requests. Shared by threads.
#[derive(Debug)]
pub struct Telemetry {
    contexts: Contexts,
    outbox: Outbox,
}

/// The thread that sends spans; its owner ends it.
#[derive(Debug)]
pub struct Sender(Sending);

impl Telemetry {
    /// Starts the thread that sends spans. It connects when there are some: a missing collector delays no one.
    ///
    /// # Errors
    /// The mistake in the settings or the environment.
    pub fn start(settings: &TelemetrySettings, metrics: Arc<Metrics>) -> Result<(Arc<Self>, Sender), String> {
        let (outbox, sending) = export::start(settings, metrics)?;
        let telemetry = Self { contexts: Contexts::new(settings), outbox };
        Ok((Arc::new(telemetry), Sender(sending)))
    }

    /// A request begins: the trace it belongs to, by its fields. `trusted`: they come from a trusted proxy.
    #[must_use]
    pub fn begin(&self, headers: &HeaderMap, trusted: bool) -> Box<Trace> {
        Box::new(self.contexts.begin(headers, trusted))
    }

    /// A request has ended. Its spans are sent if it was sampled.
    pub fn end(&self, trace: &Trace, ended: &Ended<'_>) {
        if trace.is_sampled() {
            self.outbox.push(span::spans(trace, ended));
        }
    }
}

impl Sender {
    /// Sends what waits, for so long at most, and ends.
    pub async fn end(self, limit: Duration) {
        self.0.end(limit).await;
    }
}
