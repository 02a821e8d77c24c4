//! The rules of well-known applications: one file each in `presets/`, in the language of `[[rule]]`, for an application
//! whose root is the site's. Below another path, all of a preset's paths begin there.

use crate::tree::{Entry, Node, Value};

macro_rules! presets {
    ($($name:literal),+ $(,)?) => {
        /// The names of all applications.
        pub const NAMES: &[&str] = &[$($name),+];

        /// The text of an application's rules.
        #[must_use]
        pub fn text(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some(include_str!(concat!("../presets/", $name, ".toml"))),)+
                _ => None,
            }
        }
    };
}

presets! {
    "adminer", "bedrock", "cacti", "dokuwiki", "drupal", "icingaweb2", "joomla", "laravel", "mediawiki",
    "nextcloud", "phpldapadmin", "phpmyadmin", "phpsysinfo", "postfixadmin", "roundcube", "shaarli", "simplesamlphp",
    "symfony", "wordpress",
}

/// The rules of an application, as they are read.
pub(crate) fn nodes(name: &str) -> Option<Vec<Node>> {
    let table: toml::Table = text(name)?.parse().ok()?;
    let rules = table.get("rule").and_then(toml::Value::as_array)?;
    Some(rules.iter().map(node).collect())
}

pub(crate) fn node(value: &toml::Value) -> Node {
    let value = match value {
        toml::Value::String(text) => Value::Text(text.clone()),
        toml::Value::Integer(number) => Value::Integer(*number),
        toml::Value::Boolean(flag) => Value::Bool(*flag),
        toml::Value::Array(items) => Value::List(items.iter().map(node).collect()),
        toml::Value::Table(table) => {
            let entry = |(key, value): (&String, &toml::Value)| Entry { key: key.clone(), line: 0, node: node(value) };
            Value::Table(table.iter().map(entry).collect())
        }
        toml::Value::Float(_) | toml::Value::Datetime(_) => Value::Other,
    };
    Node { value, line: 0 }
}

#[cfg(test)]
#[path = "presets_tests.rs"]
mod tests;
