//! PHP stacks of workers, which their zygote reads from their memory. The content is untrusted: the zygote turns it
//! into bounded text, and the server bounds and cleans it again (`tidy`).

use serde::{Deserialize, Serialize};

/// Maximum number of frames of a stack; further ones are left out.
pub const MAX_FRAMES: usize = 64;
/// Maximum length of a function's or a file's name in bytes.
pub const MAX_NAME: usize = 256;
/// Maximum length of a query in bytes.
pub const MAX_QUERY: usize = 2048;
/// Maximum number of stacks of one request, which may have many coroutines in async mode.
pub const MAX_STACKS: usize = 16;
/// Maximum number of samples per second.
pub const MAX_RATE: u32 = 1000;

/// One function of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StackFrame {
    /// The name as in PHP's own traces, without arguments: `Shop\Cart->total`; `{main}` for top-level code of a file.
    pub function: String,
    /// The source file; empty for functions of PHP itself.
    pub file: String,
    /// The current line; 0 if there is none.
    pub line: u32,
}

/// Stack of one line of execution, innermost frame first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhpStack {
    /// The coroutine's number; 0 outside of async mode.
    pub coroutine: u64,
    /// The reason why a coroutine waits; `None` if it runs, or if the reason is unknown.
    pub waits_for: Option<String>,
    /// The query that the innermost function sends or waits for.
    pub query: Option<String>,
    pub frames: Vec<StackFrame>,
}

/// A request's stacks, as read from its worker's memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestStacks {
    /// Processor time used so far, in microseconds; `None` in async mode.
    pub cpu_us: Option<u64>,
    pub stacks: Vec<PhpStack>,
}

/// Sampled stacks, innermost frame first, as indices into a table of frames.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    pub frames: Vec<StackFrame>,
    /// Each stack with the number of its samples.
    pub stacks: Vec<(Vec<u32>, u64)>,
    /// Number of samples that failed because a worker could not be read.
    pub unread: u64,
    /// Number of samples that were skipped because the machine was too busy.
    pub late: u64,
}

impl RequestStacks {
    /// Bounds and cleans the text, which comes from a worker through its zygote.
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
    /// Bounds and cleans the text in the same way; drops stacks whose frames are not in the table.
    pub fn tidy(mut self) -> Self {
        self.frames.iter_mut().for_each(StackFrame::tidy);
        let known = self.frames.len();
        self.stacks.retain(|(stack, _)| stack.len() <= MAX_FRAMES && stack.iter().all(|&at| (at as usize) < known));
        self
    }
}

/// Truncates text to at most `most` bytes and replaces control characters.
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
    fn reports_of_a_worker_are_bounded_and_harmless() {
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
    fn samples_name_only_existing_frames() {
        let stacks = vec![(vec![0], 2), (vec![0, 1], 1), (vec![u32::MAX], 1), (vec![0; 1000], 1)];
        let tidy = Samples { frames: vec![frame("f")], stacks, ..Samples::default() }.tidy();
        assert_eq!(tidy.stacks, [(vec![0], 2)]);
    }
}
