//! Links a program against one libphp by its full path. Used by the build script.
//!
//! Debian's libraries for all versions of PHP have the name (SONAME) `libphp.so`, and a linker writes that name into
//! the program. If several versions are installed, the dynamic linker then loads the library to which `libphp.so`
//! happens to lead. So the program is linked with a copy of the library whose SONAME is the path of the real one: a
//! name with a slash is opened as it stands, without a search. Only the linker reads the copy.
//!
//! The layout is described in elf(5).

/// A 64-bit little-endian ELF file: all architectures for which Debian has PHP and on which Howdah is built.
const IDENTITY: &[u8] = b"\x7fELF\x02\x01";
const SECTION_TABLE: usize = 0x28;
const SECTION_SIZE: usize = 0x3a;
const SECTION_COUNT: usize = 0x3c;
/// Offset in a section header.
const KIND: usize = 4;
const OFFSET: usize = 24;
const SIZE: usize = 32;
const LINK: usize = 40;
const DYNAMIC_SECTION: u64 = 6;
/// Tag of the dynamic section's entry for the name, which is an offset into the strings.
const SONAME: u64 = 14;
const ENTRY: usize = 16;

/// Returns the library with this name instead of the original one; `None` if it has no name or is not an ELF file of
/// this kind.
pub(crate) fn renamed(library: &[u8], name: &str) -> Option<Vec<u8>> {
    if !library.starts_with(IDENTITY) {
        return None;
    }
    let table = number(library, SECTION_TABLE, 8)?;
    let (size, count) = (number(library, SECTION_SIZE, 2)?, number(library, SECTION_COUNT, 2)?);
    let header = |section: usize| table.checked_add(section.checked_mul(size)?);
    let of = |section: usize, field: usize, width: usize| number(library, header(section)? + field, width);
    let dynamic = (0..count).find(|&section| of(section, KIND, 4) == Some(DYNAMIC_SECTION as usize))?;
    let strings = of(dynamic, LINK, 4)?;
    let (start, length) = (of(strings, OFFSET, 8)?, of(strings, SIZE, 8)?);
    let entries = of(dynamic, OFFSET, 8)?;
    let mut entries = (entries..entries.checked_add(of(dynamic, SIZE, 8)?)?).step_by(ENTRY);
    let entry = entries.find(|&entry| number(library, entry, 8) == Some(SONAME as usize))?;
    // Copy the strings to the file's end, where the new name can be appended.
    let mut out = library.to_vec();
    let moved = out.len();
    out.extend_from_slice(library.get(start..start.checked_add(length)?)?);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    let grown = out.len() - moved;
    write(&mut out, entry + 8, length)?;
    write(&mut out, header(strings)? + OFFSET, moved)?;
    write(&mut out, header(strings)? + SIZE, grown)?;
    Some(out)
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    let mut wide = [0; 8];
    wide.get_mut(..width)?.copy_from_slice(bytes.get(at..at.checked_add(width)?)?);
    usize::try_from(u64::from_le_bytes(wide)).ok()
}

fn write(bytes: &mut [u8], at: usize, value: usize) -> Option<()> {
    bytes.get_mut(at..at.checked_add(8)?)?.copy_from_slice(&(value as u64).to_le_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_the_very_library_that_it_was_built_with() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let built_with = std::fs::canonicalize(env!("HOWDAH_LIBPHP")).unwrap();
        let loaded: Vec<_> = maps.lines().filter(|line| line.contains("libphp")).collect();
        assert!(!loaded.is_empty());
        assert!(loaded.iter().all(|line| line.ends_with(&format!(" {}", built_with.display()))), "{loaded:?}");
        let program = std::fs::read("/proc/self/exe").unwrap();
        let needed = format!("\0{}\0", env!("HOWDAH_LIBPHP"));
        assert!(program.windows(needed.len()).any(|bytes| bytes == needed.as_bytes()));
    }

    #[test]
    fn a_file_that_is_no_library_stays_unchanged() {
        assert_eq!(renamed(b"", "/x"), None);
        assert_eq!(renamed(b"INPUT(libphp8.2.so)", "/x"), None);
        assert_eq!(renamed(b"\x7fELF\x02\x01 and then it ends", "/x"), None);
        // A program has a dynamic section but no SONAME.
        assert_eq!(renamed(&std::fs::read("/proc/self/exe").unwrap(), "/x"), None);
    }
}
