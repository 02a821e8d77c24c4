//! Subscriptions as JSON-LD documents (0.x), for the subscription API and its events.

use crate::{PATH, form, new_id};
use howdah_live::{Hub, Interest, Selector, Subscriber, Update, any_matches};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const CONTEXT: &str = "https://mercure.rocks/";

/// A path of the API: up to three decoded parts. In 0.x those are a selector and a subscriber, in 1.0 a type, a matcher
/// and a subscriber. Without any, it names all subscriptions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionsPath(pub(crate) Vec<String>);

impl SubscriptionsPath {
    /// Reads a path.
    pub fn new(path: &[u8]) -> Option<Self> {
        let rest = path.strip_prefix(PATH.as_bytes())?.strip_prefix(b"/subscriptions")?;
        if rest.is_empty() {
            return Some(Self(Vec::new()));
        }
        let parts: Vec<String> = rest.strip_prefix(b"/")?.split(|byte| *byte == b'/').map(form::decoded).collect();
        (parts.len() <= 3 && parts.iter().all(|part| !part.is_empty())).then_some(Self(parts))
    }

    /// One subscription of 0.x.
    fn one(topic: &str, subscriber: &str) -> Self {
        Self(vec![topic.to_owned(), subscriber.to_owned()])
    }

    /// The path, which is also the topic that a token must allow.
    pub fn path(&self) -> String {
        let parts = self.0.iter().map(|part| format!("/{}", form::encoded(part)));
        format!("{PATH}/subscriptions{}", parts.collect::<String>())
    }

    /// The document of 0.x about the present subscriptions, and the id of the last update. `None` if the requested
    /// subscription does not exist.
    pub fn document(&self, hub: &Hub) -> Option<(String, String)> {
        // Read before the subscribers: a client that continues after this id may get an event twice, but misses none.
        let last = hub.last();
        let (last, subscribers) = (last.as_str(), hub.subscribers());
        let mut found =
            subscribers.iter().flat_map(|subscriber| self.found(subscriber)).collect::<Vec<_>>().into_iter();
        let mut document = match self.0.len() {
            3 => return None,
            2 => found.next()?,
            _ => {
                let all: Vec<Value> = found.map(Value::Object).collect();
                object(json!({ "id": self.path(), "type": "Subscriptions", "subscriptions": all }))
            }
        };
        document.insert("@context".to_owned(), CONTEXT.into());
        document.insert("lastEventID".to_owned(), last.into());
        Some((Value::Object(document).to_string(), last.to_owned()))
    }

    /// The requested subscriptions of a subscriber: its selectors, and the channels of a WebSocket.
    fn found(&self, subscriber: &Subscriber) -> Vec<Map<String, Value>> {
        let interest = &subscriber.interest;
        let is_meant = |text: &str| self.0.iter().zip([text, &interest.id]).all(|(part, own)| part == own);
        let selectors: &[Selector] = if interest.payloads.is_none() { &interest.selectors } else { &[] };
        let selectors = selectors.iter().map(Selector::text).filter(|text| is_meant(text));
        let mut found: Vec<_> = selectors.map(|text| subscription(interest, text, true)).collect();
        for channel in subscriber.channels().iter().filter(|channel| is_meant(&channel.topic)) {
            let mut joined = subscription(interest, &channel.topic, true);
            if let Some(member) = &channel.member {
                let info = member.info.as_deref().and_then(|info| serde_json::from_str::<Value>(info).ok());
                joined.insert("payload".to_owned(), json!({ "member": &*member.id, "info": info }));
            }
            found.push(joined);
        }
        found
    }
}

/// The updates of 0.x that announce a subscriber's subscriptions (`active`) or their end. Those without a subscriber to
/// the event's topic are left out.
pub(crate) fn events(hub: &Hub, interest: &Interest, active: bool) -> impl Iterator<Item = Update> {
    let selectors: &[Selector] = if interest.payloads.is_none() { &interest.selectors } else { &[] };
    selectors.iter().filter_map(move |selector| {
        let topic: Arc<str> = SubscriptionsPath::one(selector.text(), &interest.id).path().into();
        if !hub.is_watched(&topic) {
            return None;
        }
        let id: Arc<str> = new_id()?.into();
        let mut document = subscription(interest, selector.text(), active);
        document.insert("@context".to_owned(), CONTEXT.into());
        let data = Value::Object(document).to_string().into();
        Some(Update { id, topics: Box::new([topic]), private: true, data, ..Update::default() })
    })
}

/// `true` if one of these selectors allows this path of the API.
pub fn allows(selectors: &[Selector], requested: &SubscriptionsPath) -> bool {
    any_matches(selectors, &[requested.path().into()])
}

