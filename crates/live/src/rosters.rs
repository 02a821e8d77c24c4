//! Channels on all servers that share a broker. Each server has a roster: its channels and members. Only its own
//! entries in a shared log change it. All servers read the same entries in the same order, so they derive the same
//! changes, and each change has exactly one maker, which reports it. Own changes are reported when they come back from
//! the log.

use crate::index::Index;
use crate::presence::{Change, Member, Noted, Origin, Presence};
use crate::presence_wire::{Content, Entry, EntryWriter, Row};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::Notify;

/// Maximum number of servers.
const MAX_SERVERS: usize = 256;
/// Maximum size of a server's channels and members, in bytes; further ones are ignored.
const MAX_BYTES: usize = 64 << 20;
/// Memory of a channel or member in addition to its text, in bytes.
const OVERHEAD: usize = 128;
/// A server is gone if it is silent for more than this many of this server's heartbeats.
const MAX_SILENCE: u32 = 3;

/// The rosters of all servers, and this server's entries for the log.
#[derive(Debug)]
pub(crate) struct Rosters {
    own: u64,
    /// This server's roster is always among them.
    servers: BTreeMap<u64, Roster>,
    pub(crate) writer: EntryWriter,
    /// Channels whose number of subscribers has changed since it was written.
    pub(crate) uncounted: FxHashSet<Arc<str>>,
    /// Servers whose rosters were requested since the last heartbeat.
    requested: BTreeSet<u64>,
    /// Another server has requested this server's roster.
    is_requested: bool,
    /// This server's roster was written and has not come back yet. It also answers requests that arrive before it.
    is_answering: bool,
    /// The last heartbeat has come back.
    is_heard: bool,
    /// Another server has declared this one gone.
    was_lost: bool,
    /// This server has declared itself gone.
    has_left: bool,
    /// Notified when there are entries or changes.
    pub(crate) wake: Arc<Notify>,
}

/// The channels of one server.
#[derive(Debug, Default)]
struct Roster {
    /// Number of the last entry.
    number: u64,
    /// Number of this server's heartbeats since the last entry.
    silence: u32,
    channels: BTreeMap<Arc<str>, Occupants>,
    bytes: usize,
    is_leaving: bool,
    /// An entry is missing, so the roster is requested again.
    is_behind: bool,
    /// The parts of a new roster so far.
    next: Option<Box<Roster>>,
}

/// The subscribers of a channel on one server.
#[derive(Debug, Default)]
struct Occupants {
    count: u32,
    members: BTreeMap<Box<str>, Arc<Member>>,
}

impl Roster {
    /// Accounts for this many bytes; `false` if there is no room.
    fn reserve(&mut self, bytes: usize) -> bool {
        let has_room = self.bytes + bytes <= MAX_BYTES;
        self.bytes += if has_room { bytes } else { 0 };
        has_room
    }

    /// Makes a channel occupied; `None` if there is no room.
    fn occupy(&mut self, topic: &Arc<str>) -> Option<&mut Occupants> {
        if !self.channels.contains_key(topic) {
            if !self.reserve(topic.len() + OVERHEAD) {
                return None;
            }
            self.channels.insert(topic.clone(), Occupants { count: 1, ..Occupants::default() });
        }
        self.channels.get_mut(topic)
    }

    fn vacate(&mut self, topic: &str) -> Option<Occupants> {
        let occupants = self.channels.remove(topic)?;
        let members: usize = occupants.members.values().map(|member| member.size() + OVERHEAD).sum();
        self.bytes -= members + topic.len() + OVERHEAD;
        Some(occupants)
    }

    /// Adds a member; `false` if it exists or there is no room.
    fn join(&mut self, topic: &Arc<str>, member: &Arc<Member>) -> bool {
        let is_known = |own: &Occupants| own.members.contains_key(&member.id);
        if self.occupy(topic).is_none_or(|own| is_known(own)) || !self.reserve(member.size() + OVERHEAD) {
            return false;
        }
        self.occupy(topic).is_some_and(|own| own.members.insert(member.id.clone(), member.clone()).is_none())
    }

