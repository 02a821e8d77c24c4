//! The body of a response: empty, bytes, memory held elsewhere, files, or a stream.

use crate::connection::Connection;
use crate::files::{FileBody, FileIdentity};
use crate::stream::Stream;
use crate::upgrade::Upgrade;
use bytes::Bytes;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

/// Minimum size in bytes of a body that is charged while it waits in a connection that sends one response at a time.
const HELD_BY_CONNECTION: usize = 16 * 1024;

/// Minimum size in bytes of a body that is charged while it waits in a stream: a connection may have many streams.
const HELD_BY_STREAM: usize = 1024;

/// A whole body in memory that the server shares, such as a ring that another process writes to. The bytes may change
/// at any time, so no slices of them are handed out. Use or copy the body before the task yields. Dropping it frees the
/// memory.
pub trait HeldBytes: Send + Sync {
    /// Length in bytes; constant.
    fn len(&self) -> usize;

    /// `true` if there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `to` with the bytes from position `from` on. The caller makes sure that there are enough.
    fn copy_to(&self, from: usize, to: &mut [u8]);

    /// A copy of the bytes from position `from` on.
    fn copy_from(&self, from: usize) -> Vec<u8>;

    /// `true` if its bytes are these.
    fn equals(&self, other: &[u8]) -> bool;

    /// Writes `before` (at most seven slices) and then the bytes to a socket, without waiting. Returns the number of
    /// bytes written.
    ///
    /// # Errors
    /// The system's error; nothing was written.
    fn send_after(&self, before: &[IoSlice<'_>], socket: BorrowedFd<'_>) -> io::Result<usize>;
}

/// A complete body in memory.
pub enum Whole {
    /// In the server's own memory.
    Memory(Bytes),
    /// In shared memory; valid until the task yields.
    Held(Box<dyn HeldBytes>),
}

impl std::fmt::Debug for Whole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Whole({} bytes)", self.len())
    }
}

impl From<Bytes> for Whole {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(bytes)
    }
}

impl Whole {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::Held(held) => held.len(),
        }
    }

    /// `true` if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the bytes from position `from` on into `to`.
    ///
    /// # Panics
    /// Fewer than `to.len()` bytes follow `from`.
    pub fn copy_to(&self, from: usize, to: &mut [u8]) {
        match self {
            Self::Memory(bytes) => to.copy_from_slice(&bytes[from..from + to.len()]),
            Self::Held(held) => held.copy_to(from, to),
        }
    }

    /// `true` if its bytes are these.
    pub fn equals(&self, other: &[u8]) -> bool {
        match self {
            Self::Memory(bytes) => bytes == other,
            Self::Held(held) => held.equals(other),
        }
    }

    /// The bytes in the server's own memory. Held memory is copied and freed.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Memory(bytes) => bytes,
            Self::Held(held) => held.copy_from(0).into(),
        }
    }
}

/// Notified of a response's end. Dropped silently if the response never began.
pub trait EndObserver: Send {
    /// Called with the number of body bytes handed over; `complete` if these are the whole body.
    fn ended(self: Box<Self>, bytes: u64, complete: bool);
}

pub(crate) enum Kind {
    Empty,
    Whole(Whole),
    Stream(Stream),
    Files(FileBody),
    /// No body: the upgraded protocol, which takes over the connection or stream.
    Upgrade(Box<dyn Upgrade>),
}

/// The body of a response.
pub struct Body {
    kind: Kind,
    ending: Option<Box<dyn EndObserver>>,
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Kind::Empty => f.write_str("Body::Empty"),
            Kind::Whole(whole) => whole.fmt(f),
            Kind::Stream(_) => f.write_str("Body::Stream"),
            Kind::Files(files) => write!(f, "Body::Files({} bytes)", files.remaining()),
            Kind::Upgrade(_) => f.write_str("Body::Upgrade"),
        }
    }
}

impl Body {
    const fn of(kind: Kind) -> Self {
        Self { kind, ending: None }
    }

    /// No body.
    pub const fn empty() -> Self {
        Self::of(Kind::Empty)
    }

    /// A body whose bytes are all in memory.
    pub fn full(bytes: Bytes) -> Self {
        Self::whole(bytes.into())
    }

    /// A complete body in memory; empty if it has no bytes.
    pub fn whole(whole: Whole) -> Self {
        Self::of(if whole.is_empty() { Kind::Empty } else { Kind::Whole(whole) })
    }

    /// A streamed body.
    pub fn stream(stream: Stream) -> Self {
        Self::of(Kind::Stream(stream))
    }

    /// A body of files, or of parts of them. One that is in memory becomes a whole or an empty body.
    pub fn files(files: FileBody) -> Self {
        match files.as_memory() {
            Some(bytes) => Self::full(bytes.clone()),
            None if files.remaining() == 0 => Self::empty(),
            None => Self::of(Kind::Files(files)),
        }
    }

