//! Header changes: `Header`, `RequestHeader` and the directives of mod_expires.

use crate::expression::Expression;
use crate::limits;
use crate::pattern::{BudgetExceeded, Captures, Pattern, PatternBudget};
use crate::request_state::RequestState;
use crate::rewrite::Template;
use crate::substitute;
use crate::text::{raw, words};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One line of `Header` or `RequestHeader`.
#[derive(Debug)]
pub(crate) struct HeaderLine {
    /// Also applies to error responses and other responses of the server itself.
    pub always: bool,
    name: HeaderName,
    action: Action,
    when: When,
}

#[derive(Debug)]
enum Action {
    Set(Value),
    SetIfEmpty(Value),
    Add(Value),
    Append(Value),
    Merge(Value),
    Unset,
    Echo(Pattern),
    Edit { pattern: Pattern, with: String, all: bool },
}

#[derive(Debug)]
enum When {
    Always,
    Variable(String, bool),
    Expression(Expression),
}

#[derive(Debug)]
enum Value {
    /// A format string with `%{NAME}e` and similar.
    Formats(String),
    /// An expression after `expr=`.
    Expression(Template),
}

impl HeaderLine {
    /// Parses the text after `Header` or `RequestHeader`; `None` if it has no effect here.
    pub(crate) fn new(text: &str, of_response: bool, room: &mut PatternBudget) -> Result<Option<Self>, String> {
        let all = words(text);
        let mut rest = all.as_slice();
        let mut always = false;
        if let Some(first) = rest.first().filter(|_| of_response)
            && ["always", "onsuccess"].iter().any(|word| first.eq_ignore_ascii_case(word))
        {
            always = first.eq_ignore_ascii_case("always");
            rest = &rest[1..];
        }
        let [action, name, rest @ ..] = rest else { return Err("an action and a header's name are needed".to_owned()) };
        let action = action.to_ascii_lowercase();
        if action == "note" {
            return Ok(None);
        }
        let takes = match action.as_str() {
            "unset" | "echo" => 0,
            "set" | "setifempty" | "add" | "append" | "merge" => 1,
            "edit" | "edit*" => 2,
            _ => return Err(format!("unknown action {action}")),
        };
        if rest.len() < takes || rest.len() > takes + 1 {
            return Err(format!("{action} takes a name, {takes} values and an optional condition"));
        }
        let (values, when) = rest.split_at(takes);
        let value = || Value::new(values.first().map(String::as_str).unwrap_or_default());
        let action = match action.as_str() {
            "set" => Action::Set(value()?),
            "setifempty" => Action::SetIfEmpty(value()?),
            "add" => Action::Add(value()?),
            "append" => Action::Append(value()?),
            "merge" => Action::Merge(value()?),
            "unset" => Action::Unset,
            "echo" => Action::Echo(Pattern::new(name, true, room)?),
            edit => Action::Edit {
                pattern: Pattern::new(&values[0], false, room)?,
                with: values[1].clone(),
                all: edit == "edit*",
            },
        };
        let when = match when.first() {
            None => When::Always,
            Some(text) => match (text.strip_prefix("env="), text.strip_prefix("expr=")) {
                (Some(name), _) => When::Variable(name.trim_start_matches('!').to_owned(), !name.starts_with('!')),
                (_, Some(text)) => When::Expression(Expression::new(text, room)?),
                // `early` runs before directories are evaluated, so it has no effect here.
                _ if text.eq_ignore_ascii_case("early") => return Ok(None),
                _ => return Err(format!("`{text}` is not a condition")),
            },
        };
        let name = match &action {
            Action::Echo(_) => header::HOST,
            _ => name
                .split(':')
                .next()
                .unwrap_or_default()
                .parse()
                .map_err(|_| format!("`{name}` is not a header's name"))?,
        };
        Ok(Some(Self { always, name, action, when }))
    }

    /// `true` if the line replaces a header's value instead of adding to it.
    pub(crate) fn replaces(&self, name: &HeaderName) -> bool {
        self.name == *name && matches!(self.action, Action::Set(_) | Action::SetIfEmpty(_))
    }

