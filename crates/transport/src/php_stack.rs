//! PHP stacks of workers, which their zygote reads from their memory. The content is untrusted: the zygote turns it
//! into bounded text, and the server bounds and cleans it again (`tidy`).

use serde::{Deserialize, Serialize};

/// Maximum number of frames of a stack; further ones are left out.
pub const MAX_FRAMES: usize = 64;
/// Bytes of a function's or a file's name.
pub const MAX_NAME: usize = 256;
/// Bytes of a query.
pub const MAX_QUERY: usize = 2048;
/// Maximum number of stacks of one request, which may have many coroutines in async mode.
pub const MAX_STACKS: usize = 16;
/// Samples in a second, at most.
pub const MAX_RATE: u32 = 1000;

/// One function of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StackFrame {
    /// As PHP's own traces have it, without arguments: `Shop\Cart->total`; `{main}` for the code of a file.
    pub function: String,
    /// Where it was written; empty for functions of PHP itself.
    pub file: String,
    /// The line at which it is; 0 where there is none.
    pub line: u32,
}

/// One line of execution, innermost frame first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhpStack {
    /// The coroutine's number; 0 outside of async mode.
    pub coroutine: u64,
    /// Reason for which a coroutine waits; `None` if it runs, or if that is unknown.
    pub waits_for: Option<String>,
    /// The query that its innermost function sends or waits for.
    pub query: Option<String>,
    pub frames: Vec<StackFrame>,
}

/// A request as its worker's memory shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestStacks {
    /// Processor time that it has had so far, in microseconds. Not in async mode.
    pub cpu_us: Option<u64>,
    pub stacks: Vec<PhpStack>,
}

/// Stacks that were seen, innermost frame first, as positions in a table of frames.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    pub frames: Vec<StackFrame>,
    /// Each with how often it was seen.
    pub stacks: Vec<(Vec<u32>, u64)>,
    /// Looks at workers that could not be read.
    pub unread: u64,
    /// Times at which it should have been looked and was not: the machine had no time for it.
    pub late: u64,
}

impl RequestStacks {
    /// Bounds what a zygote has said and makes it harmless: it is a worker's word.
    #[must_use]
    pub fn tidy(mut self) -> Self {
        self.stacks.truncate(MAX_STACKS);
        for stack in &mut self.stacks {
            stack.waits_for = stack.waits_for.take().map(|text| text_of(&text, MAX_NAME));
            stack.query = stack.query.take().map(|text| text_of(&text, MAX_QUERY));
            stack.frames.truncate(MAX_FRAMES);
            stack.frames.iter_mut().for_each(StackFrame::tidy);
        }
        self
    }
}

impl StackFrame {
    fn tidy(&mut self) {
        self.function = text_of(&self.function, MAX_NAME);
        self.file = text_of(&self.file, MAX_NAME);
    }
}

impl Samples {
    /// Cleans samples in the same way; stacks whose frames are not in the table are left out.
    #[must_use]
    pub fn tidy(mut self) -> Self {
        self.frames.iter_mut().for_each(StackFrame::tidy);
        let known = self.frames.len();
        self.stacks.retain(|(stack, _)| stack.len() <= MAX_FRAMES && stack.iter().all(|&at| (at as usize) < known));
        self
    }
}

/// Text of at most so many bytes, without control characters.
#[must_use]
pub fn text_of(text: &str, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str) -> StackFrame {
        StackFrame { function: function.to_owned(), file: "/a\n.php".to_owned(), line: 3 }
    }

    #[test]
    fn what_a_worker_says_is_bounded_and_harmless() {
        let stack = PhpStack {
            query: Some("q\u{1b}[31m".repeat(10_000)),
            waits_for: Some("sleep".into()),
            frames: vec![frame(&"é".repeat(400)); 1000],
            ..PhpStack::default()
        };
        let tidy = RequestStacks { cpu_us: None, stacks: vec![stack; 100] }.tidy();
        assert_eq!((tidy.stacks.len(), tidy.stacks[0].frames.len()), (MAX_STACKS, MAX_FRAMES));
        let first = &tidy.stacks[0];
        assert_eq!((first.frames[0].function.len(), first.frames[0].file.as_str()), (MAX_NAME, "/a .php"));
        let query = first.query.as_deref().unwrap_or_default();
        assert!(query.len() <= MAX_QUERY && !query.contains('\u{1b}'));
    }

    #[test]
    fn samples_name_only_frames_that_are_there() {
        let stacks = vec![(vec![0], 2), (vec![0, 1], 1), (vec![u32::MAX], 1), (vec![0; 1000], 1)];
        let tidy = Samples { frames: vec![frame("f")], stacks, ..Samples::default() }.tidy();
        assert_eq!(tidy.stacks, [(vec![0], 2)]);
    }
}
