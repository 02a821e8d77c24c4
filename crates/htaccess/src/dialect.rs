//! Translates PCRE syntax to that of the engines used here. PCRE takes characters without another meaning literally
//! (`{` without a number after it, `[` within a class), and has some additional escapes.

use crate::text::stands_for;

/// A pattern in the engines' syntax.
pub(crate) struct Translated {
    pub text: String,
    /// The pattern needs backtracking: a linear engine would reject it or read it as something else.
    pub needs_backtracking: bool,
}

/// Translates a pattern. Errors in it are kept for the engine to report.
pub(crate) fn translate(pattern: &str) -> Translated {
    let mut reader = Reader { rest: pattern, out: String::with_capacity(pattern.len() + 8), needs_backtracking: false };
    while reader.next_part() {}
    let mut text = String::with_capacity(reader.out.len());
    for c in reader.out.chars() {
        match stands_for(c) {
            Some(byte) => text.push_str(&format!("\\x{byte:02x}")),
            None => text.push(c),
        }
    }
    Translated { text, needs_backtracking: reader.needs_backtracking }
}

struct Reader<'a> {
    rest: &'a str,
    out: String,
    needs_backtracking: bool,
}

impl Reader<'_> {
    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn literal(&mut self, c: char) {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '<' | '>' | '_' | ' ' | '/' | '%' | '"' | '\'') {
            self.out.push('\\');
        }
        self.out.push(c);
    }

    fn next_part(&mut self) -> bool {
        let Some(c) = self.take() else { return false };
        match c {
            '\\' => self.escape(),
            '[' => self.class(),
            ']' => self.out.push_str("\\]"),
            '{' if !is_count(self.rest) => self.out.push_str("\\{"),
            '}' if !self.ends_count() => self.out.push_str("\\}"),
            '*' | '+' | '?' | '}' => {
                self.out.push(c);
                // `a++`: a possessive quantifier never gives back what it matched.
                if self.rest.starts_with('+') && !self.out.ends_with("(?") {
                    self.needs_backtracking = true;
                }
            }
            _ => self.out.push(c),
        }
        true
    }

    /// `true` if the output ends in an unclosed count: `{3` or `{3,4`.
    fn ends_count(&self) -> bool {
        let digits = self.out.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',');
        digits.len() < self.out.len() && digits.ends_with('{') && !digits.ends_with("\\{")
    }

    fn escape(&mut self) {
        match self.take() {
            None => self.out.push('\\'),
            Some('Q') => {
                let (quoted, after) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                for c in quoted.chars() {
                    self.literal(c);
                }
                self.rest = after;
            }
            Some('E') => {}
            Some('h') => self.out.push_str("[ \\t]"),
            Some('H') => self.out.push_str("[^ \\t]"),
            Some('N') => self.out.push_str("[^\\n]"),
            Some('R') => self.out.push_str("(?:\\r\\n|[\\n\\r\\f\\x0b])"),
            Some('Z') => self.out.push_str("\\n?\\z"),
            Some('e') => self.out.push_str("\\x1b"),
            Some('0') => self.out.push_str("\\x00"),
            Some(c) if c.is_ascii_alphanumeric() => self.out.extend(['\\', c]),
            Some(c) => self.literal(c),
        }
    }

    fn class(&mut self) {
        self.out.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.out.push('^');
            self.rest = rest;
        }
        if let Some(rest) = self.rest.strip_prefix(']') {
            self.out.push_str("\\]");
            self.rest = rest;
        }
        while let Some(c) = self.take() {
            match c {
                ']' => {
                    self.out.push(']');
                    return;
                }
                '[' => match named(self.rest) {
                    Some(name) => {
                        self.out.push('[');
                        self.out.push_str(name);
                        self.rest = &self.rest[name.len()..];
                        self.no_range();
                    }
                    None => self.out.push_str("\\["),
                },
                '&' | '~' => self.out.extend(['\\', c]),
                '-' if self.rest.starts_with('-') => self.out.push_str("\\-"),
                '\\' => self.class_escape(),
                _ => self.out.push(c),
            }
        }
    }

    fn class_escape(&mut self) {
        match self.take() {
            None => self.out.push('\\'),
            Some('b') => self.out.push_str("\\x08"),
            Some('h') => self.out.push_str(" \\t"),
            Some('e') => self.out.push_str("\\x1b"),
            Some('0') => self.out.push_str("\\x00"),
            Some('E' | 'Q') => {}
            Some(c) if c.is_ascii_alphanumeric() => {
                self.out.extend(['\\', c]);
                if matches!(c, 'w' | 'W' | 'd' | 'D' | 's' | 'S') {
                    self.no_range();
                }
            }
            Some(c) => self.literal(c),
        }
    }

    /// Escapes a `-` after a nested class, where it is literal.
    fn no_range(&mut self) {
        if let Some(rest) = self.rest.strip_prefix('-') {
            self.out.push_str("\\-");
            self.rest = rest;
        }
    }
}

/// `true` if a count begins here, after its `{`.
fn is_count(rest: &str) -> bool {
    rest.split_once('}').is_some_and(|(count, _)| {
        let (least, most) = count.split_once(',').unwrap_or((count, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        !least.is_empty() && digits(least) && digits(most)
    })
}

/// A named class (`:alpha:]`) that begins here, after its `[`.
fn named(rest: &str) -> Option<&str> {
    let inner = rest.strip_prefix(':')?;
    let end = inner.find(":]")?;
    let name = inner[..end].strip_prefix('^').unwrap_or(&inner[..end]);
    (!name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase())).then(|| &rest[..end + 3])
}
