//! Patterns of paths and of other texts. In a plain pattern, `*` matches any text, including slashes; everything else
//! is literal.

use crate::host::{HostRoom, normal_host};
use crate::regex::{Captures, Regex, TooManySteps};
use std::net::Ipv6Addr;

/// A pattern of decoded, normalized paths.
#[derive(Debug, Clone, PartialEq)]
pub enum PathPattern {
    /// Exactly this path.
    Exact(Box<str>),
    /// Every path with this prefix, which ends in a slash.
    Prefix(Box<str>),
    /// A pattern with stars in other positions.
    Glob(Glob),
    /// A regular expression.
    Regex(Regex),
}

impl PathPattern {
    /// Parses a pattern in the syntax of `path`.
    ///
    /// # Errors
    /// If the pattern cannot match any path.
    pub fn new(text: &str) -> Result<Self, String> {
        if !text.starts_with(['/', '*']) {
            return Err(format!("{text:?} can match no path: begin it with / or *"));
        }
        if !text.contains('*') {
            return Ok(Self::Exact(text.into()));
        }
        match text.strip_suffix('*') {
            Some(prefix) if prefix.ends_with('/') && !prefix.contains('*') => Ok(Self::Prefix(prefix.into())),
            _ => Ok(Self::Glob(Glob::new(text))),
        }
    }

    /// `true` if a path matches.
    ///
    /// # Errors
    /// If a regular expression took too many steps.
    pub fn matches(&self, path: &[u8]) -> Result<bool, TooManySteps> {
        match self {
            Self::Exact(text) => Ok(text.as_bytes() == path),
            Self::Prefix(text) => Ok(path.starts_with(text.as_bytes())),
            Self::Glob(glob) => Ok(glob.matches(path)),
            Self::Regex(regex) => regex.is_match(path),
        }
    }

    /// The captures of stars or groups, if the path matches. Group 0 is the path, or the match of a regular expression.
    ///
    /// # Errors
    /// If a regular expression took too many steps.
    pub fn captures(&self, path: &[u8]) -> Result<Option<Captures>, TooManySteps> {
        match self {
            Self::Exact(text) => Ok((text.as_bytes() == path).then(|| Captures::of([path].into_iter()))),
            Self::Prefix(text) => {
                let rest = path.strip_prefix(text.as_bytes());
                Ok(rest.map(|rest| Captures::of([path, rest].into_iter())))
            }
            Self::Glob(glob) => Ok(glob.captures(path)),
            Self::Regex(regex) => regex.captures(path),
        }
    }

    /// Number of groups, including group 0.
    pub fn groups(&self) -> usize {
        match self {
            Self::Exact(_) => 1,
            Self::Prefix(_) => 2,
            Self::Glob(glob) => glob.parts.len(),
            Self::Regex(regex) => regex.groups(),
        }
    }

    /// The part of the path that `alias` replaces by a directory: an exact path, or a prefix without `/*`.
    pub fn mount(&self) -> Option<&str> {
        match self {
            Self::Exact(text) => Some(text),
            Self::Prefix(text) => Some(text.trim_end_matches('/')),
            Self::Glob(_) | Self::Regex(_) => None,
        }
    }

    /// The pattern's source text.
    pub fn text(&self) -> String {
        match self {
            Self::Exact(text) => text.to_string(),
            Self::Prefix(text) => format!("{text}*"),
            Self::Glob(glob) => glob.text(),
            Self::Regex(regex) => format!("~{}", regex.as_str()),
        }
    }
}

/// A text with stars as wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    /// The literal parts between the stars: at least one.
    parts: Box<[Box<str>]>,
}

impl Glob {
    /// Parses a pattern.
    pub fn new(text: &str) -> Self {
        let mut parts: Vec<&str> = text.split('*').collect();
        // Consecutive stars match the same as one.
        let last = parts.len() - 1;
        let mut at = 0;
        parts.retain(|part| {
            at += 1;
            !part.is_empty() || at == 1 || at == last + 1
        });
        Self { parts: parts.into_iter().map(Box::from).collect() }
    }

