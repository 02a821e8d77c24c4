//! The lines of a source file around the one with the error.

use crate::report::Place;
use std::fs::File;
use std::io::Read;

/// Number of lines before and after.
const CONTEXT_LINES: u32 = 6;
/// Longer files are not shown, longer lines are truncated.
const MAX_FILE_LEN: u64 = 4 * 1024 * 1024;
const MAX_LINE_LEN: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) number: u32,
    pub(crate) text: String,
    /// `true` for the line with the error.
    pub(crate) is_it: bool,
}

/// The lines around a place, from the current file. Empty if the file is unreadable or too long, or has no such line.
pub(crate) fn around(place: &Place) -> Vec<Line> {
    let Some(text) = read(&place.file) else { return Vec::new() };
    // An error at the end of a file is reported one line after the last.
    let last = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let line = if place.line == last.saturating_add(1) { last } else { place.line };
    let first = line.saturating_sub(CONTEXT_LINES).max(1);
    let lines = (1u32..).zip(text.lines()).skip(first as usize - 1).take((2 * CONTEXT_LINES + 1) as usize);
    let lines = lines.take_while(|(number, _)| *number <= line.saturating_add(CONTEXT_LINES));
    let found: Vec<Line> = lines
        .map(|(number, text)| Line {
            number,
            text: text.chars().take(MAX_LINE_LEN).collect::<String>().replace('\t', "    "),
            is_it: number == line,
        })
        .collect();
    if found.iter().any(|line| line.is_it) { found } else { Vec::new() }
}

/// Reads regular files only: a script's name may be a FIFO or a URL.
fn read(path: &str) -> Option<String> {
    if !path.starts_with('/') || !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_FILE_LEN + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_FILE_LEN).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_around_one_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.php").to_str().unwrap().to_owned();
        std::fs::write(&file, (1..=30).map(|n| format!("line {n}\n")).collect::<String>()).unwrap();
        let place = |line| Place { file: file.clone(), line };
        let lines = around(&place(10));
        assert_eq!((lines.first().unwrap().number, lines.last().unwrap().number), (4, 16));
        assert_eq!(lines.iter().filter(|line| line.is_it).map(|line| &*line.text).collect::<Vec<_>>(), ["line 10"]);
        assert_eq!(around(&place(1)).len(), 7);
        assert_eq!(around(&place(30)).len(), 7);
        assert_eq!(around(&place(31)).last().map(|line| line.is_it), Some(true));
        assert!(around(&place(32)).is_empty());
        assert!(around(&Place { file: "/dev/zero".to_owned(), line: 1 }).is_empty());
        assert!(around(&Place { file: dir.path().join("none").to_str().unwrap().to_owned(), line: 1 }).is_empty());
    }
}
