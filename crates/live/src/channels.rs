//! Channels: topics that a subscriber joins and leaves by name while it is connected, as the application decides.

use crate::hub::{Hub, State, Watcher};
use crate::presence::{Change, Channel, Member, Noted, Origin};
use crate::presence_wire::{Entry, MAX_MEMBER, MAX_NAME, Row};
use crate::rosters::Rosters;
use crate::subscriber::Subscriber;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;

/// Maximum number of channels of a subscriber.
const MAX_CHANNELS: usize = 256;

/// Reason why a channel cannot be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinError {
    /// The name is empty or too long.
    Name,
    /// The subscriber has too many.
    TooMany,
    /// The member's id and data are too long.
    Member,
}

impl std::fmt::Display for JoinError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Name => "a channel's name must have 1 to 256 bytes",
            Self::TooMany => "a connection may subscribe to at most 256 channels",
            Self::Member => "a member's id and data must have at most 32 KB",
        })
    }
}

impl Hub {
    /// Subscribes to a topic from now on. With `after`, the updates of the history since that id are queued first, as
    /// far as they fit. Joining twice has no effect.
    ///
    /// # Errors
    /// The name is empty or too long, the subscriber has too many channels, or the member is too large.
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
        if member.as_ref().is_some_and(|member| member.size() > MAX_MEMBER) {
            return Err(JoinError::Member);
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
        match state.index.count_of_channel(&topic) {
            1 => state.note(&topic, subscriber, Change::Occupied),
            _ => state.count_later(&topic),
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

    /// The members of a channel on all servers, by their ids. With several servers, own members are listed when
    /// they come back from the log, in step with the watcher.
    pub fn members(&self, topic: &str) -> Vec<Arc<Member>> {
        let state = self.0.state.lock();
        state.rosters.as_ref().map_or_else(|| state.presence.of(topic), |rosters| rosters.members(topic))
    }

    /// The subscribers of a channel on this server, in any order, other than those that have chosen its topic
    /// themselves.
    pub fn subscribers_of_channel(&self, topic: &str) -> Vec<Arc<Subscriber>> {
        let state = self.0.state.lock();
        state.index.named(topic).filter(|subscriber| subscriber.interest.trusted).cloned().collect()
    }

    /// Number of subscribers of a channel on all servers.
    pub fn count_of_channel(&self, topic: &str) -> usize {
        let state = self.0.state.lock();
        let elsewhere = state.rosters.as_ref().map_or(0, |rosters| rosters.count_elsewhere(topic));
        state.index.count_of_channel(topic) + elsewhere
    }

    /// Channels on all servers that begin with `prefix`, sorted, with their number of subscribers.
    pub fn channels(&self, prefix: &str) -> Vec<(Arc<str>, usize)> {
        let state = self.0.state.lock();
        let own = state.index.channels(prefix);
        let Some(rosters) = &state.rosters else { return own };
        let mut all: BTreeMap<Arc<str>, usize> = own.into_iter().collect();
        for (topic, count) in rosters.channels_elsewhere(prefix) {
            *all.entry(topic.clone()).or_default() += count;
        }
        all.into_iter().collect()
    }

    /// Shares channels and members with other servers from now on; `number` identifies this server. The result is
    /// notified when there are [entries](Self::presence_entries) or changes. Only the first call has an effect.
    pub fn share_presence(&self, number: u64) -> Arc<Notify> {
        let mut state = self.0.state.lock();
        state.rosters.get_or_insert_with(|| Box::new(Rosters::new(number))).wake.clone()
    }

    /// Requests the other servers' rosters. Called once their entries can be read.
    pub fn begin_presence(&self) {
        self.with_rosters(|state, rosters| {
            rosters.begin();
            rosters.answer(&state.index, &state.presence);
        });
    }

    /// Shares changed numbers of subscribers, and sends a heartbeat if `beats`. `is_reachable`: the log works, as far
    /// as is known.
    pub fn tick_presence(&self, beats: bool, is_reachable: bool) {
        self.with_rosters(|state, rosters| rosters.tick(beats, is_reachable, &state.index));
    }

    /// Declares this server gone. Nothing may join or leave afterwards.
    pub fn leave_presence(&self) {
        self.with_rosters(|_, rosters| rosters.leave());
    }

    /// Takes the entries that this server has for the log.
    pub fn presence_entries(&self) -> Vec<Bytes> {
        self.0.state.lock().rosters.as_mut().map_or_else(Vec::new, |rosters| rosters.writer.take())
    }

    /// Receives an entry of the log from any server, including this one.
    pub fn receive_presence(&self, entry: Bytes) {
        // The bytes are not trusted.
        let Some(entry) = Entry::from_bytes(entry) else { return };
        self.with_rosters(|state, rosters| {
            let noted = rosters.receive(entry);
            rosters.answer(&state.index, &state.presence);
            if state.watcher.is_some() {
                state.changes.extend(noted);
            }
        });
    }

    fn with_rosters(&self, act: impl FnOnce(&mut State, &mut Rosters)) {
        let mut state = self.0.state.lock();
        let Some(mut rosters) = state.rosters.take() else { return };
        act(&mut state, &mut rosters);
        if !rosters.writer.is_empty() || !state.changes.is_empty() {
            rosters.wake.notify_one();
        }
        state.rosters = Some(rosters);
    }

    /// Sets the watcher that is notified of changes from now on.
    pub fn watch(&self, watcher: &Arc<dyn Watcher>) {
        let mut state = self.0.state.lock();
        if state.watcher.as_ref().is_none_or(|own| !Arc::ptr_eq(own, watcher)) {
            state.watcher = Some(watcher.clone());
        }
    }

    /// Notifies the watcher of pending changes in order. One thread at a time does so.
    pub fn notify_watcher(&self) {
        if self.0.state.lock().changes.is_empty() {
            return;
        }
        let _one_at_a_time = self.0.notifying.lock();
        loop {
            let mut state = self.0.state.lock();
            let (Some(noted), Some(watcher)) = (state.changes.pop_front(), state.watcher.clone()) else { return };
            drop(state);
            watcher.changed(self, &noted);
        }
    }
}

impl State {
    /// Notes a change on this server. If servers share channels, it goes to the log, and the watcher is notified when
    /// it comes back.
    fn note(&mut self, topic: &Arc<str>, subscriber: &Subscriber, change: Change) {
        if self.rosters.is_none() && self.watcher.is_none() {
            return;
        }
        let (topic, subscriber) = (topic.clone(), subscriber.interest.id.clone());
        if let Some(rosters) = &mut self.rosters {
            rosters.writer.change(&match change {
                Change::Occupied => Row::Count(topic, 1),
                Change::Vacated => Row::Count(topic, 0),
                Change::Added(member) => Row::Joined(topic, member, subscriber),
                Change::Removed(member) => Row::Left(topic, member.id.clone()),
            });
            rosters.wake.notify_one();
        } else {
            self.changes.push_back(Noted { topic, subscriber, change, origin: Origin::Own });
        }
    }

    fn count_later(&mut self, topic: &Arc<str>) {
        if let Some(rosters) = &mut self.rosters {
            rosters.uncounted.insert(topic.clone());
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
        match self.index.count_of_channel(&channel.topic) {
            0 => self.note(&channel.topic, subscriber, Change::Vacated),
            _ => self.count_later(&channel.topic),
        }
    }
}

#[cfg(test)]
#[path = "channels_tests.rs"]
mod tests;
