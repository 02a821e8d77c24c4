//! Reduces the zygote's memory. Once PHP has booted, it releases pages with code and constants of libphp and the
//! extensions: workers map the parts that they use themselves, and the zygote only forks. Once a template exists, it
//! maps the pages that equal the snapshot's, most of those that PHP's start has written, from the snapshot's file.

use crate::shared_boot::StoredMemory;
use rustix::fs::{Mode, OFlags, SealFlags, SeekFrom, fcntl_get_seals, fstat, open, seek};
use rustix::io::read;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap, mmap_anonymous, mremap_fixed, munmap};
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{null_mut, with_exposed_provenance_mut};

const PAGE: usize = 4096;
/// Path of a snapshot's file in `/proc/self/smaps` (`snapshot/engine/pages.c`).
const SNAPSHOT: &str = "/memfd:howdah-snapshot";
/// Fewer equal pages in a row are not worth a mapping.
const MIN_RUN: usize = 2 * PAGE;
/// No page of such a file changes or vanishes.
const SEALS: SealFlags = SealFlags::WRITE.union(SealFlags::SHRINK);

/// A mapping, from `/proc/self/smaps`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mapping {
    range: Range<usize>,
    rights: [u8; 4],
    is_file: bool,
    is_snapshot: bool,
    /// In kilobytes: memory that no file backs, and swapped-out memory.
    anonymous: u64,
    swapped: u64,
}

/// Room for `/proc/self/smaps` and for the mappings in it; those beyond are left as they are.
const MAX_TEXT: usize = 4 << 20;
const MAX_MAPPINGS: usize = 2048;

/// The zygote's own mappings. From before they are read until this value is dropped, nothing is allocated or freed,
/// which could end or shorten a mapping.
struct Own {
    mappings: Vec<Mapping>,
    /// Holds the text of `/proc/self/smaps`.
    text: *mut c_void,
}

impl Own {
    fn read() -> io::Result<Self> {
        let mappings = Vec::with_capacity(MAX_MAPPINGS);
        let file = open(c"/proc/self/smaps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        // SAFETY: a new mapping. Not from malloc(), whose thresholds such a block would change.
        let text = unsafe { mmap_anonymous(null_mut(), MAX_TEXT, READ_WRITE, MapFlags::PRIVATE) }?;
        let mut own = Self { mappings, text };
        // SAFETY: the mapping above, filled with zeros, lives as long as `own` and is used here alone.
        let room = unsafe { std::slice::from_raw_parts_mut(text.cast::<u8>(), MAX_TEXT) };
        let mut length = 0;
        while length < MAX_TEXT {
            match read(&file, &mut room[length..])? {
                0 => break,
                more => length += more,
            }
        }
        list(std::str::from_utf8(&room[..length]).unwrap_or_default(), &mut own.mappings);
        Ok(own)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // SAFETY: mapped by `read`; nothing refers to it any more.
        let _ = unsafe { munmap(self.text, MAX_TEXT) };
    }
}

/// Releases the pages of unchanged private file mappings; pages that are needed later are read again from the same
/// file.
pub(crate) fn release_libraries() {
    let Ok(own) = Own::read() else { return };
    for mapping in own.mappings.iter().filter(|mapping| is_unchanged_file(mapping)) {
        // SAFETY: the range is a private mapping of a file. It is not writable, and none of its pages was changed while
        // it was (relocations would show as anonymous or swapped memory), so the kernel finds each page's content in
        // the file again. The process has one thread, so the mapping is still the one that was just
        // read. An error leaves the pages in place.
        let _ = unsafe { madvise(address(mapping.range.start), mapping.range.len(), Advice::LinuxDontNeed) };
    }
}

/// Maps the pages that equal those of the snapshot from its file, so that they exist once. Called in the zygote, which
/// has one thread.
pub(crate) fn share(snapshot: &StoredMemory) {
    let file = snapshot.file.as_fd();
    if !fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SEALS)) {
        return;
    }
    let Ok(own) = Own::read() else { return };
    // Comparing writes to the stack itself.
    let stack = (&raw const own).expose_provenance();
    let is_own = |mapping: &&Mapping| {
        mapping.rights == *b"rw-p" && mapping.anonymous >= (MIN_RUN / 1024) as u64 && !mapping.range.contains(&stack)
    };
    for mapping in own.mappings.iter().filter(is_own) {
        for &[start, end, offset] in &snapshot.areas {
            let (start, end) = (start as usize, end as usize);
            let both = mapping.range.start.max(start)..mapping.range.end.min(end);
            if !both.is_empty() && both.start.is_multiple_of(PAGE) && both.end.is_multiple_of(PAGE) {
                // The areas come from a worker.
                if let Some(offset) = offset.checked_add((both.start - start) as u64) {
                    share_range(file, both, offset);
                }
            }
        }
    }
}

