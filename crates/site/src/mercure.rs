//! Mercure hubs: a site's keys and permissions, which come with its settings, and its hub, which outlives them.

use howdah_config::{MercureSettings, Secret};
use howdah_live::{Hub, Limits};
use howdah_mercure::{Key, Publication};
use howdah_observe::Metrics;
use howdah_pool::{LiveField, LiveOrder};
use http::HeaderValue;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::time::Duration;

/// The settings of a site's hub in the form in which requests use them.
#[derive(Debug)]
pub(crate) struct Mercure {
    pub(crate) publisher: Option<Key>,
    pub(crate) subscriber: Option<Key>,
    pub(crate) anonymous: bool,
    origins: Vec<String>,
    pub(crate) heartbeat: Duration,
}

impl Mercure {
    /// `None` where there is no hub. An error names the setting and what is wrong with it.
    pub(crate) fn new(settings: &MercureSettings) -> Result<Option<Self>, String> {
        if !settings.is_used() {
            return Ok(None);
        }
        let read = |key: Option<&Secret>, name: &str| {
            key.map(|key| Key::new(key.expose())).transpose().map_err(|why| format!("mercure.{name}: {why}"))
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

    /// The value of `Access-Control-Allow-Origin` for a page of this origin, and whether its cookies count.
    pub(crate) fn allowed_origin(&self, origin: &HeaderValue) -> Option<(HeaderValue, bool)> {
        if self.origins.iter().any(|own| own.as_bytes() == origin.as_bytes()) {
            return Some((origin.clone(), true));
        }
        self.origins.iter().any(|own| own == "*").then(|| (HeaderValue::from_static("*"), false))
    }
}

/// The update that a script publishes by `mercure_publish()`.
fn publication(order: &LiveOrder) -> Publication {
    let text = |bytes: bytes::Bytes| String::from_utf8_lossy(&bytes).into_owned();
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

/// The hubs of all sites, by their names: of Mercure and of WebSocket channels. Reloads hand them on, so subscribers stay.
#[derive(Debug, Default)]
pub struct Hubs(Mutex<FxHashMap<String, Hub>>);

impl Hubs {
    /// The hub of a site.
    #[must_use]
    pub fn of(&self, site: &str) -> Hub {
        let mut hubs = self.0.lock();
        match hubs.get(site) {
            Some(hub) => hub.clone(),
            None => hubs.entry(site.to_owned()).or_insert_with(|| Hub::new(Limits::default())).clone(),
        }
    }

    /// Publishes the update of an order, which a script of this site has given.
    pub(crate) fn publish(&self, site: &str, order: &LiveOrder, metrics: &Metrics) {
        match publication(order).into_update() {
            Ok(update) => {
                metrics.mercure_updates.inc();
                self.of(site).publish(update);
            }
            // The worker has checked its arguments, but it is not trusted.
            Err(why) => tracing::warn!(target: "howdah::mercure", site, "update of a script refused: {why}"),
        }
    }

    /// The site, the subscribers and the topics of each hub that has subscribers. WebSocket connections are subscribers, and
    /// their channels topics.
    #[must_use]
    pub fn usage(&self) -> Vec<(String, usize, usize)> {
        let hubs = self.0.lock();
        let used = hubs.iter().filter(|(site, hub)| !site.is_empty() && !hub.is_empty());
        let mut usage: Vec<_> = used.map(|(site, hub)| (site.clone(), hub.len(), hub.topics_in_use())).collect();
        usage.sort_unstable();
        usage
    }

    /// Closes every hub: each subscriber ends at another moment of this time.
    pub fn close(&self, spread: Duration) {
        self.0.lock().values().for_each(|hub| hub.close(spread));
    }

    /// The settings of a site have changed, or the site was removed: its subscribers come back, within this time, and are
    /// asked for their tokens again. WebSocket connections stay.
    pub(crate) fn changed(&self, site: &str, exists: bool, spread: Duration) {
        let mut hubs = self.0.lock();
        if exists {
            hubs.get(site).inspect(|hub| hub.end_subscriptions(spread));
        } else if let Some(hub) = hubs.remove(site) {
            hub.close(spread);
        }
    }
}
