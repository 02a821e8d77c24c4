//! The rules of well-known applications: one file each in `presets/`, in the syntax of `[[rule]]`, for an application
//! at the site's root. If the application is mounted below another path, that path is prepended to all of the preset's
//! paths.

use crate::tree::{self, Node};

macro_rules! presets {
    ($($name:literal),+ $(,)?) => {
        /// The names of all applications.
        pub const NAMES: &[&str] = &[$($name),+];

        /// The text of an application's rules.
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

/// Parses the rules of an application. Their line is 0, as they are not from a user's file.
pub(crate) fn nodes(name: &str) -> Option<Vec<Node>> {
    let document = tree::parse(text(name)?).ok()?;
    let rules = document.entries().iter().find(|entry| entry.key == "rule")?;
    Some(rules.node.items().iter().map(|rule| Node { line: 0, ..rule.clone() }).collect())
}

#[cfg(test)]
#[path = "presets_tests.rs"]
mod tests;
