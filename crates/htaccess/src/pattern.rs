//! Patterns of directives. They are written for PCRE. Patterns that a linear engine supports run in linear time; all
//! others run by backtracking, with a limit on steps. Paths, headers and patterns are bytes, as in PCRE without UTF
//! mode.

use crate::dialect;
use crate::limits;
use crate::system::System;
use std::ops::Range;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    engine: Engine,
    /// Cost per byte, relative to the cheapest pattern.
    weight: u64,
}

#[derive(Debug)]
enum Engine {
    Linear(regex::bytes::Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

/// Remaining budget for the patterns of one file.
#[derive(Debug)]
pub(crate) struct PatternBudget(usize);

impl Default for PatternBudget {
    fn default() -> Self {
        Self(limits::PATTERNS)
    }
}

/// Remaining effort of one request.
#[derive(Debug)]
pub(crate) struct StepBudget {
    left: u64,
    /// The calling thread serves other connections as well.
    shared: bool,
}

impl Default for StepBudget {
    fn default() -> Self {
        Self { left: limits::EFFORT, shared: false }
    }
}

/// The cost exceeds the limit of this request or of this thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BudgetExceeded;

impl StepBudget {
    /// The effort available to the calling thread.
    pub(crate) fn of(system: &dyn System) -> Self {
        if system.is_shared() { Self { left: limits::SHARED_EFFORT, shared: true } } else { Self::default() }
    }

    /// Fails on a thread that serves other connections as well.
    pub(crate) fn needs_own_thread(&self) -> Result<(), BudgetExceeded> {
        if self.shared { Err(BudgetExceeded) } else { Ok(()) }
    }

    /// Charges for work about as expensive as reading `cost` bytes.
    pub(crate) fn spend(&mut self, cost: u64) -> Result<(), BudgetExceeded> {
        self.left = self.left.checked_sub(cost).ok_or(BudgetExceeded)?;
        Ok(())
    }
}

/// Groups 0 to 9 of a match.
#[derive(Debug, Clone, Default)]
pub(crate) struct Captures {
    subject: Vec<u8>,
    groups: [Option<(u32, u32)>; 10],
}

impl Captures {
    /// A group's text; empty if the group did not participate in the match.
    pub(crate) fn group(&self, number: usize) -> &[u8] {
        let range = self.groups.get(number).copied().flatten();
        range.and_then(|(from, to)| self.subject.get(from as usize..to as usize)).unwrap_or_default()
    }
}

impl Pattern {
    /// Compiles a pattern; the error is for the log.
    pub(crate) fn new(text: &str, ignore_case: bool, room: &mut PatternBudget) -> Result<Self, String> {
        if text.len() > limits::PATTERN {
            return Err(format!("a pattern of more than {} bytes", limits::PATTERN));
        }
        let translated = dialect::translate(text);
        let mut problem = String::new();
        for (step, &size) in limits::PATTERN_STEPS.iter().enumerate() {
            if size > room.0 {
                return Err("the patterns of this file take too much memory".to_owned());
            }
            match Engine::new(&translated, ignore_case, size) {
                Ok(engine) => {
                    room.0 -= size;
                    return Ok(Self { engine, weight: 1 << (3 * step) });
                }
                Err(error) => problem = error,
            }
        }
        Err(format!("the pattern `{text}`: {problem}"))
    }

    /// Searches for the pattern. A subject that is too long is truncated.
    pub(crate) fn find(&self, subject: &[u8], budget: &mut StepBudget) -> Result<Option<Captures>, BudgetExceeded> {
        let subject = &subject[..subject.len().min(limits::SUBJECT)];
        let length = subject.len() as u64 + limits::MATCH;
        match &self.engine {
            Engine::Linear(regex) => {
                budget.spend(length * self.weight)?;
                let mut found = regex.capture_locations();
                if regex.captures_read(&mut found, subject).is_none() {
                    return Ok(None);
                }
                let mut captures = Captures { subject: subject.to_vec(), ..Captures::default() };
                for (number, group) in captures.groups.iter_mut().enumerate().take(found.len()) {
                    *group = found.get(number).map(|(from, to)| (from as u32, to as u32));
                }
                Ok(Some(captures))
            }
            Engine::Backtracking(regex) => {
                // The most steps that the engine may take. Shared threads are charged twice, to bound the worst case.
                let steps = limits::BACKTRACKS as u64 * if budget.shared { 2 } else { 1 };
                budget.spend((steps + length) * self.weight)?;
                backtrack(regex, subject)
            }
        }
    }

    /// `true` if a text contains the pattern.
    pub(crate) fn is_in(&self, subject: &[u8], budget: &mut StepBudget) -> Result<bool, BudgetExceeded> {
        match &self.engine {
            Engine::Linear(regex) => {
                let subject = &subject[..subject.len().min(limits::SUBJECT)];
                budget.spend((subject.len() as u64 + limits::MATCH) * self.weight)?;
                Ok(regex.is_match(subject))
            }
            Engine::Backtracking(_) => Ok(self.find(subject, budget)?.is_some()),
        }
    }

    /// Replaces the first match, or all matches, by the result of `with`.
    pub(crate) fn replace(
        &self,
        text: &[u8],
        all: bool,
        budget: &mut StepBudget,
        with: impl Fn(&Captures) -> Vec<u8>,
    ) -> Result<Option<Vec<u8>>, BudgetExceeded> {
        let (mut made, mut at, mut changed) = (Vec::new(), 0, false);
        while let Some(found) = self.find(&text[at..], budget)? {
            let Range { start, end } = found.whole();
            changed = true;
            made.extend_from_slice(&text[at..at + start]);
            made.extend_from_slice(&with(&found));
            // An empty match must not be found twice.
            let after = if end == start { (at + end + 1).min(text.len()) } else { at + end };
            made.extend_from_slice(&text[at + end..after]);
            at = after;
            if !all || at >= text.len() || made.len() > limits::EXPANDED {
                break;
            }
        }
        made.extend_from_slice(&text[at..]);
        Ok(changed.then_some(made))
    }
}

impl Captures {
    fn whole(&self) -> Range<usize> {
        self.groups[0].map_or(0..0, |(from, to)| from as usize..to as usize)
    }
}

impl Engine {
    fn new(translated: &dialect::Translated, ignore_case: bool, size: usize) -> Result<Self, String> {
        if !translated.needs_backtracking {
            let linear = regex::bytes::RegexBuilder::new(&translated.text)
                .unicode(false)
                .dot_matches_new_line(true)
                .case_insensitive(ignore_case)
                .size_limit(size)
                .dfa_size_limit(size)
                .build();
            match linear {
                Ok(regex) => return Ok(Self::Linear(regex)),
                Err(error @ regex::Error::CompiledTooBig(_)) => return Err(error.to_string()),
                // The backtracking engine may support what this one does not.
                Err(_) => {}
            }
        }
        let flags = if ignore_case { "(?si)" } else { "(?s)" };
        let text: String = flags.chars().chain(translated.text.bytes().map(char::from)).collect();
        let regex = fancy_regex::RegexBuilder::new(&text)
            .backtrack_limit(limits::BACKTRACKS)
            .delegate_size_limit(size)
            .delegate_dfa_size_limit(size)
            .build();
        regex.map(|regex| Self::Backtracking(Box::new(regex))).map_err(|error| error.to_string())
    }
}

/// Maps each byte to one character, because this engine matches only text.
fn backtrack(regex: &fancy_regex::Regex, subject: &[u8]) -> Result<Option<Captures>, BudgetExceeded> {
    let text: String = subject.iter().copied().map(char::from).collect();
    let found = match regex.captures(&text) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        Err(_) => return Err(BudgetExceeded),
    };
    let place = |at: usize| {
        let characters = if text.len() == subject.len() { at } else { text[..at].chars().count() };
        characters as u32
    };
    let mut captures = Captures { subject: subject.to_vec(), ..Captures::default() };
    for (number, group) in captures.groups.iter_mut().enumerate() {
        *group = found.get(number).map(|found| (place(found.start()), place(found.end())));
    }
    Ok(Some(captures))
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
