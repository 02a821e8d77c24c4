//! Apache's expressions in `<If>`, `<ElseIf>` and `<Else>`: parsed, and converted to the conditions of rules. A rule has
//! one condition of each kind, so an expression becomes several rules where one of several comparisons suffices.

/// Maximum number of rules for one expression, and of its comparisons.
const MAX_ALTERNATIVES: usize = 16;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Or(Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Constant(bool),
    Test(Test),
}

/// A comparison with a variable (`HTTP_HOST`, `HTTP:Name`) of the request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    /// Equal to one of these texts.
    Text(String, Vec<String>),
    Regex(String, String),
    /// The client's address is in this network.
    Network(String),
    /// `-f` and `-d` of the file that the request names.
    Exists(&'static str),
    /// Not empty.
    Given(String),
}

/// Conditions that hold together, each with `true` if it must not hold.
pub(super) type Conjunction = Vec<(Test, bool)>;

impl Node {
    /// Parses an expression.
    ///
    /// # Errors
    /// The part that has no counterpart.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { rest: text, tests: 0 };
        let node = reader.or()?;
        match reader.rest.trim() {
            "" => Ok(node),
            rest => Err(format!("`{rest}` is not known")),
        }
    }

    /// The conjunctions of which one must hold: none if no request meets the expression.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn alternatives(&self) -> Result<Vec<Conjunction>, String> {
        self.alternatives_of(false)
    }

    fn alternatives_of(&self, is_negated: bool) -> Result<Vec<Conjunction>, String> {
        let found = match (self, is_negated) {
            (Self::Not(inner), _) => inner.alternatives_of(!is_negated)?,
            (Self::Test(test), _) => vec![vec![(test.clone(), is_negated)]],
            (Self::Constant(value), _) if *value != is_negated => vec![Vec::new()],
            (Self::Constant(_), _) => Vec::new(),
            (Self::Or(left, right), false) | (Self::And(left, right), true) => {
                let mut all = left.alternatives_of(is_negated)?;
                all.extend(right.alternatives_of(is_negated)?);
                all
            }
            (Self::And(left, right), false) | (Self::Or(left, right), true) => {
                let (left, right) = (left.alternatives_of(is_negated)?, right.alternatives_of(is_negated)?);
                let both =
                    |a: &Conjunction| right.iter().map(|b| a.iter().chain(b).cloned().collect()).collect::<Vec<_>>();
                left.iter().flat_map(both).collect()
            }
        };
        if found.len() > MAX_ALTERNATIVES { Err("it would need too many rules".to_owned()) } else { Ok(found) }
    }
}

struct Reader<'a> {
    rest: &'a str,
    tests: usize,
}

type Read<T> = Result<T, String>;

impl<'a> Reader<'a> {
    fn skip(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.strip_prefix(token).inspect(|rest| self.rest = rest).is_some()
    }

    fn or(&mut self) -> Read<Node> {
        let mut node = self.and()?;
        while self.skip("||") {
            node = Node::Or(Box::new(node), Box::new(self.and()?));
        }
        Ok(node)
    }

    fn and(&mut self) -> Read<Node> {
        let mut node = self.not()?;
        while self.skip("&&") {
            node = Node::And(Box::new(node), Box::new(self.not()?));
        }
        Ok(node)
    }

    fn not(&mut self) -> Read<Node> {
        self.tests += 1;
        if self.tests > 4 * MAX_ALTERNATIVES {
            return Err("it is too long".to_owned());
        }
        if self.skip("!") {
            return Ok(Node::Not(Box::new(self.not()?)));
        }
        if self.skip("(") {
            let node = self.or()?;
            return if self.skip(")") { Ok(node) } else { Err("a `)` is missing".to_owned()) };
        }
        for (name, value) in [("true", true), ("false", false)] {
            if self.skip(name) {
                return Ok(Node::Constant(value));
            }
        }
        self.test()
    }

