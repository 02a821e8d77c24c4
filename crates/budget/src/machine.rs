//! Resources of the machine that defaults depend on: processors and memory within the limits of the control group,
//! space for temporary files, descriptors.

use crate::control_group;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const MIB: u64 = 1 << 20;

/// Memory assumed for each worker when the default number of workers is computed.
const WORKER_MEMORY: u64 = 64 * MIB;

/// Resources of the machine, and the part that this process may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Processors that this process may use, at least 1. A fraction counts as one.
    pub processors: usize,
    /// Online processors of the machine.
    pub all_processors: usize,
    /// The control group file that limits `processors`, if one does.
    pub processors_by: Option<PathBuf>,
    /// Bytes of memory that this process may use.
    pub memory: u64,
    /// The machine's memory, in bytes.
    pub all_memory: u64,
    /// The control group file that limits `memory`, if one does.
    pub memory_by: Option<PathBuf>,
}

/// The machine that this process runs on. Read once, at the first call.
pub fn here() -> &'static Machine {
    static HERE: OnceLock<Machine> = OnceLock::new();
    HERE.get_or_init(|| Machine::of(Path::new("/")))
}

impl Machine {
    /// Reads the resources from the files below a root.
    fn of(root: &Path) -> Self {
        let read = |file: &str| fs::read_to_string(root.join(file)).ok();
        let online = read("sys/devices/system/cpu/online").and_then(|list| control_group::listed(&list));
        // Set by `taskset` and service managers.
        let status = read("proc/self/status");
        let affinity =
            status.as_ref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")));
        let affinity = affinity.and_then(control_group::listed).filter(|number| *number > 0);
        let all_processors = online.filter(|number| *number > 0).or(affinity).unwrap_or(1);
        let (mut processors, mut processors_by) = (all_processors, None);
        // A fraction of a processor in the quota is rounded up: it is worth a worker.
        let by_time = control_group::processor_time(root).map(|it| (it.amount.ceil() as usize, Some(it.by)));
        let by_set = control_group::processors(root).map(|it| (it.amount, Some(it.by)));
        for (number, by) in by_set.into_iter().chain(by_time).chain(affinity.map(|number| (number, None))) {
            if number < processors {
                (processors, processors_by) = (number.max(1), by);
            }
        }
        let all_memory = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| total(&text));
        let all_memory = all_memory.unwrap_or(512 * MIB);
        let allowed = control_group::memory(root).filter(|allowed| allowed.amount < all_memory);
        Self {
            processors,
            all_processors,
            processors_by,
            memory: allowed.as_ref().map_or(all_memory, |allowed| allowed.amount),
            all_memory,
            memory_by: allowed.map(|allowed| allowed.by),
        }
    }

    /// Two workers per processor, but not more than fit into memory, and at least two. That is an estimate: a worker
    /// may use much more than `WORKER_MEMORY`.
    pub fn default_workers(&self) -> u32 {
        let by_memory = (self.memory / WORKER_MEMORY).max(2);
        u32::try_from((self.processors as u64 * 2).min(by_memory)).unwrap_or(2)
    }

    /// Description for the log.
    pub fn describe(&self) -> String {
        let by =
            |file: &Option<PathBuf>| file.as_ref().map_or_else(String::new, |file| format!(" ({})", file.display()));
        let (all, some) = (self.all_processors, self.processors);
        let processors = if some < all { format!("{some} of {all}") } else { all.to_string() };
        let noun = if all == 1 { "processor" } else { "processors" };
        let (all, some) = (self.all_memory / MIB, self.memory / MIB);
        let memory = if some < all { format!("{some} of {all} MiB of memory") } else { format!("{all} MiB of memory") };
        format!("{processors} {noun}{}, {memory}{}", by(&self.processors_by), by(&self.memory_by))
    }
}

/// Bytes of memory that this process may use: the machine's, or its control group's limit if that is lower.
pub fn memory() -> u64 {
    here().memory
}

/// Processors that this process may use.
pub fn processors() -> usize {
    here().processors
}

/// `MemTotal` of `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Default of the memory budget: an eighth of the memory, from 16 MiB to 4 GiB, as PHP needs most of it.
pub fn default_memory() -> u64 {
    round(memory() / 8, 16 * MIB, 4096 * MIB)
}

/// A value in whole MiB within bounds.
fn round(bytes: u64, least: u64, most: u64) -> u64 {
    (bytes / MIB * MIB).clamp(least, most)
}

/// Default of the spool budget: a quarter of the free space for temporary files, from 16 MiB to 64 GiB; on a tmpfs, at
/// most `default_memory`.
pub fn default_spool(free: u64, in_memory: bool) -> u64 {
    let most = if in_memory { default_memory() } else { 64 * 1024 * MIB };
    round(free / 4, 16 * MIB, most)
}

/// Default directory of temporary files: `TMPDIR`; else `/var/tmp` if only `/tmp` is in memory; else `/tmp`.
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

/// Default maximum of connections for this many descriptors and bytes of memory. Each connection may need a second
/// descriptor (the file of its request's or response's body), and `kept` descriptors are for workers, logs and open
/// files. An idle connection costs about 32 KiB, including the kernel's part.
pub fn default_connections(descriptors: u64, kept: u64, memory: u64) -> usize {
    let by_descriptors = (descriptors.saturating_sub(kept) / 2).max(descriptors / 4);
    let by_memory = memory / 4 / (32 * 1024);
    usize::try_from(by_descriptors.min(by_memory.max(64)).max(1)).unwrap_or(usize::MAX)
}

