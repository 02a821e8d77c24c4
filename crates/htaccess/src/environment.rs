//! Variables: `SetEnvIf` and similar directives before the rules, `SetEnv`, `UnsetEnv` and `PassEnv` after them.

use crate::expression::Expression;
use crate::pattern::{BudgetExceeded, Pattern, PatternBudget};
use crate::request_state::{Environment, RequestState};
use crate::substitute;
use crate::system::System;
use crate::text::{raw, words};

/// One line of `SetEnvIf`, `BrowserMatch` or `SetEnvIfExpr`.
#[derive(Debug)]
pub(crate) struct SetIf {
    when: When,
    /// Values may contain `$1`. Patterns without operators are searched as text, and have no groups.
    has_groups: bool,
    /// Variables with their new values; `None` unsets the variable.
    changes: Vec<(String, Option<String>)>,
}

#[derive(Debug)]
enum When {
    Attribute(String, Pattern),
    /// The first header whose name matches.
    Header(Pattern, Pattern),
    Expression(Expression),
}

/// `SetEnv`, `UnsetEnv` and `PassEnv`.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Set(String, String),
    Unset(String),
    Pass(String),
}

/// `true` if all operators in a pattern are escaped (mod_setenvif.c, non_regex_pattern).
fn is_plain(pattern: &str) -> bool {
    const OPERATORS: &[u8] = br"^.$|()[]*+?{}\";
    let mut bytes = pattern.bytes();
    while let Some(byte) = bytes.next() {
        let is_escape = byte == b'\\';
        if is_escape != OPERATORS.contains(&if is_escape { bytes.next().unwrap_or(0) } else { byte }) {
            return false;
        }
    }
    true
}

impl SetIf {
    /// Parses a line: `name` is the directive in lower case, `text` its arguments.
    pub(crate) fn new(name: &str, text: &str, room: &mut PatternBudget) -> Result<Self, String> {
        let all = words(text);
        let mut rest = all.as_slice();
        let mut next = || {
            let (first, after) = rest.split_first().ok_or("arguments are missing")?;
            rest = after;
            Ok::<_, String>(first.clone())
        };
        let no_case = name.ends_with("nocase");
        let mut has_groups = true;
        let mut pattern = |text: String, room: &mut PatternBudget| {
            has_groups = !is_plain(&text);
            Pattern::new(&text, no_case, room)
        };
        let when = match name {
            "setenvifexpr" => When::Expression(Expression::new(&next()?, room)?),
            "browsermatch" | "browsermatchnocase" => When::Attribute("User-Agent".to_owned(), pattern(next()?, room)?),
            _ => {
                let attribute = next()?;
                let value = pattern(next()?, room)?;
                let is_name = attribute.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
                if is_name {
                    When::Attribute(attribute, value)
                } else {
                    When::Header(Pattern::new(&attribute, true, room)?, value)
                }
            }
        };
        if rest.is_empty() {
            return Err("a variable is missing".to_owned());
        }
        let change = |word: &String| match (word.strip_prefix('!'), word.split_once('=')) {
            (Some(name), _) => (name.to_owned(), None),
            (None, Some((name, value))) => (name.to_owned(), Some(value.to_owned())),
            (None, None) => (word.clone(), Some("1".to_owned())),
        };
        Ok(Self { when, has_groups, changes: rest.iter().map(change).collect() })
    }

    pub(crate) fn apply(&self, state: &mut RequestState<'_>) -> Result<(), BudgetExceeded> {
        let found = match &self.when {
            When::Attribute(name, pattern) => {
                let value = attribute(state, name);
                pattern.find(&value, &mut state.budget)?
            }
            When::Header(name, pattern) => {
                let mut value = Vec::new();
                for known in state.facts.headers.keys() {
                    if name.is_in(known.as_str().as_bytes(), &mut state.budget)? {
                        value = state.facts.header(known.as_str());
                        break;
                    }
                }
                pattern.find(&value, &mut state.budget)?
            }
            When::Expression(expression) => expression.holds(state)?.then(Default::default),
        };
        let Some(found) = found else { return Ok(()) };
        for (name, value) in &self.changes {
            match value {
                Some(value) if self.has_groups => state.environment.set(name, substitute::groups(value, &found)),
                Some(value) => state.environment.set(name, raw(value).into_owned()),
                None => state.environment.unset(name),
            }
        }
        Ok(())
    }
}

fn attribute(state: &RequestState<'_>, name: &str) -> Vec<u8> {
    let variable = match name.to_ascii_lowercase().as_str() {
        "remote_addr" => "REMOTE_ADDR",
        "remote_host" => "REMOTE_HOST",
        "remote_user" => "REMOTE_USER",
        "server_addr" => "SERVER_ADDR",
        "request_method" => "REQUEST_METHOD",
        "request_protocol" => "SERVER_PROTOCOL",
        "request_uri" => "REQUEST_URI",
        _ => {
            let header = state.facts.header(name);
            let absent = header.is_empty() && !state.facts.headers.contains_key(name);
            return if absent { state.environment.get(name).unwrap_or_default().to_vec() } else { header };
        }
    };
    state.variable(variable)
}

impl Change {
    /// Parses a line: `name` is the directive in lower case, `text` its arguments.
    pub(crate) fn list(name: &str, text: &str) -> Result<Vec<Self>, String> {
        let all = words(text);
        match (name, all.as_slice()) {
            ("setenv", [name]) => Ok(vec![Self::Set(name.clone(), String::new())]),
            ("setenv", [name, value]) => Ok(vec![Self::Set(name.clone(), value.clone())]),
            ("unsetenv", [_, ..]) => Ok(all.into_iter().map(Self::Unset).collect()),
            ("passenv", [_, ..]) => Ok(all.into_iter().map(Self::Pass).collect()),
            _ => Err("wrong number of words".to_owned()),
        }
    }

    /// Applies the line to `changed`, the variables of earlier lines: `UnsetEnv` leaves variables of other modules
    /// alone (mod_env.c).
    pub(crate) fn apply(&self, changed: &mut Environment, system: &dyn System) {
        match self {
            Self::Set(name, value) => changed.set(name, raw(value).into_owned()),
            Self::Unset(name) => changed.unset(name),
            Self::Pass(name) => {
                if let Some(value) = system.environment(name) {
                    changed.set(name, value.into_bytes());
                }
            }
        }
    }
}
