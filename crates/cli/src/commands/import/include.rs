//! Files that a configuration includes by name or pattern.

use std::path::{Path, PathBuf};

/// Maximum number of files that one pattern includes.
const MAX_FILES: usize = 500;

/// Maximum size of an included file.
const MAX_BYTES: u64 = 1 << 20;

/// Returns the texts of the files that a pattern names, in the order of their names. `*` may stand in the last part of
/// the pattern, and stands for no hidden files.
pub(super) fn texts(pattern: &str, directory: &Path) -> Vec<(PathBuf, String)> {
    let path = directory.join(pattern);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let files: Vec<PathBuf> = match name.split_once('*') {
        None => vec![path.clone()],
        Some((start, end)) => {
            let fits = |file: &str| {
                !file.starts_with('.') && file.len() >= name.len() - 1 && file.starts_with(start) && file.ends_with(end)
            };
            let names = std::fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.file_name());
            let mut names: Vec<_> = names.filter(|name| name.to_str().is_some_and(fits)).collect();
            names.sort();
            names.into_iter().take(MAX_FILES).map(|name| parent.join(name)).collect()
        }
    };
    let is_small = |file: &PathBuf| file.metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_BYTES);
    let files = files.into_iter().filter(is_small);
    files.filter_map(|file| std::fs::read_to_string(&file).ok().map(|text| (file, text))).collect()
}
