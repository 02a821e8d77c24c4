//! Notes on a request's way for `howdah explain`: the phases run the same code with and without.

use std::cell::RefCell;

/// One thing that was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its subject: `site`, `route`, `pool`, …
    pub about: &'static str,
    /// The finding and its reason.
    pub text: String,
}

/// Everything that was found out, in order.
#[derive(Debug, Default)]
pub struct Notes(RefCell<Vec<Note>>);

impl Notes {
    /// Adds a note.
    pub fn add(&self, about: &'static str, text: impl Into<String>) {
        self.0.borrow_mut().push(Note { about, text: text.into() });
    }

    /// All of them.
    #[must_use]
    pub fn into_inner(self) -> Vec<Note> {
        self.0.into_inner()
    }
}