    pub(crate) fn apply(&self, headers: &mut HeaderMap, state: &mut RequestState<'_>) -> Result<(), BudgetExceeded> {
        state.budget.spend(limits::CHANGE)?;
        state.budget.spend(64)?;
        let holds = match &self.when {
            When::Always => true,
            When::Variable(name, wanted) => state.environment.get(name).is_some() == *wanted,
            When::Expression(expression) => expression.holds(state)?,
        };
        if !holds || is_ours(&self.name) {
            return Ok(());
        }
        match &self.action {
            Action::Unset => while headers.remove(&self.name).is_some() {},
            Action::Set(value) => set(headers, &self.name, &value.text(state)),
            Action::SetIfEmpty(value) if !headers.contains_key(&self.name) => {
                set(headers, &self.name, &value.text(state));
            }
            Action::SetIfEmpty(_) => {}
            Action::Add(value) => {
                if let Ok(value) = HeaderValue::from_bytes(&value.text(state))
                    && headers.get_all(&self.name).iter().count() < 50
                {
                    headers.append(self.name.clone(), value);
                }
            }
            Action::Append(value) => join(headers, &self.name, &value.text(state), false),
            Action::Merge(value) => join(headers, &self.name, &value.text(state), true),
            Action::Edit { pattern, with, all } => return self.edit(headers, state, pattern, with, *all),
            Action::Echo(pattern) => {
                for name in state.facts.headers.keys() {
                    if !is_ours(name)
                        && pattern.is_in(name.as_str().as_bytes(), &mut state.budget)?
                        && let Ok(value) = HeaderValue::from_bytes(&state.facts.header(name.as_str()))
                    {
                        headers.append(name.clone(), value);
                    }
                }
            }
        }
        Ok(())
    }

    fn edit(
        &self,
        headers: &mut HeaderMap,
        state: &mut RequestState<'_>,
        pattern: &Pattern,
        with: &str,
        all: bool,
    ) -> Result<(), BudgetExceeded> {
        let values: Vec<HeaderValue> = headers.get_all(&self.name).iter().cloned().collect();
        let mut made = Vec::with_capacity(values.len());
        for value in values {
            let edited =
                pattern.replace(value.as_bytes(), all, &mut state.budget, |found| substitute::groups(with, found))?;
            made.push(edited.and_then(|text| HeaderValue::from_bytes(&text).ok()).unwrap_or(value));
        }
        headers.remove(&self.name);
        for value in made {
            headers.append(self.name.clone(), value);
        }
        Ok(())
    }
}

/// `true` for headers that define the message's framing; the server sets these.
fn is_ours(name: &HeaderName) -> bool {
    let ours = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION, header::UPGRADE, header::TE];
    ours.contains(name) || name == "keep-alive"
}

fn set(headers: &mut HeaderMap, name: &HeaderName, value: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(value) {
        headers.insert(name.clone(), value);
    }
}

/// Appends a value to the header's first line, after a comma; with `once` only if it is not there yet.
fn join(headers: &mut HeaderMap, name: &HeaderName, value: &[u8], once: bool) {
    let Some(first) = headers.get_mut(name) else { return set(headers, name, value) };
    if once && first.as_bytes().split(|&b| b == b',').any(|item| item.trim_ascii() == value) {
        return;
    }
    let before = if first.is_empty() { &b""[..] } else { &b", "[..] };
    if let Ok(joined) = HeaderValue::from_bytes(&[first.as_bytes(), before, value].concat()) {
        *first = joined;
    }
}

impl Value {
    fn new(text: &str) -> Result<Self, String> {
        if let Some(text) = text.strip_prefix("expr=") {
            return Ok(Self::Expression(Template::new(text)));
        }
        let mut rest = text;
        while let Some((_, after)) = rest.split_once('%') {
            let (_, length) = format(after).ok_or_else(|| format!("`%{after}` is not a format: write %% for a %"))?;
            rest = &after[length..];
        }
        Ok(Self::Formats(text.to_owned()))
    }

    fn text(&self, state: &RequestState<'_>) -> Vec<u8> {
        let mut rest = match self {
            Self::Formats(text) => text.as_str(),
            Self::Expression(text) => {
                return text.expand(state, &Captures::default(), &Captures::default());
            }
        };
        let mut made = Vec::new();
        while let Some((plain, after)) = rest.split_once('%') {
            made.extend_from_slice(&raw(plain));
            let Some((kind, length)) = format(after) else { break };
            rest = &after[length..];
            match kind {
                Format::Percent => made.push(b'%'),
                Format::Variable(name) => made.extend_from_slice(state.environment.get(name).unwrap_or(b"(null)")),
                Format::Nothing => made.extend_from_slice(b"(null)"),
                Format::Received => {
                    let since = state.facts.time.duration_since(UNIX_EPOCH).unwrap_or_default();
                    made.extend_from_slice(format!("t={}", since.as_micros()).as_bytes());
                }
                Format::Took => {
                    let took = state.facts.time.elapsed().unwrap_or_default();
                    made.extend_from_slice(format!("D={}", took.as_micros()).as_bytes());
                }
            }
        }
        made.extend_from_slice(&raw(rest));
        made.truncate(limits::EXPANDED);
        made
    }
}

/// A format specifier after a `%`.
enum Format<'a> {
    Percent,
    Variable(&'a str),
    Nothing,
    Received,
    Took,
}

