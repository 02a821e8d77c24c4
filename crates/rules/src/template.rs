//! Templates for `rewrite`, `redirect` and `try_files`. `$1` is a group or star of the rule's path pattern, `$name` or
//! `${name}` a named group or a [`Variable`], and `$$` a dollar sign.
//!
//! Values from a request are encoded for their position: they cannot begin a query or a header line. Only `$host` and
//! `$scheme` can extend the host that a template names.

use crate::regex::Captures;
use std::fmt::Write as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variable {
    /// `$path`: the current path, decoded.
    Path,
    /// `$query`: the current query, without the question mark.
    Query,
    /// `$host`: the requested host, without its port.
    Host,
    /// `$scheme`: `http` or `https`.
    Scheme,
    /// `$method`: the method.
    Method,
    /// `$client`: the client's address.
    Client,
}

impl Variable {
    /// All variables with their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("path", Self::Path),
        ("query", Self::Query),
        ("host", Self::Host),
        ("scheme", Self::Scheme),
        ("method", Self::Method),
        ("client", Self::Client),
    ];
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Box<str>),
    Number(usize),
    Name(Box<str>),
    Variable(Variable),
}

/// A text with references to values of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: Box<str>,
    parts: Vec<Part>,
}

/// Position of a value in a URL, which determines its encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A decoded path.
    Path,
    /// The host of a URL, or the path directly after it.
    Authority,
    /// The path of a URL.
    AddressPath,
    /// A query, or a fragment.
    Query,
}

/// Provides the values of variables.
pub trait Variables {
    fn variable(&self, variable: Variable) -> Vec<u8>;
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// If a dollar sign is not part of a valid reference.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut left = text;
        while let Some(at) = left.find('$') {
            literal.push_str(&left[..at]);
            left = &left[at + 1..];
            if let Some(rest) = left.strip_prefix('$') {
                literal.push('$');
                left = rest;
                continue;
            }
            let (name, rest) = name(left)
                .ok_or_else(|| format!("has a $ without a number or name after it in {text:?}; $$ stands for one"))?;
            left = rest;
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal).into()));
            }
            parts.push(match name.parse() {
                Ok(number) => Part::Number(number),
                Err(_) => Part::Name(name.into()),
            });
        }
        literal.push_str(left);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.into()));
        }
        Ok(Self { text: text.into(), parts })
    }

    /// The template's source text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Resolves names to groups or variables.
    ///
    /// # Errors
    /// Names that are neither a group nor a variable, and groups that do not exist.
    pub fn resolve(&mut self, groups: usize, has_group: impl Fn(&str) -> bool) -> Result<(), String> {
        for part in &mut self.parts {
            match part {
                Part::Number(number) if *number >= groups => {
                    return Err(match groups {
                        0 | 1 => format!("names ${number}, but no pattern of the rule's path has a star or group"),
                        _ => format!("names ${number}, but the rule's path has only {} stars or groups", groups - 1),
                    });
                }
                Part::Name(name) if !has_group(name) => {
                    let known = Variable::ALL.iter().find(|(known, _)| *known == &**name);
                    let Some((_, variable)) = known else {
                        let names: Vec<String> = Variable::ALL.iter().map(|(name, _)| format!("${name}")).collect();
                        return Err(format!(
                            "names ${name}, which is neither a group of the path's pattern nor one of {}",
                            names.join(", ")
                        ));
                    };
                    *part = Part::Variable(*variable);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// `true` if the template uses captures of the path.
    pub fn wants_captures(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Number(_) | Part::Name(_)))
    }

    /// The path, and the query if there is a question mark, as the result of a rewrite.
    pub fn expand_path(&self, captures: &Captures, variables: &impl Variables) -> (Vec<u8>, Option<Vec<u8>>) {
        let mut place = Place::Path;
        let (mut path, mut query) = (Vec::new(), None);
        for part in &self.parts {
            match part {
                Part::Literal(text) if place == Place::Path => match text.split_once('?') {
                    Some((before, after)) => {
                        path.extend_from_slice(before.as_bytes());
                        query = Some(after.as_bytes().to_vec());
                        place = Place::Query;
                    }
                    None => path.extend_from_slice(text.as_bytes()),
                },
                Part::Literal(text) => query.get_or_insert_default().extend_from_slice(text.as_bytes()),
                part => {
                    let value = value(part, captures, variables);
                    match (&mut query, part) {
                        (Some(query), Part::Variable(Variable::Query)) => query.extend_from_slice(&value),
                        (Some(query), _) => query.extend_from_slice(encode(&value, Place::Query).as_bytes()),
                        (None, _) => path.extend_from_slice(&value),
                    }
                }
            }
        }
        (path, query)
    }

    /// The URL of a redirect, encoded.
    pub fn expand_address(&self, captures: &Captures, variables: &impl Variables) -> String {
        let mut address = String::new();
        for part in &self.parts {
            if let Part::Literal(text) = part {
                address.push_str(text);
                continue;
            }
            let value = value(part, captures, variables);
            let place = place_at(&address);
            // A captured whole path may follow a host; nothing else may extend the host's name.
            if place == Place::Authority
                && !matches!(part, Part::Variable(Variable::Host | Variable::Scheme))
                && !value.starts_with(b"/")
            {
                address.push('/');
            }
            if *part == Part::Variable(Variable::Query) {
                address.push_str(&encode_query(&value));
            } else {
                address.push_str(&encode(&value, place));
            }
        }
        // `//x` would be read as a host.
        if address.starts_with("//") && !self.text.starts_with("//") {
            let path = address.trim_start_matches('/');
            return format!("/{path}");
        }
        address
    }
}

/// Splits the name or number after a dollar sign from the rest.
fn name(text: &str) -> Option<(&str, &str)> {
    if let Some(inner) = text.strip_prefix('{') {
        let (name, rest) = inner.split_once('}')?;
        return is_name(name).then_some((name, rest));
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count().min(2);
    let letters = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let length = if digits > 0 { digits } else { letters };
    (length > 0).then(|| text.split_at(length))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn value(part: &Part, captures: &Captures, variables: &impl Variables) -> Vec<u8> {
    match part {
        Part::Literal(text) => text.as_bytes().to_vec(),
        Part::Number(number) => captures.number(*number).to_vec(),
        Part::Name(name) => captures.name(name).unwrap_or_default().to_vec(),
        Part::Variable(variable) => variables.variable(*variable),
    }
}

/// The position at the end of an incomplete URL.
fn place_at(address: &str) -> Place {
    if address.contains(['?', '#']) {
        return Place::Query;
    }
    match address.split_once("://") {
        Some((_, after)) if !after.contains('/') && !after.is_empty() => Place::Authority,
        _ => Place::AddressPath,
    }
}

fn encode(value: &[u8], place: Place) -> String {
    let kept: &[u8] = match place {
        Place::Query => b"-._~/:@!*'(),",
        Place::Path | Place::Authority | Place::AddressPath => b"-._~/:@!$&'()*+,;=[]",
    };
    let mut text = String::with_capacity(value.len() + 8);
    for &byte in value {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Encodes a query for a URL: keeps its spelling, except for characters that are not allowed.
pub fn encode_query(query: &[u8]) -> String {
    let mut text = String::with_capacity(query.len() + 8);
    for &byte in query {
        if byte <= b' ' || byte >= 0x7f || matches!(byte, b'<' | b'>' | b'"' | b'`' | b'#') {
            let _ = write!(text, "%{byte:02X}");
        } else {
            text.push(char::from(byte));
        }
    }
    text
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
