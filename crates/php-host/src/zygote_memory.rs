//! Releases memory that the zygote no longer needs once PHP has booted: code and constants of libphp and the
//! extensions, read while they were linked and initialized. Workers map the parts of these files that they use
//! themselves; the zygote only forks.

use rustix::mm::{Advice, madvise};
use std::ops::Range;

/// Releases the pages of unchanged private file mappings; pages that are needed later are read again from the same
/// file.
pub(crate) fn release_libraries() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else { return };
    for range in unchanged_files(&maps) {
        let start = std::ptr::with_exposed_provenance_mut(range.start);
        // SAFETY: the range is a private mapping of a file that this process has never been able to write to, and none
        // of its pages was changed (relocations would show as anonymous memory), so the kernel finds each page's
        // content in the file again. The process has one thread, so the mapping is still the one that was just read. An
        // error leaves the pages in place.
        let _ = unsafe { madvise(start, range.len(), Advice::LinuxDontNeed) };
    }
}

/// Read-only private file mappings without private pages, from the text of `/proc/self/smaps`.
fn unchanged_files(maps: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut candidate = None;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        if first == "Anonymous:" {
            let clean = words.next() == Some("0");
            found.extend(candidate.take().filter(|_| clean));
        } else if !first.ends_with(':') {
            candidate = mapping(first, words);
        }
    }
    found
}

/// The range of a mapping's first line: `start-end perms offset dev inode path`.
fn mapping<'a>(range: &str, mut words: impl Iterator<Item = &'a str>) -> Option<Range<usize>> {
    let (start, end) = range.split_once('-')?;
    let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
    let readable = matches!(words.next()?, "r-xp" | "r--p");
    let inode = words.nth(2)?;
    (readable && inode != "0").then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-3000 r-xp 00000000 fe:00 77 /lib/a.so
Rss:                  8 kB
Anonymous:            0 kB
VmFlags: rd ex mr mw me
3000-4000 r--p 00002000 fe:00 77 /lib/a.so
Anonymous:            4 kB
4000-5000 rw-p 00003000 fe:00 77 /lib/a.so
Anonymous:            0 kB
5000-6000 r--p 00000000 00:00 0
Anonymous:            0 kB
6000-7000 r--s 00000000 fe:00 78 /shared
Anonymous:            0 kB
7000-9000 r--p 00000000 fe:00 79 /a name: with blanks
Anonymous:            0 kB
";

    #[test]
    fn only_unchanged_private_file_mappings_that_cannot_be_written_are_released() {
        assert_eq!(unchanged_files(MAPS), [0x1000..0x3000, 0x7000..0x9000]);
    }
}
