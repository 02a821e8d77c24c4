//! `howdah.toml` and the rules of applications as a tree in which every key and value has its line number; and
//! [`Problem`], an error with its line.

use std::fmt;

use toml::de::{DeTable, DeValue};

/// A value and its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub tree: Tree,
    /// The line on which the value begins, from 1; 0 if it is not from a file.
    pub line: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    Bool(bool),
    /// A date or time, or a number out of range, which no setting accepts.
    Date,
    List(Vec<Node>),
    /// A table, in the order of the file.
    Table(Vec<Entry>),
}

/// A key of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its name.
    pub key: String,
    /// The key's line.
    pub line: usize,
    pub node: Node,
}

impl Node {
    /// A text that is not from a file.
    pub fn of_text(text: &str) -> Self {
        Self { tree: Tree::Text(text.to_owned()), line: 0 }
    }

    /// Parses a literal in the syntax of `howdah.toml`.
    pub fn from_literal(literal: &str) -> Option<Self> {
        let document = parse(&format!("x = {literal}")).ok()?;
        match document.tree {
            Tree::Table(entries) => entries.into_iter().next().map(|entry| entry.node),
            _ => None,
        }
    }

    /// Description of the value for error messages.
    pub fn describe(&self) -> String {
        match &self.tree {
            Tree::Text(text) => quoted(text),
            Tree::Integer(number) => number.to_string(),
            Tree::Float(number) => number.to_string(),
            Tree::Bool(flag) => flag.to_string(),
            Tree::Date => "a date".to_owned(),
            Tree::List(_) => "a list".to_owned(),
            Tree::Table(_) => "a table".to_owned(),
        }
    }

    /// The entries of a table; empty for other values.
    pub fn entries(&self) -> &[Entry] {
        if let Tree::Table(entries) = &self.tree { entries } else { &[] }
    }

    pub fn text(&self) -> Option<&str> {
        if let Tree::Text(text) = &self.tree { Some(text) } else { None }
    }

    /// The items of a list; for other values the value itself, since a single item may be written without brackets.
    pub fn items(&self) -> &[Self] {
        if let Tree::List(items) = &self.tree { items } else { std::slice::from_ref(self) }
    }
}

/// Parses a document.
///
/// # Errors
/// The line number and first message of each line with a syntax error.
pub fn parse(text: &str) -> Result<Node, Vec<(usize, String)>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let lines = Lines::new(text);
        return Ok(Node { tree: lines.table(table.get_ref()), line: 1 });
    }
    let lines = Lines::new(text);
    let mut found: Vec<(usize, String)> = errors
        .iter()
        .map(|error| {
            let span = error.span().unwrap_or_default();
            let line = lines.line(span.start);
            let key = text.get(span).filter(|_| error.message() == DUPLICATE);
            let message = key.map_or_else(|| error.message().to_owned(), |key| duplicate(text, key, line));
            (line, message)
        })
        .collect();
    found.sort_by_key(|(line, _)| *line);
    // Further errors on the same line are mostly consequences of the first.
    found.dedup_by_key(|(line, _)| *line);
    Err(found)
}

/// The TOML parser's message for a repeated key.
const DUPLICATE: &str = "duplicate key";

/// Formats the error for a repeated key, with the line that set it first.
fn duplicate(text: &str, key: &str, line: usize) -> String {
    let sets = |(_, written): &(usize, &str)| {
        let rest = written.trim_start().trim_start_matches('[').strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start().starts_with(['=', '.', ']']))
    };
    let before: Vec<(usize, &str)> = text.lines().enumerate().take(line.saturating_sub(1)).collect();
    let Some((at, first)) = before.into_iter().rev().find(sets) else { return format!("{DUPLICATE} {key}") };
    let is_section = first.trim_start().starts_with('[');
    let advice = match is_section {
        true => format!("; put all of it into the one section [{key}]"),
        false => String::new(),
    };
    format!("{DUPLICATE} {key}, which line {} already sets{advice}", at + 1)
}

/// The start offset of each line of a text.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|&start| start <= offset)
    }

    fn table(&self, table: &DeTable<'_>) -> Tree {
        let mut entries: Vec<Entry> = table
            .iter()
            .map(|(key, value)| Entry {
                key: key.get_ref().to_string(),
                line: self.line(key.span().start),
                node: Node { tree: self.tree(value.get_ref()), line: self.line(value.span().start) },
            })
            .collect();
        entries.sort_by_key(|entry| entry.line);
        Tree::Table(entries)
    }

    fn tree(&self, value: &DeValue<'_>) -> Tree {
        match value {
            DeValue::String(text) => Tree::Text(text.to_string()),
            DeValue::Integer(number) => {
                i64::from_str_radix(number.as_str(), number.radix()).map_or(Tree::Date, Tree::Integer)
            }
            DeValue::Float(number) => number.as_str().parse().map_or(Tree::Date, Tree::Float),
            DeValue::Boolean(flag) => Tree::Bool(*flag),
            DeValue::Datetime(_) => Tree::Date,
            DeValue::Array(items) => Tree::List(
                items
                    .iter()
                    .map(|item| Node { tree: self.tree(item.get_ref()), line: self.line(item.span().start) })
                    .collect(),
            ),
            DeValue::Table(table) => self.table(table),
        }
    }
}
/// Quotes a text as in TOML.
pub fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// An error in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; 0 if the rule is not from a file.
    pub line: usize,
    /// The affected key; empty for the whole rule.
    pub key: String,
    /// The mistake, and the remedy.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(line: usize, key: &str, message: impl Into<String>) -> Self {
        Self { line, key: key.to_owned(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{} ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_key_is_reported_with_both_lines() {
        let said = |text: &str| parse(text).unwrap_err().remove(0);
        assert_eq!(
            said("workers = 1\n\nworkers = 2"),
            (3, "duplicate key workers, which line 1 already sets".to_owned())
        );
        let (line, message) = said("[http]\nmax_body = 1\n[log]\nlevel = \"info\"\n[http]\nmax_uri = 2");
        assert_eq!(
            (line, &*message),
            (5, "duplicate key http, which line 1 already sets; put all of it into the one section [http]")
        );
        let (line, message) = said("http.max_body = 1\n[http]\nmax_uri = 2");
        assert_eq!((line, &*message), (2, "duplicate key http, which line 1 already sets"));
    }
}
