//! Members of channels: users, each with one or more connections.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A user of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The user's id.
    pub id: Box<str>,
    /// Data for other members; JSON.
    pub info: Option<Box<str>>,
}

impl Member {
    /// Size of its id and data, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.id.len() + self.info.as_ref().map_or(0, |info| info.len())
    }
}

/// A change of a channel's subscribers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The first subscriber has joined.
    Occupied,
    /// The last subscriber has left.
    Vacated,
    /// The first connection of a user has joined.
    Added(Arc<Member>),
    /// The last connection of a user has left.
    Removed(Arc<Member>),
}

/// A channel that a subscriber has joined.
#[derive(Debug, Clone)]
pub struct Channel {
    pub topic: Arc<str>,
    /// Its user there.
    pub member: Option<Arc<Member>>,
}

/// The server that made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This server. Also another that is gone or stopping, for which this server reports the change.
    Own,
    /// Another server, which reports it.
    Other,
    /// This server, after another one had declared it gone. Its own subscribers have not seen the removal.
    Restored,
}

/// A change of a channel.
#[derive(Debug)]
pub struct Noted {
    pub topic: Arc<str>,
    /// The id of the subscriber that joined or left; empty if unknown.
    pub subscriber: Box<str>,
    pub change: Change,
    pub origin: Origin,
}

/// The members of one channel by their ids, with the number of their connections.
type Members = BTreeMap<Box<str>, (Arc<Member>, usize)>;

/// Members by their channels.
#[derive(Debug, Default)]
pub(crate) struct Presence(FxHashMap<Arc<str>, Members>);

impl Presence {
    /// Adds a connection; `true` if it is the member's first.
    pub(crate) fn add(&mut self, topic: &Arc<str>, member: &Arc<Member>) -> bool {
        let members = self.0.entry(topic.clone()).or_default();
        let (_, connections) = members.entry(member.id.clone()).or_insert_with(|| (member.clone(), 0));
        *connections += 1;
        *connections == 1
    }

    /// Removes a connection; `true` if it was the member's last.
    pub(crate) fn remove(&mut self, topic: &str, member: &Member) -> bool {
        let Some(members) = self.0.get_mut(topic) else { return false };
        let Some((_, connections)) = members.get_mut(&member.id) else { return false };
        *connections -= 1;
        let is_last = *connections == 0;
        if is_last {
            members.remove(&member.id);
            if members.is_empty() {
                self.0.remove(topic);
            }
        }
        is_last
    }

    /// The members of a channel, by their ids.
    pub(crate) fn of(&self, topic: &str) -> Vec<Arc<Member>> {
        self.0
            .get(topic)
            .map(|members| members.values().map(|(member, _)| member.clone()).collect())
            .unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
