//! The source of rules: a tree of values with their lines. The reader of a file makes it, so this crate knows no file
//! format; and [`Problem`], which leads back to the line.

use std::fmt;

/// A value, and the line it begins on (from 1; 0 where there is no file).
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its line.
    pub line: usize,
}

/// Kinds of values.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// True or false.
    Bool(bool),
    /// A list.
    List(Vec<Node>),
    /// A table, in the order of the file.
    Table(Vec<Entry>),
    /// Something that no rule has, such as a date.
    Other,
}

/// A key of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The line it stands on.
    pub line: usize,
    /// Its value.
    pub node: Node,
}

impl Node {
    /// The entries of a table; none for anything else.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        if let Value::Table(entries) = &self.value { entries } else { &[] }
    }

    /// The text of a text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// The items of a list; for anything else the value itself, since one item may be written without brackets.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        if let Value::List(items) = &self.value { items } else { std::slice::from_ref(self) }
    }
}

/// One thing that is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; 0 where there is no file.
    pub line: usize,
    /// The key it is about; empty for the rule as a whole.
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
