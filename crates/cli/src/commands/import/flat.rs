//! Flattens trees of keys (JSON, YAML) to directives: the path of keys is the name, such as `http.pool.num_workers`,
//! and the value is its word.

use super::directive::Directive;
use serde_json::Value;

/// Returns the leaves of a tree, in order. A list of texts and numbers becomes one directive with several words.
pub(super) fn leaves(tree: &Value, line: impl Fn(&str) -> usize + Copy) -> Vec<Directive> {
    let mut all = Vec::new();
    add(tree, "", line, &mut all);
    all
}

fn add(tree: &Value, path: &str, line: impl Fn(&str) -> usize + Copy, all: &mut Vec<Directive>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match tree {
        Value::Object(map) => map.iter().for_each(|(key, inner)| add(inner, &below(key), line, all)),
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            items.iter().enumerate().for_each(|(at, item)| add(item, &below(&at.to_string()), line, all));
        }
        Value::Array(items) => all.push(leaf(path, items.iter().map(text).collect(), line(path))),
        value => all.push(leaf(path, vec![text(value)], line(path))),
    }
}

fn leaf(name: &str, words: Vec<String>, line: usize) -> Directive {
    Directive { name: name.to_owned(), words, block: None, line }
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
