//! Limits of this process's control groups, in cgroup v2 and v1: the smallest along the path to the root group.

use std::fs;
use std::path::{Path, PathBuf};

/// A limit, and the file that it was read from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GroupLimit<T> {
    pub(crate) amount: T,
    pub(crate) by: PathBuf,
}

/// The memory limit in bytes. `memory.high` counts too: above it the kernel throttles processes, while above
/// `memory.max` it kills them.
pub(crate) fn memory(root: &Path) -> Option<GroupLimit<u64>> {
    let files = |is_v2| if is_v2 { &["memory.max", "memory.high"][..] } else { &["memory.limit_in_bytes"] };
    least(groups(root, "memory").into_iter().flat_map(|(directory, is_v2)| {
        files(is_v2).iter().filter_map(move |file| {
            let by = directory.join(file);
            let amount = fs::read_to_string(&by).ok()?.trim().parse().ok()?;
            Some(GroupLimit { amount, by })
        })
    }))
}

/// The groups of cgroup v2 that limit this process's memory, from its own up.
pub(crate) fn limits_of_memory(root: &Path) -> Vec<PathBuf> {
    let limits = |group: &Path| {
        let is_set = |file| {
            let text = fs::read_to_string(group.join(file)).ok();
            text.is_some_and(|text| text.trim().parse::<u64>().is_ok())
        };
        ["memory.max", "memory.high"].into_iter().any(is_set)
    };
    let own = groups(root, "memory").into_iter().filter(|(_, is_v2)| *is_v2);
    own.map(|(group, _)| group).filter(|group| limits(group)).collect()
}

/// The CPU quota, in processors: 1.5 is one and a half.
pub(crate) fn processor_time(root: &Path) -> Option<GroupLimit<f64>> {
    let share = |(directory, is_v2): (PathBuf, bool)| {
        let file = directory.join(if is_v2 { "cpu.max" } else { "cpu.cfs_quota_us" });
        let text = fs::read_to_string(&file).ok()?;
        let mut words = text.split_ascii_whitespace();
        // "max", or -1 in v1, means no limit.
        let quota: f64 = words.next()?.parse().ok().filter(|quota| *quota > 0.0)?;
        let period: f64 = match words.next() {
            Some(period) => period.parse().ok()?,
            None => fs::read_to_string(directory.join("cpu.cfs_period_us")).ok()?.trim().parse().ok()?,
        };
        (period > 0.0).then(|| GroupLimit { amount: quota / period, by: file })
    };
    least(groups(root, "cpu").into_iter().filter_map(share))
}

/// Number of processors in the cpuset.
pub(crate) fn processors(root: &Path) -> Option<GroupLimit<usize>> {
    let number = |(directory, is_v2): (PathBuf, bool)| {
        let names =
            if is_v2 { ["cpuset.cpus.effective", "cpuset.cpus"] } else { ["cpuset.effective_cpus", "cpuset.cpus"] };
        names.iter().find_map(|name| {
            let by = directory.join(name);
            let amount = listed(&fs::read_to_string(&by).ok()?)?;
            (amount > 0).then_some(GroupLimit { amount, by })
        })
    };
    least(groups(root, "cpuset").into_iter().filter_map(number))
}

/// Number of elements in a list such as `0-3,7`.
pub(crate) fn listed(list: &str) -> Option<usize> {
    list.trim().split(',').filter(|part| !part.is_empty()).try_fold(0, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(sum + (last + 1).checked_sub(first)?)
    })
}

fn least<T: PartialOrd>(limits: impl Iterator<Item = GroupLimit<T>>) -> Option<GroupLimit<T>> {
    limits.reduce(|one, other| if other.amount < one.amount { other } else { one })
}

/// The directories of this process's groups for a controller, from its own group up to the mount; `true` for cgroup v2.
fn groups(root: &Path, controller: &str) -> Vec<(PathBuf, bool)> {
    let Ok(cgroup) = fs::read_to_string(root.join("proc/self/cgroup")) else { return Vec::new() };
    let mounted = root.join("sys/fs/cgroup");
    let of_line = |line: &str| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (base, is_v2) = match controllers {
            // With v1 controllers, cgroup v2 has a separate mount (hybrid mode).
            "" if mounted.join("unified").is_dir() => (mounted.join("unified"), true),
            "" => (mounted.clone(), true),
            _ if controllers.split(',').any(|name| name == controller) => {
                let together = mounted.join(controllers);
                (if together.is_dir() { together } else { mounted.join(controller) }, false)
            }
            _ => return None,
        };
        let own = base.join(path.trim_start_matches('/'));
        // In a container, the path may be the host's and not exist here. Then the mount itself is the group.
        let up = own.ancestors().take_while(|directory| directory.starts_with(&base));
        Some(up.map(|directory| (directory.to_owned(), is_v2)).collect::<Vec<_>>())
    };
    cgroup.lines().filter_map(of_line).flatten().collect()
}
