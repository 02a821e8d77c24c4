//! Finds the subscribers of a topic: exact names in a map, and templates by matching each distinct one.

use crate::selector::Selector;
use crate::subscriber::Subscriber;
use crate::template::Template;
use crate::url_pattern::{TopicUrl, UrlPattern};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Subscribers by their numbers, so that each is removed without a search.
type SubscribersByNumber = FxHashMap<u64, Arc<Subscriber>>;

/// Subscribers that name a topic exactly.
#[derive(Debug, Default)]
struct NamedSubscribers {
    all: SubscribersByNumber,
    /// Number of those that joined it as a channel. Others have chosen the topic themselves.
    joined: usize,
}

/// Subscribers of one template or URL pattern.
#[derive(Debug)]
struct MatchedSubscribers<M> {
    matcher: Arc<M>,
    subscribers: SubscribersByNumber,
    /// Number of those that may receive some private updates. Without any, private updates are not matched.
    authorized: usize,
}

impl<M> MatchedSubscribers<M> {
    fn new(matcher: &Arc<M>) -> Self {
        Self { matcher: matcher.clone(), subscribers: SubscribersByNumber::default(), authorized: 0 }
    }

    fn insert(&mut self, subscriber: &Arc<Subscriber>) {
        if self.subscribers.insert(subscriber.number, subscriber.clone()).is_none() {
            self.authorized += usize::from(subscriber.interest.has_authority());
        }
    }

    /// Removes a subscriber; `true` if none is left.
    fn remove(&mut self, subscriber: &Subscriber) -> bool {
        if self.subscribers.remove(&subscriber.number).is_some() {
            self.authorized -= usize::from(subscriber.interest.has_authority());
        }
        self.subscribers.is_empty()
    }

    fn may_get(&self, private: bool) -> bool {
        !private || self.authorized > 0
    }
}

fn key(pattern: &UrlPattern) -> (Box<str>, Box<str>) {
    (pattern.base().into(), pattern.text().into())
}

/// Subscribers by selector. A subscriber with several selectors is listed under each.
#[derive(Debug, Default)]
pub(crate) struct Index {
    all: SubscribersByNumber,
    exact: FxHashMap<Arc<str>, NamedSubscribers>,
    templates: FxHashMap<Box<str>, MatchedSubscribers<Template>>,
    /// By base and pattern.
    patterns: FxHashMap<(Box<str>, Box<str>), MatchedSubscribers<UrlPattern>>,
}

impl Index {
    /// Replaces selectors by equal ones that exist already, to share their memory.
    pub(crate) fn share(&self, selectors: &mut [Selector]) {
        for selector in selectors {
            match selector {
                Selector::All => {}
                Selector::Exact(topic) => {
                    if let Some((known, _)) = self.exact.get_key_value(topic) {
                        *topic = known.clone();
                    }
                }
                Selector::Template(template) => {
                    if let Some(known) = self.templates.get(template.text()) {
                        *template = known.matcher.clone();
                    }
                }
                Selector::Url(pattern) => {
                    if let Some(known) = self.patterns.get(&key(pattern)) {
                        *pattern = known.matcher.clone();
                    }
                }
            }
        }
    }

    /// The name of a topic, sharing the memory of an equal one if it exists.
    pub(crate) fn name(&self, topic: &str) -> Arc<str> {
        self.exact.get_key_value(topic).map_or_else(|| topic.into(), |(known, _)| known.clone())
    }

    /// Channels that begin with `prefix`, with the number of their subscribers, in order.
    pub(crate) fn channels(&self, prefix: &str) -> Vec<(Arc<str>, usize)> {
        let named = self.exact.iter().filter(|(topic, named)| named.joined > 0 && topic.starts_with(prefix));
        let mut names: Vec<_> = named.map(|(topic, named)| (topic.clone(), named.joined)).collect();
        names.sort_unstable();
        names
    }

    /// Adds a subscriber to a channel.
    pub(crate) fn join(&mut self, topic: &Arc<str>, subscriber: &Arc<Subscriber>) {
        self.insert_exact(topic, subscriber).joined += 1;
    }

