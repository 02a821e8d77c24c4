//! Files that a configuration includes by name or pattern.

use super::directive::Directive;
use howdah_config::Glob;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of files that one pattern includes.
const MAX_FILES: usize = 500;

/// Maximum size of an included file.
const MAX_BYTES: u64 = 1 << 20;

/// Number of directories in which names are looked up that are relative to the main file's directory: `sites-available`
/// is below it.
const LEVELS: usize = 3;

/// Returns the texts of the files that a pattern names, in the order of their names. A star does not match hidden files.
pub(super) fn texts(pattern: &str, directory: &Path) -> Vec<(PathBuf, String)> {
    files(pattern, directory).into_iter().filter_map(|file| text(&file).ok().map(|text| (file, text))).collect()
}

/// As [`texts`], for a server whose names are relative to the main file's directory.
pub(super) fn texts_of_server(pattern: &str, directory: &Path) -> Vec<(PathBuf, String)> {
    let found = directory.ancestors().take(LEVELS).map(|directory| texts(pattern, directory));
    found.into_iter().find(|texts| !texts.is_empty()).unwrap_or_default()
}

fn files(pattern: &str, directory: &Path) -> Vec<PathBuf> {
    let mut files = BTreeSet::new();
    // A pattern that is wrong names no file.
    if let Ok(glob) = Glob::new(pattern, directory) {
        glob.find(&mut files);
    }
    let is_small = |file: &PathBuf| file.metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_BYTES);
    files.into_iter().filter(is_small).take(MAX_FILES).collect()
}

/// `true` for a line that names a file. A pattern, which may match none, does not count.
pub(super) fn names_file(include: &Directive) -> bool {
    !include.word(0).is_empty() && !include.word(0).contains(['*', '?', '['])
}

/// Reads a configuration. Servers compare bytes and do not ask for an encoding, in comments above all.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn text(file: &Path) -> std::io::Result<String> {
    let bytes = std::fs::read(file)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_relative_to_the_main_files_directory_and_bytes_may_be_of_any_encoding() {
        let top = tempfile::tempdir().unwrap();
        let sites = top.path().join("sites-available");
        std::fs::create_dir_all(&sites).unwrap();
        std::fs::create_dir(top.path().join("snippets")).unwrap();
        std::fs::write(top.path().join("snippets/a.conf"), b"\xef\xbb\xbf# gr\xfc\xdfe\nx y;\n").unwrap();
        let found = texts_of_server("snippets/*.conf", &sites);
        assert!(found.len() == 1 && found[0].1.starts_with("# gr") && found[0].1.ends_with("\nx y;\n"), "{found:?}");
        std::fs::create_dir(sites.join("snippets")).unwrap();
        std::fs::write(sites.join("snippets/b.conf"), "b").unwrap();
        assert_eq!(texts_of_server("snippets/*.conf", &sites)[0].1, "b", "the nearest directory counts");
        assert!(texts_of_server("snippets/none.conf", &sites).is_empty());
    }
}
