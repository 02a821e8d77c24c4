//! nginx's locations: their paths, and which of them nginx selects for a request.

use crate::commands::import::directive::Directive;

/// A location, with its priority in nginx.
pub(super) struct Location {
    pub(super) paths: Vec<String>,
    pub(super) is_regex: bool,
    /// `true` if nginx tries no regular expression after it.
    pub(super) is_final: bool,
}

impl Location {
    /// `true` for locations that only other locations lead to.
    pub(super) fn is_named(&self) -> bool {
        self.paths.iter().any(|path| path.starts_with('@'))
    }

    pub(super) fn is_whole(&self) -> bool {
        !self.is_regex && self.paths.iter().any(|path| path == "/*")
    }
}

/// Paths that match this location but that nginx serves from another.
pub(super) fn excepted(own: &Location, all: &[Location]) -> Vec<String> {
    let others = all.iter().filter(|other| !other.is_named());
    let mut found: Vec<String> = Vec::new();
    let mut is_before = true;
    for other in others {
        is_before &= other.paths != own.paths || other.is_regex != own.is_regex;
        let wins = if own.is_regex {
            (other.is_regex && is_before) || other.is_final
        } else {
            let is_longer = other.paths[0].len() > own.paths[0].len() && other.paths[0].starts_with(&own.paths[0]);
            other.paths != own.paths && (own.is_whole() || is_longer || (other.is_regex && !own.is_final))
        };
        if wins && !other.is_whole() {
            found.extend(other.paths.iter().cloned());
        }
    }
    found
}

/// Returns the path that a named location leads to, if it contains only a rewrite.
pub(super) fn resolved<'a>(word: &'a str, server: &'a [Directive]) -> &'a str {
    let named = server.iter().find(|other| other.name == "location" && word.starts_with('@') && other.word(0) == word);
    let rewrite = named.and_then(|named| named.inner().iter().find(|inner| inner.name == "rewrite"));
    rewrite.map_or(word, |rewrite| rewrite.word(1))
}

/// Returns the paths of a location, and its priority in nginx.
pub(super) fn location(directive: &Directive) -> Location {
    let (modifier, path) = match directive.word(0) {
        word @ ("=" | "~" | "~*" | "^~") => (word, directive.word(1)),
        path => ("", path),
    };
    let below = || {
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() { vec!["/*".to_owned()] } else { vec![path.to_owned(), format!("{path}/*")] }
    };
    let paths = match modifier {
        "=" => vec![path.to_owned()],
        "~" => vec![format!("~{path}")],
        "~*" => vec![format!("~(?i){path}")],
        _ if path.starts_with('@') => vec![path.to_owned()],
        // Treated as a directory: a prefix that ends within a segment has no counterpart.
        _ => below(),
    };
    Location { paths, is_regex: modifier.starts_with('~'), is_final: matches!(modifier, "=" | "^~") }
}
