//! Entries in the log of presence as bytes.

use crate::presence::Member;
use crate::wire::{put, text};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::sync::Arc;

/// The first bytes of an entry: an updates' log has no such entries. The second is the version of the format.
const MARK: u16 = 0x5001;
/// Length of an entry's head: mark, kind, server, number.
const HEAD: usize = 19;
/// Maximum size of an entry in bytes.
pub(crate) const MAX_ENTRY: usize = 64 << 10;
/// Maximum length of a channel's name in bytes.
pub(crate) const MAX_NAME: usize = 256;
/// Maximum size of a member's id and data in bytes.
pub(crate) const MAX_MEMBER: usize = 32 << 10;
/// Maximum length of a subscriber's id in bytes.
const MAX_ID: usize = 64;

/// Kinds of entries.
const REQUEST: u8 = 1;
const HEARTBEAT: u8 = 2;
const GONE: u8 = 3;
const CHANGES: u8 = 4;
const ROSTER: u8 = 5;
const LEAVING: u8 = 6;
/// Flags of a part of a roster.
const FIRST: u8 = 1;
const LAST: u8 = 2;
/// Kinds of rows.
const COUNT: u8 = 1;
const JOINED: u8 = 2;
const LEFT: u8 = 3;

/// An entry, with the server that wrote it.
#[derive(Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) server: u64,
    /// Consecutive for each server.
    pub(crate) number: u64,
    pub(crate) content: Content,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Content {
    /// Requests the roster of this server; 0: of all servers.
    Request(u64),
    Heartbeat,
    /// The server is stopping. Another one reports its further changes.
    Leaving,
    /// This server, possibly another than the writer, has no subscribers any more.
    Gone(u64),
    Changes(Vec<Row>),
    /// A part of the server's roster: all of its rows.
    Roster {
        is_first: bool,
        is_last: bool,
        rows: Vec<Row>,
    },
}

/// A fact about a channel on one server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Row {
    /// The number of its subscribers.
    Count(Arc<str>, u32),
    /// A member's first connection has joined: the subscriber with this id.
    Joined(Arc<str>, Arc<Member>, Box<str>),
    /// The last connection of the member with this id has left.
    Left(Arc<str>, Box<str>),
}

impl Entry {
    /// Decodes an entry; `None` if the bytes are not valid in this version.
    pub(crate) fn from_bytes(mut bytes: Bytes) -> Option<Self> {
        if bytes.len() > MAX_ENTRY || bytes.try_get_u16().ok()? != MARK {
            return None;
        }
        let kind = bytes.try_get_u8().ok()?;
        let (server, number) = (bytes.try_get_u64().ok()?, bytes.try_get_u64().ok()?);
        let content = match kind {
            REQUEST => Content::Request(bytes.try_get_u64().ok()?),
            HEARTBEAT => Content::Heartbeat,
            LEAVING => Content::Leaving,
            GONE => Content::Gone(bytes.try_get_u64().ok()?),
            CHANGES => Content::Changes(rows(&mut bytes)?),
            ROSTER => {
                let flags = bytes.try_get_u8().ok()?;
                let rows = rows(&mut bytes)?;
                Content::Roster { is_first: flags & FIRST != 0, is_last: flags & LAST != 0, rows }
            }
            _ => return None,
        };
        bytes.is_empty().then_some(Self { server, number, content })
    }
}

fn rows(bytes: &mut Bytes) -> Option<Vec<Row>> {
    let mut rows = Vec::new();
    while bytes.has_remaining() {
        let kind = bytes.get_u8();
        let topic = text(bytes).filter(|topic| (1..=MAX_NAME).contains(&topic.len()))?.into();
        rows.push(match kind {
            COUNT => Row::Count(topic, bytes.try_get_u32().ok()?),
            JOINED => {
                let subscriber = text(bytes).filter(|id| id.len() <= MAX_ID)?.into();
                let id = text(bytes)?.into();
                let info = match bytes.try_get_u8().ok()? {
                    0 => None,
                    _ => Some(text(bytes)?.into()),
                };
                let member = Member { id, info };
                if member.size() > MAX_MEMBER {
                    return None;
                }
                Row::Joined(topic, Arc::new(member), subscriber)
            }
            LEFT => Row::Left(topic, text(bytes)?.into()),
            _ => return None,
        });
    }
    Some(rows)
}

