//! Topic selectors: the topics that a subscriber wants or a token allows.

use crate::template::{MAX_SIZE, Template};
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
}

impl Selector {
    /// Parses a selector. A text that is not a URI template, or has too many expressions, matches only the topic of
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

    /// Its text.
    pub fn text(&self) -> &str {
        match self {
            Self::All => "*",
            Self::Exact(topic) => topic,
            Self::Template(template) => template.text(),
        }
    }

    /// Maximum number of bytes that it keeps in memory.
    pub fn size(&self) -> usize {
        let compiled = if matches!(self, Self::Template(_)) { MAX_SIZE } else { 0 };
        size_of::<Self>() + self.text().len() + compiled
    }

    /// Maximum number of steps for each byte of a topic.
    pub fn cost(&self) -> usize {
        if let Self::Template(template) = self { template.cost() } else { 1 }
    }

    /// `true` if it matches this topic.
    pub fn matches(&self, topic: &str) -> bool {
        match self {
            Self::All => true,
            Self::Exact(own) => **own == *topic,
            Self::Template(template) => template.matches(topic),
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
