//! Texts with references: `$1` to the rule's groups, `%1` to the condition's, `%{NAME}` to variables.

use crate::limits;
use crate::pattern::Captures;
use crate::scene::Scene;

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

/// How groups are written where they stand for a part of an address.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Escaping<'a> {
    /// `B`: what is no letter and no digit is encoded; only these signs if there are any.
    pub groups: Option<&'a str>,
    /// `BNP`: a blank becomes `%20`, not `+`.
    pub no_plus: bool,
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
                    plain.extend_from_slice(&rest.as_bytes()[..length]);
                    (None, length)
                }
                None => {
                    plain.extend_from_slice(&rest.as_bytes()[..c.len_utf8()]);
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

    /// The text with what the references stand for.
    pub(crate) fn expand(
        &self,
        scene: &Scene<'_>,
        rule: &Captures,
        condition: &Captures,
        escaping: Escaping<'_>,
    ) -> Vec<u8> {
        let mut made = Vec::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => made.extend_from_slice(text),
                Part::Rule(number) => escaping.add(&mut made, rule.group(*number)),
                Part::Condition(number) => escaping.add(&mut made, condition.group(*number)),
                Part::Variable(name) => made.extend_from_slice(&scene.variable(name)),
            }
            if made.len() > limits::EXPANDED {
                made.truncate(limits::EXPANDED);
                break;
            }
        }
        made
    }

    /// Whether a question mark stands in the text itself.
    pub(crate) fn has_query(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Text(text) if text.contains(&b'?')))
    }
}

impl Escaping<'_> {
    fn add(self, made: &mut Vec<u8>, group: &[u8]) {
        let Some(only) = self.groups else { return made.extend_from_slice(group) };
        for &byte in group {
            let concerned = if only.is_empty() {
                !byte.is_ascii_alphanumeric() && byte != b'_'
            } else {
                only.as_bytes().contains(&byte)
            };
            match byte {
                b' ' if concerned && !self.no_plus => made.push(b'+'),
                _ if concerned => made.extend_from_slice(format!("%{byte:02x}").as_bytes()),
                _ => made.push(byte),
            }
        }
    }
}

/// A reference that begins here, and its length.
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
        // Maps are the server's and not a directory's: what they lack is their default.
        (b'$', b'{') => {
            let end = text.find('}')?;
            let default = text[2..end].split_once('|').map_or("", |(_, default)| default);
            Some((Part::Text(default.as_bytes().to_vec()), end + 1))
        }
        _ => None,
    }
}
