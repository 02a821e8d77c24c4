//! `IndexIgnore` and `IndexIgnoreReset`: names that directory listings omit.

use crate::text::raw;
use crate::wildcard;
use std::sync::Arc;

/// Names that directory listings omit, with wildcards.
#[derive(Debug, Clone, Default)]
pub struct Unlisted {
    names: Vec<Arc<[u8]>>,
    /// Names from parent directories are discarded.
    anew: bool,
}

impl Unlisted {
    pub(crate) fn add(&mut self, words: &[String]) {
        // Only the part after the last slash is compared with the name (mod_autoindex.c, ignore_entry).
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

    /// `true` if listings omit this name.
    pub fn hides(&self, name: &[u8]) -> bool {
        self.names.iter().any(|pattern| wildcard::matches(pattern, name, false))
    }
}
