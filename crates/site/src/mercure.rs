//! Mercure hubs: a site's keys and permissions, which are part of its settings, and its hub, which survives reloads.

use crate::presence;
use bytes::Bytes;
use howdah_config::{MercureSettings, Secret, Settings, SiteSettings};
use howdah_live::{Hub, Limits, Share};
use howdah_mercure::{Keys, Publication};
use howdah_observe::Metrics;
use howdah_pool::{LiveField, LiveOrder};
use howdah_rules::Action;
use howdah_store::{Broker, Log, Received};
use http::HeaderValue;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a site's hub, prepared for requests.
#[derive(Debug)]
pub(crate) struct Mercure {
    pub(crate) publisher: Option<Keys>,
    pub(crate) subscriber: Option<Keys>,
    pub(crate) anonymous: bool,
    origins: Vec<String>,
    pub(crate) heartbeat: Duration,
}

impl Mercure {
    /// Returns `None` if the site has no hub. An error names the setting and the problem.
    pub(crate) fn new(settings: &MercureSettings) -> Result<Option<Self>, String> {
        if !settings.is_used() {
            return Ok(None);
        }
        let read = |key: Option<&Secret>, name: &str| {
            key.map(|key| Keys::new(key.expose())).transpose().map_err(|why| format!("mercure.{name} {why}"))
        };
        Ok(Some(Self {
            publisher: read(settings.publisher_key.as_ref(), "publisher_key")?,
            subscriber: read(settings.key_of_subscribers(), "subscriber_key")?,
            anonymous: settings.anonymous,
            origins: settings.allowed_origins.clone(),
            heartbeat: settings.heartbeat,
        }))
    }

    /// `true` if pages of other origins may use the hub.
    pub(crate) fn has_origins(&self) -> bool {
        !self.origins.is_empty()
    }

    /// Returns the value of `Access-Control-Allow-Origin` for a page of this origin, and `true` if its cookies are
    /// accepted.
    pub(crate) fn allowed_origin(&self, origin: &HeaderValue) -> Option<(HeaderValue, bool)> {
        if self.origins.iter().any(|own| own.as_bytes() == origin.as_bytes()) {
            return Some((origin.clone(), true));
        }
        self.origins.iter().any(|own| own == "*").then(|| (HeaderValue::from_static("*"), false))
    }
}

/// Returns an error for each invalid key of a hub.
pub fn wrong_keys(settings: &Settings) -> Vec<String> {
    let is_only = settings.sites.is_empty();
    let wrong = settings.all_sites().into_iter().filter_map(|site| {
        let error = Mercure::new(&site.mercure).err()?;
        Some(if is_only { error } else { format!("site {}: {error}", site.name) })
    });
    wrong.collect()
}

