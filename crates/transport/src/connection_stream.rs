//! The stream between the server and a script that holds a client's WebSocket connection (async mode): the layout of
//! the parts that travel in it, shared by both ends.
//!
//! The stream is a pair of Unix sockets. The script's end travels as the body of the request that opens the connection
//! (`REQUEST_BODY_STREAM`); the server keeps the other one. The kernel's buffers are the budget of both directions: a
//! full one suspends the script that sends, or the server stops reading from the client. The end of either process ends
//! the stream.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes, transmute, try_transmute};

/// Begins each part; `length` bytes follow.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoBytes, FromBytes, Immutable, KnownLayout)]
pub struct PartHead {
    /// A `PartKind`.
    pub kind: u32,
    /// At most 1 MiB.
    pub length: u32,
}

/// The meaning of a part.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable)]
pub enum PartKind {
    /// The script holds the connection; its first part, sent before the end of its response.
    Accept = 1,
    /// A text message.
    Text = 2,
    /// A binary message.
    Binary = 3,
    /// The close: a `u16` code, then the reason. The last part.
    Close = 4,
    /// The script's process ends soon, so the client is to connect again (script → server, once).
    Leave = 5,
}

impl PartHead {
    /// Its length on the stream.
    /// cbindgen:ignore
    pub const LEN: usize = size_of::<Self>();

    /// Reads a head.
    pub fn of(bytes: [u8; Self::LEN]) -> Self {
        transmute!(bytes)
    }

    /// Its bytes on the stream.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        transmute!(self)
    }

    /// A head for a part of this length.
    pub fn new(kind: PartKind, length: usize) -> Self {
        Self { kind: kind as u32, length: length as u32 }
    }

    /// The kind; `None` if there is no such kind.
    pub fn kind(self) -> Option<PartKind> {
        try_transmute!(self.kind).ok()
    }
}
