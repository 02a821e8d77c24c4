//! Facts about one setting: a row of the table that `settings!` makes (`table`).

use crate::kind::Kind;

/// One setting, as the reference, the schema and the flags see it.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The section of `howdah.toml` it stands in; empty at the top level.
    pub section: &'static str,
    /// Its key in that section.
    pub key: &'static str,
    /// Syntax of its value.
    pub kind: Kind,
    /// Its default: the text that would be written in `howdah.toml`, or the words that describe a computed one.
    pub default: &'static str,
    /// `default` describes a value that is computed when the settings are loaded.
    pub computed: bool,
    /// The smallest and largest value allowed, for whole numbers.
    pub range: Option<(u64, u64)>,
    /// The long flag of `howdah serve` that sets it too.
    pub flag: Option<&'static str>,
    /// Its meaning.
    pub doc: &'static str,
    /// A value, as it would be written in `howdah.toml`.
    pub example: &'static str,
}

impl Row {
    /// Its meaning, as plain text: paragraphs of one line each.
    #[must_use]
    pub fn text(&self) -> String {
        let paragraphs = self.doc.split("\n\n").map(|paragraph| {
            paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
        });
        paragraphs.filter(|paragraph| !paragraph.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// The environment variable that sets it, where its value can be written as one text.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        let name = self.name().replace('.', "_").to_ascii_uppercase();
        (!matches!(self.kind, Kind::Map) && !self.is_of_list()).then(|| format!("HOWDAH_{name}"))
    }

    /// `true` if it belongs to a repeatable section (`[[site]]`, `[proxy.NAME]`).
    #[must_use]
    pub fn is_of_list(&self) -> bool {
        matches!(self.section, "site" | "proxy")
    }

    /// The setting's full name: section and key.
    #[must_use]
    pub fn name(&self) -> String {
        if self.section.is_empty() { self.key.to_owned() } else { format!("{}.{}", self.section, self.key) }
    }
}