    fn leave(&mut self, topic: &str, id: &str) -> Option<Arc<Member>> {
        let member = self.channels.get_mut(topic)?.members.remove(id)?;
        self.bytes -= member.size() + OVERHEAD;
        Some(member)
    }

    fn has(&self, topic: &str, id: &str) -> bool {
        self.channels.get(topic).is_some_and(|own| own.members.contains_key(id))
    }

    /// Its rows, in the order in which they are written.
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (topic, own) in &self.channels {
            rows.push(Row::Count(topic.clone(), own.count));
            rows.extend(own.members.values().map(|member| Row::Joined(topic.clone(), member.clone(), "".into())));
        }
        rows
    }
}

impl Rosters {
    /// The roster of this server alone, which has this number.
    pub(crate) fn new(own: u64) -> Self {
        Self {
            own,
            servers: BTreeMap::from([(own, Roster::default())]),
            writer: EntryWriter::new(own),
            uncounted: FxHashSet::default(),
            requested: BTreeSet::new(),
            is_requested: false,
            is_answering: false,
            is_heard: false,
            was_lost: false,
            has_left: false,
            wake: Arc::default(),
        }
    }

    fn others(&self) -> impl Iterator<Item = &Roster> {
        self.servers.iter().filter(|(server, _)| **server != self.own).map(|(_, roster)| roster)
    }

    /// Number of subscribers of a channel on other servers.
    pub(crate) fn count_elsewhere(&self, topic: &str) -> usize {
        self.others().filter_map(|roster| roster.channels.get(topic)).map(|own| own.count as usize).sum()
    }

    /// Channels on other servers that begin with `prefix`, with duplicates, and their number of subscribers.
    pub(crate) fn channels_elsewhere(&self, prefix: &str) -> impl Iterator<Item = (&Arc<str>, usize)> {
        let all = self.others().flat_map(|roster| &roster.channels).filter(move |(topic, _)| topic.starts_with(prefix));
        all.map(|(topic, own)| (topic, own.count as usize))
    }

    /// The members of a channel on all servers, by their ids.
    pub(crate) fn members(&self, topic: &str) -> Vec<Arc<Member>> {
        let rosters = self.servers.values().filter_map(|roster| roster.channels.get(topic));
        let members: BTreeMap<&str, &Arc<Member>> =
            rosters.flat_map(|own| own.members.iter().map(|(id, member)| (&**id, member))).collect();
        members.into_values().cloned().collect()
    }

    fn is_occupied(&self, topic: &str) -> bool {
        self.servers.values().any(|roster| roster.channels.contains_key(topic))
    }

    fn is_member(&self, topic: &str, id: &str) -> bool {
        self.servers.values().any(|roster| roster.has(topic, id))
    }

    /// Requests the rosters of all servers, and sends this server's.
    pub(crate) fn begin(&mut self) {
        self.writer.write(&Content::Request(0));
        self.is_requested = true;
    }

    /// Writes that this server is stopping. Another server reports its further changes, since scripts may no longer run
    /// here.
    pub(crate) fn close(&mut self) {
        self.writer.write(&Content::Leaving);
        self.wake.notify_one();
    }

    /// Declares this server gone. Called after its last change.
    pub(crate) fn leave(&mut self) {
        self.has_left = true;
        self.writer.write(&Content::Gone(self.own));
    }

    /// Writes this server's roster if it was requested.
    pub(crate) fn answer(&mut self, index: &Index, presence: &Presence) {
        if !std::mem::take(&mut self.is_requested) || self.is_answering || self.has_left {
            return;
        }
        self.is_answering = true;
        let rows = index.channels("").into_iter().flat_map(|(topic, count)| {
            let members = presence.of(&topic).into_iter().map({
                let topic = topic.clone();
                move |member| Row::Joined(topic.clone(), member, "".into())
            });
            std::iter::once(Row::Count(topic, count_of(count))).chain(members)
        });
        self.writer.roster(rows);
    }

