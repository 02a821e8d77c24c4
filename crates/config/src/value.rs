//! How the value of one setting is written and read: durations, sizes, lists, maps and plain scalars. A value comes
//! from `howdah.toml` as a [`Node`] or from a flag or the environment as text; both end in the same type.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::address::{ListenAddr, TrustedProxy};
use crate::choice::{
    AccessFormat, AccessTarget, Algorithm, LogFormat, LogLevel, LogTarget, Mode, SandboxProfile, Symlinks, SystemCalls,
    TrustedHeader,
};
use crate::document::{Node, Tree};
use crate::pattern::{NamePattern, PathPattern};

/// How a value is written; decides the words in errors, the reference and the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Number,
    /// A whole number that may be below 0.
    Signed,
    /// A duration such as `"30s"`.
    Duration,
    /// A size such as `"64K"`.
    Size,
    /// Any text.
    Text,
    /// A path in the file system.
    Path,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, or a path.
    ChoiceOrPath(&'static [&'static str]),
    /// An address to listen on.
    Address,
    /// An address, a network or `"unix"`.
    Network,
    /// A number of workers: `4` or `"2-8"`.
    Workers,
    /// Permissions of a file, in octal.
    Mode,
    /// A pattern of request paths.
    Pattern,
    /// A pattern of file names.
    NamePattern,
    /// A list of values of one kind.
    List(&'static Kind),
    /// A table of names and values.
    Map,
}

impl Kind {
    /// What is expected, in words that follow "expected".
    #[must_use]
    pub fn expected(self) -> String {
        let words = |list: &[&str]| list.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Number | Self::Signed => "a whole number".to_owned(),
            Self::Duration => "a duration (\"500ms\", \"30s\", \"2m\", \"1h\" or a number of seconds)".to_owned(),
            Self::Size => "a size (\"64K\", \"8M\", \"1G\" or a number of bytes)".to_owned(),
            Self::Text => "text in quotes".to_owned(),
            Self::Path => "a path in quotes".to_owned(),
            Self::Choice(list) => format!("one of {}", words(list)),
            Self::ChoiceOrPath(list) => format!("{} or a path", words(list)),
            Self::Address => "an address (\"127.0.0.1:8080\", \":8080\", \"[::1]:8080\" or \"unix:/path\")".to_owned(),
            Self::Network => "an address, a network such as \"10.0.0.0/8\", or \"unix\"".to_owned(),
            Self::Workers => "a number of workers (4) or a range (\"2-8\")".to_owned(),
            Self::Mode => "permissions in octal and in quotes, such as \"0660\"".to_owned(),
            Self::Pattern => "a path pattern that starts with \"/\"".to_owned(),
            Self::NamePattern => "a file name's pattern without a slash, such as \"*.inc\"".to_owned(),
            Self::List(of) => format!("a list, each item {}", of.expected()),
            Self::Map => "a table of names and values".to_owned(),
        }
    }
}

/// A type that settings can have.
pub(crate) trait Value: Sized {
    /// How it is written.
    const KIND: Kind;

    /// Reads it from `howdah.toml`; `None` if it is of the wrong type or not understood.
    fn from_node(node: &Node) -> Option<Self> {
        match &node.tree {
            Tree::Text(text) => Self::from_text(text),
            _ => None,
        }
    }

    /// Reads it from a flag or the environment.
    fn from_text(text: &str) -> Option<Self>;

    /// Writes it as it would stand in `howdah.toml`.
    fn show(&self) -> String;

    /// Its size, where the row's range is to be checked.
    fn magnitude(&self) -> Option<u64> {
        None
    }

    /// Takes the value of a stronger source (a flag over `howdah.toml`).
    fn over(&mut self, stronger: Self) {
        *self = stronger;
    }

    /// Takes a further value of the same source (a flag that is given twice).
    fn more(&mut self, further: Self) {
        *self = further;
    }

    /// The part of a value that `from_node` does not understand, for the error.
    fn culprit(node: &Node) -> &Node {
        node
    }