    /// Removes a subscriber from a channel.
    pub(crate) fn leave(&mut self, topic: &str, subscriber: &Subscriber) {
        if let Some(named) = self.exact.get_mut(topic) {
            named.joined -= 1;
        }
        self.remove_exact(topic, subscriber);
    }

    fn insert_exact(&mut self, topic: &Arc<str>, subscriber: &Arc<Subscriber>) -> &mut NamedSubscribers {
        let named = self.exact.entry(topic.clone()).or_default();
        named.all.insert(subscriber.number, subscriber.clone());
        named
    }

    fn remove_exact(&mut self, topic: &str, subscriber: &Subscriber) {
        if let Some(named) = self.exact.get_mut(topic) {
            named.all.remove(&subscriber.number);
            if named.all.is_empty() {
                self.exact.remove(topic);
            }
        }
    }

    /// Adds a subscriber with its selectors.
    pub(crate) fn insert(&mut self, subscriber: &Arc<Subscriber>) {
        for selector in &subscriber.interest.selectors {
            match selector {
                Selector::All => _ = self.all.insert(subscriber.number, subscriber.clone()),
                Selector::Exact(topic) => _ = self.insert_exact(topic, subscriber),
                Selector::Template(template) => {
                    let entry = self.templates.entry(template.text().into());
                    entry.or_insert_with(|| MatchedSubscribers::new(template)).insert(subscriber);
                }
                Selector::Url(pattern) => {
                    let entry = self.patterns.entry(key(pattern));
                    entry.or_insert_with(|| MatchedSubscribers::new(pattern)).insert(subscriber);
                }
            }
        }
    }

    /// Removes a subscriber from its selectors.
    pub(crate) fn remove(&mut self, subscriber: &Subscriber) {
        for selector in &subscriber.interest.selectors {
            match selector {
                Selector::All => _ = self.all.remove(&subscriber.number),
                Selector::Exact(topic) => self.remove_exact(topic, subscriber),
                Selector::Template(template) => {
                    if self.templates.get_mut(template.text()).is_some_and(|own| own.remove(subscriber)) {
                        self.templates.remove(template.text());
                    }
                }
                Selector::Url(pattern) => {
                    let key = key(pattern);
                    if self.patterns.get_mut(&key).is_some_and(|own| own.remove(subscriber)) {
                        self.patterns.remove(&key);
                    }
                }
            }
        }
    }

    /// The subscribers of any of these topics, possibly with duplicates; for a private update also some that may not
    /// receive it.
    pub(crate) fn subscribers_of<'a>(
        &'a self,
        topics: &'a [Arc<str>],
        private: bool,
    ) -> impl Iterator<Item = &'a Arc<Subscriber>> {
        let exact = topics.iter().filter_map(|topic| self.exact.get(topic)).map(|named| &named.all);
        let templates = self
            .templates
            .values()
            .filter(move |found| found.may_get(private) && topics.iter().any(|topic| found.matcher.matches(topic)));
        let templates = templates.map(|found| &found.subscribers);
        // Each topic is parsed once for all patterns.
        let urls: Vec<_> = if self.patterns.is_empty() {
            Vec::new()
        } else {
            topics.iter().map(|topic| TopicUrl::new(topic)).collect()
        };
        let patterns = self
            .patterns
            .values()
            .filter(move |found| found.may_get(private) && urls.iter().any(|topic| found.matcher.matches(topic)));
        let patterns = patterns.map(|found| &found.subscribers);
        exact.chain(templates).chain(patterns).chain([&self.all]).flat_map(SubscribersByNumber::values)
    }

    /// The subscribers that name exactly this topic.
    pub(crate) fn named(&self, topic: &str) -> impl Iterator<Item = &Arc<Subscriber>> {
        self.exact.get(topic).into_iter().flat_map(|named| named.all.values())
    }

    /// Number of topics that have subscribers by name.
    pub(crate) fn len(&self) -> usize {
        self.exact.len()
    }

    /// Number of subscribers of a channel: not those that have chosen its topic themselves.
    pub(crate) fn count_of_channel(&self, topic: &str) -> usize {
        self.exact.get(topic).map_or(0, |named| named.joined)
    }

    /// `true` if nothing is left of any subscriber.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.exact.is_empty() && self.templates.is_empty() && self.patterns.is_empty()
    }
}
