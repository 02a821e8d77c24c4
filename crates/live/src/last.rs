//! The last update of each topic that was published as `cached`, for later subscribers.

use crate::update::Update;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of topics.
const MAX_TOPICS: usize = 1024;
/// Maximum size of their updates, in bytes.
const MAX_BYTES: usize = 8 << 20;
/// Age after which an update is no longer delivered.
const LIFETIME: Duration = Duration::from_secs(1800);

/// The last updates, by topic. When there are too many or too large ones, the oldest are dropped.
#[derive(Debug, Default)]
pub(crate) struct LastUpdates {
    topics: FxHashMap<Arc<str>, u64>,
    /// By their numbers, which grow.
    updates: BTreeMap<u64, (Arc<str>, Instant, Arc<Update>)>,
    bytes: usize,
}

impl LastUpdates {
    /// Replaces the update of its first topic. `number` is greater than that of all updates before.
    pub(crate) fn set(&mut self, number: u64, update: &Arc<Update>, now: Instant) {
        let Some(topic) = update.topics.first() else { return };
        if let Some(before) = self.topics.insert(topic.clone(), number) {
            self.remove(before);
        }
        self.bytes += update.size();
        self.updates.insert(number, (topic.clone(), now, update.clone()));
        while self.updates.len() > MAX_TOPICS || self.bytes > MAX_BYTES {
            let Some((&oldest, (topic, ..))) = self.updates.first_key_value() else { return };
            self.topics.remove(topic);
            self.remove(oldest);
        }
    }

    /// The last update of a topic, unless it is too old.
    pub(crate) fn get(&self, topic: &str, now: Instant) -> Option<&Arc<Update>> {
        let (_, at, update) = self.updates.get(self.topics.get(topic)?)?;
        (now.saturating_duration_since(*at) < LIFETIME).then_some(update)
    }

    fn remove(&mut self, number: u64) {
        if let Some((_, _, update)) = self.updates.remove(&number) {
            self.bytes -= update.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn update(topic: &str, size: usize) -> Arc<Update> {
        Arc::new(Update { topics: Box::new([topic.into()]), data: Bytes::from(vec![0; size]), ..Update::default() })
    }

    #[test]
    fn the_last_update_of_a_topic_is_kept_for_half_an_hour() {
        let (mut last, now) = (LastUpdates::default(), Instant::now());
        last.set(1, &update("a", 1), now);
        last.set(2, &update("b", 2), now);
        last.set(3, &update("a", 3), now);
        let size = |topic, at| last.get(topic, at).map(|update| update.data.len());
        assert_eq!((size("a", now), size("b", now), size("c", now)), (Some(3), Some(2), None));
        assert_eq!(size("a", now + LIFETIME), None);
        assert_eq!(last.updates.len(), 2);
    }

    #[test]
    fn the_oldest_updates_are_dropped_beyond_the_limits() {
        let (mut last, now) = (LastUpdates::default(), Instant::now());
        for number in 0..=MAX_TOPICS as u64 {
            last.set(number, &update(&number.to_string(), 1), now);
        }
        assert!(last.get("0", now).is_none() && last.get("1", now).is_some());
        last.set(5000, &update("large", MAX_BYTES / 2), now);
        last.set(5001, &update("larger", MAX_BYTES / 2), now);
        assert!(last.get("large", now).is_none() && last.get("larger", now).is_some());
        assert_eq!((last.topics.len(), last.updates.len()), (1, 1));
        assert_eq!(last.bytes, update("larger", MAX_BYTES / 2).size());
        last.set(5002, &update("too large", MAX_BYTES), now);
        assert_eq!((last.topics.len(), last.updates.len(), last.bytes), (0, 0, 0));
    }
}
