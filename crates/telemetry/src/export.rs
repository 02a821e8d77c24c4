//! A bounded queue of spans in memory, and a thread with its own runtime that sends them in batches. A collector that
//! hangs or refuses costs only spans, which are counted and reported now and then.

use crate::collector;
use howdah_config::TelemetrySettings;
use howdah_observe::Metrics;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Minimum interval between log lines about lost spans.
const WARNING_INTERVAL: Duration = Duration::from_secs(30);

/// The sending side of the queue, for requests.
#[derive(Debug)]
pub(crate) struct Outbox {
    spans: mpsc::UnboundedSender<Vec<SpanData>>,
    waiting: Arc<AtomicUsize>,
    most: usize,
    metrics: Arc<Metrics>,
}

impl Outbox {
    /// Queues the spans of one request, unless the queue is full.
    pub(crate) fn push(&self, spans: Vec<SpanData>) {
        let count = spans.len();
        let room = |waiting: usize| waiting.checked_add(count).filter(|all| *all <= self.most);
        if self.waiting.fetch_update(Relaxed, Relaxed, room).is_err() || self.spans.send(spans).is_err() {
            self.metrics.spans_dropped.add(count as u64);
        }
    }
}

/// Handle of the export thread.
#[derive(Debug)]
pub(crate) struct Sending {
    closing: watch::Sender<Option<Instant>>,
    ended: oneshot::Receiver<()>,
}

impl Sending {
    /// Makes the thread send the queued spans and end within the limit.
    pub(crate) async fn end(self, limit: Duration) {
        let until = Instant::now() + limit;
        self.closing.send_replace(Some(until));
        // The thread checks the time itself; if it hangs anyway, the process ends without it.
        let _ = timeout_at(until + Duration::from_secs(1), self.ended).await;
    }
}

/// Starts the export thread.
pub(crate) fn start(settings: &TelemetrySettings, metrics: Arc<Metrics>) -> Result<(Outbox, Sending), String> {
    let cannot = |error: std::io::Error| format!("cannot start the thread that sends spans: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let exporter = {
        let _inside = runtime.enter();
        collector::exporter(settings)?
    };
    let (sender, spans) = mpsc::unbounded_channel();
    let (closing, told) = watch::channel(None);
    let (end, ended) = oneshot::channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let outbox = Outbox { spans: sender, waiting: waiting.clone(), most: settings.queue, metrics: metrics.clone() };
    let worker = Worker {
        address: settings.address(),
        exporter,
        spans,
        waiting,
        closing: told,
        timeout: settings.timeout,
        delay: settings.delay,
        batch: settings.batch,
        losses: Losses { failed: 0, dropped: metrics.spans_dropped.get(), last_warning: None, why: None },
        metrics,
    };
    let run = move || {
        runtime.block_on(worker.run());
        // Tasks of a connection must not delay the end.
        runtime.shutdown_background();
        let _ = end.send(());
    };
    std::thread::Builder::new().name("telemetry".to_owned()).spawn(run).map_err(cannot)?;
    Ok((outbox, Sending { closing, ended }))
}

/// The thread's state.
struct Worker {
    address: String,
    exporter: SpanExporter,
    spans: mpsc::UnboundedReceiver<Vec<SpanData>>,
    waiting: Arc<AtomicUsize>,
    closing: watch::Receiver<Option<Instant>>,
    timeout: Duration,
    delay: Duration,
    batch: usize,
    metrics: Arc<Metrics>,
    losses: Losses,
}

/// Losses that were not reported yet.
struct Losses {
    failed: u64,
    /// Number of reported spans that had no room.
    dropped: u64,
    last_warning: Option<Instant>,
    /// Error of the last failed export.
    why: Option<String>,
}

impl Worker {
    async fn run(mut self) {
        let mut batch = Vec::new();
        while self.gather(&mut batch).await {
            self.send(std::mem::take(&mut batch)).await;
            self.report(false);
        }
        // Sends the remaining spans, as far as time permits.
        loop {
            while batch.len() < self.batch && self.take_one(&mut batch) {}
            if batch.is_empty() {
                break;
            }
            self.send(std::mem::take(&mut batch)).await;
        }
        self.report(true);
    }

    /// Waits for spans, then briefly for more of them. Returns `false` when the thread must end.
    async fn gather(&mut self, batch: &mut Vec<SpanData>) -> bool {
        let first = tokio::select! {
            spans = self.spans.recv() => spans,
            _ = self.closing.changed() => return false,
        };
        let Some(first) = first else { return false };
        self.waiting.fetch_sub(first.len(), Relaxed);
        batch.extend(first);
        let until = Instant::now() + self.delay;
        while batch.len() < self.batch {
            tokio::select! {
                spans = self.spans.recv() => match spans {
                    Some(spans) => {
                        self.waiting.fetch_sub(spans.len(), Relaxed);
                        batch.extend(spans);
                    }
                    None => break,
                },
                () = sleep_until(until) => break,
                // The gathered spans are still sent.
                _ = self.closing.changed() => return false,
            }
        }
        true
    }

    fn take_one(&mut self, batch: &mut Vec<SpanData>) -> bool {
        let Ok(spans) = self.spans.try_recv() else { return false };
        self.waiting.fetch_sub(spans.len(), Relaxed);
        batch.extend(spans);
        true
    }

    /// Sends a batch, within the batch timeout and before the deadline.
    async fn send(&mut self, batch: Vec<SpanData>) {
        let (count, mut closing) = (batch.len() as u64, self.closing.clone());
        let timeout = Instant::now() + self.timeout;
        let limit = async {
            loop {
                let until = closing.borrow_and_update().map_or(timeout, |end| end.min(timeout));
                tokio::select! {
                    () = sleep_until(until) => return,
                    changed = closing.changed() => if changed.is_err() { return sleep_until(timeout).await },
                }
            }
        };
        let outcome = tokio::select! {
            outcome = self.exporter.export(batch) => outcome.map_err(|error| error.to_string()),
            () = limit => Err("no response in time".to_owned()),
        };
        match outcome {
            Ok(()) => {
                self.metrics.spans_sent.add(count);
                if self.losses.why.take().is_some() {
                    tracing::info!(target: "howdah::telemetry", "exporting spans to {} again", self.address);
                }
            }
            Err(why) => {
                self.metrics.spans_failed.add(count);
                self.losses.failed += count;
                // The first failure of a series is reported at once.
                if self.losses.why.replace(why).is_none() {
                    self.report(true);
                }
            }
        }
    }

    /// Reports losses, rate limited.
    fn report(&mut self, now: bool) {
        let losses = &mut self.losses;
        let dropped = self.metrics.spans_dropped.get() - losses.dropped;
        if (dropped == 0 && losses.failed == 0)
            || (!now && losses.last_warning.is_some_and(|at| at.elapsed() < WARNING_INTERVAL))
        {
            return;
        }
        let (failed, address) = (std::mem::take(&mut losses.failed), &self.address);
        (losses.dropped, losses.last_warning) = (losses.dropped + dropped, Some(Instant::now()));
        if failed > 0 {
            let why = losses.why.as_deref().unwrap_or("it could not be reached");
            tracing::warn!(target: "howdah::telemetry", spans = failed, "spans lost: cannot send to {address}: {why}");
        }
        if dropped > 0 {
            tracing::warn!(target: "howdah::telemetry", spans = dropped, "spans dropped: {address} is too slow");
        }
    }
}
