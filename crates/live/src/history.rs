//! The last updates, for clients that reconnect.

use crate::update::Update;
use std::collections::VecDeque;
use std::sync::Arc;

/// The id that stands for the beginning of the history.
const EARLIEST: &str = "earliest";

/// The update that precedes the first one a subscriber gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preceding {
    /// No update precedes: the subscriber gets the whole history.
    Earliest,
    /// The one with this id.
    Id(Arc<str>),
}

impl Preceding {
    /// The id, as clients use it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Earliest => EARLIEST,
            Self::Id(id) => id,
        }
    }
}

/// Updates in the order in which they were published, bounded in number and bytes.
#[derive(Debug)]
pub(crate) struct History {
    updates: VecDeque<Arc<Update>>,
    bytes: usize,
    max_updates: usize,
    max_bytes: usize,
    last: Option<Arc<str>>,
}

impl History {
    pub(crate) fn new(max_updates: usize, max_bytes: usize) -> Self {
        Self { updates: VecDeque::new(), bytes: 0, max_updates, max_bytes, last: None }
    }

    /// Adds an update and drops the oldest ones beyond the limits.
    pub(crate) fn push(&mut self, update: &Arc<Update>) {
        self.last = Some(update.id.clone());
        self.bytes += update.size();
        self.updates.push_back(update.clone());
        while self.updates.len() > self.max_updates || self.bytes > self.max_bytes {
            let Some(oldest) = self.updates.pop_front() else { break };
            self.bytes -= oldest.size();
        }
    }

    /// The id of the last update, even if it was too large to keep.
    pub(crate) fn last(&self) -> Preceding {
        self.last.clone().map_or(Preceding::Earliest, Preceding::Id)
    }

    /// The updates after the one with this id. An unknown id gets all of them: it was either dropped, so that all
    /// others are newer, or assigned by an earlier server.
    pub(crate) fn after(&self, id: &str) -> (Preceding, Vec<Arc<Update>>) {
        // Searched from the end: most clients have just lost their connection, so their id is recent.
        let newer = self.updates.iter().rev().take_while(|update| *update.id != *id).count();
        let first = self.updates.len() - newer;
        let preceding = match first.checked_sub(1) {
            Some(at) if id != EARLIEST => Preceding::Id(self.updates[at].id.clone()),
            // The client already has the last update, which was too large to keep.
            None if self.last.as_deref() == Some(id) => return (self.last(), Vec::new()),
            _ => Preceding::Earliest,
        };
        let first = if preceding == Preceding::Earliest { 0 } else { first };
        (preceding, self.updates.range(first..).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn update(id: &str, size: usize) -> Arc<Update> {
        let data = Bytes::from(vec![b'x'; size]);
        Arc::new(Update { id: id.into(), topics: Box::new(["t".into()]), data, ..Update::default() })
    }

    fn after(history: &History, id: &str) -> (String, Vec<String>) {
        let (preceding, updates) = history.after(id);
        (preceding.as_str().to_owned(), updates.iter().map(|update| update.id.to_string()).collect())
    }

    #[test]
    fn a_client_continues_after_the_last_id_it_has_seen() {
        let mut history = History::new(3, usize::MAX);
        assert_eq!(after(&history, "earliest"), ("earliest".to_owned(), vec![]));
        assert_eq!(history.last(), Preceding::Earliest);
        for id in ["a", "b", "c", "d"] {
            history.push(&update(id, 1));
        }
        let owned = |id: &str, updates: &[&str]| (id.to_owned(), updates.iter().map(ToString::to_string).collect());
        for (id, preceding, updates) in [
            ("d", "d", &[][..]),
            ("c", "c", &["d"]),
            ("b", "b", &["c", "d"]),
            // Forgotten.
            ("a", "earliest", &["b", "c", "d"]),
            ("unknown", "earliest", &["b", "c", "d"]),
            ("earliest", "earliest", &["b", "c", "d"]),
        ] {
            assert_eq!(after(&history, id), owned(preceding, updates), "{id}");
        }
        assert_eq!(history.last().as_str(), "d");
    }

    #[test]
    fn the_history_is_bounded_in_bytes_too() {
        let mut history = History::new(100, 3000);
        (0..10).for_each(|id| history.push(&update(&id.to_string(), 800)));
        assert!((1..=3).contains(&history.updates.len()) && history.bytes <= 3000, "{history:?}");
        history.push(&update("large", 4000));
        assert_eq!((history.updates.len(), history.bytes), (0, 0));
        assert_eq!(after(&history, "large"), ("large".to_owned(), vec![]), "nothing was missed");
        assert_eq!(after(&history, "9"), ("earliest".to_owned(), vec![]));
    }
}