    /// What has an origin of its own within the value: the names of a table.
    fn parts(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The paths in the value, which are to be made absolute.
    fn paths(&mut self) -> Vec<&mut PathBuf> {
        Vec::new()
    }
}

/// The value of a literal in the table of settings, which a test has checked.
pub(crate) fn from_literal<T: Value>(literal: &str) -> T {
    let value = Node::from_literal(literal).and_then(|node| T::from_node(&node));
    value.unwrap_or_else(|| unreachable!("the table of settings holds a broken default: {literal}"))
}

/// Text in quotes, as TOML writes it.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// The number of bytes, as a length in memory.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// How many workers a pool keeps: always `min`, up to `max` while there is work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerRange {
    /// The number that is always kept.
    pub min: u32,
    /// The largest number.
    pub max: u32,
}

/// Permissions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileMode(pub u32);

impl Value for FileMode {
    const KIND: Kind = Kind::Mode;

    fn from_text(text: &str) -> Option<Self> {
        let digits = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let mode = digits.then(|| u32::from_str_radix(text, 8).ok())??;
        (mode <= 0o777).then_some(Self(mode))
    }

    fn show(&self) -> String {
        quoted(&format!("{:04o}", self.0))
    }
}

impl Value for bool {
    const KIND: Kind = Kind::Bool;

    fn from_node(node: &Node) -> Option<Self> {
        if let Tree::Bool(value) = node.tree { Some(value) } else { None }
    }

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "true" | "1" | "on" | "yes" => Some(true),
            "false" | "0" | "off" | "no" => Some(false),
            _ => None,
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Whole numbers.
macro_rules! number {
    ($($ty:ty: $kind:ident),+) => { $(
        impl Value for $ty {
            const KIND: Kind = Kind::$kind;

            fn from_node(node: &Node) -> Option<Self> {
                if let Tree::Integer(value) = node.tree { value.try_into().ok() } else { None }
            }

            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn show(&self) -> String {
                self.to_string()
            }

            fn magnitude(&self) -> Option<u64> {
                u64::try_from(*self).ok()
            }
        }
    )+ };
}
number!(i32: Signed, u16: Number, u32: Number, u64: Number, usize: Number);

impl Value for Duration {
    const KIND: Kind = Kind::Duration;