/// Gives the zygote its own copies of the pages that it shares with a snapshot.
pub(crate) fn take_back() {
    let Ok(own) = Own::read() else { return };
    for mapping in own.mappings.iter().filter(|mapping| mapping.is_snapshot) {
        let (at, length) = (address(mapping.range.start), mapping.range.len());
        // SAFETY: the range is mapped and readable, and its content is moved to the same addresses in one step. This
        // process has one thread, and nothing below allocates, so no byte changes in between. An error leaves the range
        // as it is.
        unsafe {
            let Ok(copy) = mmap_anonymous(null_mut(), length, READ_WRITE, MapFlags::PRIVATE) else { return };
            std::ptr::copy_nonoverlapping(at.cast::<u8>(), copy.cast(), length);
            if mremap_fixed(copy, length, length, MremapFlags::MAYMOVE, at).is_err() {
                let _ = munmap(copy, length);
            }
        }
    }
}

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Maps the pages of a private writable range that are equal in the file at this place.
fn share_range(file: BorrowedFd<'_>, range: Range<usize>, offset: u64) {
    let size = fstat(file).map_or(0, |about| about.st_size as u64);
    if offset.checked_add(range.len() as u64).is_none_or(|end| end > size) {
        return;
    }
    // SAFETY: a new mapping; only its pages with data are read, within the file's size, which is sealed.
    let Ok(view) = (unsafe { mmap(null_mut(), range.len(), ProtFlags::READ, MapFlags::PRIVATE, file, offset) }) else {
        return;
    };
    let mut at = 0;
    while let Some(data) = next_data(file, offset, at, range.len()) {
        at = data.start;
        while at < data.end {
            // SAFETY: both are mapped for this length. Between comparing and mapping, nothing writes to memory of this
            // process but its stack, which was left out: it has one thread, and no step allocates or sends a message.
            // So each page has the same content before and after. The file is sealed, so it keeps that content, and
            // writing to the new mapping makes a private copy.
            at +=
                unsafe { share_run(file, address(range.start + at), view.add(at), data.end - at, offset + at as u64) };
        }
    }
    // SAFETY: the mapping made above, of which no reference is left.
    let _ = unsafe { munmap(view, range.len()) };
}

/// The next part with data of the `length` bytes at `offset`, from `from`: reading a hole would fill it.
fn next_data(file: BorrowedFd<'_>, offset: u64, from: usize, length: usize) -> Option<Range<usize>> {
    let start = seek(file, SeekFrom::Data(offset + from as u64)).ok()?.checked_sub(offset)? as usize;
    let end = seek(file, SeekFrom::Hole(offset + start as u64)).ok()?.checked_sub(offset)? as usize;
    (start < length).then_some(start..end.min(length))
}

/// Maps the file over the equal pages at the beginning of `own` if they are enough. Returns the length of the part that
/// was handled.
///
/// # Safety
/// `own` is private writable memory of `length` bytes, `view` a view of the file at `offset` of the same length. Both
/// are whole pages.
unsafe fn share_run(file: BorrowedFd<'_>, own: *mut c_void, view: *const c_void, length: usize, offset: u64) -> usize {
    let mut equal = 0;
    // SAFETY: `equal` stays below the length of both.
    while equal < length && unsafe { libc::memcmp(own.add(equal), view.add(equal), PAGE) } == 0 {
        equal += PAGE;
    }
    if equal >= MIN_RUN {
        // SAFETY: as for this function; the pages have the content of the file. An error leaves them as they are.
        let _ = unsafe { mmap(own, equal, READ_WRITE, MapFlags::PRIVATE | MapFlags::FIXED, file, offset) };
    }
    // The next page differs.
    (equal + PAGE).min(length)
}

fn address(address: usize) -> *mut c_void {
    with_exposed_provenance_mut(address)
}

/// A read-only private file mapping without private pages.
fn is_unchanged_file(mapping: &Mapping) -> bool {
    matches!(&mapping.rights, b"r-xp" | b"r--p") && mapping.is_file && mapping.anonymous == 0 && mapping.swapped == 0
}

/// Lists the mappings in the text of `/proc/self/smaps`, as many as fit without another allocation.
fn list(smaps: &str, found: &mut Vec<Mapping>) {
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        if !first.ends_with(':') {
            if found.len() == found.capacity() {
                return;
            }
            found.extend(mapping(first, words));
        } else if let Some(last) = found.last_mut() {
            let mut value = || words.next().and_then(|value| value.parse().ok()).unwrap_or(u64::MAX);
            match first {
                "Anonymous:" => last.anonymous = value(),
                "Swap:" => last.swapped = value(),
                _ => {}
            }
        }
    }
}