/// Largest allowed maximum of connections: all descriptors but the `kept` ones of the server itself, which count for at
/// most half of all.
pub fn most_connections(descriptors: u64, kept: u64) -> usize {
    usize::try_from(descriptors - kept.min(descriptors / 2)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    fn machine(files: &[(&str, &str)]) -> (Machine, PathBuf) {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("howdah-machine-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let root = std::env::temp_dir().join(name);
        let always = [
            ("proc/meminfo", "MemFree: 1 kB\nMemTotal:       8388608 kB\n"),
            ("sys/devices/system/cpu/online", "0-7\n"),
        ];
        for (path, content) in always.iter().chain(files) {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let machine = Machine::of(&root);
        fs::remove_dir_all(&root).unwrap();
        (machine, root)
    }

    fn allowed(files: &[(&str, &str)]) -> (usize, u64) {
        let (machine, _) = machine(files);
        (machine.processors, machine.memory / MIB)
    }

    #[test]
    fn without_control_groups_the_machine_is_the_limit() {
        let (machine, _) = machine(&[]);
        assert_eq!((machine.processors, machine.memory), (8, 8192 * MIB));
        assert_eq!((machine.default_workers(), machine.describe().as_str()), (16, "8 processors, 8192 MiB of memory"));
    }

    #[test]
    fn the_smallest_limit_up_to_the_root_group_counts() {
        let group = ("proc/self/cgroup", "0::/a/b\n");
        let seen = allowed(&[
            group,
            ("sys/fs/cgroup/a/memory.max", "536870912\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.high", "max\n"),
            ("sys/fs/cgroup/a/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n"),
        ]);
        assert_eq!(seen, (2, 512), "a part of a processor counts as one");
        assert_eq!(allowed(&[group, ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")]), (8, 8192));
        let held_up = [group, ("sys/fs/cgroup/a/memory.max", "max"), ("sys/fs/cgroup/a/memory.high", "1073741824")];
        assert_eq!(allowed(&held_up), (8, 1024));
        assert_eq!(allowed(&[group, ("sys/fs/cgroup/a/b/cpuset.cpus.effective", "0-2,5\n")]), (4, 8192));
        assert_eq!(allowed(&[group, ("sys/fs/cgroup/a/b/cpu.max", "10000 100000\n")]), (1, 8192));
        assert_eq!(allowed(&[("proc/self/status", "Cpus_allowed_list:\t4-6\n")]), (3, 8192), "taskset counts");
        // In a container the path may be the host's.
        assert_eq!(
            allowed(&[("proc/self/cgroup", "0::/x/y\n"), ("sys/fs/cgroup/memory.max", "1073741824")]),
            (8, 1024)
        );
    }

    #[test]
    fn the_older_control_groups_count_too() {
        let group = ("proc/self/cgroup", "2:cpu,cpuacct:/d\n3:cpuset:/d\n4:memory:/d/1\n0::/x\n");
        let seen = allowed(&[
            group,
            ("sys/fs/cgroup/memory/d/memory.limit_in_bytes", "268435456\n"),
            ("sys/fs/cgroup/memory/d/1/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_quota_us", "300000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(seen, (3, 256));
        let seen = allowed(&[
            group,
            ("sys/fs/cgroup/cpu/d/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/d/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpuset/d/cpuset.cpus", "1,3\n"),
        ]);
        assert_eq!(seen, (2, 8192));
    }

    #[test]
    fn the_limit_is_named_and_few_workers_fit_little_memory() {
        let (machine, root) = machine(&[
            ("proc/self/cgroup", "0::/a\n"),
            ("sys/fs/cgroup/a/memory.max", "268435456\n"),
            ("sys/fs/cgroup/a/cpu.max", "450000 100000\n"),
        ]);
        let group = root.join("sys/fs/cgroup/a");
        let group = group.display();
        assert_eq!(
            machine.describe(),
            format!("5 of 8 processors ({group}/cpu.max), 256 of 8192 MiB of memory ({group}/memory.max)")
        );
        assert_eq!(machine.default_workers(), 4, "and not ten");
    }

    #[test]
    fn the_real_machine_has_processors_and_memory() {
        let machine = Machine::of(Path::new("/"));
        assert!(machine.processors >= 1 && machine.processors <= machine.all_processors && machine.memory > 0);
    }

    #[test]
    fn defaults_fit_a_small_machine() {
        assert_eq!(round(512 * MIB / 8, 16 * MIB, 4096 * MIB), 64 * MIB);
        assert_eq!(default_spool(10 << 30, false), 2560 * MIB);
        assert_eq!(default_connections(1024, 400, 512 * MIB), 312);
        assert_eq!(default_connections(1 << 20, 1400, 512 * MIB), 4096);
        assert_eq!(default_connections(1 << 20, 1400, MIB), 64);
        assert_eq!((default_connections(128, 400, 512 * MIB), most_connections(128, 400)), (32, 64));
        assert_eq!(most_connections(1024, 400), 624);
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
