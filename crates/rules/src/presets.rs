//! The rules of well-known applications: one file each in `presets/`, in the language of `[[rule]]`, for an application
//! whose root is the site's. Below another path, all of a preset's paths begin there.

use crate::tree::{self, Node};

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

/// The rules of an application, as they are read. They are in no file, so they have no line.
pub(crate) fn nodes(name: &str) -> Option<Vec<Node>> {
    let document = tree::parse(text(name)?).ok()?;
    let rules = document.entries().iter().find(|entry| entry.key == "rule")?;
    Some(rules.node.items().iter().map(|rule| Node { line: 0, ..rule.clone() }).collect())
}

#[cfg(test)]
#[path = "presets_tests.rs"]
mod tests;
