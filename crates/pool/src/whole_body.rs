//! A complete body of an answer: in memory, or still where the worker wrote it.

use bytes::Bytes;
use howdah_transport::HeldPayload;

/// A complete body.
#[derive(Debug)]
pub enum WholeBody {
    /// In the server's own memory.
    Memory(Bytes),
    /// In the worker's ring: to be sent, compared or copied within this turn of the task that has it, as it takes room
    /// away from the worker, which may also write to it at any time.
    InRing(HeldPayload),
}

impl WholeBody {
    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::InRing(held) => held.len(),
        }
    }

    /// True if it has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the bytes from position `from` on into `to`.
    ///
    /// # Panics
    /// There are not as many.
    pub fn copy_to(&self, from: usize, to: &mut [u8]) {
        match self {
            Self::Memory(bytes) => to.copy_from_slice(&bytes[from..from + to.len()]),
            Self::InRing(held) => held.copy_to(from, to),
        }
    }

    /// Whether its bytes are these.
    #[must_use]
    pub fn equals(&self, other: &[u8]) -> bool {
        match self {
            Self::Memory(bytes) => bytes == other,
            Self::InRing(held) => held.equals(other),
        }
    }

    /// Its bytes in the server's own memory, copied if they are not there; the ring's room goes back to the worker.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Memory(bytes) => bytes,
            Self::InRing(held) => held.copy_from(0).into(),
        }
    }
}

impl From<Bytes> for WholeBody {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(bytes)
    }
}
