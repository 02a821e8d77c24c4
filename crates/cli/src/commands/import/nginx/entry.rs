//! The entries of nginx's `map`, as conditions of rules.

use crate::commands::import::directive::Directive;
use crate::commands::import::nginx::condition::{alternatives, request_part};
use crate::commands::import::nginx::request_uri::is_of_path;
use crate::commands::import::site::{Rule, escaped, fits_empty, joined};
use std::net::IpAddr;

/// Maximum number of regular expressions; each entry excludes those before it.
const MAX_EXPRESSIONS: usize = 64;

/// A value of the variable, and the conditions under which it has it. Those of several entries never hold together.
pub(super) struct Entry {
    pub(super) value: String,
    pub(super) conditions: Rule,
}

/// The part of a request that a map looks at.
enum Subject {
    /// With `true`, nginx's path has the query, which paths of rules do not have.
    Path(bool),
    Host,
    Method,
    Client,
    Https,
    /// The key of a header or of a parameter of the query.
    Part(String),
}

/// The pattern of an entry, with which values of the source are compared.
enum Key {
    /// In any case.
    Text(String),
    /// A host name with a wildcard, in a map with `hostnames`.
    Host(String),
    Regex(String),
    Default,
}

/// Converts the block of a map of this source.
///
/// # Errors
/// The reason if it has no counterpart.
pub(super) fn entries(source: &str, block: &[Directive]) -> Result<Vec<Entry>, String> {
    let subject = Subject::of(source).ok_or_else(|| format!("rules have no condition for {source}"))?;
    let keys = keys(block)?;
    let mut made: Vec<(Vec<String>, Entry)> = Vec::new();
    for (key, value) in keys {
        let patterns = subject.patterns(&key)?;
        let mut conditions = Rule::default();
        // Texts exclude each other.
        if !matches!(key, Key::Text(_)) {
            let before = made.iter().filter(|(_, other)| other.value != value || matches!(key, Key::Default));
            let before: Vec<String> = before.flat_map(|(patterns, _)| patterns.clone()).collect();
            if !subject.exclude(&before, &mut conditions) {
                continue;
            }
        }
        subject.require(&patterns, &mut conditions);
        made.push((patterns, Entry { value: subject.named(&key, value)?, conditions }));
    }
    Ok(made.into_iter().map(|(_, entry)| entry).collect())
}

/// The keys with their values, in the order in which nginx chooses. The default, the last one, is always there.
fn keys(block: &[Directive]) -> Result<Vec<(Key, String)>, String> {
    let has_hosts = block.iter().any(|entry| entry.name == "hostnames" && entry.words.is_empty());
    let mut keys = Vec::new();
    for entry in block {
        match (&*entry.name, entry.words.as_slice()) {
            ("hostnames" | "volatile", []) => {}
            ("include", _) => return Err("a file that it includes cannot be read".to_owned()),
            (name, [value]) => keys.push((Key::new(name, has_hosts), value.clone())),
            (name, _) => return Err(format!("{name} is no entry")),
        }
    }
    if !keys.iter().any(|(key, _)| matches!(key, Key::Default)) {
        keys.push((Key::Default, String::new()));
    }
    if keys.iter().filter(|(key, _)| matches!(key, Key::Host(_) | Key::Regex(_))).count() > MAX_EXPRESSIONS {
        return Err(format!("it has more than {MAX_EXPRESSIONS} regular expressions"));
    }
    keys.sort_by_key(|(key, _)| match key {
        Key::Text(_) => (0, 0),
        // Names that begin with the wildcard come first, of these the longest.
        Key::Host(host) => (if host.ends_with('*') { 2 } else { 1 }, usize::MAX - host.len()),
        Key::Regex(_) => (3, 0),
        Key::Default => (4, 0),
    });
    Ok(keys)
}

impl Key {
    fn new(name: &str, has_hosts: bool) -> Self {
        let is_wild = name.starts_with('.') || name.starts_with("*.") || name.ends_with(".*");
        match name {
            "default" => Self::Default,
            _ if name.starts_with("~*") => Self::Regex(format!("(?i){}", &name[2..])),
            _ if name.starts_with('~') => Self::Regex(name[1..].to_owned()),
            _ if has_hosts && is_wild => Self::Host(name.to_ascii_lowercase()),
            // A backslash protects a text that looks like another key.
            _ => Self::Text(name.strip_prefix('\\').unwrap_or(name).to_owned()),
        }
    }
}

impl Subject {
    fn of(source: &str) -> Option<Self> {
        Some(match source {
            "$uri" | "$document_uri" => Self::Path(false),
            "$request_uri" => Self::Path(true),
            "$host" | "$http_host" => Self::Host,
            "$request_method" => Self::Method,
            "$remote_addr" => Self::Client,
            "$scheme" | "$https" => Self::Https,
            other => Self::Part(request_part(other)?),
        })
    }

