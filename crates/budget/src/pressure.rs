//! Memory pressure, as counted by the kernel (PSI): the share of the last ten seconds in which a process waited for
//! memory to be freed. If cgroup v2 groups limit this process, the outermost one's pressure counts, else the machine's.

use crate::control_group;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// A PSI file, with stall times.
    Stalls(PathBuf),
    /// Kernel without PSI: the group's count of exceeding `memory.high`, with the previous count.
    HeldUp(PathBuf, Option<u64>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPressure(Source);

impl MemoryPressure {
    /// The pressure source of this process; `None` if the kernel reports none.
    pub fn here() -> Option<Self> {
        Self::below(Path::new("/"))
    }

    /// Finds the source among the files below a root.
    pub fn below(root: &Path) -> Option<Self> {
        // Stalls in a group also count in its ancestors, so the outermost group with a limit is the most informative.
        let limited = control_group::limits_of_memory(root).pop();
        let stalls = match &limited {
            Some(group) => group.join("memory.pressure"),
            None => root.join("proc/pressure/memory"),
        };
        if stalled(&stalls).is_some() {
            return Some(Self(Source::Stalls(stalls)));
        }
        let events = limited?.join("memory.events");
        events.exists().then_some(Self(Source::HeldUp(events, None)))
    }

    /// Pressure in percent of the last ten seconds; 0 if the file cannot be read. Without PSI, 100 if the group has
    /// exceeded `memory.high` since the last call, else 0.
    pub fn percent(&mut self) -> u32 {
        match &mut self.0 {
            Source::Stalls(path) => stalled(path).unwrap_or_default(),
            Source::HeldUp(path, before) => {
                let now = high(path);
                let grown = before.zip(now).is_some_and(|(before, now)| now > before);
                *before = now.or(*before);
                if grown { 100 } else { 0 }
            }
        }
    }

    /// The file that is read.
    pub fn path(&self) -> &Path {
        let (Source::Stalls(path) | Source::HeldUp(path, _)) = &self.0;
        path
    }
}

/// `avg10` of the line `some`.
fn stalled(path: &Path) -> Option<u32> {
    let text = fs::read_to_string(path).ok()?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent: f64 = some.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()?;
    // 0 to 100 in the kernel's file.
    Some(percent.clamp(0.0, 100.0) as u32)
}

fn high(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.lines().find_map(|line| line.strip_prefix("high "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files(tempfile::TempDir);

    impl Files {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, path: &str, content: &str) -> &Self {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
            self
        }

        fn stalls(&self, path: &str, percent: &str) -> &Self {
            let text = format!("some avg10={percent} avg60=99.00 avg300=99.00 total=5\nfull avg10=99.00 total=5\n");
            self.write(path, &text)
        }

        fn pressure(&self) -> Option<MemoryPressure> {
            MemoryPressure::below(self.0.path())
        }
    }

    #[test]
    fn without_a_limited_group_the_machines_pressure_counts() {
        let files = Files::new();
        assert_eq!(files.pressure(), None);
        files.stalls("proc/pressure/memory", "12.75").write("proc/self/cgroup", "0::/a\n");
        files.stalls("sys/fs/cgroup/a/memory.pressure", "77.00").write("sys/fs/cgroup/a/memory.max", "max\n");
        let mut pressure = files.pressure().unwrap();
        assert!(pressure.path().ends_with("proc/pressure/memory"));
        assert_eq!(pressure.percent(), 12);
        files.stalls("proc/pressure/memory", "0.00");
        assert_eq!(pressure.percent(), 0);
        files.write("proc/pressure/memory", "nonsense");
        assert_eq!(pressure.percent(), 0);
    }

    #[test]
    fn the_pressure_of_the_outermost_limited_group_counts() {
        let files = Files::new();
        files.stalls("proc/pressure/memory", "90.00").write("proc/self/cgroup", "0::/a/b/c\n");
        files.stalls("sys/fs/cgroup/a/memory.pressure", "80.00").write("sys/fs/cgroup/a/memory.max", "max\n");
        files.stalls("sys/fs/cgroup/a/b/memory.pressure", "33.00").write("sys/fs/cgroup/a/b/memory.max", "100000\n");
        files.stalls("sys/fs/cgroup/a/b/c/memory.pressure", "7.00").write("sys/fs/cgroup/a/b/c/memory.high", "9000\n");
        assert_eq!(files.pressure().unwrap().percent(), 33);
    }

    #[test]
    fn without_psi_an_increase_of_high_events_is_full_pressure() {
        let files = Files::new();
        files.write("proc/self/cgroup", "0::/a\n").write("sys/fs/cgroup/a/memory.high", "100000\n");
        let events = |high: u32| format!("low 0\nhigh {high}\nmax 9\noom 0\n");
        files.write("sys/fs/cgroup/a/memory.events", &events(5));
        let mut pressure = files.pressure().unwrap();
        assert_eq!(pressure.percent(), 0, "an earlier state of unknown age does not count");
        files.write("sys/fs/cgroup/a/memory.events", &events(6));
        assert_eq!((pressure.percent(), pressure.percent()), (100, 0));
    }
}
