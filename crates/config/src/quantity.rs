//! Values with a unit or a special syntax: durations, sizes, worker counts, permissions.

use std::path::PathBuf;
use std::time::Duration;

use crate::kind::Kind;
use crate::value::{Value, optional};
use howdah_rules::quantity;
use howdah_rules::tree::{Node, Tree, quoted};

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
        quantity::duration(text)
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

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

impl ByteSize {
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// The number of bytes as `usize`, for a length in memory.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Written in the largest unit that fits, as PHP reads it.
impl std::fmt::Display for ByteSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let units = [(30, "G"), (20, "M"), (10, "K")];
        match units.iter().find(|(shift, _)| self.0 != 0 && self.0.is_multiple_of(1 << shift)) {
            Some((shift, unit)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
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
        quantity::size(text).map(Self)
    }

    fn show(&self) -> String {
        let text = self.to_string();
        if text.bytes().all(|byte| byte.is_ascii_digit()) { text } else { format!("\"{text}\"") }
    }

    fn magnitude(&self) -> Option<u64> {
        Some(self.0)
    }
}

fn number_or_text(node: &Node) -> Option<String> {
    match &node.tree {
        Tree::Integer(count) => Some(count.to_string()),
        Tree::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// Number of workers of a pool: always `min`, which may be 0, and up to `max` under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerRange {
    /// Number of workers that are always kept.
    pub min: u32,
    /// Maximum number of workers.
    pub max: u32,
}

impl Value for WorkerRange {
    const KIND: Kind = Kind::Workers;

    fn from_node(node: &Node) -> Option<Self> {
        Self::from_text(&number_or_text(node)?)
    }

    fn from_text(text: &str) -> Option<Self> {
        let (min, max) = match text.split_once('-') {
            Some((min, max)) => (min.trim().parse().ok()?, max.trim().parse().ok()?),
            None => text.parse().map(|count| (count, count)).ok()?,
        };
        (max >= 1 && min <= max && max <= 4096).then_some(Self { min, max })
    }

    fn show(&self) -> String {
        if self.min == self.max { self.min.to_string() } else { format!("\"{}-{}\"", self.min, self.max) }
    }
}

/// Number of idle workers that a pool keeps ready: at least `min`, and more than `max` only briefly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SpareWorkers {
    /// More workers are started while fewer than this are idle.
    pub min: u32,
    /// Idle workers above this number are stopped soon; with `None`, each stops after a long idle time.
    pub max: Option<u32>,
}

impl Value for SpareWorkers {
    const KIND: Kind = Kind::Workers;

    fn from_node(node: &Node) -> Option<Self> {
        Self::from_text(&number_or_text(node)?)
    }

    fn from_text(text: &str) -> Option<Self> {
        let (min, max): (u32, Option<u32>) = match text.split_once('-') {
            Some((min, max)) => (min.trim().parse().ok()?, Some(max.trim().parse().ok()?)),
            None => (text.parse().ok()?, None),
        };
        (max.is_none_or(|max| min <= max && max >= 1) && min.max(max.unwrap_or(0)) <= 4096).then_some(Self { min, max })
    }

    fn show(&self) -> String {
        self.max.map_or_else(|| self.min.to_string(), |max| format!("\"{}-{max}\"", self.min))
    }
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

optional! {
    Duration: "0", Duration::is_zero;
    ByteSize: "0", |size: &ByteSize| size.0 == 0;
    FileMode: "\"\"", |_: &FileMode| false;
}
