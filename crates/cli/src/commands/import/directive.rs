//! A directive of any configuration format: the readers of all formats produce these, and the tables decide what
//! becomes of them.

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

    /// Text of the directive without its block.
    pub(super) fn shown(&self) -> String {
        let words: String = self.words.iter().map(|word| format!(" {word}")).collect();
        format!("{}{words}", self.name).replace(['\n', '\r'], " ")
    }

    /// The directives of its block.
    pub(super) fn inner(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }
}
