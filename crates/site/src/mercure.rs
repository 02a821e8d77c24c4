//! Mercure hubs: a site's keys and permissions, which come with its settings, and its hub, which outlives them.

use howdah_config::{MercureSettings, Secret};
use howdah_live::{Hub, Limits};
use howdah_mercure::Key;
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

/// The hubs of all sites, by their names. Reloads hand them on, so subscribers stay.
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

    /// Closes every hub: each subscriber ends at another moment of this time.
    pub fn close(&self, spread: Duration) {
        self.0.lock().values().for_each(|hub| hub.close(spread));
    }

    /// The settings of a site have changed, or there is no such site any more: its subscribers come back, within this time,
    /// and are asked for their tokens again.
    pub(crate) fn changed(&self, site: &str, is_left: bool, spread: Duration) {
        let mut hubs = self.0.lock();
        if is_left {
            hubs.get(site).inspect(|hub| hub.end_subscriptions(spread));
        } else if let Some(hub) = hubs.remove(site) {
            hub.close(spread);
        }
    }
}
