//! Facts about one setting: a row of the table that `settings!` makes (`table`).

use crate::kind::Kind;

/// One setting, as used by the reference, the schema and the flags.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its section in `howdah.toml`; empty at the top level.
    pub section: &'static str,
    /// Its key in that section.
    pub key: &'static str,
    /// Syntax of its value.
    pub kind: Kind,
    /// Its default: a literal in the syntax of `howdah.toml`, or the description of a computed value.
    pub default: &'static str,
    /// `default` describes a value that is computed when the settings are loaded.
    pub computed: bool,
    /// Minimum and maximum, for whole numbers.
    pub range: Option<(u64, u64)>,
    /// The long flag of `howdah serve` that sets it too.
    pub flag: Option<&'static str>,
    /// The server process reads it only at its start.
    pub restart: bool,
    /// Its documentation.
    pub doc: &'static str,
    /// An example value in the syntax of `howdah.toml`.
    pub example: &'static str,
}

/// Rows with their values as they would be written.
pub(crate) type Shown = Vec<(&'static Row, String)>;

impl Row {
    /// Its documentation as plain text: paragraphs of one line each.
    pub fn text(&self) -> String {
        let paragraphs = self.doc.split("\n\n").map(|paragraph| {
            paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
        });
        paragraphs.filter(|paragraph| !paragraph.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// The environment variable that sets it too, if its value can be written as one text.
    pub fn variable(&self) -> Option<String> {
        let name = self.name().replace('.', "_").to_ascii_uppercase();
        (!matches!(self.kind, Kind::Map) && !self.is_of_list()).then(|| format!("HOWDAH_{name}"))
    }

    /// `true` if it belongs to a repeatable section (`[[site]]`, `[proxy.NAME]`).
    pub fn is_of_list(&self) -> bool {
        matches!(self.section, "site" | "proxy")
    }

    /// The setting's full name: section and key.
    pub fn name(&self) -> String {
        if self.section.is_empty() { self.key.to_owned() } else { format!("{}.{}", self.section, self.key) }
    }
}
