//! Orders from scripts for connections and channels, and questions about them: the layout of `FrameKind::Live`, shared
//! by both ends.
//!
//! A `u16` kind, then for each field a `u16` name, a `u32` length and that many bytes. Fields may come in any order;
//! for fields that are not lists, the first one counts. The server parses orders from a copy and checks every length.
//! The answer to a question is text, or for `Connections` what `put_connection` writes; it is empty where there is
//! nothing to tell.

use bytes::Bytes;
use zerocopy::{Immutable, IntoBytes, TryFromBytes, try_transmute};

/// Maximum size of an order in bytes: a message of 1 MiB with its other fields.
/// cbindgen:ignore
pub const MAX_LIVE_ORDER: usize = (1 << 20) + (64 << 10);
/// An order with this many fields is refused.
const MAX_FIELDS: usize = 1024;
/// Bytes before each field's value.
const FIELD_HEAD: usize = 6;

/// The effect of an order.
#[repr(u16)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable)]
pub enum LiveKind {
    /// Sends `Data` to a WebSocket connection, as text unless there is a field `Binary`.
    Send = 1,
    /// Closes a WebSocket connection: `Code` (decimal), `Data` (the reason).
    Close = 2,
    /// Adds a WebSocket connection to the subscribers of each `Topic`. With `After`, messages published after that id
    /// are sent first. With `Keep`, a client that is too slow loses its oldest messages and not its connection.
    Subscribe = 3,
    /// Removes a WebSocket connection from the subscribers of each `Topic`.
    Unsubscribe = 4,
    /// Replaces the state that a WebSocket connection's events carry with `Data`.
    State = 5,
    /// Publishes `Data` to each `Topic`, as text unless there is a field `Binary`. With an `Id` it is kept in the history.
    Publish = 6,
    /// Publishes a Mercure update: each `Topic`, `Data`, `Id`, `Type`, `Retry` (decimal), `Private`.
    Update = 7,
    /// A question: "1" if the WebSocket connection is open.
    Exists = 8,
    /// A question: the number of the site's open WebSocket connections; with a `Topic`, of those subscribed to it.
    Count = 9,
    /// A question: the ids and states of the connections that `Count` counts.
    Connections = 10,
}

impl LiveKind {
    /// `true` if the worker waits for an answer.
    pub const fn is_question(self) -> bool {
        matches!(self, Self::Exists | Self::Count | Self::Connections)
    }
}

/// Adds a connection to the answer to `LiveKind::Connections`: the id and the state, each preceded by its length as a
/// `u32`.
pub fn put_connection(out: &mut Vec<u8>, id: &str, state: &[u8]) {
    for text in [id.as_bytes(), state] {
        out.extend_from_slice(&(text.len() as u32).to_ne_bytes());
        out.extend_from_slice(text);
    }
}

/// The name of a field.
#[repr(u16)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable)]
pub enum LiveField {
    /// The id of a WebSocket connection.
    Connection = 1,
    /// A channel or topic; may occur several times.
    Topic = 2,
    /// The message, the reason or the state.
    Data = 3,
    /// Present if the message is binary; empty.
    Binary = 4,
    /// The close code.
    Code = 5,
    /// The id of an update.
    Id = 6,
    /// The type of an update.
    Type = 7,
    /// The reconnection time of an update, in milliseconds.
    Retry = 8,
    /// Present if the update is private; empty.
    Private = 9,
    /// The id of the last message that a client has received.
    After = 10,
    /// The number of messages that may wait for a client, in decimal digits; beyond it the oldest are dropped.
    Keep = 11,
}

/// An order whose kind, field names and lengths have been checked, but not the values of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveOrder {
    kind: LiveKind,
    fields: Bytes,
}

impl LiveOrder {
    /// Parses the payload of `Live` frames; `None` if it is malformed.
    pub fn parse(payload: Bytes) -> Option<Self> {
        let kind = u16::from_ne_bytes(*payload.first_chunk()?);
        let order = Self { kind: try_transmute!(kind).ok()?, fields: payload.slice(2..) };
        let mut fields = Fields { rest: &order.fields };
        let complete = payload.len() <= MAX_LIVE_ORDER && fields.by_ref().take(MAX_FIELDS).count() < MAX_FIELDS;
        (complete && fields.rest.is_empty()).then_some(order)
    }