fn subscription(interest: &Interest, topic: &str, active: bool) -> Map<String, Value> {
    let mut found = object(json!({
        "id": SubscriptionsPath::one(topic, &interest.id).path(),
        "type": "Subscription",
        "topic": topic,
        "subscriber": &*interest.id,
        "active": active,
    }));
    if let Some(payload) = interest.payload.as_deref().and_then(|payload| serde_json::from_str(payload).ok()) {
        found.insert("payload".to_owned(), payload);
    }
    found
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_budget::{Budgets, Charge};
    use howdah_live::{Limits, QueueLimits, SlowPolicy};

    fn terms() -> QueueLimits {
        let charge = Charge::new(Budgets::new(1 << 26, 1 << 26).memory, None);
        QueueLimits { slow: SlowPolicy::Disconnect, max_updates: 256, max_bytes: 1 << 20, charge }
    }

    #[test]
    fn paths_are_read_and_written() {
        let one = SubscriptionsPath::one("https://a/{b}", "urn:uuid:1");
        for (path, requested) in [
            ("/.well-known/mercure/subscriptions", Some(SubscriptionsPath(vec![]))),
            ("/.well-known/mercure/subscriptions/a%20b", Some(SubscriptionsPath(vec!["a b".to_owned()]))),
            ("/.well-known/mercure/subscriptions/https%3A%2F%2Fa%2F%7Bb%7D/urn%3Auuid%3A1", Some(one)),
        ] {
            assert_eq!(SubscriptionsPath::new(path.as_bytes()), requested);
            assert_eq!(requested.unwrap().path(), path);
        }
        for path in [
            "/.well-known/mercure",
            "/subscriptions/",
            "/subscriptionsx",
            "/subscriptions/a/",
            "/subscriptions/a/b/c/d",
        ] {
            assert_eq!(SubscriptionsPath::new(format!("{PATH}{path}").as_bytes()), None, "{path}");
        }
    }

    #[test]
    fn subscriptions_are_listed_with_their_payload() {
        let hub = Hub::new(Limits::default());
        let join = |id: &str, topics: &[&str], payload: Option<&str>| {
            let selectors = topics.iter().map(|topic| Selector::new(topic)).collect();
            let interest =
                Interest { selectors, id: id.into(), payload: payload.map(Into::into), ..Interest::default() };
            hub.subscribe(interest, None, terms()).subscription
        };
        let _first = join("urn:1", &["a", "{b}"], Some(r#"{"user":7}"#));
        let _second = join("urn:2", &["a"], None);
        let document = |requested: &SubscriptionsPath| -> Value {
            serde_json::from_str(&requested.document(&hub).unwrap().0).unwrap()
        };
        let all = document(&SubscriptionsPath(vec![]));
        assert_eq!((&all["@context"], &all["type"]), (&json!("https://mercure.rocks/"), &json!("Subscriptions")));
        assert_eq!(
            (&all["id"], &all["lastEventID"]),
            (&json!("/.well-known/mercure/subscriptions"), &json!("earliest"))
        );
        assert_eq!(all["subscriptions"].as_array().unwrap().len(), 3);
        assert_eq!(
            all["subscriptions"][1],
            json!({
                "id": "/.well-known/mercure/subscriptions/%7Bb%7D/urn%3A1",
                "type": "Subscription", "topic": "{b}", "subscriber": "urn:1", "active": true, "payload": { "user": 7 },
            })
        );
        assert_eq!(document(&SubscriptionsPath(vec!["a".to_owned()]))["subscriptions"].as_array().unwrap().len(), 2);
        let one = document(&SubscriptionsPath::one("a", "urn:2"));
        assert_eq!(
            (&one["subscriber"], &one["payload"], &one["lastEventID"]),
            (&json!("urn:2"), &Value::Null, &json!("earliest"))
        );
        assert!(SubscriptionsPath::one("a", "urn:3").document(&hub).is_none());
    }

    #[test]
    fn a_subscriber_that_comes_or_goes_is_a_private_update_for_each_selector() {
        let interest = Interest {
            selectors: vec![Selector::new("a"), Selector::new("*")],
            id: "urn:1".into(),
            ..Interest::default()
        };
        let hub = Hub::new(Limits::default());
        assert_eq!(events(&hub, &interest, true).count(), 0, "no subscriber would get it");
        let watcher = |allowed: &str| Interest {
            selectors: vec![Selector::new("/.well-known/mercure/subscriptions/{topic}/{subscriber}")],
            allowed: vec![Selector::new(allowed)],
            ..Interest::default()
        };
        let _other = hub.subscribe(watcher("/other"), None, terms());
        assert_eq!(events(&hub, &interest, true).count(), 0);
        let _watcher = hub.subscribe(watcher("*"), None, terms());
        let found: Vec<Update> = events(&hub, &interest, false).collect();
        assert_eq!(&*found[0].topics[0], "/.well-known/mercure/subscriptions/a/urn%3A1");
        assert_eq!(&*found[1].topics[0], "/.well-known/mercure/subscriptions/%2A/urn%3A1");
        assert!(found.iter().all(|update| update.private));
        let text = String::from_utf8(found[0].data.to_vec()).unwrap();
        assert!(text.contains(r#""active":false"#), "{text}");
        let selectors = [Selector::new("/.well-known/mercure/subscriptions{/topic}{/subscriber}")];
        assert!(
            allows(&selectors, &SubscriptionsPath(vec![])) && allows(&selectors, &SubscriptionsPath::one("a/b", "c"))
        );
        assert!(!allows(&[Selector::new("a")], &SubscriptionsPath(vec![])));
    }
}
