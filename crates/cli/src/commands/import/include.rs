//! Files that a configuration includes by name or pattern.

use howdah_config::Glob;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of files that one pattern includes.
const MAX_FILES: usize = 500;

/// Maximum size of an included file.
const MAX_BYTES: u64 = 1 << 20;

/// Returns the texts of the files that a pattern names, in the order of their names. A star does not match hidden files.
pub(super) fn texts(pattern: &str, directory: &Path) -> Vec<(PathBuf, String)> {
    let mut files = BTreeSet::new();
    // A pattern that is wrong names no file.
    if let Ok(glob) = Glob::new(pattern, directory) {
        glob.find(&mut files);
    }
    let is_small = |file: &PathBuf| file.metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_BYTES);
    let files = files.into_iter().filter(is_small).take(MAX_FILES);
    files.filter_map(|file| std::fs::read_to_string(&file).ok().map(|text| (file, text))).collect()
}
