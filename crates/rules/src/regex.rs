//! Regular expressions on untrusted input. Patterns run in linear time where possible; those with look-around or
//! back-references run by backtracking, with a limit on steps.
//!
//! A dot matches any byte, including line breaks and invalid UTF-8: otherwise `%0A` or `%FF` in a path would bypass a
//! rule that denies it. Without the flag `m`, `$` matches only at the end of the text.

use std::borrow::Cow;
use std::fmt;

/// Maximum number of backtracking steps for one text: a few milliseconds.
const MAX_STEPS: usize = 20_000;
/// Maximum memory of one compiled pattern in bytes.
const MAX_MEMORY: usize = 1 << 20;
/// Maximum length of a pattern in bytes.
const MAX_PATTERN_LEN: usize = 4096;

/// A compiled regular expression.
#[derive(Clone)]
pub struct Regex {
    text: Box<str>,
    ignore_case: bool,
    engine: Engine,
}

#[derive(Clone)]
enum Engine {
    /// Linear time, on bytes.
    Bytes(regex::bytes::Regex),
    /// Linear time, on characters: for patterns that need Unicode, such as classes beyond ASCII.
    Characters(regex::Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

/// A pattern exceeded the limit of steps on a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManySteps;

/// Captures of a pattern's groups; group 0 is the whole match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captures {
    groups: Vec<(Option<Box<str>>, Vec<u8>)>,
}

impl Captures {
    /// The text of a group; empty if the group did not participate.
    pub fn number(&self, at: usize) -> &[u8] {
        self.groups.get(at).map_or(&[], |(_, text)| text)
    }

    /// The text of a named group.
    pub fn name(&self, name: &str) -> Option<&[u8]> {
        let found = self.groups.iter().find(|(group, _)| group.as_deref() == Some(name));
        found.map(|(_, text)| text.as_slice())
    }

    /// Captures without group names.
    pub(crate) fn of<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Self {
        Self { groups: texts.map(|text| (None, text.to_vec())).collect() }
    }

    fn push(&mut self, name: Option<&str>, text: Option<&[u8]>) {
        self.groups.push((name.map(Box::from), text.unwrap_or_default().to_vec()));
    }
}

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The error in the pattern.
    pub fn new(pattern: &str) -> Result<Self, String> {
        Self::with(pattern, false)
    }

    /// Compiles a pattern; `ignore_case` has the effect of a leading `(?i)`.
    ///
    /// # Errors
    /// The error in the pattern.
    pub fn with(pattern: &str, ignore_case: bool) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN_LEN {
            return Err(format!("is longer than {MAX_PATTERN_LEN} bytes"));
        }
        let text = pattern.into();
        let bytes = regex::bytes::RegexBuilder::new(pattern)
            .unicode(false)
            .case_insensitive(ignore_case)
            .dot_matches_new_line(true)
            .size_limit(MAX_MEMORY)
            .build();
        if let Ok(regex) = bytes {
            return Ok(Self { text, ignore_case, engine: Engine::Bytes(regex) });
        }
        let characters = regex::RegexBuilder::new(pattern)
            .case_insensitive(ignore_case)
            .dot_matches_new_line(true)
            .size_limit(MAX_MEMORY)
            .build();
        let linear = match characters {
            Ok(regex) => return Ok(Self { text, ignore_case, engine: Engine::Characters(regex) }),
            Err(regex::Error::CompiledTooBig(_)) => {
                return Err("takes too much memory as a regular expression".to_owned());
            }
            Err(error) => error,
        };
        let flags = if ignore_case { "(?si)" } else { "(?s)" };
        let backtracking = fancy_regex::RegexBuilder::new(&format!("{flags}{pattern}"))
            .backtrack_limit(MAX_STEPS)
            .delegate_size_limit(MAX_MEMORY)
            .build();
        match backtracking {
            Ok(regex) => Ok(Self { text, ignore_case, engine: Engine::Backtracking(Box::new(regex)) }),
            Err(_) => {
                let error = linear.to_string();
                // The error message shows the pattern with a marker below; the reason is on the last line.
                let last = error.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
                Err(format!("is not a regular expression: {}", last.trim_start_matches("error: ")))
            }
        }
    }

    /// The pattern's text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The pattern's source for an automaton over bytes, if it can be part of one.
    pub(crate) fn linear_text(&self) -> Option<String> {
        let flags = if self.ignore_case { "(?i)" } else { "" };
        matches!(self.engine, Engine::Bytes(_)).then(|| format!("{flags}{}", self.text))
    }

    /// Number of groups, including the whole match.
    pub fn groups(&self) -> usize {
        match &self.engine {
            Engine::Bytes(regex) => regex.captures_len(),
            Engine::Characters(regex) => regex.captures_len(),
            Engine::Backtracking(regex) => regex.captures_len(),
        }
    }

    /// `true` if there is a group of this name.
    pub fn has_group(&self, name: &str) -> bool {
        match &self.engine {
            Engine::Bytes(regex) => regex.capture_names().flatten().any(|group| group == name),
            Engine::Characters(regex) => regex.capture_names().flatten().any(|group| group == name),
            Engine::Backtracking(regex) => regex.capture_names().flatten().any(|group| group == name),
        }
    }

    /// `true` if the pattern matches somewhere in the text.
    ///
    /// # Errors
    /// If the match exceeded the limit of steps.
    pub fn is_match(&self, text: &[u8]) -> Result<bool, TooManySteps> {
        match &self.engine {
            Engine::Bytes(regex) => Ok(regex.is_match(text)),
            Engine::Characters(regex) => Ok(regex.is_match(&characters(text))),
            Engine::Backtracking(regex) => regex.is_match(&characters(text)).map_err(|_| TooManySteps),
        }
    }

    /// The captures in the text, if the pattern matches.
    ///
    /// # Errors
    /// If the match exceeded the limit of steps.
    pub fn captures(&self, text: &[u8]) -> Result<Option<Captures>, TooManySteps> {
        let mut found = Captures::default();
        match &self.engine {
            Engine::Bytes(regex) => {
                let Some(captures) = regex.captures(text) else { return Ok(None) };
                for (name, group) in regex.capture_names().zip(captures.iter()) {
                    found.push(name, group.map(|group| group.as_bytes()));
                }
            }
            Engine::Characters(regex) => {
                let text = characters(text);
                let Some(captures) = regex.captures(&text) else { return Ok(None) };
                for (name, group) in regex.capture_names().zip(captures.iter()) {
                    found.push(name, group.map(|group| group.as_str().as_bytes()));
                }
            }
            Engine::Backtracking(regex) => {
                let text = characters(text);
                let Some(captures) = regex.captures(&text).map_err(|_| TooManySteps)? else { return Ok(None) };
                for (name, group) in regex.capture_names().zip(captures.iter()) {
                    found.push(name, group.map(|group| group.as_str().as_bytes()));
                }
            }
        }
        Ok(Some(found))
    }

    /// Replaces all matches, or the first one, by a text in which `$1` stands for a group.
    ///
    /// # Errors
    /// If the match exceeded the limit of steps.
    pub fn replace(&self, text: &[u8], with: &str, every: bool) -> Result<Vec<u8>, TooManySteps> {
        let most = if every { 0 } else { 1 };
        Ok(match &self.engine {
            Engine::Bytes(regex) => regex.replacen(text, most, with.as_bytes()).into_owned(),
            Engine::Characters(regex) => regex.replacen(&characters(text), most, with).into_owned().into_bytes(),
            Engine::Backtracking(regex) => {
                regex.try_replacen(&characters(text), most, with).map_err(|_| TooManySteps)?.into_owned().into_bytes()
            }
        })
    }
}

