//! Publish and subscribe: a [`Hub`] hands each [`Update`] to the subscribers whose [`Selector`]s match one of its
//! topics, and to those that have joined the topic as a channel.
//!
//! Reading order: `update` (a message), `selector`, `template` and `template_matcher`, `url_pattern` and its parts
//! `url_pattern_text` and `url_pattern_tokens` (the topics of a subscriber), `hub` (publishing, subscribing),
//! `channels` and `presence` (topics that are joined and left during a subscription, and their users), `index` (finding
//! the subscribers of a topic), `subscriber` (its queue), `history` (for clients that reconnect), `last` (for new
//! ones), `wire` (updates for other servers), `rosters` and `presence_wire` (channels and members of other servers),
//! `waking` (waking many subscribers).
#![forbid(unsafe_code)]

mod channels;
mod history;
mod hub;
mod index;
mod last;
mod presence;
mod presence_wire;
mod rosters;
mod selector;
mod subscriber;
mod template;
mod template_matcher;
mod update;
mod url_pattern;
mod url_pattern_text;
mod url_pattern_tokens;
mod waking;
mod wire;

pub use channels::JoinError;
pub use history::Preceding;
pub use hub::{Hub, HubRef, Joined, Limits, Share, Subscription, Watcher};
pub use presence::{Change, Channel, Member, Noted, Origin};
pub use selector::{Selector, any_matches};
pub use subscriber::{End, Event, Interest, QueueLimits, SlowPolicy, Subscriber};
pub use update::{Form, Forms, Update};
pub use url_pattern::{UrlPattern, path_of};
