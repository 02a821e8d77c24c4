//! A pool's control group, and its user's limits, restrict its scripts: processes, processor time, memory. Other pools
//! are not affected.
//!
//! Each limit of a group is tested if the kernel has its controller in cgroup v2 and this process may create groups.

use howdah_skip::skip;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Setup, Site, php};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};

/// Enough for a zygote, a template and two workers; a fork bomb uses up the rest at once.
const MAX_PROCESSES: usize = 30;

/// A control group for this test, the parent of the pools' groups. It is removed with the test, if it is empty then.
struct Groups(PathBuf);

impl Groups {
    /// `None` if this machine has no cgroup v2, or this process no permission.
    fn make(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let mount = mounts.lines().find_map(|line| {
            let mut words = line.split(' ');
            let (_, path, kind) = (words.next(), words.next()?, words.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(path))
        })?;
        let group = mount.join(format!("howdah-test-{name}-{}", std::process::id()));
        fs::create_dir(&group).is_ok().then_some(Self(group))
    }

    /// A group with this controller, which the root group must delegate: normally the system does that, here the test.
    fn with(name: &str, controller: &str) -> Option<Self> {
        let groups = Self::make(name)?;
        let _ = fs::write(groups.0.parent().unwrap().join("cgroup.subtree_control"), format!("+{controller}"));
        if groups.has(controller) {
            return Some(groups);
        }
        groups.end();
        None
    }

    fn has(&self, controller: &str) -> bool {
        let controllers = fs::read_to_string(self.0.join("cgroup.controllers")).unwrap();
        controllers.split_ascii_whitespace().any(|it| it == controller)
    }

    fn pool(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The groups below, and this one.
    fn all(&self) -> impl Iterator<Item = PathBuf> {
        let below = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path());
        below.filter(|path| path.is_dir()).chain([self.0.clone()])
    }

    /// A group that still contains a process cannot be removed.
    fn end(self) {
        for directory in self.all() {
            fs::remove_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        }
    }
}

/// If a test fails, no part of a bomb must stay.
impl Drop for Groups {
    fn drop(&mut self) {
        for directory in self.all() {
            let _ = fs::write(directory.join("cgroup.kill"), "1");
            let _ = eventually(PATIENCE, || fs::remove_dir(&directory).is_ok() || !directory.exists());
        }
    }
}

fn quoted(path: &Path) -> String {
    format!("{:?}", path.display().to_string())
}

/// Adds a pool below `/b/` whose group has limits, in addition to the default pool, which has none.
fn limited_group(setup: Setup, group: &Path, limits: &str) -> Setup {
    pool_b(setup).setting("pool.b.cgroup", &quoted(group)).setting("pool.b.cgroup_limits", limits)
}

fn pool_b(setup: Setup) -> Setup {
    setup
        .setting("pool.b.workers", "1")
        .setting("rule", "[{ path = \"/b/*\", pool = \"b\" }]")
        .php("free.php", "echo 'free';")
        .php("b/held.php", "echo 'held';")
        .php("b/bomb.php", php!("control_groups/bomb.php"))
}

/// A number from a file of "name number" lines.
fn counted(group: &Path, file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(group.join(file)).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {file}: {text}"))
}

fn number(group: &Path, file: &str) -> u64 {
    fs::read_to_string(group.join(file)).unwrap().trim().parse().unwrap()
}

fn both_pools_serve(site: &Site) {
    assert_eq!(site.get_ok("/free.php"), "free");
    assert_eq!(site.get_ok("/b/held.php"), "held");
}

#[test]
fn a_pools_processes_are_in_its_control_group_and_the_server_is_not() {
    let Some(groups) = Groups::make("members") else { skip!("control-groups", "this process cannot create any") };
    let pool = groups.pool("pool");
    let setup = |s: Setup| {
        s.setting("php.cgroup", &quoted(&pool)).php("group.php", "echo file_get_contents('/proc/self/cgroup');")
    };
    howdah_tests::run(Mode::Classic, setup, |site| {
        let own = site.get_ok("/group.php");
        assert!(own.lines().any(|line| line.starts_with("0::/") && line.ends_with("/pool")), "{own}");
        let members = fs::read_to_string(pool.join("cgroup.procs")).unwrap();
        assert!(members.lines().count() >= 3, "the process that forks and its workers: {members}");
        assert!(members.lines().all(|pid| pid != site.howdah().pid().to_string()));
    });
    groups.end();
}

#[test]
fn php_does_not_start_without_a_limit_that_the_kernel_lacks() {
    let Some(groups) = Groups::make("missing") else { skip!("control-groups", "this process cannot create any") };
    if groups.has("memory") {
        groups.end();
        skip!("missing-controller", "the kernel supports all limits");
    }
    let setup = |s: Setup| {
        limited_group(s, &groups.pool("pool"), "{ \"memory.max\" = \"1G\" }")
            .allow_log("is its controller delegated to")
            .allow_log("pool_down")
            .allow_log("howdah-php:")
    };
    howdah_tests::run(Mode::Classic, setup, |site| {
        let _ = site.wait_for_log(&["cannot set memory.max of", "is its controller delegated to"]);
        assert_eq!(site.get_ok("/free.php"), "free");
    });
    groups.end();
}