    fn from_node(node: &Node) -> Option<Self> {
        match &node.tree {
            Tree::Integer(seconds) => u64::try_from(*seconds).ok().map(Self::from_secs),
            Tree::Float(seconds) => Self::try_from_secs_f64(*seconds).ok(),
            Tree::Text(text) => Self::from_text(text),
            _ => None,
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let factor = match unit.trim() {
            "us" => 1e-6,
            "ms" => 1e-3,
            "" | "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        };
        Self::try_from_secs_f64(number.parse::<f64>().ok()? * factor).ok()
    }

    fn show(&self) -> String {
        let micros = self.as_micros();
        let (number, unit) = match micros {
            0 => (0, "s"),
            _ if micros.is_multiple_of(3_600_000_000) => (micros / 3_600_000_000, "h"),
            _ if micros.is_multiple_of(60_000_000) && micros >= 300_000_000 => (micros / 60_000_000, "m"),
            _ if micros.is_multiple_of(1_000_000) => (micros / 1_000_000, "s"),
            _ if micros.is_multiple_of(1_000) => (micros / 1_000, "ms"),
            _ => (micros, "us"),
        };
        format!("\"{number}{unit}\"")
    }
}

impl Value for ByteSize {
    const KIND: Kind = Kind::Size;

    fn from_node(node: &Node) -> Option<Self> {
        match &node.tree {
            Tree::Integer(bytes) => u64::try_from(*bytes).ok().map(Self),
            Tree::Text(text) => Self::from_text(text),
            _ => None,
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let shift = match unit.trim().to_ascii_uppercase().as_str() {
            "" | "B" => 0,
            "K" | "KB" | "KIB" => 10,
            "M" | "MB" | "MIB" => 20,
            "G" | "GB" | "GIB" => 30,
            "T" | "TB" | "TIB" => 40,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(1 << shift).map(Self)
    }

    fn show(&self) -> String {
        let units = [(30, "G"), (20, "M"), (10, "K")];
        match units.iter().find(|(shift, _)| self.0 != 0 && self.0.is_multiple_of(1 << shift)) {
            Some((shift, unit)) => format!("\"{}{unit}\"", self.0 >> shift),
            None => self.0.to_string(),
        }
    }

    fn magnitude(&self) -> Option<u64> {
        Some(self.0)
    }
}

impl Value for String {
    const KIND: Kind = Kind::Text;

    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn show(&self) -> String {
        quoted(self)
    }
}

impl Value for PathBuf {
    const KIND: Kind = Kind::Path;

    fn from_text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::from(text))
    }

    fn show(&self) -> String {
        quoted(&self.to_string_lossy())
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        vec![self]
    }
}

/// Types that have a "none": what is written for it.
macro_rules! optional {
    ($($ty:ty: $none:literal, $is_none:expr;)+) => { $(
        impl Value for Option<$ty> {
            const KIND: Kind = <$ty as Value>::KIND;

            fn from_node(node: &Node) -> Option<Self> {
                if matches!(&node.tree, Tree::Text(text) if text.is_empty()) {
                    return matches!(Self::KIND, Kind::Text | Kind::Path | Kind::Pattern | Kind::Mode).then_some(None);
                }
                let value = <$ty as Value>::from_node(node)?;
                Some(if $is_none(&value) { None } else { Some(value) })
            }

            fn from_text(text: &str) -> Option<Self> {
                Self::from_node(&Node::text(text))
            }

            fn show(&self) -> String {
                self.as_ref().map_or_else(|| $none.to_owned(), Value::show)
            }

            fn magnitude(&self) -> Option<u64> {
                self.as_ref().and_then(Value::magnitude)
            }

            fn paths(&mut self) -> Vec<&mut PathBuf> {
                self.as_mut().map_or_else(Vec::new, Value::paths)
            }
        }
    )+ };
}
optional! {
    String: "\"\"", String::is_empty;
    PathBuf: "\"\"", |_: &PathBuf| false;
    PathPattern: "\"\"", |_: &PathPattern| false;
    Duration: "0", Duration::is_zero;
    ByteSize: "0", |size: &ByteSize| size.0 == 0;
    FileMode: "\"\"", |_: &FileMode| false;
}

/// Enums written as words.
macro_rules! words {
    ($($ty:ty),+) => { $(
        impl Value for $ty {
            const KIND: Kind = Kind::Choice(Self::WORDS);

            fn from_text(text: &str) -> Option<Self> {
                Self::from_word(text)
            }

            fn show(&self) -> String {
                quoted(self.word())
            }
        }
    )+ };
}
words!(Mode, SandboxProfile, SystemCalls, Symlinks, Algorithm, LogLevel, LogFormat, AccessFormat, TrustedHeader);

impl Value for LogTarget {
    const KIND: Kind = Kind::ChoiceOrPath(&["stderr"]);

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "" => None,
            "stderr" => Some(Self::Stderr),
            path => Some(Self::File(path.into())),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Stderr => quoted("stderr"),
            Self::File(path) => path.show(),
        }
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        if let Self::File(path) = self { vec![path] } else { Vec::new() }
    }
}

impl Value for AccessTarget {
    const KIND: Kind = Kind::ChoiceOrPath(&["off", "stdout"]);

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "" => None,
            "off" => Some(Self::Off),
            "stdout" => Some(Self::Stdout),
            path => Some(Self::File(path.into())),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Off => quoted("off"),
            Self::Stdout => quoted("stdout"),
            Self::File(path) => path.show(),
        }
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        if let Self::File(path) = self { vec![path] } else { Vec::new() }
    }
}

impl Value for ListenAddr {
    const KIND: Kind = Kind::Address;

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        quoted(&self.to_string())
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        if let Self::Unix(path) = self { vec![path] } else { Vec::new() }
    }
}

