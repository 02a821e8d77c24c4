//! The report of an import: the result for each line of the configuration.

use super::directive::Directive;
use std::collections::{BTreeSet, HashSet};

#[derive(Debug, Default, Clone)]
pub(super) struct Report {
    lines: Vec<(usize, String, String)>,
    seen: HashSet<(usize, String, String)>,
    /// Lines of access control that has no counterpart.
    unprotected: BTreeSet<usize>,
    /// Lines instead of which all clients are refused.
    closed: BTreeSet<usize>,
    /// Lines that include files which cannot be read.
    unread: BTreeSet<usize>,
}

impl Report {
    /// Records the result for a directive: `taken: …`, `changed: …` or `dropped: …`.
    pub(super) fn say(&mut self, directive: &Directive, became: impl Into<String>) {
        let line = (directive.line, directive.shown(), became.into());
        // A section that applies to several sites is listed once.
        if self.seen.insert(line.clone()) {
            self.lines.push(line);
        }
    }

    pub(super) fn dropped(&mut self, directive: &Directive, why: &str) {
        self.say(directive, format!("dropped: {why}"));
    }

    /// Drops a block with all of its lines, and notes those that refuse clients.
    pub(super) fn dropped_block(&mut self, directive: &Directive, why: &str) {
        self.dropped(directive, why);
        if directive.block.is_none() && refuses(directive) {
            self.unprotected.insert(directive.line);
        }
        directive.inner().iter().for_each(|inner| self.dropped_block(inner, why));
    }

    /// Records that all clients are refused in place of a block.
    pub(super) fn closed(&mut self, block: &Directive, why: &str) {
        self.closed.insert(block.line);
        let became = format!("changed: all clients are refused: {why}");
        self.say_all(block, &became);
    }

    /// Records the same result for a block and all of its lines.
    pub(super) fn say_all(&mut self, block: &Directive, became: &str) {
        self.say(block, became);
        block.inner().iter().for_each(|line| self.say_all(line, became));
    }

    /// Records a line that includes files which cannot be read.
    pub(super) fn unread(&mut self, include: &Directive) {
        self.unread.insert(include.line);
        self.dropped(include, "NO FILE OF THIS NAME CAN BE READ HERE: run the conversion where the file exists");
    }

    /// Comments that name lines whose access control is missing or stricter.
    pub(super) fn warning(&self) -> String {
        let warning = |lines: &BTreeSet<usize>, before: &str, after: &str| {
            let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
            if lines.is_empty() { String::new() } else { format!("# {before} {}{after}\n", lines.join(", ")) }
        };
        warning(&self.unprotected, "NOT TAKEN OVER: access control in lines", ". Write it as rules.")
            + &warning(&self.closed, "ALL CLIENTS ARE REFUSED because of conditions in lines", ": see \"LINE\" below.")
            + &warning(&self.unread, "NOT READ: files that are included in lines", ".")
    }

    /// Formats the report as comments, in the order of the lines.
    pub(super) fn comments(mut self) -> String {
        self.lines.sort_by_key(|(line, ..)| *line);
        let lines = self.lines.into_iter().map(|(line, what, became)| format!("# {line}: {what}: {became}\n"));
        format!("\n# The lines of the configuration:\n{}", lines.collect::<String>())
    }
}

/// `true` for lines that refuse some clients, and for blocks with such a line.
pub(super) fn refuses(directive: &Directive) -> bool {
    let name = directive.name.to_ascii_lowercase();
    // A redirect refuses no client, and 503 is maintenance.
    let is_status = |word: &String| word.len() == 3 && word.starts_with('4') && word.parse::<u16>().is_ok();
    let sends = match &*name {
        "return" => directive.words.first().is_some_and(is_status),
        "respond" | "error" => directive.words.iter().any(is_status),
        "abort" | "basic_auth" | "basicauth" | "forward_auth" => true,
        _ => false,
    };
    let is_restriction = ["require", "deny", "auth"].iter().any(|start| name.starts_with(start));
    sends
        || (is_restriction && !directive.shown().to_ascii_lowercase().ends_with(" all granted"))
        || directive.inner().iter().any(refuses)
}
