//! The tokens of a URL pattern (the URL Pattern Standard, section 2.1), and the parts of one component (section 2.2).

/// The text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotAPattern;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Open,
    Close,
    Regexp,
    Name,
    Char,
    Escaped,
    /// `+` or `?`.
    Modifier,
    Asterisk,
    End,
    Invalid,
}

/// A token: its position in characters, and its text without syntax (`:`, `\`, parentheses).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) at: usize,
    pub(crate) text: String,
}

impl Token {
    /// `true` for this character without a special meaning.
    pub(crate) fn is_plain(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Char | Kind::Escaped | Kind::Invalid) && self.text == text
    }
}

/// Splits a text into tokens, the last of which is the end. `lenient`: invalid characters become `Invalid` tokens.
pub(crate) fn tokens(text: &[char], lenient: bool) -> Result<Vec<Token>, NotAPattern> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(&first) = text.get(at) {
        let simple = |kind| Ok((kind, at + 1, first.to_string()));
        let read = match first {
            '*' => simple(Kind::Asterisk),
            '+' | '?' => simple(Kind::Modifier),
            '{' => simple(Kind::Open),
            '}' => simple(Kind::Close),
            '\\' => text.get(at + 1).map(|next| (Kind::Escaped, at + 2, next.to_string())).ok_or(NotAPattern),
            ':' => name(text, at + 1),
            '(' => regexp(text, at + 1),
            _ => simple(Kind::Char),
        };
        let (kind, end, text) = match read {
            Err(NotAPattern) if lenient => (Kind::Invalid, at + 1, first.to_string()),
            read => read?,
        };
        tokens.push(Token { kind, at, text });
        at = end;
    }
    tokens.push(Token { kind: Kind::End, at, text: String::new() });
    Ok(tokens)
}

fn name(text: &[char], begin: usize) -> Result<(Kind, usize, String), NotAPattern> {
    let may_begin = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    let may_follow = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '\u{200c}' | '\u{200d}');
    if !text.get(begin).is_some_and(|first| may_begin(*first)) {
        return Err(NotAPattern);
    }
    let length = text[begin..].iter().take_while(|c| may_follow(**c)).count();
    Ok((Kind::Name, begin + length, text[begin..begin + length].iter().collect()))
}

/// A regular expression in parentheses. It may have groups, but none that capture.
fn regexp(text: &[char], begin: usize) -> Result<(Kind, usize, String), NotAPattern> {
    let (mut depth, mut at) = (1, begin);
    while depth > 0 {
        let c = *text.get(at).ok_or(NotAPattern)?;
        if !c.is_ascii() || (at == begin && c == '?') {
            return Err(NotAPattern);
        }
        match c {
            '\\' if text.get(at + 1).is_some_and(char::is_ascii) => at += 1,
            '\\' => return Err(NotAPattern),
            ')' => depth -= 1,
            '(' if text.get(at + 1) == Some(&'?') => depth += 1,
            '(' => return Err(NotAPattern),
            _ => {}
        }
        at += 1;
    }
    let inner = &text[begin..at - 1];
    if inner.is_empty() { Err(NotAPattern) } else { Ok((Kind::Regexp, at, inner.iter().collect())) }
}

/// Number of times that a part may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Modifier {
    One,
    Optional,
    ZeroOrMore,
    OneOrMore,
}

/// The text that a part matches between its prefix and its suffix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Nothing,
    /// Up to the next delimiter.
    Segment,
    Anything,
    Regexp(String),
}

/// A part of a component. Prefix and suffix are encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) prefix: String,
    pub(crate) value: Value,
    pub(crate) suffix: String,
    pub(crate) modifier: Modifier,
}