/// Parses the format specifier at the start of a text, and returns its length.
fn format(text: &str) -> Option<(Format<'_>, usize)> {
    if let Some(inner) = text.strip_prefix('{') {
        let end = inner.find('}')?;
        return match inner.as_bytes().get(end + 1)? {
            b'e' => Some((Format::Variable(&inner[..end]), end + 3)),
            b's' => Some((Format::Nothing, end + 3)),
            _ => None,
        };
    }
    // A `%` at the end is literal (mod_headers.c, parse_format_tag).
    let Some(first) = text.as_bytes().first() else { return Some((Format::Percent, 0)) };
    match first {
        b'%' => Some((Format::Percent, 1)),
        b't' => Some((Format::Received, 1)),
        b'D' => Some((Format::Took, 1)),
        b'l' | b'i' | b'b' => Some((Format::Nothing, 1)),
        _ => None,
    }
}

/// Lifetime of a response: its base time, and a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    from_change: bool,
    seconds: i64,
}

impl Validity {
    /// Parses `access plus 1 month 2 days`, `A3600`, `M3600`.
    ///
    /// # Errors
    /// The text is not a period.
    pub fn new(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a period");
        let text = text.trim();
        if let Some(digits) = text.strip_prefix(['A', 'M'])
            && let Ok(seconds) = digits.trim().parse()
        {
            return Ok(Self { from_change: text.starts_with('M'), seconds });
        }
        let mut parts = text.split_ascii_whitespace();
        let from_change = match parts.next().map(str::to_ascii_lowercase).as_deref() {
            Some("access" | "now") => false,
            Some("modification") => true,
            _ => return Err(wrong()),
        };
        let mut parts = parts.skip_while(|word| word.eq_ignore_ascii_case("plus")).peekable();
        let mut seconds = 0_i64;
        while let Some(number) = parts.next() {
            let number: i64 = number.parse().map_err(|_| wrong())?;
            let unit = parts.next().ok_or_else(wrong)?.to_ascii_lowercase();
            let unit = match unit.strip_suffix('s').unwrap_or(&unit) {
                "year" => 365 * 86_400,
                "month" => 30 * 86_400,
                "week" => 7 * 86_400,
                "day" => 86_400,
                "hour" => 3600,
                "minute" | "min" => 60,
                "second" | "sec" => 1,
                _ => return Err(wrong()),
            };
            seconds = seconds.saturating_add(number.saturating_mul(unit));
        }
        Ok(Self { from_change, seconds })
    }

    /// Number of seconds after the request; `None` if it counts from the file's last change.
    pub fn after_access(self) -> Option<u64> {
        u64::try_from(self.seconds).ok().filter(|_| !self.from_change)
    }

    /// Sets `Expires` and `Cache-Control: max-age`, unless the response has `Expires`.
    pub(crate) fn apply(self, headers: &mut HeaderMap, now: SystemTime) {
        if headers.contains_key(header::EXPIRES) {
            return;
        }
        let base = if self.from_change {
            let changed = headers.get(header::LAST_MODIFIED).and_then(|value| value.to_str().ok());
            let Some(changed) = changed.and_then(|text| httpdate::parse_http_date(text).ok()) else { return };
            changed
        } else {
            now
        };
        let seconds = Duration::from_secs(self.seconds.unsigned_abs().min(100 * 365 * 86_400));
        let then = if self.seconds < 0 { base.checked_sub(seconds) } else { base.checked_add(seconds) };
        let Some(then) = then else { return };
        let age = then.duration_since(now).unwrap_or_default().as_secs();
        join(headers, &header::CACHE_CONTROL, format!("max-age={age}").as_bytes(), false);
        set(headers, &header::EXPIRES, httpdate::fmt_http_date(then).as_bytes());
    }
}

/// Settings of mod_expires.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expires {
    pub active: Option<bool>,
    pub usual: Option<Validity>,
    pub by_type: Vec<(String, Validity)>,
}

impl Expires {
    /// Applies the settings; `media` is the type of a response without `Content-Type`.
    pub(crate) fn apply(&self, headers: &mut HeaderMap, media: Option<&str>, now: SystemTime) {
        if self.active != Some(true) {
            return;
        }
        let told = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media = media.unwrap_or(told).split(';').next().unwrap_or_default().trim();
        let general = media.split_once('/').map(|(major, _)| format!("{major}/*"));
        let of = |wanted: &str| {
            let found = self.by_type.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, validity)| *validity)
        };
        let found = of(media).or_else(|| general.and_then(|general| of(&general))).or(self.usual);
        if let Some(validity) = found {
            validity.apply(headers, now);
        }
    }
}