/// The other pool must serve next to a bomb that has filled its own pool, which must serve as well; then everything
/// must end.
fn bomb(site: &mut Site, refused: impl Fn() -> bool) {
    both_pools_serve(site);
    assert_eq!(site.get_ok("/b/bomb.php"), "lit");
    assert!(eventually(PATIENCE, refused), "the bomb has not reached the limit");
    for _ in 0..50 {
        both_pools_serve(site);
    }
    site.howdah().signal(Signal::TERM);
    assert_eq!(site.howdah_mut().wait(), Some(0));
    // The time depends on the machine: a bomb leaves little processor time. A zygote logs it if it gives up.
    assert!(!site.howdah().log().contains("did not end within"), "the bomb did not end");
}

/// Number of a user's processes.
fn processes_of(user: &str) -> usize {
    let user = Some(super::users::number(user));
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter(|it| it.file_name().to_string_lossy().parse::<u32>().is_ok()).filter(|it| owner(it) == user).count()
}

fn owner(process: &fs::DirEntry) -> Option<u64> {
    let status = fs::read_to_string(process.path().join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_fork_bomb_fills_its_user_and_ends_with_its_pool() {
    // A user with no other processes here: the limit counts all of the user's processes.
    let setup = |s: Setup| {
        pool_b(s)
            .needs_root()
            .open_to_users()
            .setting("pool.b.user", "\"games\"")
            .setting("pool.b.limits", &format!("{{ nproc = {MAX_PROCESSES} }}"))
            .more_processes(2)
    };
    howdah_tests::run(Mode::Classic, setup, |site| bomb(site, || processes_of("games") >= MAX_PROCESSES));
    if rustix::process::geteuid().is_root() {
        assert_eq!(processes_of("games"), 0);
    }
}

#[test]
fn a_fork_bomb_fills_its_control_group_and_ends_with_its_pool() {
    let Some(groups) = Groups::with("pids", "pids") else { skip!("cgroup-pids", "no such controller in cgroup v2") };
    let pool = groups.pool("pool");
    let limits = format!("{{ \"pids.max\" = {MAX_PROCESSES} }}");
    let setup = |s: Setup| limited_group(s, &pool, &limits).more_processes(2);
    howdah_tests::run(Mode::Classic, setup, |site| {
        // Without the limit the following would bring down the machine.
        assert_eq!(site.get_ok("/b/held.php"), "held");
        assert_eq!(number(&pool, "pids.max"), MAX_PROCESSES as u64);
        let full = || number(&pool, "pids.current") == MAX_PROCESSES as u64;
        bomb(site, || full() && counted(&pool, "pids.events", "max") > 10);
    });
    groups.end();
}

#[test]
fn a_script_that_computes_gets_its_pools_share_of_the_processor() {
    let Some(groups) = Groups::with("cpu", "cpu") else { skip!("cgroup-cpu", "no such controller in cgroup v2") };
    let pool = groups.pool("pool");
    let setup = |s: Setup| {
        limited_group(s, &pool, "{ \"cpu.max\" = 0.2, \"cpu.weight\" = 50 }")
            .more_processes(2)
            .php("b/compute.php", php!("control_groups/compute.php"))
    };
    howdah_tests::run(Mode::Classic, setup, |site| {
        both_pools_serve(site);
        let share: f64 = site.get_ok("/b/compute.php").parse().unwrap();
        // The share of one period may be used right before the measurement, and that of another right after.
        assert!(share < 0.2 + 0.05, "{share}");
        assert!(counted(&pool, "cpu.stat", "nr_throttled") > 5, "the group's limit did not throttle the script");
        assert_eq!(number(&pool, "cpu.weight"), 50);
        both_pools_serve(site);
    });
    groups.end();
}

#[test]
fn a_script_that_devours_memory_leaves_that_of_other_pools() {
    let Some(groups) = Groups::with("memory", "memory") else {
        skip!("cgroup-memory", "no such controller in cgroup v2")
    };
    let pool = groups.pool("pool");
    // A kernel may count memory without swap.
    let swap = groups.0.join("memory.swap.max").exists();
    let limits =
        if swap { r#"{ "memory.max" = "256M", "memory.swap.max" = "0" }"# } else { r#"{ "memory.max" = "256M" }"# };
    let setup = |s: Setup| {
        limited_group(s, &pool, limits)
            .more_processes(2)
            .setting("pool.b.replay", "0")
            .php("b/devour.php", php!("control_groups/devour.php"))
            .allow_log("worker")
    };
    howdah_tests::run(Mode::Classic, setup, |site| {
        both_pools_serve(site);
        assert_eq!(site.get("/b/devour.php").status, 502);
        assert!(counted(&pool, "memory.events", "oom_kill ") >= 1);
        assert!(eventually(PATIENCE, || site.get("/b/held.php").status == 200), "the pool has not recovered");
        assert_eq!(site.get_ok("/free.php"), "free");
    });
    groups.end();
}