    /// The upgraded protocol, after a response of status 101.
    pub fn upgrade(upgrade: Box<dyn Upgrade>) -> Self {
        Self::of(Kind::Upgrade(upgrade))
    }

    /// Length in bytes, if known.
    pub fn length(&self) -> Option<u64> {
        match &self.kind {
            Kind::Empty | Kind::Upgrade(_) => Some(0),
            Kind::Whole(whole) => Some(whole.len() as u64),
            Kind::Stream(stream) => stream.remaining(),
            Kind::Files(files) => Some(files.remaining()),
        }
    }

    /// The whole body, if it is complete (empty for an empty one); the body itself otherwise.
    pub fn into_whole(mut self) -> Result<Whole, Self> {
        match std::mem::replace(&mut self.kind, Kind::Empty) {
            Kind::Empty => Ok(Bytes::new().into()),
            Kind::Whole(whole) => Ok(whole),
            other => {
                self.kind = other;
                Err(self)
            }
        }
    }

    /// The bytes of a body in the server's own memory (empty for an empty one).
    pub fn as_full(&self) -> Option<&Bytes> {
        static EMPTY: Bytes = Bytes::new();
        match &self.kind {
            Kind::Empty => Some(&EMPTY),
            Kind::Whole(Whole::Memory(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The file whose whole content is the body, if known.
    pub fn file(&self) -> Option<&FileIdentity> {
        match &self.kind {
            Kind::Files(files) => files.identity(),
            _ => None,
        }
    }

    /// The inner stream, if the body is streamed or made of files; the body itself otherwise.
    pub fn into_stream(mut self) -> Result<Stream, Self> {
        match std::mem::replace(&mut self.kind, Kind::Empty) {
            Kind::Stream(stream) => Ok(stream),
            Kind::Files(files) => Ok(Box::new(files)),
            other => {
                self.kind = other;
                Err(self)
            }
        }
    }

    /// Charges a whole body to the connection while any of it waits there, unless it is small or HTTP/1 takes it from
    /// held memory. Returns `false` if the budget has no room.
    #[must_use]
    pub fn hold(&mut self, connection: &Connection) -> bool {
        let multiplexed = connection.state.is_multiplexed();
        let least = if multiplexed { HELD_BY_STREAM } else { HELD_BY_CONNECTION };
        let Kind::Whole(whole) = &self.kind else { return true };
        // In HTTP/1, held bytes go out at once, or are charged with the rest that waits. Other protocols copy them.
        if whole.len() < least || (matches!(whole, Whole::Held(_)) && !connection.state.copies_bodies()) {
            return true;
        }
        let mut charge = connection.charge();
        if !charge.grow(whole.len() as u64) {
            return false;
        }
        if let Kind::Whole(whole) = std::mem::replace(&mut self.kind, Kind::Empty) {
            self.kind = Kind::Whole(Whole::Memory(charge.cover(whole.into_bytes())));
        }
        true
    }

    /// Sets the observer of the body's end.
    pub fn carry(&mut self, ending: Box<dyn EndObserver>) {
        self.ending = Some(ending);
    }

    /// Reads the body to its end and drops it; for requests that the server itself made.
    ///
    /// # Errors
    /// The body ended early.
    pub async fn discard(self) -> io::Result<()> {
        let (kind, mut delivery) = self.open();
        let mut stream: Stream = match kind {
            Kind::Empty | Kind::Upgrade(_) => {
                delivery.complete = true;
                return Ok(());
            }
            Kind::Whole(whole) => {
                (delivery.sent, delivery.complete) = (whole.len() as u64, true);
                return Ok(());
            }
            Kind::Stream(stream) => stream,
            Kind::Files(files) => Box::new(files),
        };
        while let Some(chunk) = std::future::poll_fn(|cx| stream.poll_chunk(cx)).await {
            delivery.sent += chunk?.data.len() as u64;
        }
        delivery.complete = true;
        Ok(())
    }

    /// The body without its bytes, but with its observer.
    pub(crate) fn emptied(self) -> Self {
        Self { kind: Kind::Empty, ending: self.ending }
    }

    /// Its parts, for the sender.
    pub(crate) fn open(self) -> (Kind, Delivery) {
        (self.kind, Delivery { ending: self.ending, sent: 0, complete: false })
    }
}

/// Progress of a response's body. Reports its end to the `EndObserver` when dropped.
pub(crate) struct Delivery {
    ending: Option<Box<dyn EndObserver>>,
    pub(crate) sent: u64,
    pub(crate) complete: bool,
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(ending) = self.ending.take() {
            ending.ended(self.sent, self.complete);
        }
    }
}
