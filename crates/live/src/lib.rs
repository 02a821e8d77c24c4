//! Publish and subscribe: a [`Hub`] hands each [`Update`] to the subscribers whose [`Selector`]s match one of its topics.
//!
//! Reading order: `update` (a message), `selector` and `template` (the topics of a subscriber), `hub`
//! (publishing, subscribing), `index` (finding the subscribers of a topic), `subscriber` (its queue), `history`
//! (for clients that come back).
#![forbid(unsafe_code)]

mod history;
mod hub;
mod index;
mod selector;
mod subscriber;
mod template;
mod update;

pub use history::Preceding;
pub use hub::{Hub, Joined, Limits, Subscription};
pub use selector::{Selector, any_matches};
pub use subscriber::{Event, Interest, SlowPolicy, Subscriber};
pub use update::Update;
