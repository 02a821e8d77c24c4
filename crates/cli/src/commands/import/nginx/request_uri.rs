//! nginx's `$request_uri`, which has the path and the query, as rules, whose conditions compare each alone.

use crate::commands::import::site::{Rule, fits_empty};

/// Rules for the requests that a refusing condition on `$request_uri` is for and that its rule, which compares the path,
/// misses. They may be for more requests. Empty for other conditions.
pub(super) fn further(words: &[&str], base: &Rule) -> Vec<Rule> {
    match words {
        ["$request_uri", "~", regex] => in_query(regex, base),
        ["$request_uri", "~*", regex] => in_query(&format!("(?i){regex}"), base),
        // A path that matches to its end no longer does with a query.
        ["$request_uri", "!=", path] if !path.contains(['*', '?']) => vec![rule(base, Some((*path).to_owned()), None)],
        ["$request_uri", "!~" | "!~*", regex] if regex.contains('$') || regex.contains("(?!") => {
            let case = if words[1] == "!~" { "" } else { "(?i)" };
            vec![rule(base, Some(format!("~{case}{regex}")), None)]
        }
        _ => Vec::new(),
    }
}

/// Rules with the conditions of `base` for matches that are in the query, or begin in the path and end in the query.
fn in_query(regex: &str, base: &Rule) -> Vec<Rule> {
    let (case, regex) = regex.strip_prefix("(?i)").map_or(("", regex), |rest| ("(?i)", rest));
    let mut rules = Vec::new();
    for branch in branches(regex) {
        if !branch.starts_with('^') {
            rules.push(rule(base, None, Some(format!("~{case}{branch}"))));
        }
        for (path, query) in crossings(branch) {
            rules.push(rule(base, Some(format!("~{case}{path}")), query.map(|query| format!("~{case}{query}"))));
        }
    }
    rules
}

/// `true` if a pattern of path and query certainly ends in the path.
pub(super) fn is_of_path(regex: &str) -> bool {
    in_query(regex, &Rule::default()).is_empty()
}

/// Without a pattern for the path, the query alone decides; without one for the query, there has to be one.
fn rule(base: &Rule, path: Option<String>, query: Option<String>) -> Rule {
    let mut rule = base.conditions();
    rule.paths.extend(path);
    match query {
        Some(query) => rule.when.set("query", &query),
        None => rule.when.write("query", "true"),
    }
    rule
}

/// All ways in which one branch of a pattern can match the question mark: the pattern before it, and the pattern after
/// it, `None` if nothing has to follow. A group that can match it is not divided: then the patterns are what is before
/// the group and what is after it.
fn crossings(branch: &str) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < branch.len() {
        let atom = atom(&branch[at..]);
        let quantifier = quantifier(&branch[at + atom..]);
        let (before, text, rest) = (&branch[..at], &branch[at..at + atom], &branch[at + atom + quantifier..]);
        let may_miss = branch[at + atom..].starts_with(['*', '?', '{']) || fits_empty(text);
        let is_one = quantifier == 0 && !text.starts_with('(');
        if can_be_question_mark(text) {
            match rest {
                // The path matches already.
                "" | "$" if may_miss => {}
                "" | "$" => found.push((format!("{before}$"), None)),
                _ if is_one => found.push((format!("{before}$"), Some(format!("^{rest}")))),
                _ => found.push((before.to_owned(), Some(rest.to_owned()))),
            }
        }
        at += atom + quantifier;
    }
    found
}

/// The alternatives of a pattern outside of its groups.
pub(super) fn branches(regex: &str) -> Vec<&str> {
    let (mut from, mut at, mut found) = (0, 0, Vec::new());
    while at < regex.len() {
        if regex[at..].starts_with('|') {
            found.push(&regex[from..at]);
            from = at + 1;
        }
        at += atom(&regex[at..]);
    }
    found.push(&regex[from..]);
    found
}

/// Length of the first character, escape, class or group of a pattern.
fn atom(regex: &str) -> usize {
    let first = regex.chars().next().map_or(0, char::len_utf8);
    let ends_class = |from: usize| {
        let mut chars = regex.char_indices().skip_while(|(at, _)| *at < from);
        let mut is_first = true;
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => drop(chars.next()),
                ']' if !is_first => return at + 1,
                '^' if is_first => continue,
                _ => {}
            }
            is_first = false;
        }
        regex.len()
    };
    match regex.as_bytes().first() {
        Some(b'\\') => first + regex[first..].chars().next().map_or(0, char::len_utf8),
        Some(b'[') => ends_class(1),
        Some(b'(') => {
            let mut at = 1;
            while at < regex.len() && !regex[at..].starts_with(')') {
                at += atom(&regex[at..]);
            }
            (at + 1).min(regex.len())
        }
        _ => first,
    }
}

/// Length of the quantifier at the start of a text.
fn quantifier(rest: &str) -> usize {
    let length = match rest.as_bytes().first() {
        Some(b'*' | b'+' | b'?') => 1,
        Some(b'{') => rest.find('}').map_or(0, |end| end + 1),
        _ => return 0,
    };
    length + usize::from(length > 0 && matches!(rest.as_bytes().get(length), Some(b'?' | b'+')))
}

/// `true` if an atom can match a question mark.
fn can_be_question_mark(atom: &str) -> bool {
    match atom.as_bytes() {
        [b'.'] | [b'\\', b'?' | b'S' | b'W' | b'D' | b'N'] => true,
        [b'[', b'^', rest @ ..] => !rest.contains(&b'?'),
        [b'[', rest @ ..] => rest.contains(&b'?') || atom.contains("\\W") || atom.contains("\\S"),
        [b'(', b'?', b'=' | b'!' | b'<', ..] => false,
        [b'(', inner @ ..] => {
            let inner = std::str::from_utf8(&inner[..inner.len().saturating_sub(1)]).unwrap_or_default();
            let inner = inner.strip_prefix("?:").unwrap_or(inner);
            let mut at = 0;
            while at < inner.len() {
                let next = self::atom(&inner[at..]);
                if can_be_question_mark(&inner[at..at + next]) {
                    return true;
                }
                at += next;
            }
            false
        }
        _ => false,
    }
}
