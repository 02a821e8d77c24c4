//! A message that is published.

use bytes::Bytes;
use std::sync::Arc;

/// A message on its way to subscribers, which all share it.
#[derive(Debug)]
pub struct Update {
    /// Its id, under which a subscriber can continue after it.
    pub id: Arc<str>,
    /// Its topics; the first is the canonical one. It goes to subscribers of any of them.
    pub topics: Box<[Arc<str>]>,
    /// Only subscribers that are authorized for one of its topics get it.
    pub private: bool,
    /// Its bytes in the form in which every subscriber sends them.
    pub encoded: Bytes,
}

impl Update {
    /// Bytes that it keeps in memory.
    #[must_use]
    pub fn size(&self) -> usize {
        let topics: usize = self.topics.iter().map(|topic| topic.len() + size_of::<Arc<str>>()).sum();
        size_of::<Self>() + self.id.len() + topics + self.encoded.len()
    }
}
