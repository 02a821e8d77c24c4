//! Notes of the evaluation for `howdah explain`. The result is the same with and without: a disabled trace costs
//! nothing and evaluates no rule that the index has excluded.

/// Takes notes of which rules matched, and why others did not.
pub trait Trace {
    /// Notes are taken.
    const ON: bool;

    /// A rule was looked at.
    fn rule(&mut self, at: usize, name: &str, verdict: Verdict<'_>);
}

/// Result of the evaluation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// Its conditions hold; this is what it does.
    Matched(&'a [String]),
    /// A condition does not hold: its key and what it asks for.
    Missed(&'static str, String),
    /// Not looked at: a rule before it has ended the request or was the last.
    Skipped,
}

/// Takes no notes.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTrace;

impl Trace for NoTrace {
    const ON: bool = false;

    fn rule(&mut self, _at: usize, _name: &str, _verdict: Verdict<'_>) {}
}

/// Takes notes as lines of text.
#[derive(Debug, Clone, Default)]
pub struct Lines(pub Vec<String>);

impl Trace for Lines {
    const ON: bool = true;

    fn rule(&mut self, _at: usize, name: &str, verdict: Verdict<'_>) {
        self.0.push(match verdict {
            Verdict::Matched([]) => format!("{name}: matches"),
            Verdict::Matched(actions) => format!("{name}: matches: {}", actions.join(", ")),
            Verdict::Missed(key, wanted) => format!("{name}: no, {key} is not {wanted}"),
            Verdict::Skipped => format!("{name}: not looked at"),
        });
    }
}
