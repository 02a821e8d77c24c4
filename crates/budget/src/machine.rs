//! What a machine has, as far as defaults depend on it: memory, as the control group allows it, room for temporary files,
//! descriptors.

use std::fs;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;

/// Bytes of memory that this process may use: those of the machine, or of its control group if that has fewer.
#[must_use]
pub fn memory() -> u64 {
    let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let of_group =
        fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| of_groups(&text, Path::new("/sys/fs/cgroup")));
    of_machine.into_iter().chain(of_group).min().unwrap_or(512 * MIB)
}

/// `MemTotal` of `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The least that a control group of this process, or one above it, allows.
fn of_groups(cgroup: &str, mounted: &Path) -> Option<u64> {
    let limits = cgroup.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (base, file) = match controllers {
            "" => (mounted.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (mounted.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let own = base.join(path.trim_start_matches('/'));
        // In a container the path may be that of the host, which is not there: the mount itself is the group then.
        let groups = own.ancestors().take_while(|dir| dir.starts_with(&base));
        groups.filter_map(|dir| fs::read_to_string(dir.join(file)).ok()?.trim().parse::<u64>().ok()).min()
    });
    limits.min()
}

/// An eighth of the memory: what waits has it, PHP needs the most.
#[must_use]
pub fn default_memory() -> u64 {
    round(memory() / 8, 16 * MIB, 4096 * MIB)
}

/// A value in whole MiB within bounds.
fn round(bytes: u64, least: u64, most: u64) -> u64 {
    (bytes / MIB * MIB).clamp(least, most)
}

/// A quarter of the room that is free where temporary files go; if that is memory, no more than `default_memory`.
#[must_use]
pub fn default_spool(free: u64, in_memory: bool) -> u64 {
    let most = if in_memory { default_memory() } else { 64 * 1024 * MIB };
    round(free / 4, 16 * MIB, most)
}

/// Where temporary files go if nobody says: `TMPDIR`, else `/var/tmp`, which is for what is too large for memory, where
/// `/tmp` is memory; else `/tmp`.
#[must_use]
pub fn temp_dir(
    tmpdir: Option<PathBuf>,
    is_memory: impl Fn(&Path) -> bool,
    is_usable: impl Fn(&Path) -> bool,
) -> PathBuf {
    if let Some(dir) = tmpdir.filter(|dir| !dir.as_os_str().is_empty()) {
        return dir;
    }
    let (usual, large) = (Path::new("/tmp"), Path::new("/var/tmp"));
    if is_memory(usual) && is_usable(large) && !is_memory(large) { large.into() } else { usual.into() }
}

/// Connections for so many descriptors and so much memory. Each may need a second descriptor (the file of its body or
/// answer), and some are for workers, logs and files that are kept open. A connection that does nothing costs some 32 KiB
/// with what the kernel has for it.
#[must_use]
pub fn default_connections(descriptors: u64, kept: u64, memory: u64) -> usize {
    let by_descriptors = descriptors.saturating_sub(kept) / 2;
    let by_memory = memory / 4 / (32 * 1024);
    usize::try_from(by_descriptors.min(by_memory).max(64)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_group_counts_with_those_above_it() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       524288 kB\n"), Some(512 * MIB));
        let dir = std::env::temp_dir().join(format!("howdah-cgroup-{}", std::process::id()));
        fs::create_dir_all(dir.join("a/b")).unwrap();
        fs::write(dir.join("a/memory.max"), "1000000\n").unwrap();
        fs::write(dir.join("a/b/memory.max"), "max\n").unwrap();
        assert_eq!(of_groups("0::/a/b\n", &dir), Some(1_000_000));
        assert_eq!(of_groups("0::/\n", &dir), None);
        fs::create_dir_all(dir.join("memory")).unwrap();
        fs::write(dir.join("memory/memory.limit_in_bytes"), "5000\n").unwrap();
        assert_eq!(of_groups("3:cpu:/x\n4:memory:/docker/1\n0::/a/b\n", &dir), Some(5000));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn defaults_fit_a_small_machine() {
        assert_eq!(round(512 * MIB / 8, 16 * MIB, 4096 * MIB), 64 * MIB);
        assert_eq!(default_spool(10 << 30, false), 2560 * MIB);
        assert_eq!(default_connections(1024, 400, 512 * MIB), 312);
        assert_eq!(default_connections(1 << 20, 1400, 512 * MIB), 4096);
    }

    #[test]
    fn temporary_files_are_not_put_into_memory_if_there_is_a_disk() {
        let dir = |tmpdir: Option<&str>, memory: &[&str], usable: bool| {
            let is_memory = |path: &Path| memory.contains(&path.to_str().unwrap());
            temp_dir(tmpdir.map(PathBuf::from), is_memory, |_| usable).display().to_string()
        };
        assert_eq!(dir(None, &[], true), "/tmp");
        assert_eq!(dir(None, &["/tmp"], true), "/var/tmp");
        assert_eq!(dir(None, &["/tmp"], false), "/tmp");
        assert_eq!(dir(None, &["/tmp", "/var/tmp"], true), "/tmp");
        assert_eq!(dir(Some("/x"), &["/x"], true), "/x");
        assert_eq!(dir(Some(""), &[], true), "/tmp");
    }
}
