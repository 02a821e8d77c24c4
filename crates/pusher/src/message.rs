//! Messages from and to clients: JSON objects with an event, and often a channel and data. The server's data is mostly
//! JSON within a string.

use crate::channel;
use howdah_live::{Member, Update};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Silence after which a client checks that its connection is alive, in seconds.
pub const ACTIVITY_TIMEOUT: u32 = 120;

/// Close code: no application has this key. Clients do not retry.
pub const UNKNOWN_APP: u16 = 4001;
/// Close code: unsupported version of the protocol.
pub const VERSION: u16 = 4007;
/// Close code: the application has ended the connections of a user. Clients do not retry.
pub const TERMINATED: u16 = 4009;
/// Error code: a client publishes too often.
pub const RATE: u16 = 4301;

/// A message from a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    Ping,
    /// A pong, or an unknown event, which is ignored.
    Nothing,
    Subscribe {
        channel: String,
        auth: Option<String>,
        data: Option<String>,
    },
    Unsubscribe(String),
    SignIn {
        auth: String,
        user_data: String,
    },
    /// An event for the other subscribers of a channel.
    Event {
        name: String,
        channel: String,
        data: Value,
    },
}

#[derive(Deserialize)]
struct Raw {
    event: String,
    channel: Option<String>,
    #[serde(default)]
    data: Value,
}

impl Incoming {
    /// Parses a message.
    ///
    /// # Errors
    /// The message violates the protocol.
    pub fn read(text: &[u8]) -> Result<Self, &'static str> {
        let raw: Raw = serde_json::from_slice(text).map_err(|_| "the message is not JSON with an event")?;
        // Some clients send objects as strings, as the server does.
        let data = match &raw.data {
            Value::String(text) if raw.event.starts_with("pusher:") => serde_json::from_str(text).unwrap_or_default(),
            other => other.clone(),
        };
        let text = |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
        match &*raw.event {
            "pusher:ping" => Ok(Self::Ping),
            "pusher:subscribe" => {
                let channel = text("channel").ok_or("pusher:subscribe has no channel")?;
                Ok(Self::Subscribe { channel, auth: text("auth"), data: text("channel_data") })
            }
            "pusher:unsubscribe" => text("channel").map(Self::Unsubscribe).ok_or("pusher:unsubscribe has no channel"),
            "pusher:signin" => match (text("auth"), text("user_data")) {
                (Some(auth), Some(user_data)) => Ok(Self::SignIn { auth, user_data }),
                _ => Err("pusher:signin has no auth or no user_data"),
            },
            name if name.starts_with("client-") => {
                let channel = raw.channel.ok_or("the event has no channel")?;
                Ok(Self::Event { name: raw.event, channel, data: raw.data })
            }
            _ => Ok(Self::Nothing),
        }
    }
}

/// The user in the application's `channel_data` (`user_id`) or `user_data` (`id`).
pub fn member(data: &str) -> Option<Member> {
    let data: Value = serde_json::from_str(data).ok()?;
    let id = match data.get("user_id").or_else(|| data.get("id"))? {
        Value::String(id) if !id.is_empty() => id.as_str().into(),
        Value::Number(id) => id.to_string().into(),
        _ => return None,
    };
    Some(Member { id, info: data.get("user_info").map(|info| info.to_string().into()) })
}

/// The first message to a client.
pub fn established(socket: &str) -> String {
    let data = json!({ "socket_id": socket, "activity_timeout": ACTIVITY_TIMEOUT }).to_string();
    json!({ "event": "pusher:connection_established", "data": data }).to_string()
}

/// The response to a ping.
pub fn pong() -> String {
    json!({ "event": "pusher:pong", "data": {} }).to_string()
}

/// An error message for a client.
pub fn error(code: Option<u16>, message: &str) -> String {
    json!({ "event": "pusher:error", "data": { "code": code, "message": message } }).to_string()
}

/// Confirms a subscription. `members`: those of a presence channel, including the client.
pub fn subscribed(channel: &str, members: Option<&[Arc<Member>]>) -> String {
    let data = members.map_or(json!({}), |members| {
        let ids: Vec<&str> = members.iter().map(|member| &*member.id).collect();
        let hash: serde_json::Map<String, Value> =
            members.iter().map(|member| (member.id.to_string(), info(member))).collect();
        json!({ "presence": { "count": ids.len(), "ids": ids, "hash": hash } })
    });
    let event = "pusher_internal:subscription_succeeded";
    json!({ "event": event, "channel": channel, "data": data.to_string() }).to_string()
}

/// Refuses a subscription.
pub fn refused(channel: &str, why: &str) -> String {
    let data = json!({ "type": "AuthError", "error": why, "status": 401 });
    json!({ "event": "pusher:subscription_error", "channel": channel, "data": data }).to_string()
}

/// Confirms a client's sign-in.
pub fn signed_in(user_data: &str) -> String {
    json!({ "event": "pusher:signin_success", "data": { "user_data": user_data } }).to_string()
}

