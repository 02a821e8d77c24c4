//! nginx's locations: their paths, and the order in which nginx selects one for a request.

use crate::commands::import::directive::Directive;
use crate::commands::import::nginx::request_uri::branches;
use crate::commands::import::site::escaped;

/// A location, with its priority in nginx.
#[derive(Clone)]
pub(super) struct Location {
    pub(super) paths: Vec<String>,
    pub(super) is_regex: bool,
    /// `true` if nginx tries no regular expression of the level above after it.
    pub(super) is_final: bool,
    pub(super) runs_php: bool,
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

    /// The text that its paths begin with, for a location without a regular expression.
    fn prefix(&self) -> &str {
        self.paths[0].trim_end_matches('*')
    }

    /// `false` if its paths certainly end like those of no script.
    pub(super) fn may_name_scripts(&self) -> bool {
        let first = self.paths[0].as_str();
        let Some(regex) = first.strip_prefix('~') else {
            return self.paths.len() > 1 || first.ends_with('*') || first.ends_with(".php");
        };
        let Some((_, extension)) = regex.strip_suffix('$').and_then(|regex| regex.rsplit_once("\\.")) else {
            return true;
        };
        extension.to_ascii_lowercase().contains("ph") || extension.contains(['.', '*', '+', '[', '\\'])
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
        // A prefix may end within a segment.
        let (below, or_end) = if first.ends_with('*') { ("", "") } else { ("/", "(?:/|$)") };
        let prefix = escaped(self.prefix().trim_end_matches('/'));
        match anchored {
            _ if prefix.is_empty() => pattern.to_owned(),
            Some(rest) if rest.starts_with(&prefix) && branches(rest).len() == 1 => pattern.to_owned(),
            None if !pattern.contains('^') => {
                format!("{case}^{prefix}{below}.*(?:{})", pattern.trim_start_matches("(?i)"))
            }
            _ => format!("{case}^(?={prefix}{or_end}).*?(?:{})", pattern.trim_start_matches("(?i)")),
        }
    }
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
        let is_longer =
            !other.is_regex && !own.parent.is_empty() && is_below(other, own.parent[0].trim_end_matches('*'));
        return comes_first || (other.is_final && (!other.is_regex || own.parent.is_empty())) || is_longer;
    }
    if other.is_regex && !other.parent.is_empty() {
        return own.is_whole() || other.parent[0].starts_with(own.prefix());
    }
    own.is_whole() || is_below(other, own.prefix()) || (other.is_regex && !own.is_final)
}

/// `true` if the first path of a location is longer than this one, and begins with it.
fn is_below(other: &Location, prefix: &str) -> bool {
    other.prefix().len() > prefix.len() && other.prefix().starts_with(prefix)
}

/// Returns the path that a named location leads to, if it contains only a rewrite or has a script for all requests.
pub(super) fn resolved<'a>(word: &'a str, server: &'a [Directive]) -> &'a str {
    let named = server.iter().find(|other| other.name == "location" && word.starts_with('@') && other.word(0) == word);
    let Some(inner) = named.map(Directive::inner) else { return word };
    let rewrite = inner.iter().find(|inner| inner.name == "rewrite").map(|rewrite| rewrite.word(1));
    rewrite.or_else(|| fixed_script(inner, root(server))).unwrap_or(word)
}

/// The root that a block sets.
pub(super) fn root(block: &[Directive]) -> Option<&str> {
    block.iter().find(|part| part.name == "root").map(|root| root.word(0).trim_end_matches('/'))
}

/// The script below this root that a location runs for all of its requests, whatever their path.
pub(super) fn fixed_script<'a>(inner: &'a [Directive], root: Option<&str>) -> Option<&'a str> {
    let is_name = |part: &&Directive| part.name == "fastcgi_param" && part.word(0) == "SCRIPT_FILENAME";
    let file = inner.iter().rfind(is_name)?.word(1);
    let below = |root: &str| file.strip_prefix(root).filter(|rest| rest.starts_with('/'));
    let script = below("$document_root").or_else(|| below("$realpath_root")).or_else(|| below(root?))?;
    (script.ends_with(".php") && !script.contains('$')).then_some(script)
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
    let below = || match path.strip_suffix('/') {
        Some("") => vec!["/*".to_owned()],
        Some(directory) => vec![directory.to_owned(), format!("{directory}/*")],
        None => vec![format!("{path}*")],
    };
    let regex = |regex: String| format!("~{}", parent.map_or(regex.clone(), |parent| parent.within(&regex)));
    let paths = match modifier {
        "=" => vec![path.to_owned()],
        "~" => vec![regex(path.to_owned())],
        "~*" => vec![regex(format!("(?i){path}"))],
        _ if path.starts_with('@') => vec![path.to_owned()],
        _ => below(),
    };
    let is_regex = modifier.starts_with('~');
    let is_final = match parent {
        Some(parent) => is_regex || !modifier.is_empty() || parent.is_final,
        None => matches!(modifier, "=" | "^~"),
    };
    let parent = parent.map(|parent| parent.paths.clone()).unwrap_or_default();
    let runs_php = directive.inner().iter().any(|part| part.name == "fastcgi_pass");
    Location { paths, is_regex, is_final, runs_php, parent }
}
