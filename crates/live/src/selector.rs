//! Topic selectors: the topics that a subscriber wants or a token allows.

use crate::template::{self, Template};
use crate::url_pattern::{self, TopicUrl, UrlPattern};
use std::sync::Arc;

/// An expression that matches topics.
#[derive(Debug, Clone)]
pub enum Selector {
    /// `*`: every topic.
    All,
    /// One topic.
    Exact(Arc<str>),
    /// A URI template (RFC 6570): every topic that it can expand to, and its own text.
    Template(Arc<Template>),
    /// A URL pattern.
    Url(Arc<UrlPattern>),
}

impl Selector {
    /// Parses a selector. A text that is neither `*` nor a URI template within the bounds matches only the topic of
    /// that name.
    pub fn new(text: &str) -> Self {
        if text == "*" {
            return Self::All;
        }
        match Template::new(text) {
            Some(template) => Self::Template(Arc::new(template)),
            None => Self::Exact(text.into()),
        }
    }

    /// `*`, or the one topic of this name.
    pub fn exact(text: &str) -> Self {
        if text == "*" { Self::All } else { Self::Exact(text.into()) }
    }

    /// `*`, or a URL pattern; `None` if it is not one, or too complex. `base`: the hub's URL, against which relative
    /// patterns and topics are resolved.
    pub fn url_pattern(text: &str, base: &str) -> Option<Self> {
        if text == "*" { Some(Self::All) } else { UrlPattern::new(text, base).map(Arc::new).map(Self::Url) }
    }

    /// `true` if both are of the same variant.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Its text.
    pub fn text(&self) -> &str {
        match self {
            Self::All => "*",
            Self::Exact(topic) => topic,
            Self::Template(template) => template.text(),
            Self::Url(pattern) => pattern.text(),
        }
    }

    /// Estimate of the bytes that it keeps in memory, for budgets.
    pub fn size(&self) -> usize {
        let compiled = match self {
            Self::All | Self::Exact(_) => 0,
            Self::Template(_) => template::MAX_SIZE,
            Self::Url(_) => url_pattern::MAX_SIZE,
        };
        size_of::<Self>() + self.text().len() + compiled
    }

    /// Maximum number of steps for each byte of a topic.
    pub fn cost(&self) -> usize {
        match self {
            Self::All | Self::Exact(_) => 1,
            Self::Template(template) => template.cost(),
            Self::Url(pattern) => pattern.cost(),
        }
    }

    /// `true` if it matches this topic.
    pub fn matches(&self, topic: &str) -> bool {
        match self {
            Self::All => true,
            Self::Exact(own) => **own == *topic,
            Self::Template(template) => template.matches(topic),
            Self::Url(pattern) => pattern.matches(&TopicUrl::new(topic)),
        }
    }
}

/// `true` if one of the selectors matches one of the topics.
pub fn any_matches(selectors: &[Selector], topics: &[Arc<str>]) -> bool {
    topics.iter().any(|topic| selectors.iter().any(|selector| selector.matches(topic)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_everything_a_template_or_a_name() {
        for (selector, topic, matches) in [
            ("*", "anything", true),
            ("a", "a", true),
            ("a", "A", false),
            ("", "", true),
            ("/books/{id}", "/books/1", true),
            ("/books/{id}", "/books/{id}", true),
            ("/books/{id}", "/books/1/reviews", false),
            ("/books/{", "/books/{", true),
            ("/books/{", "/books/", false),
            ("a*", "ab", false),
        ] {
            let found = Selector::new(selector);
            assert_eq!((found.matches(topic), found.text()), (matches, selector), "{selector} and {topic}");
        }
    }
}
