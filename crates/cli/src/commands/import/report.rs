//! The report of an import: the result for each line of the configuration.

use super::directive::Directive;

#[derive(Debug, Default, Clone)]
pub(super) struct Report(Vec<(usize, String, String)>);

impl Report {
    /// Records the result for a directive: `taken: …`, `changed: …` or `dropped: …`.
    pub(super) fn say(&mut self, directive: &Directive, became: impl Into<String>) {
        let line = (directive.line, directive.shown(), became.into());
        // A section that applies to several sites is listed once.
        if !self.0.contains(&line) {
            self.0.push(line);
        }
    }

    pub(super) fn dropped(&mut self, directive: &Directive, why: &str) {
        self.say(directive, format!("dropped: {why}"));
    }

    /// Formats the report as comments, in the order of the lines.
    pub(super) fn comments(mut self) -> String {
        self.0.sort_by_key(|(line, ..)| *line);
        let lines = self.0.into_iter().map(|(line, what, became)| format!("# {line}: {what}: {became}\n"));
        format!("\n# The lines of the configuration:\n{}", lines.collect::<String>())
    }
}
