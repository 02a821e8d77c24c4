//! Channels: topics that a subscriber joins and leaves by name while it is connected, as the application decides.

use crate::hub::{Hub, State, Watcher};
use crate::presence::{Change, Channel, Member, PendingChange};
use crate::subscriber::Subscriber;
use std::sync::Arc;

/// Maximum number of channels of a subscriber.
const MAX_CHANNELS: usize = 256;
/// Maximum length of a channel's name, in bytes.
const MAX_NAME: usize = 256;

/// Reason why a channel cannot be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinError {
    /// The name is empty or too long.
    Name,
    /// The subscriber has too many.
    TooMany,
}

impl std::fmt::Display for JoinError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Name => "a channel's name must have 1 to 256 bytes",
            Self::TooMany => "a connection may subscribe to at most 256 channels",
        })
    }
}

impl Hub {
    /// Subscribes to a topic from now on. With `after`, the updates of the history since that id are queued first, as
    /// far as they fit. Joining twice has no effect.
    ///
    /// # Errors
    /// The name is empty or too long, or the subscriber has too many channels.
    pub fn join(
        &self,
        subscriber: &Arc<Subscriber>,
        topic: &str,
        member: Option<Member>,
        after: Option<&str>,
    ) -> Result<(), JoinError> {
        if topic.is_empty() || topic.len() > MAX_NAME {
            return Err(JoinError::Name);
        }
        let mut state = self.0.state.lock();
        let topic = state.index.name(topic);
        let member = member.map(Arc::new);
        let before = subscriber.channels();
        if before.iter().any(|channel| channel.topic == topic) {
            return Ok(());
        }
        if before.len() >= MAX_CHANNELS {
            return Err(JoinError::TooMany);
        }
        if !subscriber.add_channel(Channel { topic: topic.clone(), member: member.clone() }) {
            return Ok(());
        }
        state.index.join(&topic, subscriber);
        if state.index.count_of_channel(&topic) == 1 {
            state.note(&topic, subscriber, Change::Occupied);
        }
        if let Some(member) = member
            && state.presence.add(&topic, &member)
        {
            state.note(&topic, subscriber, Change::Added(member));
        }
        let waker = after.and_then(|id| {
            let (_, mut missed) = state.history.after(id);
            // Updates of its other channels have been delivered already.
            let has = |known: &Arc<str>| before.iter().any(|channel| channel.topic == *known);
            missed.retain(|update| update.topics.contains(&topic) && !update.topics.iter().any(has));
            subscriber.catch_up(missed)
        });
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        self.notify_watcher();
        Ok(())
    }

    /// Leaves a channel; `false` if the subscriber has not joined it.
    pub fn leave(&self, subscriber: &Subscriber, topic: &str) -> bool {
        let mut state = self.0.state.lock();
        let Some(channel) = subscriber.remove_channel(topic) else { return false };
        state.left(subscriber, &channel);
        drop(state);
        self.notify_watcher();
        true
    }

    /// The members of a channel, by their ids.
    pub fn members(&self, topic: &str) -> Vec<Arc<Member>> {
        self.0.state.lock().presence.of(topic)
    }

    /// The subscribers of a channel, in any order, other than those that have chosen its topic themselves.
    pub fn subscribers_of_channel(&self, topic: &str) -> Vec<Arc<Subscriber>> {
        let state = self.0.state.lock();
        state.index.named(topic).filter(|subscriber| subscriber.interest.trusted).cloned().collect()
    }

    /// Number of subscribers of a channel.
    pub fn count_of_channel(&self, topic: &str) -> usize {
        self.0.state.lock().index.count_of_channel(topic)
    }

    /// Channels that begin with `prefix`, sorted, with their number of subscribers.
    pub fn channels(&self, prefix: &str) -> Vec<(Arc<str>, usize)> {
        self.0.state.lock().index.channels(prefix)
    }

    /// Sets the watcher that is notified of changes from now on.
    pub fn watch(&self, watcher: &Arc<dyn Watcher>) {
        let mut state = self.0.state.lock();
        if state.watcher.as_ref().is_none_or(|own| !Arc::ptr_eq(own, watcher)) {
            state.watcher = Some(watcher.clone());
        }
    }

    /// Notifies the watcher of pending changes in order. One thread at a time does so.
    pub(crate) fn notify_watcher(&self) {
        if self.0.state.lock().changes.is_empty() {
            return;
        }
        let _one_at_a_time = self.0.notifying.lock();
        loop {
            let mut state = self.0.state.lock();
            let (Some(noted), Some(watcher)) = (state.changes.pop_front(), state.watcher.clone()) else { return };
            drop(state);
            watcher.changed(self, &noted.topic, &noted.subscriber, &noted.change);
        }
    }
}

impl State {
    fn note(&mut self, topic: &Arc<str>, subscriber: &Subscriber, change: Change) {
        if self.watcher.is_some() {
            let subscriber = subscriber.interest.id.clone();
            self.changes.push_back(PendingChange { topic: topic.clone(), subscriber, change });
        }
    }

    /// Removes a subscriber from the index and the members of a channel.
    pub(crate) fn left(&mut self, subscriber: &Subscriber, channel: &Channel) {
        self.index.leave(&channel.topic, subscriber);
        if let Some(member) = &channel.member
            && self.presence.remove(&channel.topic, member)
        {
            self.note(&channel.topic, subscriber, Change::Removed(member.clone()));
        }
        if self.index.count_of_channel(&channel.topic) == 0 {
            self.note(&channel.topic, subscriber, Change::Vacated);
        }
    }
}

#[cfg(test)]
#[path = "channels_tests.rs"]
mod tests;
