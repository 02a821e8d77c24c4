//! The report of an import: the result for each line of the configuration.

use super::directive::Directive;
use std::collections::BTreeSet;

#[derive(Debug, Default, Clone)]
pub(super) struct Report {
    lines: Vec<(usize, String, String)>,
    /// Lines of access control that has no counterpart.
    unprotected: BTreeSet<usize>,
}

impl Report {
    /// Records the result for a directive: `taken: …`, `changed: …` or `dropped: …`.
    pub(super) fn say(&mut self, directive: &Directive, became: impl Into<String>) {
        let line = (directive.line, directive.shown(), became.into());
        // A section that applies to several sites is listed once.
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    pub(super) fn dropped(&mut self, directive: &Directive, why: &str) {
        self.say(directive, format!("dropped: {why}"));
    }

    /// Drops a block with all of its lines, and notes those that refuse clients.
    pub(super) fn dropped_block(&mut self, directive: &Directive, why: &str) {
        self.dropped(directive, why);
        if refuses(directive) {
            self.unprotected.insert(directive.line);
        }
        directive.inner().iter().for_each(|inner| self.dropped_block(inner, why));
    }

    /// A comment that names lines of access control which have become nothing.
    pub(super) fn warning(&self) -> String {
        let lines: Vec<String> = self.unprotected.iter().map(usize::to_string).collect();
        match lines.as_slice() {
            [] => String::new(),
            _ => format!("# NOT TAKEN OVER: access control in the lines {}. Write it as rules.\n", lines.join(", ")),
        }
    }

    /// Formats the report as comments, in the order of the lines.
    pub(super) fn comments(mut self) -> String {
        self.lines.sort_by_key(|(line, ..)| *line);
        let lines = self.lines.into_iter().map(|(line, what, became)| format!("# {line}: {what}: {became}\n"));
        format!("\n# The lines of the configuration:\n{}", lines.collect::<String>())
    }
}

/// `true` for lines that refuse some clients.
pub(super) fn refuses(directive: &Directive) -> bool {
    let name = directive.name.to_ascii_lowercase();
    let is_return = name == "return" && matches!(directive.word(0), "401" | "403" | "404" | "444");
    let is_restriction = ["require", "deny", "auth"].iter().any(|start| name.starts_with(start));
    is_return || (is_restriction && !directive.shown().to_ascii_lowercase().ends_with(" all granted"))
}
