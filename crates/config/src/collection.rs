//! Values with several items: lists of one kind, and tables of names and values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::kind::Kind;
use crate::secret::of_variable;
use crate::value::Value;
use howdah_rules::tree::{Node, Tree, quoted};

impl<T: Value + 'static> Value for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);

    fn from_node(node: &Node) -> Option<Self> {
        match &node.tree {
            Tree::List(items) => items.iter().map(T::from_node).collect(),
            // A single item may be written without brackets.
            Tree::Text(_) | Tree::Integer(_) | Tree::Table(_) => T::from_node(node).map(|item| vec![item]),
            _ => None,
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(T::from_text).collect()
    }

    fn show(&self) -> String {
        format!("[{}]", self.iter().map(Value::show).collect::<Vec<_>>().join(", "))
    }

    fn more(&mut self, further: Self) {
        self.extend(further);
    }

    fn culprit(node: &Node) -> &Node {
        match &node.tree {
            Tree::List(items) => items.iter().find(|item| T::from_node(item).is_none()).unwrap_or(node),
            _ => node,
        }
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        self.iter_mut().flat_map(Value::paths).collect()
    }
}

impl Value for BTreeMap<String, String> {
    const KIND: Kind = Kind::Map;

    fn from_node(node: &Node) -> Option<Self> {
        let Tree::Table(entries) = &node.tree else { return None };
        entries.iter().map(|entry| Some((entry.key.clone(), scalar(&entry.node)?))).collect()
    }

    fn from_text(text: &str) -> Option<Self> {
        let (key, value) = text.split_once('=').unwrap_or((text, "1"));
        (!key.trim().is_empty()).then(|| Self::from([(key.trim().to_owned(), value.trim().to_owned())]))
    }

    fn show(&self) -> String {
        let key = |key: &str| {
            let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
            if bare { key.to_owned() } else { quoted(key) }
        };
        let entries =
            self.iter().map(|(k, v)| format!("{} = {}", key(k), quoted(&of_variable(k, v)))).collect::<Vec<_>>();
        if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
    }

    fn over(&mut self, stronger: Self) {
        self.extend(stronger);
    }

    fn more(&mut self, further: Self) {
        self.extend(further);
    }

    fn culprit(node: &Node) -> &Node {
        match &node.tree {
            Tree::Table(entries) => {
                entries.iter().map(|entry| &entry.node).find(|node| scalar(node).is_none()).unwrap_or(node)
            }
            _ => node,
        }
    }

    fn parts(&self) -> Vec<&str> {
        self.keys().map(String::as_str).collect()
    }
}

/// The text of a value in a table of names and values.
fn scalar(node: &Node) -> Option<String> {
    match &node.tree {
        Tree::Text(text) => Some(text.clone()),
        Tree::Integer(number) => Some(number.to_string()),
        Tree::Float(number) => Some(number.to_string()),
        Tree::Bool(flag) => Some(flag.to_string()),
        Tree::Date | Tree::List(_) | Tree::Table(_) => None,
    }
}
