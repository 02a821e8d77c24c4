//! Traces of the evaluation for `howdah explain`. Tracing does not change the result. A disabled trace costs nothing,
//! and rules that the index excludes are not evaluated.

/// Records which rules matched, and why others did not.
pub trait Trace {
    /// `true` if this trace records anything.
    const ON: bool;

    /// Called for each rule that was evaluated or skipped; for the names of a destination, only for matching rules.
    fn rule(&mut self, at: usize, name: &str, verdict: Verdict<'_>);
}

/// Result of the evaluation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// All conditions hold; has the descriptions of the actions.
    Matched(&'a [String]),
    /// A condition does not hold; has its key and the required value.
    Missed(&'static str, String),
    /// Not evaluated: an earlier rule ended the request, failed, or had `last`.
    Skipped,
}

/// Records nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTrace;

impl Trace for NoTrace {
    const ON: bool = false;

    fn rule(&mut self, _at: usize, _name: &str, _verdict: Verdict<'_>) {}
}

/// Records lines of text.
#[derive(Debug, Clone, Default)]
pub struct Lines(pub Vec<String>);

impl Trace for Lines {
    const ON: bool = true;

    fn rule(&mut self, _at: usize, name: &str, verdict: Verdict<'_>) {
        self.0.push(match verdict {
            Verdict::Matched([]) => format!("{name}: matches"),
            Verdict::Matched(actions) => format!("{name}: matches: {}", actions.join(", ")),
            Verdict::Missed(key, wanted) => format!("{name}: no, {key} is not {wanted}"),
            Verdict::Skipped => format!("{name}: not evaluated"),
        });
    }
}
