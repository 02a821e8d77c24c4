//! Trees of keys (JSON, YAML) as directives: the path of keys is the name, `http.pool.num_workers`, the value its word.

use super::directive::Directive;
use serde_json::Value;

/// The leaves of a tree, in its order. Lists of texts and numbers are the words of one.
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