/// Converts a field of an order; invalid UTF-8 is replaced.
pub(crate) fn text(bytes: Bytes) -> String {
    String::from_utf8(bytes.into()).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the update that a script publishes with `mercure_publish()`.
fn publication(order: &LiveOrder) -> Publication {
    let field = |name| order.field(name).map(text);
    Publication {
        topics: order.all(LiveField::Topic).map(text).collect(),
        data: field(LiveField::Data).unwrap_or_default(),
        private: order.field(LiveField::Private).is_some(),
        id: field(LiveField::Id),
        kind: field(LiveField::Type),
        retry: field(LiveField::Retry).and_then(|retry| retry.parse().ok()),
    }
}

/// `true` if the site's rules open WebSocket connections for scripts.
pub(crate) fn has_connections(settings: &SiteSettings) -> bool {
    let mut actions = settings.rules.rules().iter().flat_map(|rule| &rule.actions);
    actions.any(|action| matches!(action, Action::WebSocket(_)))
}

/// The hubs of all sites by site name, for Mercure and WebSocket channels. A reload passes them on, so subscribers
/// stay.
#[derive(Debug, Default)]
pub struct Hubs {
    all: Mutex<FxHashMap<String, SiteHub>>,
    broker: Option<Broker>,
}

/// The hub of a site, and its logs if several servers share it.
#[derive(Debug, Clone)]
struct SiteHub {
    hub: Hub,
    log: Option<Arc<Log>>,
    /// The log of channels and members, if clients may join channels.
    presence: Option<Arc<Log>>,
}

/// Publishes updates through a shared log.
#[derive(Debug)]
struct LogShare(Arc<Log>);

impl Share for LogShare {
    fn send(&self, update: Bytes) {
        self.0.append(update);
    }
}

impl SiteHub {
    fn new(site: &str, broker: Option<&Broker>) -> Self {
        let hub = Hub::new(Limits::default());
        let log = broker.map(|broker| {
            let own = hub.downgrade();
            let deliver = move |received: Received| {
                if let Some(hub) = own.get() {
                    hub.receive(received.payload, received.is_old);
                }
            };
            Arc::new(Log::open(broker, site, deliver))
        });
        if let Some(log) = &log {
            hub.share(Arc::new(LogShare(log.clone())));
        }
        Self { hub, log, presence: None }
    }
}

/// Current usage of a site's hub.
#[derive(Debug, Serialize)]
pub struct HubUsage {
    pub site: String,
    /// WebSocket connections and Mercure subscribers.
    pub subscribers: usize,
    /// WebSocket connections alone.
    pub connections: usize,
    /// Topics that a subscriber names; channels of WebSocket connections among them.
    pub topics: usize,
}

impl HubUsage {
    fn of(site: &str, hub: &Hub) -> Self {
        let (subscribers, connections, topics) = (hub.len(), hub.connections(), hub.topics_in_use());
        Self { site: site.to_owned(), subscribers, connections, topics }
    }
}

impl Hubs {
    /// Creates hubs that are shared with the other servers of this broker.
    pub(crate) fn shared(broker: Broker) -> Self {
        Self { all: Mutex::default(), broker: Some(broker) }
    }

    pub fn of(&self, site: &str) -> Hub {
        self.find(site).hub
    }

    fn find(&self, site: &str) -> SiteHub {
        let mut hubs = self.all.lock();
        match hubs.get(site) {
            Some(hub) => hub.clone(),
            None => hubs.entry(site.to_owned()).or_insert_with(|| SiteHub::new(site, self.broker.as_ref())).clone(),
        }
    }

    /// Waits until every hub has the shared history, or the broker is unreachable. Returns at once without a broker.
    pub async fn all_ready(&self) {
        let all: Vec<SiteHub> = self.all.lock().values().cloned().collect();
        for log in all.iter().flat_map(|site| site.log.iter().chain(&site.presence)) {
            log.caught_up().await;
        }
    }

    /// Waits until the hub of a site has the shared history, or the broker is unavailable.
    pub(crate) async fn ready(&self, site: &str) {
        if let Some(log) = self.find(site).log {
            log.caught_up().await;
        }
    }

    /// Waits until the broker has stored the updates published in a site, or is unavailable.
    pub(crate) async fn stored(&self, site: &str) {
        if let Some(log) = self.find(site).log {
            log.stored().await;
        }
    }

    /// Opens the hubs that sites use before the first request, because a subscriber may resume after any earlier
    /// update.
    pub(crate) fn open(&self, sites: &[SiteSettings], presence_interval: Duration) {
        for site in sites {
            let has_channels = site.pusher.app.is_some() || has_connections(site);
            if !has_channels && !site.mercure.is_used() {
                continue;
            }
            let hub = self.of(&site.name);
            if let (true, Some(broker)) = (has_channels, &self.broker)
                && let Some(shared) = self.all.lock().get_mut(&site.name)
            {
                let open = || presence::share(&hub, &site.name, broker, presence_interval);
                shared.presence.get_or_insert_with(open);
            }
        }
    }

    /// Declares this server gone to those that share its hubs.
    pub async fn leave(&self) {
        let all: Vec<SiteHub> = self.all.lock().values().cloned().collect();
        let shared = all.into_iter().filter_map(|site| Some((site.hub, site.presence?))).collect();
        presence::leave(shared).await;
    }

    /// Publishes the update of an order from a script of this site.
    pub(crate) fn publish(&self, site: &str, order: &LiveOrder, metrics: &Metrics) {
        match publication(order).into_update() {
            Ok(update) => {
                metrics.mercure_updates.inc();
                self.of(site).publish(update);
            }
            // The worker has checked the arguments, but workers are not trusted.
            Err(why) => tracing::warn!(target: "howdah::mercure", site, "update of a script refused: {why}"),
        }
    }

    /// Usage of each hub with subscribers, in the order of the sites' names.
    pub fn usage(&self) -> Vec<HubUsage> {
        let hubs = self.all.lock();
        let used = hubs.iter().map(|(site, shared)| (site, &shared.hub));
        let used = used.filter(|(site, hub)| !site.is_empty() && !hub.is_empty());
        let mut usage: Vec<_> = used.map(|(site, hub)| HubUsage::of(site, hub)).collect();
        usage.sort_unstable_by(|a, b| a.site.cmp(&b.site));
        usage
    }

    /// Closes every hub. The subscribers are disconnected at different times within `spread`.
    pub fn close(&self, spread: Duration) {
        self.all.lock().values().for_each(|site| site.hub.close(spread));
    }

    /// Handles changed settings of a site, or its removal. Its subscribers and clients of the Pusher protocol are
    /// disconnected within `spread`, so that they reconnect and present their tokens again. WebSocket connections of
    /// scripts stay open.
    pub(crate) fn changed(&self, site: &str, exists: bool, spread: Duration) {
        let mut hubs = self.all.lock();
        if exists {
            hubs.get(site).inspect(|site| site.hub.end_subscriptions(spread));
        } else if let Some(site) = hubs.remove(site) {
            site.hub.close(spread);
        }
    }
}