fn info(member: &Member) -> Value {
    member.info.as_deref().and_then(|info| serde_json::from_str(info).ok()).unwrap_or_default()
}

/// An event for the subscribers of a channel, `except` one connection. `user`: the member that sends it.
pub fn event(name: &str, channel: &str, data: &Value, user: Option<&str>, except: Option<&str>) -> Update {
    let mut message = json!({ "event": name, "channel": channel, "data": data });
    if let Some(user) = user {
        message["user_id"] = user.into();
    }
    Update {
        topics: Box::new([channel::topic(channel).into()]),
        // A Mercure subscriber needs a token for the topic.
        private: true,
        data: message.to_string().into(),
        except: except.map(Into::into),
        ..Update::default()
    }
}

/// A cache channel has no last event.
pub fn cache_miss(channel: &str) -> String {
    json!({ "event": "pusher:cache_miss", "channel": channel }).to_string()
}

/// Ends the connections that get it: those of a signed-in user.
pub fn terminated(user: &str) -> Update {
    Update {
        topics: Box::new([channel::topic(&format!("{}{user}", channel::USER)).into()]),
        private: true,
        data: error(Some(TERMINATED), "the application has ended the connections of this user").into(),
        close: Some(TERMINATED),
        ..Update::default()
    }
}

/// A user has joined a presence channel with this connection.
pub fn member_added(channel: &str, member: &Member, socket: &str) -> Update {
    let data = json!({ "user_id": &*member.id, "user_info": info(member) }).to_string();
    event("pusher_internal:member_added", channel, &data.into(), None, Some(socket))
}

/// A user has left a presence channel.
pub fn member_removed(channel: &str, member: &Member) -> Update {
    let data = json!({ "user_id": &*member.id }).to_string();
    event("pusher_internal:member_removed", channel, &data.into(), None, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_clients_are_read() {
        let subscribe = |channel: &str, auth: Option<&str>, data: Option<&str>| Incoming::Subscribe {
            channel: channel.to_owned(),
            auth: auth.map(str::to_owned),
            data: data.map(str::to_owned),
        };
        for (text, incoming) in [
            (r#"{"event":"pusher:ping","data":{}}"#, Ok(Incoming::Ping)),
            (r#"{"event":"pusher:pong"}"#, Ok(Incoming::Nothing)),
            (r#"{"event":"pusher:subscribe","data":{"channel":"a"}}"#, Ok(subscribe("a", None, None))),
            (
                r#"{"event":"pusher:subscribe","data":"{\"channel\":\"a\",\"auth\":\"k:s\",\"channel_data\":\"{}\"}"}"#,
                Ok(subscribe("a", Some("k:s"), Some("{}"))),
            ),
            (r#"{"event":"pusher:unsubscribe","data":{"channel":"a"}}"#, Ok(Incoming::Unsubscribe("a".to_owned()))),
            (
                r#"{"event":"client-x","channel":"private-a","data":"text"}"#,
                Ok(Incoming::Event {
                    name: "client-x".to_owned(),
                    channel: "private-a".to_owned(),
                    data: "text".into(),
                }),
            ),
            (r#"{"event":"client-x"}"#, Err("the event has no channel")),
            (r#"{"event":"pusher:subscribe","data":[]}"#, Err("pusher:subscribe has no channel")),
            ("[]", Err("the message is not JSON with an event")),
            ("", Err("the message is not JSON with an event")),
        ] {
            assert_eq!(Incoming::read(text.as_bytes()), incoming, "{text}");
        }
    }

    #[test]
    fn a_member_has_an_id_that_is_a_text_or_a_number() {
        let id = |text| member(text).map(|member| (member.id.to_string(), member.info.map(String::from)));
        assert_eq!(
            id(r#"{"user_id":10,"user_info":{"name":"A"}}"#),
            Some(("10".into(), Some(r#"{"name":"A"}"#.into())))
        );
        assert_eq!(id(r#"{"user_id":"x"}"#), Some(("x".into(), None)));
        assert_eq!((id(r#"{"user_id":""}"#), id("{}"), id("no")), (None, None, None));
    }

    #[test]
    fn members_are_listed_with_their_data() {
        let members = [Arc::new(member(r#"{"user_id":1,"user_info":{"name":"A"}}"#).unwrap())];
        let text: Value = serde_json::from_str(&subscribed("presence-a", Some(&members))).unwrap();
        let data: Value = serde_json::from_str(text["data"].as_str().unwrap()).unwrap();
        assert_eq!(data, json!({ "presence": { "count": 1, "ids": ["1"], "hash": { "1": { "name": "A" } } } }));
        let added = member_added("presence-a", &members[0], "1.2");
        let text: Value = serde_json::from_slice(&added.data).unwrap();
        assert_eq!(text["data"], r#"{"user_id":"1","user_info":{"name":"A"}}"#);
        assert_eq!((added.except.as_deref(), &*added.topics[0]), (Some("1.2"), "pusher:presence-a"));
    }
}
