//! Entries for log services: message, severity and fields. In the queue an entry is a line like any other, so line ends
//! in values are replaced, and the separators of fields removed.

use std::time::SystemTime;

/// Separates the fields of an entry.
const FIELD: char = '\u{1f}';
/// Replaces line ends within a value.
const LINE: char = '\u{1e}';

/// Severity of an entry, as in syslog (RFC 5424 6.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    Error = 3,
    Warning = 4,
    Info = 6,
    Debug = 7,
}

impl Priority {
    /// The severity of a log level.
    pub(crate) fn of(level: &str) -> Self {
        match level {
            "ERROR" => Self::Error,
            "WARN" => Self::Warning,
            "INFO" => Self::Info,
            _ => Self::Debug,
        }
    }
}

/// Builds an entry as a line of the queue.
#[derive(Debug)]
pub(crate) struct RecordBuilder(String);

impl RecordBuilder {
    /// Begins an entry about a component of the program.
    pub(crate) fn new(time: SystemTime, priority: Priority, about: &str, message: &str) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut line = Self(format!("{}{FIELD}{}", priority as u8, since.as_micros()));
        line.value(about);
        line.value(message);
        line
    }

    fn value(&mut self, value: &str) {
        self.0.push(FIELD);
        self.append(value);
    }

    fn append(&mut self, value: &str) {
        self.0.extend(value.chars().filter_map(|character| match character {
            '\n' => Some(LINE),
            FIELD | LINE => None,
            other => Some(other),
        }));
    }

    /// Adds a field; its name is converted to journald's rules.
    pub(crate) fn field(&mut self, name: &str, value: &str) {
        self.0.push(FIELD);
        self.0.push_str("HOWDAH_");
        let part = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        // journald rejects longer names.
        self.0.extend(name.chars().map(part).take(48));
        self.0.push('=');
        self.append(value);
    }

    /// Ends the entry and returns its line.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.push('\n');
        self.0.into_bytes()
    }
}

/// An entry parsed from a line of the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) priority: u8,
    /// Microseconds since the epoch.
    pub(crate) micros: u64,
    pub(crate) about: &'a str,
    message: &'a str,
    fields: &'a str,
}

impl<'a> Record<'a> {
    /// Parses a line of the queue, without its line end.
    pub(crate) fn read(line: &'a [u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let mut parts = line.splitn(5, FIELD);
        let mut part = || parts.next();
        let (priority, micros, about, message) = (part()?.parse().ok()?, part()?.parse().ok()?, part()?, part()?);
        Some(Self { priority, micros, about, message, fields: part().unwrap_or_default() })
    }

    pub(crate) fn message(&self) -> String {
        self.message.replace(LINE, "\n")
    }

    /// Names and values.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'a str, String)> + use<'a> {
        let pairs = self.fields.split(FIELD).filter_map(|field| field.split_once('='));
        pairs.map(|(name, value)| (name, value.replace(LINE, "\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_line_and_round_trips() {
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_micros(1_000_001);
        let mut writing = RecordBuilder::new(time, Priority::Warning, "po\u{1f}ol", "a\nb\u{1e}c");
        writing.field("worker.id", "3");
        writing.field("path", "/x=1\n2");
        let line = writing.end();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let record = Record::read(&line[..line.len() - 1]).unwrap();
        assert_eq!((record.priority, record.micros, record.about), (4, 1_000_001, "pool"));
        assert_eq!(record.message(), "a\nbc");
        let fields: Vec<_> = record.fields().collect();
        assert_eq!(fields, [("HOWDAH_WORKER_ID", "3".to_owned()), ("HOWDAH_PATH", "/x=1\n2".to_owned())]);
        assert!(Record::read(b"no record").is_none());
    }
}
