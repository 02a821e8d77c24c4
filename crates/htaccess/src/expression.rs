//! Apache's expressions: `<If>`, `Require expr`, `RewriteCond expr`, `SetEnvIfExpr`, `Header … expr=`. This file parses
//! them; `expression_value` evaluates them, and `howdah init` converts them to rules.

pub use crate::compare::Compare;
use crate::limits;
use crate::pattern::{Pattern, PatternBudget};
use crate::text::raw;

/// A parsed expression.
#[derive(Debug)]
pub(crate) struct Expression(pub(crate) Node<Pattern>);

/// A part of an expression. `P` is a regular expression.
#[derive(Debug, Clone)]
pub enum Node<P> {
    Or(Box<Self>, Box<Self>),
    And(Box<Self>, Box<Self>),
    Not(Box<Self>),
    Constant(bool),
    /// `-f` and similar tests.
    Unary(u8, Word),
    Text(Compare, Word, Word),
    Number(Compare, Word, Word),
    Matches(Word, P),
    Wild(Word, Word, bool),
    Network(Word, Word),
    In(Word, Vec<Word>),
}

/// A text made of parts.
#[derive(Debug, Clone)]
pub enum Word {
    Text(Vec<u8>),
    Variable(String),
    Group(usize),
    Function(String, Box<Word>),
    Joined(Vec<Word>),
}

impl Expression {
    /// Parses an expression; the error is for the log.
    pub(crate) fn new(text: &str, room: &mut PatternBudget) -> Result<Self, String> {
        Node::parse(text, |pattern, flags| Pattern::new(pattern, flags.contains('i'), room)).map(Self)
    }
}

impl<P> Node<P> {
    /// Parses an expression. `pattern` converts a regular expression and its flags.
    ///
    /// # Errors
    /// The part that is wrong.
    pub fn parse(text: &str, pattern: impl FnMut(&str, &str) -> Result<P, String>) -> Result<Self, String> {
        let mut reader = Reader { rest: text, pattern, parts: 0, depth: 0 };
        let node = reader.or().map_err(|error| format!("the expression `{text}`: {error}"))?;
        reader.blanks();
        if !reader.rest.is_empty() {
            return Err(format!("the expression `{text}`: unexpected `{}`", reader.rest));
        }
        Ok(node)
    }
}

struct Reader<'a, F> {
    rest: &'a str,
    pattern: F,
    parts: usize,
    depth: usize,
}

type Read<T> = Result<T, String>;

impl<'a, P, F: FnMut(&str, &str) -> Read<P>> Reader<'a, F> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn skip(&mut self, token: &str) -> bool {
        self.blanks();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Checks the limits on the number of parts and on nesting.
    fn count(&mut self) -> Read<()> {
        self.parts += 1;
        if self.parts > limits::EXPRESSION || self.depth > limits::DEPTH {
            return Err("too long".to_owned());
        }
        Ok(())
    }

    fn or(&mut self) -> Read<Node<P>> {
        let mut node = self.and()?;
        while self.skip("||") {
            node = Node::Or(Box::new(node), Box::new(self.and()?));
        }
        Ok(node)
    }

    fn and(&mut self) -> Read<Node<P>> {
        let mut node = self.not()?;
        while self.skip("&&") {
            node = Node::And(Box::new(node), Box::new(self.not()?));
        }
        Ok(node)
    }