impl Row {
    fn put(&self, bytes: &mut BytesMut) {
        let (kind, topic) = match self {
            Self::Count(topic, _) => (COUNT, topic),
            Self::Joined(topic, ..) => (JOINED, topic),
            Self::Left(topic, ..) => (LEFT, topic),
        };
        bytes.put_u8(kind);
        put(bytes, topic);
        match self {
            Self::Count(_, count) => bytes.put_u32(*count),
            Self::Joined(_, member, subscriber) => {
                put(bytes, subscriber);
                put(bytes, &member.id);
                bytes.put_u8(member.info.is_some().into());
                member.info.iter().for_each(|info| put(bytes, info));
            }
            Self::Left(_, id) => put(bytes, id),
        }
    }
}

/// Encodes this server's entries until they are passed to the log.
#[derive(Debug)]
pub(crate) struct EntryWriter {
    server: u64,
    /// Number of the last entry.
    number: u64,
    complete: Vec<Bytes>,
    /// An entry of changes that still has room.
    open: Option<BytesMut>,
}

impl EntryWriter {
    pub(crate) const fn new(server: u64) -> Self {
        Self { server, number: 0, complete: Vec::new(), open: None }
    }

    fn begin(&mut self, kind: u8) -> BytesMut {
        self.number += 1;
        let mut bytes = BytesMut::new();
        bytes.put_u16(MARK);
        bytes.put_u8(kind);
        bytes.put_u64(self.server);
        bytes.put_u64(self.number);
        bytes
    }

    fn complete_changes(&mut self) {
        self.complete.extend(self.open.take().map(BytesMut::freeze));
    }

    /// Adds an entry without rows.
    pub(crate) fn write(&mut self, content: &Content) {
        self.complete_changes();
        let (kind, server) = match content {
            Content::Request(to) => (REQUEST, Some(*to)),
            Content::Gone(server) => (GONE, Some(*server)),
            Content::Leaving => (LEAVING, None),
            _ => (HEARTBEAT, None),
        };
        let mut bytes = self.begin(kind);
        server.iter().for_each(|server| bytes.put_u64(*server));
        self.complete.push(bytes.freeze());
    }

    /// Adds a change.
    pub(crate) fn change(&mut self, row: &Row) {
        let mut bytes = BytesMut::new();
        row.put(&mut bytes);
        if self.open.as_ref().is_some_and(|open| open.len() + bytes.len() > MAX_ENTRY) {
            self.complete_changes();
        }
        let mut open = self.open.take().unwrap_or_else(|| self.begin(CHANGES));
        open.unsplit(bytes);
        self.open = Some(open);
    }

    /// Adds all rows of this server, in as many entries as they need.
    pub(crate) fn roster(&mut self, rows: impl Iterator<Item = Row>) {
        self.complete_changes();
        let mut part = self.begin(ROSTER);
        part.put_u8(FIRST);
        for row in rows {
            let mut bytes = BytesMut::new();
            row.put(&mut bytes);
            if part.len() + bytes.len() > MAX_ENTRY {
                let next = self.begin(ROSTER);
                self.complete.push(std::mem::replace(&mut part, next).freeze());
                part.put_u8(0);
            }
            part.unsplit(bytes);
        }
        part[HEAD] |= LAST;
        self.complete.push(part.freeze());
    }

    /// Takes the entries, for the log.
    pub(crate) fn take(&mut self) -> Vec<Bytes> {
        self.complete_changes();
        std::mem::take(&mut self.complete)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.complete.is_empty() && self.open.is_none()
    }
}
