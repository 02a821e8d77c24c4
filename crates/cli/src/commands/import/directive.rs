//! A directive of any configuration format: the readers of all formats produce these, and the tables decide what
//! becomes of them.

/// Maximum number of characters of a directive in a comment.
const MAX_SHOWN: usize = 300;

/// A directive with its words and, if it has one, its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) name: String,
    pub(super) words: Vec<String>,
    pub(super) block: Option<Vec<Directive>>,
    pub(super) line: usize,
}

impl Directive {
    pub(super) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    /// Text of the directive without its block, for a comment, which may have no control characters.
    pub(super) fn shown(&self) -> String {
        let words: String = self.words.iter().map(|word| format!(" {word}")).collect();
        let text = format!("{}{words}", self.name).replace(char::is_control, " ");
        match text.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    /// The directive, and those of its block, as if they were on this line.
    pub(super) fn at_line(self, line: usize) -> Self {
        let block = self.block.map(|block| block.into_iter().map(|inner| inner.at_line(line)).collect());
        Self { block, line, ..self }
    }

    /// The directives of its block.
    pub(super) fn inner(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }
}
