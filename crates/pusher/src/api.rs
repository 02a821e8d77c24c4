//! The HTTP API for application servers: publishing events, and queries about channels.

use crate::channel::{self, Kind};
use crate::message;
use howdah_live::{Channel, Hub, Update};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Maximum number of channels of an event.
const MAX_CHANNELS: usize = 100;
/// Maximum number of events of a batch.
const MAX_BATCH: usize = 100;
/// Maximum length of an event's name, in bytes.
const MAX_NAME: usize = 200;

/// The API resource of a path below `/apps/ID/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    Events,
    BatchEvents,
    Channels,
    Channel(String),
    Users(String),
    /// The connections of a user.
    Terminate(String),
}

impl Resource {
    /// Parses the rest of a path, such as `channels/presence-room/users`.
    pub fn new(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        match parts[..] {
            ["events"] => Some(Self::Events),
            ["batch_events"] => Some(Self::BatchEvents),
            ["channels"] => Some(Self::Channels),
            ["channels", name] => Some(Self::Channel(name.to_owned())),
            ["channels", name, "users"] => Some(Self::Users(name.to_owned())),
            ["users", id, "terminate_connections"] if !id.is_empty() => Some(Self::Terminate(id.to_owned())),
            _ => None,
        }
    }

    /// `true` if the resource takes `POST`, `false` for `GET`.
    pub fn publishes(&self) -> bool {
        matches!(self, Self::Events | Self::BatchEvents | Self::Terminate(_))
    }
}

/// An error in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    #[error("the body is not JSON with a name, channels and data")]
    Body,
    #[error("an event's name must have 1 to 200 bytes")]
    Name,
    #[error("an event must have 1 to 100 channels, and a batch at most 100 events")]
    Number,
    #[error("a channel's name is invalid")]
    Channel,
    #[error("only presence channels have users")]
    NoPresence,
}

#[derive(Deserialize)]
struct Event {
    name: String,
    #[serde(default)]
    channels: Vec<String>,
    channel: Option<String>,
    data: Value,
    socket_id: Option<String>,
    #[serde(default)]
    info: String,
}

#[derive(Deserialize)]
struct Batch {
    batch: Vec<Event>,
}

/// The updates of a publishing request, and the data for its response.
#[derive(Debug)]
pub struct Published {
    pub updates: Vec<Update>,
    is_batch: bool,
    /// For each event its channels, and the attributes requested for them.
    requested: Vec<(Vec<String>, String)>,
}

impl Published {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// The body or an event in it is invalid; then nothing must be published.
    pub fn read(body: &[u8], is_batch: bool) -> Result<Self, ApiError> {
        let events = if is_batch {
            serde_json::from_slice::<Batch>(body).map_err(|_| ApiError::Body)?.batch
        } else {
            vec![serde_json::from_slice(body).map_err(|_| ApiError::Body)?]
        };
        if events.len() > MAX_BATCH {
            return Err(ApiError::Number);
        }
        let (mut updates, mut requested) = (Vec::new(), Vec::new());
        for Event { name, mut channels, channel, data, socket_id, info } in events {
            channels.extend(channel);
            if name.is_empty() || name.len() > MAX_NAME {
                return Err(ApiError::Name);
            }
            if channels.is_empty() || channels.len() > MAX_CHANNELS {
                return Err(ApiError::Number);
            }
            for channel in &channels {
                Kind::from_name(channel).ok_or(ApiError::Channel)?;
                let update = message::event(&name, channel, &data, None, socket_id.as_deref());
                updates.push(Update { cached: Kind::is_cached(channel), ..update });
            }
            requested.push((channels, info));
        }
        Ok(Self { updates, is_batch, requested })
    }

    /// The response document.
    pub fn document(&self, hub: &Hub) -> Value {
        let mut documents = self.requested.iter().map(|(channels, info)| {
            if info.is_empty() {
                return json!({});
            }
            let channels: Map<String, Value> =
                channels.iter().map(|name| (name.clone(), attributes(hub, name, info).into())).collect();
            json!({ "channels": channels })
        });
        if self.is_batch {
            let flat = documents.map(|document| match document.get("channels").and_then(Value::as_object) {
                Some(channels) => channels.values().next().cloned().unwrap_or_default(),
                None => document,
            });
            return json!({ "batch": flat.collect::<Vec<_>>() });
        }
        documents.next().unwrap_or_default()
    }
}

/// The response to a query with these parameters.
///
/// # Errors
/// The query is invalid for this channel.
pub fn document(resource: &Resource, query: &[(String, String)], hub: &Hub) -> Result<Value, ApiError> {
    let parameter = |name: &str| query.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str());
    let info = parameter("info");
    match resource {
        Resource::Channels => {
            let named = hub.channels(&channel::topic(parameter("filter_by_prefix")));
            let channels: Map<String, Value> = named
                .iter()
                .filter_map(|(topic, _)| channel::name(topic))
                .filter(|name| Kind::from_name(name) != Some(Kind::User))
                .map(|name| (name.to_owned(), attributes(hub, name, info).into()))
                .collect();
            Ok(json!({ "channels": channels }))
        }
        Resource::Channel(name) => {
            Kind::from_name(name).ok_or(ApiError::Channel)?;
            let mut document = attributes(hub, name, info);
            document.insert("occupied".to_owned(), (hub.count_of_channel(&channel::topic(name)) > 0).into());
            Ok(document.into())
        }
        Resource::Users(name) => {
            if Kind::from_name(name) != Some(Kind::Presence) {
                return Err(ApiError::NoPresence);
            }
            let members = hub.members(&channel::topic(name));
            let users: Vec<Value> = members.iter().map(|member| json!({ "id": &*member.id })).collect();
            Ok(json!({ "users": users }))
        }
        Resource::Events | Resource::BatchEvents | Resource::Terminate(_) => Err(ApiError::Body),
    }
}

