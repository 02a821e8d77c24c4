//! `IndexIgnore` and `IndexIgnoreReset`: names that lists of directories leave out.

use crate::text::raw;
use crate::wildcard;
use std::sync::Arc;

/// Names that lists of a directory leave out, with wildcards.
#[derive(Debug, Clone, Default)]
pub struct Unlisted {
    names: Vec<Arc<[u8]>>,
    /// Those of directories above do not count.
    anew: bool,
}

impl Unlisted {
    pub(crate) fn add(&mut self, words: &[String]) {
        // The part behind the last slash is compared with the name (mod_autoindex.c, ignore_entry).
        let name = |word: &String| raw(word).rsplit(|&b| b == b'/').next().unwrap_or_default().into();
        self.names.extend(words.iter().map(name));
    }

    pub(crate) fn reset(&mut self) {
        self.names.clear();
        self.anew = true;
    }

    pub(crate) fn merge(&mut self, later: &Self) {
        if later.anew {
            self.reset();
        }
        self.names.extend(later.names.iter().cloned());
    }

    /// True if a list leaves this name out.
    #[must_use]
    pub fn hides(&self, name: &[u8]) -> bool {
        self.names.iter().any(|pattern| wildcard::matches(pattern, name, false))
    }
}
