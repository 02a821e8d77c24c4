//! Webhooks: signed requests of the server to a path of the same site, in the order of their events.

use crate::event_request::{self, EventRequest, Purpose};
use crate::server::Server;
use bytes::Bytes;
use howdah_config::SiteSettings;
use howdah_protocol::Target;
use howdah_pusher::App;
use http::{HeaderName, HeaderValue, header};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum number of queued events; further ones are dropped.
const MAX_WAITING: usize = 10_000;
/// Maximum number of events in one request.
const MAX_BATCH: usize = 100;
/// Delays before the retries of a failed request, as multiples of `webhook_retry`.
const RETRIES: [u32; 3] = [1, 4, 16];

const KEY: HeaderName = HeaderName::from_static("x-pusher-key");
const SIGNATURE: HeaderName = HeaderName::from_static("x-pusher-signature");

/// Sends events to a path of the site.
#[derive(Debug)]
pub(super) struct Webhooks(Arc<Sender>);

#[derive(Debug)]
struct Sender {
    server: Weak<Server>,
    app: Arc<App>,
    host: HeaderValue,
    target: Target,
    /// The delay before the first retry.
    retry: Duration,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Value>,
    /// `true` while a task sends the queued events.
    is_sending: bool,
    /// Events were dropped since the last batch was taken.
    is_full: bool,
}

impl Webhooks {
    /// An error names the setting and the problem.
    pub(super) fn new(
        server: &Arc<Server>,
        settings: &SiteSettings,
        path: &str,
        app: Arc<App>,
    ) -> Result<Self, String> {
        let target = Target::parse(Bytes::copy_from_slice(path.as_bytes()));
        let target = target.map_err(|_| "pusher.webhook: it is not a path: write %20 for a space".to_owned())?;
        let host = HeaderValue::from_str(&event_request::host_of(settings));
        let host = host.map_err(|error| format!("pusher.webhook: {error}"))?;
        let (server, waiting) = (Arc::downgrade(server), Mutex::default());
        let retry = settings.pusher.webhook_retry;
        Ok(Self(Arc::new(Sender { server, app, host, target, retry, waiting })))
    }

    /// Queues an event, which is sent soon, together with others in the queue.
    pub(super) fn push(&self, event: Value) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut waiting = self.0.waiting.lock();
        if waiting.events.len() >= MAX_WAITING {
            if !std::mem::replace(&mut waiting.is_full, true) {
                let path = String::from_utf8_lossy(self.0.target.as_bytes());
                tracing::warn!(target: "howdah::pusher", %path, "too many webhook events wait: dropping further ones");
            }
            return;
        }
        waiting.events.push_back(event);
        if !std::mem::replace(&mut waiting.is_sending, true) {
            runtime.spawn(self.0.clone().send());
        }
    }
}

impl Sender {
    /// Sends the queued events, one request at a time.
    async fn send(self: Arc<Self>) {
        loop {
            let events: Vec<Value> = {
                let mut waiting = self.waiting.lock();
                let count = waiting.events.len().min(MAX_BATCH);
                waiting.is_sending = count > 0;
                waiting.is_full = false;
                waiting.events.drain(..count).collect()
            };
            if events.is_empty() {
                return;
            }
            let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let body = json!({ "time_ms": time.as_millis() as u64, "events": events }).to_string();
            let mut retries = RETRIES.iter();
            while let Err(status) = self.post(body.clone().into()).await {
                let Some(wait) = retries.next() else {
                    let (path, count) = (String::from_utf8_lossy(self.target.as_bytes()), events.len());
                    tracing::warn!(target: "howdah::pusher", %path, status, count, "webhook failed, dropping its events");
                    break;
                };
                tokio::time::sleep(self.retry * *wait).await;
            }
        }
    }

    /// Makes a request. An error is the status of the response.
    async fn post(&self, body: Bytes) -> Result<(), u16> {
        let Some(server) = self.server.upgrade() else { return Ok(()) };
        let Some(events) = server.events().cloned() else { return Ok(()) };
        let signature = HeaderValue::from_str(&self.app.sign(&body)).map_err(|_| 0u16)?;
        let key = HeaderValue::from_str(self.app.key()).map_err(|_| 0u16)?;
        let fields = [
            (header::HOST, self.host.clone()),
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (KEY, key),
            (SIGNATURE, signature),
        ];
        let of = (&*server.settings, server.budgets, &server.metrics);
        let request = EventRequest::of_server(of, Purpose::Webhook, self.target.clone(), fields, body);
        drop(server);
        let (status, _) = events.make(request).await;
        if status.is_success() { Ok(()) } else { Err(status.as_u16()) }
    }
}