    fn not(&mut self) -> Read<Node<P>> {
        self.count()?;
        self.blanks();
        self.depth += 1;
        let node = if self.rest.starts_with('!') && !self.rest.starts_with("!=") && !self.rest.starts_with("!~") {
            self.rest = &self.rest[1..];
            Node::Not(Box::new(self.not()?))
        } else if self.skip("(") {
            let node = self.or()?;
            if !self.skip(")") {
                return Err("a `)` is missing".to_owned());
            }
            node
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn letters(&self) -> &'a str {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        &self.rest[..end]
    }

    fn comparison(&mut self) -> Read<Node<P>> {
        for (name, value) in [("true", true), ("false", false)] {
            if self.letters() == name {
                self.rest = &self.rest[name.len()..];
                return Ok(Node::Constant(value));
            }
        }
        if let Some(rest) = self.rest.strip_prefix('-') {
            let mut chars = rest.chars();
            if let (Some(kind), true) = (chars.next(), chars.next().is_none_or(|c| !c.is_ascii_alphanumeric())) {
                if !"defFhLnRsTUxzl".contains(kind) {
                    return Err(format!("-{kind} is not known"));
                }
                self.rest = &rest[1..];
                return Ok(Node::Unary(kind as u8, self.word()?));
            }
        }
        let left = self.word()?;
        self.operator(left)
    }

    fn operator(&mut self, left: Word) -> Read<Node<P>> {
        self.blanks();
        if self.letters() == "in" {
            self.rest = &self.rest[2..];
            return self.list(left);
        }
        if let Some(rest) = self.rest.strip_prefix('-') {
            let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let name = &rest[..end];
            self.rest = &rest[end..];
            return match (name, Compare::of_letters(name)) {
                (_, Some(compare)) => Ok(Node::Number(compare, left, self.word()?)),
                ("ipmatch", _) => Ok(Node::Network(left, self.word()?)),
                ("strmatch" | "fnmatch", _) => Ok(Node::Wild(left, self.word()?, false)),
                ("strcmatch", _) => Ok(Node::Wild(left, self.word()?, true)),
                _ => Err(format!("-{name} is not known")),
            };
        }
        for (sign, negated) in [("=~", false), ("!~", true)] {
            if self.skip(sign) {
                let node = Node::Matches(left, self.pattern()?);
                return Ok(if negated { Node::Not(Box::new(node)) } else { node });
            }
        }
        let signs = [
            ("==", Compare::Equal),
            ("!=", Compare::NotEqual),
            ("<=", Compare::LessOrEqual),
            (">=", Compare::GreaterOrEqual),
            ("=", Compare::Equal),
            ("<", Compare::Less),
            (">", Compare::Greater),
        ];
        for (sign, compare) in signs {
            if self.skip(sign) {
                return Ok(Node::Text(compare, left, self.word()?));
            }
        }
        Err(format!("an operator is missing before `{}`", self.rest))
    }

    fn list(&mut self, left: Word) -> Read<Node<P>> {
        if !self.skip("{") {
            return Err("`in` needs a list in braces".to_owned());
        }
        let mut words = vec![self.word()?];
        while self.skip(",") {
            words.push(self.word()?);
        }
        if !self.skip("}") {
            return Err("a `}` is missing".to_owned());
        }
        Ok(Node::In(left, words))
    }

    fn pattern(&mut self) -> Read<P> {
        self.blanks();
        let rest = self.rest.strip_prefix('m').unwrap_or(self.rest);
        let mut chars = rest.chars();
        let Some(end) = chars.next().filter(|c| c.is_ascii_punctuation()) else {
            return Err("a pattern is missing".to_owned());
        };
        let body = chars.as_str();
        let mut at = None;
        let mut escaped = false;
        for (place, c) in body.char_indices() {
            if c == end && !escaped {
                at = Some(place);
                break;
            }
            escaped = c == '\\' && !escaped;
        }
        let at = at.ok_or("a pattern has no end")?;
        self.rest = &body[at + 1..];
        let flags = self.letters();
        self.rest = &self.rest[flags.len()..];
        (self.pattern)(&body[..at], flags)
    }

    fn word(&mut self) -> Read<Word> {
        let first = self.part()?;
        let mut parts = vec![first];
        while self.skip(".") {
            parts.push(self.part()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Word::Joined(parts) })
    }

    fn part(&mut self) -> Read<Word> {
        self.count()?;
        self.blanks();
        let Some(first) = self.rest.chars().next() else { return Err("an argument is missing".to_owned()) };
        match first {
            '\'' | '"' => self.quoted(first),
            '%' => self.variable(),
            '$' => self.group(),
            '0'..='9' | '-' | '+' => {
                let end = self.rest[1..].find(|c: char| !c.is_ascii_digit()).map_or(self.rest.len(), |at| at + 1);
                let word = Word::Text(self.rest.as_bytes()[..end].to_vec());
                self.rest = &self.rest[end..];
                Ok(word)
            }
            _ => self.function(),
        }
    }

    fn variable(&mut self) -> Read<Word> {
        let inner = self.rest.strip_prefix("%{").ok_or("`%` without `{`")?;
        let (name, rest) = inner.split_once('}').ok_or("a `}` is missing")?;
        self.rest = rest;
        Ok(Word::Variable(name.to_owned()))
    }

    fn group(&mut self) -> Read<Word> {
        let digit = self.rest.as_bytes().get(1).filter(|b| b.is_ascii_digit()).ok_or("`$` without a digit")?;
        self.rest = &self.rest[2..];
        Ok(Word::Group(usize::from(digit - b'0')))
    }

    fn function(&mut self) -> Read<Word> {
        let name = self.letters();
        if name.is_empty() {
            return Err(format!("`{}` is not a word", self.rest));
        }
        self.rest = &self.rest[name.len()..];
        let known = ["req", "http", "req_novary", "resp", "reqenv", "osenv", "env", "note", "tolower", "toupper"];
        let known_too = ["escape", "unescape", "base64", "unbase64", "file", "filesize", "replace", "ldap"];
        if !self.skip("(") {
            return Err(format!("`{name}` is not a word: write strings in quotes"));
        }
        if !known.contains(&name) {
            let why = if known_too.contains(&name) { "is not supported" } else { "is not known" };
            return Err(format!("the function {name} {why}"));
        }
        self.depth += 1;
        let argument = self.word()?;
        self.depth -= 1;
        if !self.skip(")") {
            return Err("a `)` is missing".to_owned());
        }
        Ok(Word::Function(name.to_owned(), Box::new(argument)))
    }

    /// Parses a quoted text with variables and groups.
    fn quoted(&mut self, quote: char) -> Read<Word> {
        self.rest = &self.rest[1..];
        let (mut parts, mut text) = (Vec::new(), Vec::new());
        loop {
            let Some(c) = self.rest.chars().next() else { return Err("a quote has no end".to_owned()) };
            let referred = match c {
                '%' if self.rest.starts_with("%{") => Some(self.variable()?),
                '$' if self.rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit) => Some(self.group()?),
                _ => None,
            };
            if let Some(word) = referred {
                self.count()?;
                parts.push(Word::Text(std::mem::take(&mut text)));
                parts.push(word);
                continue;
            }
            self.rest = &self.rest[c.len_utf8()..];
            if c == quote {
                parts.push(Word::Text(text));
                return Ok(Word::Joined(parts));
            }
            match self.rest.chars().next() {
                Some(next) if c == '\\' => {
                    let plain = match next {
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        _ => next,
                    };
                    text.extend_from_slice(&raw(plain.encode_utf8(&mut [0; 4])));
                    self.rest = &self.rest[next.len_utf8()..];
                }
                _ => text.extend_from_slice(&raw(c.encode_utf8(&mut [0; 4]))),
            }
        }
    }
}