    /// Writes changed numbers of subscribers. If `beats`, also writes a heartbeat and declares servers gone that were
    /// silent while the log worked: while heartbeats came back from it.
    pub(crate) fn tick(&mut self, beats: bool, is_reachable: bool, index: &Index) {
        for topic in std::mem::take(&mut self.uncounted) {
            let count = index.count_of_channel(&topic);
            if count > 0 {
                self.writer.change(&Row::Count(topic, count_of(count)));
            }
        }
        if !beats || self.has_left {
            return;
        }
        self.requested.clear();
        self.is_answering = false;
        let works = std::mem::take(&mut self.is_heard) && is_reachable;
        for (server, roster) in &mut self.servers {
            roster.silence += u32::from(works && *server != self.own);
            if roster.silence > MAX_SILENCE {
                self.writer.write(&Content::Gone(*server));
            }
        }
        self.writer.write(&Content::Heartbeat);
    }

    /// Requests a server's roster.
    fn request(&mut self, server: u64) {
        if self.requested.len() < MAX_SERVERS && self.requested.insert(server) {
            self.writer.write(&Content::Request(server));
        }
    }

    /// Checks that no entry of its server is missing, and requests its roster otherwise. `false`: the entry's rows must
    /// be ignored, because the server has no roster here or the entry is a duplicate.
    fn follows(&mut self, entry: &Entry) -> bool {
        let Entry { server, number, content } = entry;
        let begins = matches!(content, Content::Roster { is_first: true, .. });
        if begins && !self.servers.contains_key(server) && self.servers.len() < MAX_SERVERS {
            self.servers.insert(*server, Roster::default());
        }
        let Some(roster) = self.servers.get_mut(server) else {
            if matches!(content, Content::Heartbeat | Content::Changes(_)) {
                self.request(*server);
            }
            return false;
        };
        if *number <= roster.number {
            return false;
        }
        let is_missing = *number != roster.number + 1;
        (roster.number, roster.silence) = (*number, 0);
        if is_missing {
            roster.next = None;
        }
        roster.is_behind = (roster.is_behind || is_missing) && !begins;
        if roster.is_behind {
            self.request(*server);
        }
        true
    }

    /// Handles an entry of the log. Returns the changes of channels.
    pub(crate) fn receive(&mut self, entry: Entry) -> Vec<Noted> {
        let is_own = entry.server == self.own;
        let follows = is_own || self.follows(&entry);
        let Entry { server, content, .. } = entry;
        let mut notes = Notes { origin: self.origin(server), all: Vec::new() };
        match content {
            Content::Request(to) => self.is_requested |= !is_own && (to == 0 || to == self.own),
            Content::Heartbeat => self.is_heard |= is_own,
            Content::Leaving => self.servers.get_mut(&server).into_iter().for_each(|own| own.is_leaving = true),
            Content::Gone(gone) => self.end(gone, server, &mut notes),
            _ if !follows => {}
            Content::Changes(rows) => rows.into_iter().for_each(|row| self.apply(server, row, &mut notes)),
            Content::Roster { is_first, is_last, rows } => {
                self.is_answering &= !(is_own && is_first);
                self.take_roster(server, (is_first, is_last), rows, &mut notes);
                if is_own && is_last && std::mem::take(&mut self.was_lost) {
                    self.restore(&mut notes);
                }
            }
        }
        notes.all
    }

    /// The origin of a server's changes. If it is leaving, the first server that stays reports them.
    fn origin(&self, server: u64) -> Origin {
        let mut staying = self.servers.iter().filter(|(_, roster)| !roster.is_leaving).map(|(server, _)| *server);
        let is_leaving = self.servers.get(&server).is_some_and(|roster| roster.is_leaving);
        let reporter = if is_leaving { staying.next() } else { None };
        if reporter.unwrap_or(server) == self.own { Origin::Own } else { Origin::Other }
    }