    fn test(&mut self) -> Read<Node> {
        for (option, what) in [("-f", "file"), ("-d", "directory")] {
            if self.skip(option) {
                return match self.variable()?.as_str() {
                    "REQUEST_FILENAME" | "SCRIPT_FILENAME" => Ok(Node::Test(Test::Exists(what))),
                    other => Err(format!("{option} of {other} has no counterpart")),
                };
            }
        }
        if self.skip("-R") {
            return Ok(Node::Test(Test::Network(self.text()?)));
        }
        if self.skip("-n") {
            return Ok(Node::Test(Test::Given(self.variable()?)));
        }
        if self.skip("-z") {
            return Ok(Node::Not(Box::new(Node::Test(Test::Given(self.variable()?)))));
        }
        let variable = self.variable()?;
        self.comparison(variable)
    }

    fn comparison(&mut self, variable: String) -> Read<Node> {
        let not = |node| Node::Not(Box::new(node));
        if self.skip("=~") {
            return Ok(Node::Test(Test::Regex(variable, self.pattern()?)));
        }
        if self.skip("!~") {
            return Ok(not(Node::Test(Test::Regex(variable, self.pattern()?))));
        }
        if self.skip("!=") {
            return Ok(not(Node::Test(Test::Text(variable, vec![self.text()?]))));
        }
        if self.skip("==") || self.skip("=") {
            return Ok(Node::Test(Test::Text(variable, vec![self.text()?])));
        }
        if variable == "REMOTE_ADDR" && self.skip("-ipmatch") {
            return Ok(Node::Test(Test::Network(self.text()?)));
        }
        if self.skip("in") && self.skip("{") {
            let mut texts = vec![self.text()?];
            while self.skip(",") {
                texts.push(self.text()?);
            }
            return if self.skip("}") {
                Ok(Node::Test(Test::Text(variable, texts)))
            } else {
                Err("a `}` is missing".to_owned())
            };
        }
        Err(format!("`{}` is not known", self.rest.trim()))
    }

    /// `%{NAME}`, perhaps in quotes, or `req('Name')`, which is `HTTP:Name`.
    fn variable(&mut self) -> Read<String> {
        self.rest = self.rest.trim_start();
        for function in ["req_novary", "req", "http"] {
            if let Some(rest) = self.rest.strip_prefix(function).filter(|rest| rest.trim_start().starts_with('(')) {
                self.rest = rest;
                self.skip("(");
                let name = self.text()?;
                return if self.skip(")") { Ok(format!("HTTP:{name}")) } else { Err("a `)` is missing".to_owned()) };
            }
        }
        let quote = self.rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let inner = self.rest.strip_prefix(['"', '\'']).unwrap_or(self.rest);
        let name = inner.strip_prefix("%{").and_then(|rest| rest.split_once('}'));
        let (name, rest) = name.ok_or_else(|| format!("`{}` does not begin with a variable", self.rest))?;
        self.rest = match quote {
            Some(quote) => rest.strip_prefix(quote).ok_or("only a variable alone can be compared")?,
            None => rest,
        };
        Ok(name.to_owned())
    }

    /// A text in quotes, without variables.
    fn text(&mut self) -> Read<String> {
        self.rest = self.rest.trim_start();
        let quote = self.rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let Some(quote) = quote else {
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(end);
            self.rest = rest;
            return if number.is_empty() { Err(format!("`{rest}` is no text")) } else { Ok(number.to_owned()) };
        };
        let (text, rest) = self.rest[1..].split_once(quote).ok_or("a quote has no end")?;
        self.rest = rest;
        if text.contains("%{") || text.contains('\\') {
            return Err(format!("`{text}` is no fixed text"));
        }
        Ok(text.to_owned())
    }

    /// `m#…#i` or `/…/i`.
    fn pattern(&mut self) -> Read<String> {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix('m').unwrap_or(self.rest);
        let end = rest.chars().next().filter(char::is_ascii_punctuation).ok_or("a pattern is missing")?;
        let body = &rest[1..];
        let mut is_escaped = false;
        let at = body.find(|c| {
            let is_end = c == end && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        let at = at.ok_or("a pattern has no end")?;
        let rest = &body[at + 1..];
        let flags = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        self.rest = &rest[flags..];
        let escaped_end = format!("\\{end}");
        let regex = if end == '/' { body[..at].replace(&escaped_end, "/") } else { body[..at].to_owned() };
        match &rest[..flags] {
            "" => Ok(regex),
            "i" => Ok(format!("(?i){regex}")),
            other => Err(format!("the flags `{other}` of a pattern have no counterpart")),
        }
    }
}