    /// The pattern's text; consecutive stars are one.
    pub fn text(&self) -> String {
        self.parts.join("*")
    }

    /// `true` if a text matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.each(text, |a, b| a == b, |_| ())
    }

    /// `true` if a text matches, ignoring case.
    pub fn matches_any_case(&self, text: &[u8]) -> bool {
        self.each(text, |a, b| a.eq_ignore_ascii_case(b), |_| ())
    }

    fn captures(&self, text: &[u8]) -> Option<Captures> {
        let mut stars = vec![text];
        self.each(text, |a, b| a == b, |star| stars.push(star)).then(|| Captures::of(stars.into_iter()))
    }

    /// Every star but the last matches as little as possible. Takes at worst time proportional to text times pattern.
    fn each<'t>(&self, text: &'t [u8], same: impl Fn(&[u8], &[u8]) -> bool, mut star: impl FnMut(&'t [u8])) -> bool {
        let Some((first, rest)) = self.parts.split_first() else { return text.is_empty() };
        let begins = text.get(..first.len()).is_some_and(|start| same(start, first.as_bytes()));
        let Some((last, middle)) = rest.split_last() else { return begins && text.len() == first.len() };
        if !begins {
            return false;
        }
        let mut left = &text[first.len()..];
        for part in middle {
            let Some(at) = left.windows(part.len()).position(|window| same(window, part.as_bytes())) else {
                return false;
            };
            star(&left[..at]);
            left = &left[at + part.len()..];
        }
        let Some(end) = left.len().checked_sub(last.len()) else { return false };
        star(&left[..end]);
        same(&left[end..], last.as_bytes())
    }
}

/// A pattern of a host, a header, a query or its parameter: plain text with stars, ignoring case, or `~` and a regular
/// expression; or only its presence or absence.
#[derive(Debug, Clone, PartialEq)]
pub enum TextPattern {
    /// Plain text with stars.
    Glob(Glob),
    /// A regular expression.
    Regex(Regex),
    /// Any value, if there is one.
    Present,
    /// No value.
    Absent,
}

impl TextPattern {
    /// Parses a pattern in the syntax of rules.
    ///
    /// # Errors
    /// The error in its regular expression.
    pub fn new(text: &str) -> Result<Self, String> {
        match text.strip_prefix('~') {
            Some(pattern) => Regex::new(pattern.trim_start()).map(Self::Regex),
            None => Ok(Self::Glob(Glob::new(text))),
        }
    }

    /// Parses a pattern of hosts, which is compared with normalized hosts (`host::normal_host`).
    ///
    /// # Errors
    /// The error in the pattern.
    pub fn host(text: &str) -> Result<Self, String> {
        if let Some(pattern) = text.strip_prefix('~') {
            // Normalized hosts are in lower case.
            let any_case = if pattern.bytes().any(|b| b.is_ascii_uppercase()) { "(?i)" } else { "" };
            return Regex::new(&format!("{any_case}{}", pattern.trim_start())).map(Self::Regex);
        }
        if text.contains('*') || text.is_empty() {
            return Ok(Self::Glob(Glob::new(text.strip_suffix('.').unwrap_or(text))));
        }
        let bare = text.parse::<Ipv6Addr>().map(|address| format!("[{address}]"));
        let text = bare.as_deref().unwrap_or(text);
        let mut room: HostRoom = [0; _];
        let has_port = text.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
        match normal_host(text.as_bytes(), &mut room).and_then(|host| std::str::from_utf8(host).ok()) {
            Some(host) if !has_port => Ok(Self::Glob(Glob::new(host))),
            Some(host) => {
                Err(format!("{text:?} can match no host: hosts are compared without their port; write {host:?}"))
            }
            None => Err(format!("{text:?} is not a host")),
        }
    }

