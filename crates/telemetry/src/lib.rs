//! Traces of requests, by OpenTelemetry.
//!
//! Reading order: `context` (the trace of a request, and the sampling decision), `span` (the spans of an ended
//! request), `export` (a queue of spans, and the thread that sends them), `collector` and `http_client` (sending).
//! Requests never wait for a collector: spans without room in the queue are dropped and counted.
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

pub use context::{OpeningSpan, Trace};
pub use opentelemetry::trace::TraceId;
pub use span::{EndedRequest, SocketSpan, WorkerSpan};

/// Creates the traces of a server's requests. Shared by threads.
#[derive(Debug)]
pub struct Telemetry {
    contexts: Contexts,
    outbox: Outbox,
}

/// Handle of the thread that sends spans; its owner stops the thread.
#[derive(Debug)]
pub struct Sender(Sending);

impl Telemetry {
    /// Starts the thread that sends spans. It connects when there are spans to send, so a missing collector delays
    /// nothing.
    ///
    /// # Errors
    /// The error in the settings or the environment.
    pub fn start(settings: &TelemetrySettings, metrics: Arc<Metrics>) -> Result<(Arc<Self>, Sender), String> {
        let (outbox, sending) = export::start(settings, metrics)?;
        let telemetry = Self { contexts: Contexts::new(settings), outbox };
        Ok((Arc::new(telemetry), Sender(sending)))
    }

    /// Begins a request's trace from its header fields. `trusted` is `true` if they come from a trusted proxy.
    pub fn begin(&self, headers: &HeaderMap, trusted: bool) -> Box<Trace> {
        Box::new(self.contexts.begin(headers, trusted))
    }

    /// Begins the trace of an event on the connection that this request opened. `is_open`: the event belongs to that
    /// request.
    pub fn begin_event(&self, opening: Option<&OpeningSpan>, is_open: bool) -> Box<Trace> {
        Box::new(self.contexts.begin_event(opening, is_open))
    }

    /// Ends a request's trace. Its spans are queued if it was sampled, and dropped if the queue is full.
    pub fn end(&self, trace: &Trace, ended: &EndedRequest<'_>) {
        if trace.is_sampled() {
            self.outbox.push(span::spans(trace, ended));
        }
    }
}

impl Sender {
    /// Sends the queued spans within the time limit, and stops the thread.
    pub async fn end(self, limit: Duration) {
        self.0.end(limit).await;
    }
}