/// Ends the connections of a user: those that have signed in on any server, and members of presence channels on this
/// one.
pub fn terminate(user: &str, hub: &Hub) {
    let update = Arc::new(message::terminated(user));
    let is_signed_in = |channels: &[Channel]| channels.iter().any(|channel| *channel.topic == *update.topics[0]);
    let is_member = |channel: &Channel| {
        channel::name(&channel.topic).is_some() && channel.member.as_ref().is_some_and(|member| *member.id == *user)
    };
    for subscriber in hub.subscribers() {
        let channels = subscriber.channels();
        if !is_signed_in(&channels) && channels.iter().any(is_member) {
            subscriber.send(&update);
        }
    }
    hub.broadcast(message::terminated(user));
}

/// The attributes of a channel that are listed in `info`.
fn attributes(hub: &Hub, name: &str, info: &str) -> Map<String, Value> {
    let topic = channel::topic(name);
    let requested = info.split(',').map(str::trim).filter_map(|attribute| match attribute {
        "user_count" if Kind::from_name(name) == Some(Kind::Presence) => Some((attribute, hub.members(&topic).len())),
        "subscription_count" => Some((attribute, hub.count_of_channel(&topic))),
        _ => None,
    });
    requested.map(|(attribute, count)| (attribute.to_owned(), count.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_budget::{Budgets, Charge};
    use howdah_live::{Interest, Limits, QueueLimits, SlowPolicy};

    #[test]
    fn events_become_updates_for_each_of_their_channels() {
        let body = br#"{"name":"e","channels":["a","private-b"],"data":"{\"x\":1}","socket_id":"1.2"}"#;
        let published = Published::read(body, false).unwrap();
        let texts: Vec<&str> =
            published.updates.iter().map(|update| std::str::from_utf8(&update.data).unwrap()).collect();
        assert_eq!(texts[0], r#"{"channel":"a","data":"{\"x\":1}","event":"e"}"#);
        assert_eq!(published.updates[1].topics[0].as_ref(), "pusher:private-b");
        assert!(published.updates.iter().all(|update| update.private && update.except.as_deref() == Some("1.2")));
        let batch = br#"{"batch":[{"name":"e","channel":"a","data":"1"},{"name":"f","channel":"b","data":"2"}]}"#;
        let published = Published::read(batch, true).unwrap();
        assert_eq!(published.updates.len(), 2);
        assert_eq!(published.document(&Hub::new(Limits::default())), json!({ "batch": [{}, {}] }));
        for (body, mistake) in [
            (r#"{"name":"e","channels":[],"data":""}"#, ApiError::Number),
            (r#"{"name":"","channels":["a"],"data":""}"#, ApiError::Name),
            (r#"{"name":"e","channels":["a b"],"data":""}"#, ApiError::Channel),
            (r#"{"channels":["a"],"data":""}"#, ApiError::Body),
            ("", ApiError::Body),
        ] {
            assert_eq!(Published::read(body.as_bytes(), false).map(|_| ()), Err(mistake), "{body}");
        }
    }

    #[test]
    fn channels_and_users_are_listed_with_the_requested_attributes() {
        let hub = Hub::new(Limits::default());
        let charge = Charge::new(Budgets::new(1 << 20, 1 << 20).memory, None);
        let terms = QueueLimits { slow: SlowPolicy::Disconnect, max_updates: 1, max_bytes: 1, charge };
        let subscription = hub.subscribe(Interest::default(), None, terms).subscription;
        for (name, user) in [("presence-a", Some(r#"{"user_id":7}"#)), ("news", None)] {
            let member = user.and_then(message::member);
            hub.join(subscription.subscriber(), &channel::topic(name), member, None).unwrap();
        }
        for other in ["no channel of this protocol", &channel::topic("#server-to-user-7")] {
            hub.join(subscription.subscriber(), other, None, None).unwrap();
        }
        let ask = |path: &str, query: &[(&str, &str)]| {
            let query: Vec<_> = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            document(&Resource::new(path).unwrap(), &query, &hub)
        };
        assert_eq!(ask("channels", &[]), Ok(json!({ "channels": { "news": {}, "presence-a": {} } })));
        assert_eq!(
            ask("channels", &[("filter_by_prefix", "presence-"), ("info", "user_count,subscription_count")]),
            Ok(json!({ "channels": { "presence-a": { "user_count": 1, "subscription_count": 1 } } }))
        );
        assert_eq!(ask("channels/news", &[("info", "user_count")]), Ok(json!({ "occupied": true })));
        assert_eq!(ask("channels/other", &[]), Ok(json!({ "occupied": false })));
        assert_eq!(ask("channels/presence-a/users", &[]), Ok(json!({ "users": [{ "id": "7" }] })));
        assert_eq!(ask("channels/news/users", &[]), Err(ApiError::NoPresence));
        assert_eq!((Resource::new("channels/a/b"), Resource::new("")), (None, None));
    }
}
