//! The policy for symbolic links on the paths of static files.

use std::path::PathBuf;

use crate::choice::Symlinks;
use crate::kind::Kind;
use crate::value::Value;
use howdah_rules::tree::{Node, Tree};

/// The symbolic links to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkPolicy {
    /// The kind of links.
    pub follow: Symlinks,
    /// With `Symlinks::Inside`: directories outside of the root into which root-owned links may lead.
    pub targets: Vec<PathBuf>,
}

impl From<Symlinks> for LinkPolicy {
    fn from(follow: Symlinks) -> Self {
        Self { follow, targets: Vec::new() }
    }
}

impl Value for LinkPolicy {
    const KIND: Kind = Kind::Links;

    fn from_node(node: &Node) -> Option<Self> {
        match &node.tree {
            Tree::Text(text) => Symlinks::from_text(text).map(Self::from),
            _ => Some(Self { follow: Symlinks::Inside, targets: Value::from_node(node)? }),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        match Symlinks::from_text(text) {
            Some(follow) => Some(follow.into()),
            None => Some(Self { follow: Symlinks::Inside, targets: Value::from_text(text)? }),
        }
    }

    fn show(&self) -> String {
        if self.targets.is_empty() { self.follow.show() } else { self.targets.show() }
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        self.targets.iter_mut().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_by_a_word_or_into_directories() {
        let read = |text: &str| Node::from_literal(text).and_then(|node| LinkPolicy::from_node(&node));
        assert_eq!(read(r#""never""#), Some(Symlinks::Never.into()));
        let listed = LinkPolicy { follow: Symlinks::Inside, targets: vec!["/usr/share".into()] };
        assert_eq!(read(r#"["/usr/share"]"#), Some(listed.clone()));
        assert_eq!(read(&listed.show()), Some(listed));
        assert_eq!(read(r#""inside""#), Some(Symlinks::Inside.into()));
        assert_eq!(read("1"), None);
    }
}
