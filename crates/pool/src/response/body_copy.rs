//! Copies a response's body while its front takes it. Copying never delays the response: if the body exceeds the limit,
//! or there is no budget, the copy is given up.

use crate::response::parts::WholeBody;
use howdah_budget::{Budget, Charge};
use tokio::sync::oneshot;

/// A complete copy.
#[derive(Debug)]
pub struct BodyCopy {
    bytes: Vec<u8>,
    _charge: Charge,
}

impl BodyCopy {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[derive(Debug)]
pub(crate) struct Copying {
    bytes: Vec<u8>,
    most: usize,
    charge: Charge,
    to: oneshot::Sender<BodyCopy>,
}

impl Copying {
    /// Creates a copy of at most `most` bytes, and its receiver. Only a complete copy is delivered.
    pub(crate) fn new(most: usize, budget: &'static Budget) -> (Box<Self>, oneshot::Receiver<BodyCopy>) {
        let (to, copied) = oneshot::channel();
        (Box::new(Self { bytes: Vec::new(), most, charge: Charge::new(budget, None), to }), copied)
    }

    /// Adds a part. `None`: the copy was given up.
    pub(crate) fn and(mut self: Box<Self>, part: &[u8]) -> Option<Box<Self>> {
        let fits = self.bytes.len() + part.len() <= self.most && !self.to.is_closed();
        if !fits || !self.charge.grow(part.len() as u64) {
            return None;
        }
        self.bytes.extend_from_slice(part);
        Some(self)
    }

    /// Completes the copy with a body that is taken in one piece.
    pub(crate) fn and_whole(self: Box<Self>, body: &WholeBody) -> Option<Box<Self>> {
        match body {
            WholeBody::Memory(bytes) => self.and(bytes),
            WholeBody::InRing(held) if held.len() <= self.most => self.and(&held.copy_from(0)),
            WholeBody::InRing(_) => None,
        }
    }

    /// Delivers the complete copy.
    pub(crate) fn complete(self) {
        // An error means that the receiver is gone.
        let _ = self.to.send(BodyCopy { bytes: self.bytes, _charge: self.charge });
    }
}