    /// The effect of the order.
    pub fn kind(&self) -> LiveKind {
        self.kind
    }

    /// The first value of a field.
    pub fn field(&self, name: LiveField) -> Option<Bytes> {
        self.all(name).next()
    }

    /// All values of a field.
    pub fn all(&self, name: LiveField) -> impl Iterator<Item = Bytes> + '_ {
        let fields = Fields { rest: &self.fields };
        fields.filter(move |(own, _)| *own == name).map(|(_, value)| self.fields.slice_ref(value))
    }
}

/// Iterates over fields; stops at the first malformed one.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = (LiveField, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = self.rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let name = try_transmute!(u16::from_ne_bytes(*name)).ok()?;
        let (value, rest) = rest.split_at_checked(u32::from_ne_bytes(*length) as usize)?;
        self.rest = rest;
        Some((name, value))
    }
}

/// An order under construction, in a worker.
#[derive(Debug, Default)]
pub struct LiveOrderBuilder {
    payload: Vec<u8>,
}

impl LiveOrderBuilder {
    /// Begins an order; `kind` is a `LiveKind` as a number.
    pub fn begin(&mut self, kind: u16) {
        self.payload.clear();
        self.payload.extend_from_slice(&kind.to_ne_bytes());
    }

    /// Adds a field; `name` is a `LiveField` as a number. Returns `false` if the order would be too large.
    pub fn field(&mut self, name: u16, value: &[u8]) -> bool {
        if self.payload.len() + FIELD_HEAD + value.len() > MAX_LIVE_ORDER {
            return false;
        }
        self.payload.extend_from_slice(&name.to_ne_bytes());
        self.payload.extend_from_slice(&(value.len() as u32).to_ne_bytes());
        self.payload.extend_from_slice(value);
        true
    }

    /// The payload of the order's frames.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(kind: u16, fields: &[(u16, &[u8])]) -> Vec<u8> {
        let mut builder = LiveOrderBuilder::default();
        builder.begin(kind);
        assert!(fields.iter().all(|(name, value)| builder.field(*name, value)));
        builder.finish()
    }

    #[test]
    fn an_order_round_trips() {
        let payload = order(LiveKind::Update as u16, &[(2, b"a"), (3, b"text"), (2, b""), (9, b"")]);
        let read = LiveOrder::parse(payload.into()).unwrap();
        assert_eq!(read.kind(), LiveKind::Update);
        assert_eq!(read.all(LiveField::Topic).collect::<Vec<_>>(), [&b"a"[..], b""]);
        assert_eq!(read.field(LiveField::Data).unwrap(), "text");
        assert!(read.field(LiveField::Private).is_some() && read.field(LiveField::Id).is_none());
    }

    #[test]
    fn truncated_orders_and_unknown_names_are_refused() {
        let whole = order(LiveKind::Send as u16, &[(1, b"id"), (3, b"text")]);
        let ends = [2, 2 + 6 + 2, whole.len()];
        for end in 0..=whole.len() {
            let read = LiveOrder::parse(whole[..end].to_vec().into());
            assert_eq!(read.is_some(), ends.contains(&end), "{end}");
        }
        for (kind, field) in [(0, 1), (11, 1), (1, 0), (1, 12), (u16::MAX, 1)] {
            assert_eq!(LiveOrder::parse(order(kind, &[(field, b"")]).into()), None, "{kind} {field}");
        }
        let too_many = vec![(2u16, &b""[..]); MAX_FIELDS];
        assert_eq!(LiveOrder::parse(order(6, &too_many).into()), None);
        let mut overlong = order(1, &[(3, b"")]);
        overlong[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(LiveOrder::parse(overlong.into()), None);
    }

    #[test]
    fn a_field_beyond_the_largest_order_is_refused_by_its_writer() {
        let mut builder = LiveOrderBuilder::default();
        builder.begin(1);
        assert!(builder.field(3, &vec![0; 1 << 20]));
        assert!(!builder.field(3, &vec![0; 1 << 20]) && builder.field(1, b"id"));
        assert!(LiveOrder::parse(builder.finish().into()).is_some());
    }
}
