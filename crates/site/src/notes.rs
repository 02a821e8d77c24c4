//! Notes of the phases for `howdah explain`. The phases run the same code with and without them.

use std::cell::RefCell;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its subject: `site`, `route`, `pool`, …
    pub about: &'static str,
    /// The finding and its reason.
    pub text: String,
}

/// All findings, in order.
#[derive(Debug, Default)]
pub struct Notes(RefCell<Vec<Note>>);

impl Notes {
    /// Adds a note.
    pub fn add(&self, about: &'static str, text: impl Into<String>) {
        self.0.borrow_mut().push(Note { about, text: text.into() });
    }

    pub fn into_inner(self) -> Vec<Note> {
        self.0.into_inner()
    }
}