/// A mapping's first line: `start-end perms offset dev inode path`.
fn mapping<'a>(range: &str, mut words: impl Iterator<Item = &'a str>) -> Option<Mapping> {
    let (start, end) = range.split_once('-')?;
    let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
    let rights = words.next()?.as_bytes().try_into().ok()?;
    let is_file = words.nth(2)? != "0";
    let is_snapshot = words.next() == Some(SNAPSHOT);
    Some(Mapping { range, rights, is_file, is_snapshot, ..Mapping::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};
    use rustix::io::pwrite;

    const MAPS: &str = "\
1000-3000 r-xp 00000000 fe:00 77 /lib/a.so
Rss:                  8 kB
Anonymous:            0 kB
Swap:                 0 kB
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
9000-a000 r--p 00000000 fe:00 79 /relocated and swapped out
Anonymous:            0 kB
Swap:                 4 kB
";

    #[test]
    fn only_unchanged_private_file_mappings_that_cannot_be_written_are_released() {
        let mut all = Vec::with_capacity(9);
        list(MAPS, &mut all);
        let released = all.into_iter().filter(is_unchanged_file).map(|mapping| mapping.range);
        assert_eq!(released.collect::<Vec<_>>(), [0x1000..0x3000, 0x7000..0x9000]);
    }

    /// The test's own pages of the range that are mapped from a snapshot's file.
    fn shared_pages(range: &Range<usize>) -> Vec<usize> {
        let of_range = |mapping: &&Mapping| mapping.is_snapshot && range.contains(&mapping.range.start);
        let own = Own::read().unwrap();
        let pages = own.mappings.iter().filter(of_range).flat_map(|mapping| mapping.range.clone().step_by(PAGE));
        pages.map(|page| (page - range.start) / PAGE).collect()
    }

    #[test]
    fn equal_pages_are_mapped_from_the_snapshot_and_keep_their_content_when_it_is_given_up() {
        const PAGES: usize = 12;
        let length = PAGES * PAGE;
        let page = |number: usize| [number as u8 + 1; PAGE];
        let file = memfd_create("howdah-snapshot", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, (length + PAGE) as u64).unwrap();
        // Page 4 differs, 5 is alone, 6 is a hole.
        for number in (0..PAGES).filter(|number| *number != 6) {
            let content = if number == 4 { [0xff; PAGE] } else { page(number) };
            pwrite(&file, &content, ((number + 1) * PAGE) as u64).unwrap();
        }
        // SAFETY: a new mapping, which only this test uses.
        let own = unsafe { mmap_anonymous(null_mut(), length, READ_WRITE, MapFlags::PRIVATE) }.unwrap().cast::<u8>();
        // SAFETY: the mapping above.
        let content = || unsafe { std::slice::from_raw_parts(own, length) }.to_vec();
        let write = |number: usize, byte: u8| {
            // SAFETY: a page of the mapping above.
            unsafe { own.add(number * PAGE).write_bytes(byte, PAGE) };
        };
        (0..PAGES).for_each(|number| write(number, number as u8 + 1));
        let range = own.expose_provenance()..own.expose_provenance() + length;
        let (before, areas) = (content(), vec![[range.start as u64, range.end as u64, PAGE as u64]]);
        let snapshot = StoredMemory { file, areas };

        share(&snapshot);
        assert_eq!(shared_pages(&range), [0_usize; 0], "a file that is not sealed could change");
        fcntl_add_seals(&snapshot.file, SEALS).unwrap();
        let [start, end] = [range.start, range.end].map(|address| address as u64);
        for area in [[start, end, u64::MAX], [0, u64::MAX, u64::MAX - 1], [start, end, length as u64], [9, 1, 0]] {
            share(&StoredMemory { file: snapshot.file.try_clone().unwrap(), areas: vec![area] });
            assert_eq!(shared_pages(&range), [0_usize; 0], "{area:?} is not in the file");
        }
        share(&snapshot);
        assert_eq!(shared_pages(&range), [0, 1, 2, 3, 7, 8, 9, 10, 11]);
        assert!(content() == before);
        assert_eq!(fstat(&snapshot.file).unwrap().st_blocks as usize * 512, (PAGES - 1) * PAGE, "the hole was filled");

        write(2, 0x77);
        let changed = content();
        take_back();
        assert_eq!(shared_pages(&range), [0_usize; 0]);
        assert!(content() == changed && changed[2 * PAGE] == 0x77 && changed[..PAGE] == page(0));
    }
}
