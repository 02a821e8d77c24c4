//! Active subscriptions as documents of Mercure 1.0: those made by `match` parameters.

use crate::document::{SubscriptionsPath, object};
use crate::matcher::MatchType;
use crate::new_id;
use howdah_live::{Hub, Interest, Selector, Subscriber, Update};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The type of the events that hubs themselves publish.
pub const EVENT_TYPE: &str = "mercure";

impl SubscriptionsPath {
    /// The document of Mercure 1.0, and the id of the last update. `None` if the requested subscription does not exist.
    pub fn active_document(&self, hub: &Hub) -> Option<(String, String)> {
        // Read before the subscribers: a client that continues after this id may get an event twice, but misses none.
        let last = hub.last().as_str().to_owned();
        let subscribers = hub.subscribers();
        let parts: Vec<&str> = self.0.iter().map(String::as_str).collect();
        let mut found = subscribers.iter().flat_map(|subscriber| found(subscriber, &parts));
        let document = match parts.len() {
            0 | 2 => {
                let all: Vec<Value> = found.map(Value::Object).collect();
                object(json!({ "id": self.path(), "type": "subscriptions", "subscriptions": all }))
            }
            3 => found.next()?,
            _ => return None,
        };
        Some((Value::Object(document).to_string(), last))
    }
}

/// The subscriptions of a subscriber that the parts of a path name: none, type and matcher, or also the subscriber.
fn found(subscriber: &Subscriber, parts: &[&str]) -> Vec<Map<String, Value>> {
    let interest = &subscriber.interest;
    let is_meant = |selector: &Selector| {
        let own = [MatchType::of(selector).name(), selector.text(), &interest.id];
        parts.iter().zip(own).all(|(part, own)| *part == own)
    };
    let all = interest.matched().filter(|(selector, _)| is_meant(selector));
    all.map(|(selector, payload)| subscription(interest, selector, payload, true)).collect()
}

/// The updates of 1.0 that announce a subscriber's subscriptions (`active`) or their end. Those without a subscriber to
/// the event's topic are left out.
pub(crate) fn events(hub: &Hub, interest: &Interest, active: bool) -> impl Iterator<Item = Update> {
    interest.matched().filter_map(move |(selector, payload)| {
        let topic: Arc<str> = path(interest, selector).path().into();
        if !hub.is_watched(&topic) {
            return None;
        }
        let (id, kind) = (new_id()?.into(), Some(EVENT_TYPE.into()));
        let data = Value::Object(subscription(interest, selector, payload, active)).to_string().into();
        Some(Update { id, topics: Box::new([topic]), private: true, kind, data, ..Update::default() })
    })
}

fn path(interest: &Interest, selector: &Selector) -> SubscriptionsPath {
    let parts = [MatchType::of(selector).name(), selector.text(), &interest.id];
    SubscriptionsPath(parts.map(str::to_owned).into())
}

fn subscription(interest: &Interest, selector: &Selector, payload: Option<&str>, active: bool) -> Map<String, Value> {
    let mut found = object(json!({
        "id": path(interest, selector).path(),
        "type": "subscription",
        "match_type": MatchType::of(selector).name(),
        "match": selector.text(),
        "subscriber": &*interest.id,
        "active": active,
    }));
    if let Some(payload) = payload.and_then(|payload| serde_json::from_str(payload).ok()) {
        found.insert("payload".to_owned(), payload);
    }
    found
}