    /// The values of the condition for a key; none for the default, and `""` for an empty part.
    fn patterns(&self, key: &Key) -> Result<Vec<String>, String> {
        let any_case = |text: &str| format!("~(?i)^{}$", escaped(text));
        let no_counterpart = |text: &str| Err(format!("rules have no condition for {text}"));
        Ok(vec![match (self, key) {
            (_, Key::Default) => return Ok(Vec::new()),
            (Self::Path(true), Key::Text(text) | Key::Regex(text)) if text.contains('?') && is_of_query(key) => {
                return Err(format!("paths of rules have no query: {text}"));
            }
            (Self::Path(true), Key::Regex(regex)) if !is_of_path(regex) => {
                return Err(format!("~{regex} may match in the query, which paths of rules do not have: use $uri"));
            }
            (Self::Path(_), Key::Text(path)) if path.contains(char::is_alphabetic) => any_case(path),
            (Self::Path(_), Key::Text(path)) if path.starts_with('/') && !path.contains('*') => path.clone(),
            (Self::Host, Key::Text(host)) if !host.contains('*') => host.to_ascii_lowercase(),
            (Self::Host, Key::Host(host)) => match host.strip_prefix('.') {
                Some(domain) => format!("~(?i)^(?:.+\\.)?{}$", escaped(domain)),
                None if host.ends_with('*') => format!("~(?i)^{}.+$", escaped(host.trim_end_matches('*'))),
                None => host.clone(),
            },
            (Self::Method, Key::Text(method)) if method.bytes().all(|b| b.is_ascii_alphabetic()) => {
                method.to_ascii_uppercase()
            }
            (Self::Method, Key::Regex(regex)) => {
                return alternatives(regex).map_or_else(|| no_counterpart(regex), Ok);
            }
            (Self::Client, Key::Text(client)) if client.parse::<IpAddr>().is_ok() => client.clone(),
            (Self::Https, Key::Text(text)) => match text.as_str() {
                "https" | "on" => "true".to_owned(),
                "http" | "" => "false".to_owned(),
                _ => return no_counterpart(text),
            },
            (Self::Part(_), Key::Text(text)) if text.is_empty() => String::new(),
            (Self::Part(_), Key::Text(text)) => any_case(text),
            // A header that is not there is an empty text for nginx, and fits no pattern here.
            (Self::Part(_), Key::Regex(regex)) if fits_empty(regex) => {
                return Err(format!("~{regex} also matches a missing variable"));
            }
            (Self::Path(_) | Self::Host | Self::Part(_), Key::Regex(regex)) => format!("~{regex}"),
            (_, Key::Text(text) | Key::Host(text) | Key::Regex(text)) => return no_counterpart(text),
        }])
    }

    fn key(&self) -> &str {
        match self {
            Self::Path(_) => "path",
            Self::Host => "host",
            Self::Method => "method",
            Self::Client => "client",
            Self::Https => "https",
            Self::Part(key) => key,
        }
    }

    fn require(&self, patterns: &[String], rule: &mut Rule) {
        match (self, patterns) {
            (_, []) => {}
            (Self::Path(_), _) => rule.paths = patterns.to_vec(),
            (Self::Https, [on, ..]) => rule.when.write("https", on),
            (Self::Part(key), [one]) if one.is_empty() => rule.when.write(key, "false"),
            (Self::Part(key), _) => rule.when.set(key, &joined(patterns)),
            _ => rule.when.set_list(self.key(), patterns),
        }
    }

    /// Returns `false` if nothing is left.
    fn exclude(&self, patterns: &[String], rule: &mut Rule) -> bool {
        let (empty, others): (Vec<String>, Vec<String>) = patterns.iter().cloned().partition(String::is_empty);
        match self {
            _ if patterns.is_empty() => {}
            Self::Path(_) => rule.except = others,
            Self::Https => match others.as_slice() {
                [on] => rule.when.write("https", if on == "true" { "false" } else { "true" }),
                _ => return false,
            },
            Self::Part(key) => {
                if !empty.is_empty() {
                    rule.when.write(key, "true");
                }
                if !others.is_empty() {
                    rule.unless.set(key, &joined(&others));
                }
            }
            _ => rule.unless.set_list(self.key(), &others),
        }
        true
    }

    /// The value with the names of groups as targets of rules write them. Only those of a path can be named there.
    fn named(&self, key: &Key, value: String) -> Result<String, String> {
        let Key::Regex(regex) = key else { return Ok(value) };
        let names = regex.split("(?").skip(1).filter_map(|rest| {
            let rest = rest.strip_prefix('P').unwrap_or(rest).strip_prefix('<')?;
            rest.split_once('>').map(|(name, _)| name).filter(|name| !name.starts_with(['=', '!']))
        });
        let mut made = value;
        let mut uses = (1..10).any(|group| made.contains(&format!("${group}")));
        for name in names {
            let own = super::constant::with_value(&made, &format!("${name}"), &format!("${{{name}}}"));
            uses |= own != made;
            made = own;
        }
        match self {
            Self::Path(_) => Ok(made),
            _ if uses => Err("its values name groups, which targets of rules know of a path alone".to_owned()),
            _ => Ok(made),
        }
    }
}

/// `true` for a text with a query, and for a pattern with an escaped question mark.
fn is_of_query(key: &Key) -> bool {
    match key {
        Key::Regex(regex) => regex.contains("\\?") || regex.contains("[?]"),
        _ => true,
    }
}