    /// `true` if a value matches; `None` for a missing value.
    ///
    /// # Errors
    /// If a regular expression took too many steps.
    pub fn matches(&self, value: Option<&[u8]>) -> Result<bool, TooManySteps> {
        match (self, value) {
            (Self::Present, value) => Ok(value.is_some()),
            (Self::Absent, value) => Ok(value.is_none()),
            (_, None) => Ok(false),
            (Self::Glob(glob), Some(value)) => Ok(glob.matches_any_case(value)),
            (Self::Regex(regex), Some(value)) => regex.is_match(value),
        }
    }

    /// The pattern's source text.
    pub fn text(&self) -> String {
        match self {
            Self::Glob(glob) => glob.text(),
            Self::Regex(regex) => format!("~{}", regex.as_str()),
            Self::Present => "true".to_owned(),
            Self::Absent => "false".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, path, fits) in [
            ("/", "/", true),
            ("/", "/a", false),
            ("/*", "/", true),
            ("/a/*", "/a/", true),
            ("/a/*", "/a", false),
            ("/a/*", "/a/b/c.php", true),
            ("*.php", "/a/b.php", true),
            ("*.php", "/a.php/b", false),
            ("/a*b*c", "/axxbxbyc", true),
            ("/a*b*c", "/axxbxby", false),
            ("/a**", "/a", true),
            ("/x**y", "/xy", true),
            ("/*/*.php", "/a.php", false),
            ("/a*a", "/a", false),
            ("*", "/", true),
            ("/wp-*", "/wp-admin", true),
        ] {
            assert_eq!(PathPattern::new(pattern).unwrap().matches(path.as_bytes()), Ok(fits), "{pattern} {path}");
        }
        assert!(PathPattern::new("a/*").is_err());
    }

    #[test]
    fn stars_are_groups() {
        let captures = |pattern: &str, path: &str| {
            let found = PathPattern::new(pattern).unwrap().captures(path.as_bytes()).unwrap()?;
            Some((1..4).map(|at| String::from_utf8(found.number(at).to_vec()).unwrap()).collect::<Vec<_>>().join("|"))
        };
        assert_eq!(captures("/old/*", "/old/a/b").as_deref(), Some("a/b||"));
        assert_eq!(captures("/*/x-*.html", "/a/b/x-1.html").as_deref(), Some("a/b|1|"));
        assert_eq!(captures("/old/*", "/new/a"), None);
    }

    #[test]
    fn other_texts_fit_in_any_case() {
        for (pattern, value, fits) in [
            ("*.Example.org", Some("www.example.ORG"), true),
            ("*.example.org", Some("example.org"), false),
            ("~bot|(?i)spider", Some("a SPIDER"), true),
            ("~bot", Some("a spider"), false),
            ("*", None, false),
            ("", Some(""), true),
        ] {
            let pattern = TextPattern::new(pattern).unwrap();
            assert_eq!(pattern.matches(value.map(str::as_bytes)), Ok(fits), "{pattern:?} {value:?}");
        }
        assert!(TextPattern::new("~(").is_err());
    }

    #[test]
    fn hosts_of_rules_have_the_form_in_which_hosts_are_compared() {
        for (pattern, host, fits) in [
            ("Admin.Example.org.", "admin.example.org", true),
            ("*.example.org.", "a.example.org", true),
            ("[2001:DB8:0:0::1]", "[2001:db8::1]", true),
            ("2001:db8:0::1", "[2001:db8::1]", true),
            ("192.0.2.1", "192.0.2.1", true),
            ("~^Admin\\.", "admin.example.org", true),
            ("", "", true),
            ("", "a", false),
        ] {
            let pattern = TextPattern::host(pattern).unwrap();
            assert_eq!(pattern.matches(Some(host.as_bytes())), Ok(fits), "{pattern:?} {host}");
        }
        assert!(TextPattern::host("a.example:8080").unwrap_err().contains("without their port"));
        assert!(TextPattern::host("[::1").is_err() && TextPattern::host(".").is_err());
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        assert!(!Glob::new(&format!("/{}b", "a*".repeat(50))).matches(format!("/{}", "a".repeat(5000)).as_bytes()));
    }
}