impl Value for TrustedProxy {
    const KIND: Kind = Kind::Network;

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        quoted(&self.to_string())
    }
}

impl Value for PathPattern {
    const KIND: Kind = Kind::Pattern;

    fn from_text(text: &str) -> Option<Self> {
        Self::new(text)
    }

    fn show(&self) -> String {
        quoted(self.as_str())
    }
}

impl Value for NamePattern {
    const KIND: Kind = Kind::NamePattern;

    fn from_text(text: &str) -> Option<Self> {
        Self::new(text)
    }

    fn show(&self) -> String {
        quoted(self.as_str())
    }
}

impl Value for WorkerRange {
    const KIND: Kind = Kind::Workers;

    fn from_node(node: &Node) -> Option<Self> {
        match &node.tree {
            Tree::Integer(count) => Self::from_text(&count.to_string()),
            Tree::Text(text) => Self::from_text(text),
            _ => None,
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        let (min, max) = match text.split_once('-') {
            Some((min, max)) => (min.trim().parse().ok()?, max.trim().parse().ok()?),
            None => text.parse().map(|count| (count, count)).ok()?,
        };
        (min >= 1 && min <= max && max <= 4096).then_some(Self { min, max })
    }

    fn show(&self) -> String {
        if self.min == self.max { self.min.to_string() } else { format!("\"{}-{}\"", self.min, self.max) }
    }
}

impl<T: Value + 'static> Value for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);

    fn from_node(node: &Node) -> Option<Self> {
        match &node.tree {
            Tree::List(items) => items.iter().map(T::from_node).collect(),
            // One item may be written without brackets.
            Tree::Text(_) | Tree::Integer(_) => T::from_node(node).map(|item| vec![item]),
            _ => None,
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(T::from_text).collect()
    }

    fn show(&self) -> String {
        format!("[{}]", self.iter().map(Value::show).collect::<Vec<_>>().join(", "))
    }

    fn more(&mut self, further: Self) {
        self.extend(further);
    }

    fn culprit(node: &Node) -> &Node {
        match &node.tree {
            Tree::List(items) => items.iter().find(|item| T::from_node(item).is_none()).unwrap_or(node),
            _ => node,
        }
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        self.iter_mut().flat_map(Value::paths).collect()
    }
}

impl Value for BTreeMap<String, String> {
    const KIND: Kind = Kind::Map;

    fn from_node(node: &Node) -> Option<Self> {
        let Tree::Table(entries) = &node.tree else { return None };
        entries.iter().map(|entry| Some((entry.key.clone(), scalar(&entry.node)?))).collect()
    }

    fn from_text(text: &str) -> Option<Self> {
        let (key, value) = text.split_once('=').unwrap_or((text, "1"));
        (!key.trim().is_empty()).then(|| Self::from([(key.trim().to_owned(), value.trim().to_owned())]))
    }

    fn show(&self) -> String {
        let key = |key: &str| {
            let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
            if bare { key.to_owned() } else { quoted(key) }
        };
        let entries = self.iter().map(|(k, v)| format!("{} = {}", key(k), quoted(v))).collect::<Vec<_>>();
        if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
    }

    fn over(&mut self, stronger: Self) {
        self.extend(stronger);
    }

    fn more(&mut self, further: Self) {
        self.extend(further);
    }

    fn culprit(node: &Node) -> &Node {
        match &node.tree {
            Tree::Table(entries) => {
                entries.iter().map(|entry| &entry.node).find(|node| scalar(node).is_none()).unwrap_or(node)
            }
            _ => node,
        }
    }

    fn parts(&self) -> Vec<&str> {
        self.keys().map(String::as_str).collect()
    }
}

/// The text of a value in a table of names and values.
fn scalar(node: &Node) -> Option<String> {
    match &node.tree {
        Tree::Text(text) => Some(text.clone()),
        Tree::Integer(number) => Some(number.to_string()),
        Tree::Float(number) => Some(number.to_string()),
        Tree::Bool(flag) => Some(flag.to_string()),
        Tree::Date | Tree::List(_) | Tree::Table(_) => None,
    }
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