/// Parses a component. `prefix`: the character before a name or a group that belongs to it.
pub(crate) fn parts(
    text: &str,
    prefix: Option<char>,
    encode: &dyn Fn(&str) -> Result<String, NotAPattern>,
) -> Result<Vec<Part>, NotAPattern> {
    let text: Vec<char> = text.chars().collect();
    let (tokens, prefix) = (tokens(&text, false)?, prefix.map(String::from).unwrap_or_default());
    let mut parser = Parser { tokens, at: 0, encode, fixed: String::new(), names: Vec::new(), parts: Vec::new() };
    loop {
        let before = parser.take(Kind::Char);
        let name = parser.take(Kind::Name);
        if let Some(value) = parser.value(name)? {
            let before = before.unwrap_or_default();
            let own = if before == prefix { before } else { parser.keep(&before) };
            parser.flush()?;
            let modifier = parser.modifier();
            parser.add(&own, value, "", modifier)?;
            continue;
        }
        if let Some(fixed) = before.or_else(|| parser.take(Kind::Escaped)) {
            parser.keep(&fixed);
            continue;
        }
        if parser.take(Kind::Open).is_some() {
            let prefix = parser.literal();
            let name = parser.take(Kind::Name);
            let value = parser.value(name)?.unwrap_or(Value::Nothing);
            let suffix = parser.literal();
            parser.take(Kind::Close).ok_or(NotAPattern)?;
            let modifier = parser.modifier();
            if value == Value::Nothing && modifier == Modifier::One {
                parser.keep(&prefix);
            } else {
                parser.flush()?;
                parser.add(&prefix, value, &suffix, modifier)?;
            }
            continue;
        }
        parser.flush()?;
        parser.take(Kind::End).ok_or(NotAPattern)?;
        return Ok(parser.parts);
    }
}

struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    encode: &'a dyn Fn(&str) -> Result<String, NotAPattern>,
    /// Literal text that is not a part yet.
    fixed: String,
    names: Vec<String>,
    parts: Vec<Part>,
}

impl Parser<'_> {
    fn take(&mut self, kind: Kind) -> Option<String> {
        let token = self.tokens.get(self.at).filter(|token| token.kind == kind)?;
        self.at += 1;
        Some(token.text.clone())
    }

    fn keep(&mut self, text: &str) -> String {
        self.fixed.push_str(text);
        String::new()
    }

    fn literal(&mut self) -> String {
        let mut text = String::new();
        while let Some(piece) = self.take(Kind::Char).or_else(|| self.take(Kind::Escaped)) {
            text.push_str(&piece);
        }
        text
    }

    /// The value of a name, a regular expression or `*` at this position.
    fn value(&mut self, name: Option<String>) -> Result<Option<Value>, NotAPattern> {
        let is_named = name.is_some();
        if let Some(name) = name {
            if self.names.contains(&name) {
                return Err(NotAPattern);
            }
            self.names.push(name);
        }
        Ok(match self.take(Kind::Regexp) {
            Some(regexp) if regexp == ".*" => Some(Value::Anything),
            Some(regexp) => Some(Value::Regexp(regexp)),
            None if is_named => Some(Value::Segment),
            None => self.take(Kind::Asterisk).map(|_| Value::Anything),
        })
    }

    fn modifier(&mut self) -> Modifier {
        match self.take(Kind::Modifier).or_else(|| self.take(Kind::Asterisk)).as_deref() {
            Some("?") => Modifier::Optional,
            Some("*") => Modifier::ZeroOrMore,
            Some(_) => Modifier::OneOrMore,
            None => Modifier::One,
        }
    }

    fn flush(&mut self) -> Result<(), NotAPattern> {
        let fixed = std::mem::take(&mut self.fixed);
        if fixed.is_empty() { Ok(()) } else { self.add(&fixed, Value::Nothing, "", Modifier::One) }
    }

    fn add(&mut self, prefix: &str, value: Value, suffix: &str, modifier: Modifier) -> Result<(), NotAPattern> {
        if value == Value::Nothing && prefix.is_empty() {
            return Ok(());
        }
        let encoded = |text: &str| if text.is_empty() { Ok(String::new()) } else { (self.encode)(text) };
        let (prefix, suffix) = (encoded(prefix)?, encoded(suffix)?);
        self.parts.push(Part { prefix, value, suffix, modifier });
        Ok(())
    }
}