/// Decodes the text as characters. Invalid bytes become U+FFFD, which a dot and a negated class match.
fn characters(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Regex").field(&self.text).finish()
    }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.ignore_case == other.ignore_case
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_and_invalid_utf8_do_not_bypass_a_pattern() {
        for pattern in [r"^/files/.*\.php$", r"^/files/(?!ok).*\.php$", r"^/files/[^é]*\.php$"] {
            let regex = Regex::new(pattern).unwrap();
            for path in [&b"/files/a.php"[..], b"/files/a\nb.php", b"/files/\xff.php", b"/files/\xc3\x28\r.php"] {
                assert_eq!(regex.is_match(path), Ok(true), "{pattern} {path:?}");
            }
            assert_eq!(regex.is_match(b"/files/a.php\n"), Ok(false), "{pattern}");
        }
    }

    #[test]
    fn groups_have_numbers_and_names() {
        for pattern in ["^/(?<a>[^/]+)(/x)?(.*)$", "^/(?!zz)(?<a>[^/]+)(/x)?(.*)$"] {
            let captures = Regex::new(pattern).unwrap().captures(b"/one/two").unwrap().unwrap();
            assert_eq!(captures.number(0), b"/one/two");
            assert_eq!(captures.name("a"), Some(&b"one"[..]));
            assert_eq!(
                (captures.number(2), captures.number(3), captures.number(9)),
                (&b""[..], &b"/two"[..], &b""[..])
            );
        }
    }

    #[test]
    fn backtracking_is_limited() {
        let regex = Regex::new(r"^(?!x)(a+)+\1$").unwrap();
        assert!(matches!(regex.engine, Engine::Backtracking(_)));
        assert_eq!(regex.is_match(&[b"a".repeat(60), b"b".to_vec()].concat()), Err(TooManySteps));
        assert!(!matches!(Regex::new("^(a+)+$").unwrap().engine, Engine::Backtracking(_)));
    }

    #[test]
    fn bad_patterns_are_clear_errors() {
        for (pattern, says) in
            [("(", "unclosed group"), ("[a", "class"), ("*", "repetition"), (&"a".repeat(5000), "longer")]
        {
            let error = Regex::new(pattern).unwrap_err();
            assert!(error.to_lowercase().contains(&says.to_lowercase()), "{pattern}: {error}");
        }
        assert!(Regex::new("a{1000}{1000}").is_err());
    }
}
