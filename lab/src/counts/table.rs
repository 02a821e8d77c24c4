//! The table of the maximum cost of a request: TOML, one `[case."NAME"]` each, with a reason.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::{Build, SLACK, TOLERANCE};

/// Cost of one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figures {
    /// Of the server's process.
    pub(super) instructions: f64,
    /// Of the server's heap.
    pub(super) allocations: f64,
    pub(super) server_calls: f64,
    pub(super) php_calls: f64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// `None` until they are counted with this profile.
    instructions: Option<f64>,
    instructions_quick: Option<f64>,
    allocations: f64,
    server_calls: f64,
    php_calls: f64,
    /// Explanation of the figures, and of their last change.
    #[serde(default)]
    why: String,
}

impl Row {
    const fn instructions(&self, build: Build) -> Option<f64> {
        match build {
            Build::Release => self.instructions,
            Build::Quick => self.instructions_quick,
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    #[serde(default)]
    case: BTreeMap<String, Row>,
}

impl Table {
    /// Reads a table; a missing file is an empty one.
    pub(super) fn read(path: &Path) -> Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => toml::from_str(&text).with_context(|| format!("{}", path.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let head = "# What one request costs, at one connection and one worker: `make counts` fails where it costs \
                    more.\n# A change that raises a figure explains why. Instructions and allocations are the \
                    server's (of both profiles).\n\n";
        fs::write(path, format!("{head}{}", toml::to_string(self)?))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    pub(super) fn set(&mut self, case: &str, counted: Figures, build: Build) {
        let hundredths = |figure: f64| (figure * 100.0).round() / 100.0;
        let row = self.case.entry(case.to_owned()).or_default();
        let instructions = Some(counted.instructions.round());
        match build {
            Build::Release => row.instructions = instructions,
            Build::Quick => row.instructions_quick = instructions,
        }
        row.allocations = hundredths(counted.allocations);
        row.server_calls = hundredths(counted.server_calls);
        row.php_calls = hundredths(counted.php_calls);
    }

    /// Returns a line for each figure that exceeds the table's, or that the table lacks.
    pub(super) fn above(&self, case: &str, counted: &Figures, build: Build) -> Vec<String> {
        let Some(row) = self.case.get(case) else { return vec![format!("{case}: not in the table")] };
        let Some(instructions) = row.instructions(build) else {
            return vec![format!("{case}: the table has no instructions of this profile")];
        };
        let pairs = [
            ("instructions", counted.instructions, instructions, 0.0),
            ("allocations", counted.allocations, row.allocations, SLACK),
            ("system calls of the server", counted.server_calls, row.server_calls, SLACK),
            ("system calls of PHP", counted.php_calls, row.php_calls, SLACK),
        ];
        let above = pairs.into_iter().filter(|(_, is, may, slack)| *is > may * (1.0 + TOLERANCE) + slack);
        above.map(|(what, is, may, _)| format!("{case}: {is:.2} {what}, and {may:.2} in the table")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTED: Figures = Figures { instructions: 30_000.4, allocations: 21.0, server_calls: 4.004, php_calls: 2.0 };

    #[test]
    fn costs_above_the_table_are_named() {
        let mut table = Table::default();
        assert_eq!(table.above("hello", &COUNTED, Build::Release), ["hello: not in the table"]);
        table.set("hello", COUNTED, Build::Release);
        assert_eq!(table.above("hello", &COUNTED, Build::Release), [""; 0]);
        let more = Figures { php_calls: 3.0, instructions: 31_000.0, server_calls: 4.5, ..COUNTED };
        let above = table.above("hello", &more, Build::Release);
        assert_eq!(above, ["hello: 3.00 system calls of PHP, and 2.00 in the table"]);
    }

    #[test]
    fn each_profile_has_its_instructions() {
        let mut table = Table::default();
        table.set("hello", COUNTED, Build::Release);
        let quick = Figures { instructions: 60_000.0, ..COUNTED };
        let unknown = table.above("hello", &quick, Build::Quick);
        assert_eq!(unknown, ["hello: the table has no instructions of this profile"]);
        table.set("hello", quick, Build::Quick);
        assert_eq!(table.above("hello", &quick, Build::Quick), [""; 0]);
        let slow = table.above("hello", &quick, Build::Release);
        assert_eq!(slow, ["hello: 60000.00 instructions, and 30000.00 in the table"]);
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counts.toml");
        assert!(Table::read(&path).unwrap().case.is_empty());
        let mut table = Table::default();
        table.set("hello", COUNTED, Build::Release);
        table.write(&path).unwrap();
        let read = Table::read(&path).unwrap();
        assert_eq!((read.case["hello"].server_calls, read.case["hello"].instructions_quick), (4.0, None));
        fs::write(&path, "[case.hello]\ninstructions = 1\n").unwrap();
        assert!(Table::read(&path).is_err());
    }
}