    fn apply(&mut self, server: u64, row: Row, notes: &mut Notes) {
        let Some(mut roster) = self.servers.remove(&server) else { return };
        // While its roster is out of the map, `is_member` and `is_occupied` are about the other servers.
        match row {
            Row::Count(topic, 0) => {
                let occupants = roster.vacate(&topic);
                for (id, member) in occupants.iter().flat_map(|own| &own.members) {
                    notes.add(!self.is_member(&topic, id), &topic, "", || Change::Removed(member.clone()));
                }
                notes.add(occupants.is_some() && !self.is_occupied(&topic), &topic, "", || Change::Vacated);
            }
            Row::Count(topic, count) => {
                let is_new = !roster.channels.contains_key(&topic) && !self.is_occupied(&topic);
                let own = roster.occupy(&topic).map(|own| own.count = count);
                notes.add(is_new && own.is_some(), &topic, "", || Change::Occupied);
            }
            Row::Joined(topic, member, subscriber) => {
                let is_new = !roster.channels.contains_key(&topic) && !self.is_occupied(&topic);
                let has_joined = roster.join(&topic, &member);
                notes.add(is_new && roster.channels.contains_key(&topic), &topic, &subscriber, || Change::Occupied);
                let is_new = has_joined && !self.is_member(&topic, &member.id);
                notes.add(is_new, &topic, &subscriber, || Change::Added(member));
            }
            Row::Left(topic, id) => {
                if let Some(member) = roster.leave(&topic, &id) {
                    notes.add(!self.is_member(&topic, &id), &topic, "", || Change::Removed(member));
                }
            }
        }
        self.servers.insert(server, roster);
    }

    fn take_roster(&mut self, server: u64, (is_first, is_last): (bool, bool), rows: Vec<Row>, notes: &mut Notes) {
        let Some(roster) = self.servers.get_mut(&server) else { return };
        if is_first {
            roster.next = Some(Box::default());
        }
        let Some(next) = &mut roster.next else { return };
        for row in rows {
            match row {
                Row::Count(topic, count) => _ = next.occupy(&topic).map(|own| own.count = count.max(1)),
                Row::Joined(topic, member, _) => _ = next.join(&topic, &member),
                Row::Left(..) => {}
            }
        }
        if is_last && let Some(next) = roster.next.take() {
            self.replace(server, &next, notes);
        }
    }

    /// Replaces the channels of a server.
    fn replace(&mut self, server: u64, next: &Roster, notes: &mut Notes) {
        let Some(roster) = self.servers.get(&server) else { return };
        let mut ended = Vec::new();
        for (topic, own) in &roster.channels {
            match next.channels.contains_key(topic) {
                true => {
                    let left = own.members.keys().filter(|id| !next.has(topic, id));
                    ended.extend(left.map(|id| Row::Left(topic.clone(), id.clone())));
                }
                false => ended.push(Row::Count(topic.clone(), 0)),
            }
        }
        ended.into_iter().chain(next.rows()).for_each(|row| self.apply(server, row, notes));
    }

    /// Handles that `by` declares a server gone.
    fn end(&mut self, gone: u64, by: u64, notes: &mut Notes) {
        if gone == self.own {
            // The others restore this server from its roster.
            self.was_lost |= by != self.own;
            self.is_requested |= by != self.own;
            return;
        }
        self.replace(gone, &Roster::default(), notes);
        self.servers.remove(&gone);
    }

    /// Notes the channels and members that the other servers had removed with this one.
    fn restore(&self, notes: &mut Notes) {
        let Some(own) = self.servers.get(&self.own) else { return };
        notes.origin = Origin::Restored;
        for (topic, own) in &own.channels {
            let is_elsewhere = self.others().any(|roster| roster.channels.contains_key(topic));
            notes.add(!is_elsewhere, topic, "", || Change::Occupied);
            for (id, member) in &own.members {
                let is_elsewhere = self.others().any(|roster| roster.has(topic, id));
                notes.add(!is_elsewhere, topic, "", || Change::Added(member.clone()));
            }
        }
    }
}

fn count_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Changes of channels on all servers together, with their origin.
struct Notes {
    origin: Origin,
    all: Vec<Noted>,
}

impl Notes {
    fn add(&mut self, is_change: bool, topic: &Arc<str>, subscriber: &str, change: impl FnOnce() -> Change) {
        if is_change {
            let (topic, subscriber, origin) = (topic.clone(), subscriber.into(), self.origin);
            self.all.push(Noted { topic, subscriber, change: change(), origin });
        }
    }
}

#[cfg(test)]
#[path = "rosters_tests.rs"]
mod tests;
