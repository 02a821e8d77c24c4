//! nginx's locations: their paths, and which of them nginx selects for a request.

use crate::commands::import::directive::Directive;
use crate::commands::import::site::escaped;

/// A location, with its priority in nginx.
#[derive(Clone)]
pub(super) struct Location {
    pub(super) paths: Vec<String>,
    pub(super) is_regex: bool,
    /// `true` if nginx tries no regular expression of the level above after it.
    pub(super) is_final: bool,
    /// Paths of the enclosing location; empty in a server.
    parent: Vec<String>,
}

impl Location {
    /// `true` for locations that only other locations lead to.
    pub(super) fn is_named(&self) -> bool {
        self.paths.iter().any(|path| path.starts_with('@'))
    }

    pub(super) fn is_whole(&self) -> bool {
        !self.is_regex && self.paths.iter().any(|path| path == "/*")
    }

    /// Restricts a pattern to the paths of this location.
    pub(super) fn within(&self, pattern: &str) -> String {
        let (anchored, case) = match pattern.strip_prefix("(?i)") {
            Some(rest) => (rest.strip_prefix('^'), "(?i)"),
            None => (pattern.strip_prefix('^'), ""),
        };
        let first = self.paths[0].as_str();
        if let Some(regex) = first.strip_prefix('~') {
            let (regex, outer) = regex.strip_prefix("(?i)").map_or((regex, ""), |regex| (regex, "i"));
            // Its groups must not count: targets number those of the pattern.
            let look = format!("(?=(?{outer}:{}))", without_groups(regex));
            let look = if regex.starts_with('^') { look } else { look.replacen("(?=", "(?=.*", 1) };
            return match anchored {
                Some(rest) if !rest.contains('|') => format!("{case}^{look}{rest}"),
                _ => format!("{case}^{look}.*?(?:{})", pattern.trim_start_matches("(?i)")),
            };
        }
        let prefix = escaped(first.trim_end_matches('*').trim_end_matches('/'));
        match anchored {
            _ if prefix.is_empty() => pattern.to_owned(),
            Some(rest) if rest.starts_with(&prefix) && !has_alternatives(rest) => pattern.to_owned(),
            None if !pattern.contains('^') => {
                format!("{case}^{prefix}/.*(?:{})", pattern.trim_start_matches("(?i)"))
            }
            _ => format!("{case}^(?={prefix}(?:/|$)).*?(?:{})", pattern.trim_start_matches("(?i)")),
        }
    }
}

/// `true` if the pattern has a `|` outside of groups.
fn has_alternatives(pattern: &str) -> bool {
    let mut depth = 0_i32;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// Makes the groups of a pattern capture nothing.
fn without_groups(pattern: &str) -> String {
    let mut made = String::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        made.push(c);
        match c {
            '\\' => made.extend(chars.next()),
            '(' if chars.peek() != Some(&'?') => made.push_str("?:"),
            _ => {}
        }
    }
    made
}

/// All locations of a block in their order, each followed by those within it.
pub(super) fn all(block: &[Directive], parent: Option<&Location>) -> Vec<Location> {
    let mut found = Vec::new();
    for directive in block.iter().filter(|directive| directive.name == "location") {
        let own = location(directive, parent);
        found.push(own.clone());
        found.extend(all(directive.inner(), Some(&own)));
    }
    found
}

/// Paths that match this location but that nginx serves from another.
pub(super) fn excepted(own: &Location, all: &[Location]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_before = true;
    for other in all.iter().filter(|other| !other.is_named()) {
        is_before &= other.paths != own.paths || other.is_regex != own.is_regex;
        if wins(own, other, is_before) && !other.is_whole() {
            found.extend(other.paths.iter().filter(|path| !found.contains(path)).cloned().collect::<Vec<_>>());
        }
    }
    found
}

fn wins(own: &Location, other: &Location, is_before: bool) -> bool {
    if other.paths == own.paths || own.parent == other.paths {
        return false;
    }
    if !other.parent.is_empty() && other.parent == own.paths {
        return true;
    }
    if own.is_regex {
        let is_sibling = own.parent == other.parent;
        // A regular expression within another location comes before those of the server.
        let comes_first = other.is_regex && is_before && (is_sibling || own.parent.is_empty());
        let is_longer = !other.is_regex && !own.parent.is_empty() && is_below(other, &own.parent);
        return comes_first || (other.is_final && (!other.is_regex || own.parent.is_empty())) || is_longer;
    }
    if other.is_regex && !other.parent.is_empty() {
        return own.is_whole() || other.parent[0].starts_with(&own.paths[0]);
    }
    own.is_whole() || is_below(other, &own.paths) || (other.is_regex && !own.is_final)
}

/// `true` if the first path of a location is longer than these paths, and begins with them.
fn is_below(other: &Location, paths: &[String]) -> bool {
    other.paths[0].len() > paths[0].len() && other.paths[0].starts_with(&paths[0])
}

/// Returns the path that a named location leads to, if it contains only a rewrite.
pub(super) fn resolved<'a>(word: &'a str, server: &'a [Directive]) -> &'a str {
    let named = server.iter().find(|other| other.name == "location" && word.starts_with('@') && other.word(0) == word);
    let rewrite = named.and_then(|named| named.inner().iter().find(|inner| inner.name == "rewrite"));
    rewrite.map_or(word, |rewrite| rewrite.word(1))
}

/// Returns the paths of a location, and its priority in nginx.
pub(super) fn location(directive: &Directive, parent: Option<&Location>) -> Location {
    let (modifier, path) = match directive.word(0) {
        word @ ("=" | "~" | "~*" | "^~") => (word, directive.word(1)),
        // `location ~/a` is a regular expression, too.
        word if word.starts_with("~*") => ("~*", &word[2..]),
        word if word.starts_with('~') => ("~", &word[1..]),
        path => ("", path),
    };
    let below = || {
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() { vec!["/*".to_owned()] } else { vec![path.to_owned(), format!("{path}/*")] }
    };
    let regex = |regex: String| format!("~{}", parent.map_or(regex.clone(), |parent| parent.within(&regex)));
    let paths = match modifier {
        "=" => vec![path.to_owned()],
        "~" => vec![regex(path.to_owned())],
        "~*" => vec![regex(format!("(?i){path}"))],
        _ if path.starts_with('@') => vec![path.to_owned()],
        // Treated as a directory: a prefix that ends within a segment has no counterpart.
        _ => below(),
    };
    let is_regex = modifier.starts_with('~');
    let is_final = match parent {
        Some(parent) => is_regex || !modifier.is_empty() || parent.is_final,
        None => matches!(modifier, "=" | "^~"),
    };
    let parent = parent.map(|parent| parent.paths.clone()).unwrap_or_default();
    Location { paths, is_regex, is_final, parent }
}
