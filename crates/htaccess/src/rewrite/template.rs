//! Texts with references: `$1` to a group of the rule, `%1` to a group of the condition, `%{NAME}` to a variable.

use crate::limits;
use crate::pattern::Captures;
use crate::request_state::RequestState;
use crate::text::raw;

/// A text with references in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone)]
enum Part {
    Text(Vec<u8>),
    Rule(usize),
    Condition(usize),
    Variable(String),
}

/// Encoding of groups in a URL: the flag `B` and its variants.
#[derive(Debug, Clone, Default)]
pub(crate) struct Escaping {
    pub on: bool,
    /// Only these characters are encoded; empty for all.
    pub only: String,
    /// These characters are not encoded.
    pub never: String,
    /// Of all other characters, only control characters and blanks are encoded.
    pub controls: bool,
    /// A blank becomes `%20`, not `+`.
    pub no_plus: bool,
}

/// An expanded text.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    pub text: Vec<u8>,
    /// The `?` that ends the path comes from a reference, so it was encoded in the request.
    pub unsafe_query: bool,
}

impl Template {
    pub(crate) fn new(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut plain = Vec::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let (part, length) = match reference(rest) {
                Some((part, length)) => (Some(part), length),
                None if c == '\\' && rest.len() > 1 => {
                    rest = &rest[1..];
                    let length = rest.chars().next().map_or(0, char::len_utf8);
                    plain.extend_from_slice(&raw(&rest[..length]));
                    (None, length)
                }
                None => {
                    plain.extend_from_slice(&raw(&rest[..c.len_utf8()]));
                    (None, c.len_utf8())
                }
            };
            if let Some(part) = part {
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(part);
            }
            rest = &rest[length..];
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Self(parts)
    }

    /// `true` if the text itself, before expansion, begins with `//`.
    pub(crate) fn begins_with_two_slashes(&self) -> bool {
        matches!(self.0.first(), Some(Part::Text(text)) if text.starts_with(b"//"))
    }

    /// Expands the references.
    pub(crate) fn expand(&self, state: &RequestState<'_>, rule: &Captures, condition: &Captures) -> Vec<u8> {
        self.make(state, rule, condition, &Escaping::default(), false).text
    }

    /// Expands a substitution. With `last`, the query begins after the last `?` instead of the first.
    pub(crate) fn make(
        &self,
        state: &RequestState<'_>,
        rule: &Captures,
        condition: &Captures,
        escaping: &Escaping,
        last: bool,
    ) -> Expansion {
        let (mut made, mut found) = (Expansion::default(), false);
        for part in &self.0 {
            let before = made.text.len();
            match part {
                Part::Text(text) => made.text.extend_from_slice(text),
                Part::Rule(number) => escaping.add(&mut made.text, rule.group(*number)),
                Part::Condition(number) => escaping.add(&mut made.text, condition.group(*number)),
                Part::Variable(name) => made.text.extend_from_slice(&state.variable(name)),
            }
            if made.text[before..].contains(&b'?') && (last || !found) {
                made.unsafe_query = !matches!(part, Part::Text(_));
                found = true;
            }
            if made.text.len() > limits::EXPANDED {
                made.text.truncate(limits::EXPANDED);
                break;
            }
        }
        made
    }
}

impl Escaping {
    fn add(&self, made: &mut Vec<u8>, group: &[u8]) {
        if !self.on {
            return made.extend_from_slice(group);
        }
        for &byte in group {
            let usual = if self.controls { byte.is_ascii_control() || byte == b' ' } else { self.only.is_empty() };
            let concerned = (usual || self.only.as_bytes().contains(&byte)) && !self.never.as_bytes().contains(&byte);
            match byte {
                _ if !concerned || byte.is_ascii_alphanumeric() || byte == b'_' => made.push(byte),
                b' ' if !self.no_plus => made.push(b'+'),
                _ => made.extend_from_slice(format!("%{byte:02x}").as_bytes()),
            }
        }
    }
}

/// Parses the reference at the start of the text, and returns its length.
fn reference(text: &str) -> Option<(Part, usize)> {
    let bytes = text.as_bytes();
    let (&sign, &next) = (bytes.first()?, bytes.get(1)?);
    match (sign, next) {
        (b'$', b'0'..=b'9') => Some((Part::Rule(usize::from(next - b'0')), 2)),
        (b'%', b'0'..=b'9') => Some((Part::Condition(usize::from(next - b'0')), 2)),
        (b'%', b'{') => {
            let end = text.find('}')?;
            Some((Part::Variable(text[2..end].to_owned()), end + 1))
        }
        // Maps can only be defined in the server configuration, so lookups return their default.
        (b'$', b'{') => {
            let end = text.find('}')?;
            let default = text[2..end].split_once('|').map_or("", |(_, default)| default);
            Some((Part::Text(raw(default).into_owned()), end + 1))
        }
        _ => None,
    }
}
