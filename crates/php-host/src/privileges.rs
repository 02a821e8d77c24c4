//! Drops privileges before PHP starts, in the only order that works. Workers and the template are forked from the
//! zygote afterwards and inherit everything.
//!
//! 0. a separate process group without a terminal: Ctrl-C is only for the server, otherwise it would kill running
//!    requests; and scripts can neither read what is typed nor insert input. The process stays in the server's session,
//!    because the kernel divides processor time between sessions (`sched_autogroup`, sched(7)). With workers in another
//!    session the server would preempt them at each response (costing a fifth of the throughput of a short script).
//!    Sharing the session lets scripts of other users send SIGCONT to the server (kill(2)), which has no effect on a
//!    running process;
//! 1. not dumpable: from here on no process of the same user can read this one's memory or take its descriptors;
//! 2. limits, which only root may raise;
//! 3. the control group, which may belong to root;
//! 4. umask;
//! 5. supplementary groups, group, user: each step needs rights that the next one removes;
//! 6. `no_new_privs`, after which running a program gains no privileges;
//! 7. (a sandbox belongs here: it may forbid the earlier steps, and needs step 6;)
//! 8. dumpable again if the settings require it, because changing the user has reset it.

use howdah_transport::privileges::{ControlGroup, Credentials, Privileges, ResourceLimit};
use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Gid, Resource, Rlimit, Uid, getrlimit, set_dumpable_behavior, setrlimit};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// Ceiling for nice values with which root allows them to be lowered again, down to 0 (setrlimit(2), `RLIMIT_NICE`).
const NICE_CEILING: u64 = 20;

/// Executes all steps. The error names the step that failed; the process must not continue then.
pub(crate) fn settle(wanted: &Privileges) -> Result<(), String> {
    leave_terminal();
    dumpable(DumpableBehavior::NotDumpable)?;
    limit_resources(wanted)?;
    if let Some(group) = &wanted.cgroup {
        join(group)?;
    }
    if let Some(mask) = wanted.umask {
        rustix::process::umask(Mode::from_raw_mode(mask));
    }
    if let Some(user) = &wanted.user {
        become_user(user)?;
    }
    if wanted.no_new_privs {
        rustix::thread::set_no_new_privs(true).map_err(step("set no_new_privs"))?;
    }
    if wanted.dumpable { dumpable(DumpableBehavior::Dumpable) } else { dumpable(DumpableBehavior::NotDumpable) }
}

fn leave_terminal() {
    // This fails only for a session leader, whose group is already its own.
    let _ = rustix::process::setpgid(None, None);
    // No terminal: nothing to do. For a process that does not lead a session, TIOCNOTTY detaches only this process from
    // the terminal (ioctl_tty(2)).
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return };
    // SAFETY: the request takes no argument.
    unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) };
}

fn step<E: std::fmt::Display>(what: &str) -> impl FnOnce(E) -> String {
    move |error| format!("cannot {what}: {error}")
}

fn dumpable(behavior: DumpableBehavior) -> Result<(), String> {
    set_dumpable_behavior(behavior).map_err(step("set whether the process is dumpable"))
}

/// Creates the control group if it is missing, sets its limits, and moves this process into it; its forks follow.
fn join(group: &ControlGroup) -> Result<(), String> {
    let directory = Path::new(&group.directory);
    let parent = directory.parent().unwrap_or(directory);
    let mut not_passed_on = BTreeMap::new();
    for (file, _) in &group.limits {
        // If this works or was done before, the limit's file exists; otherwise writing the file reports why.
        let controller = file.split('.').next().unwrap_or_default();
        if let Err(error) = std::fs::write(parent.join("cgroup.subtree_control"), format!("+{controller}")) {
            not_passed_on.insert(file, why_not_passed_on(parent, controller, &error));
        }
    }
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(format!("cannot create the control group {}: {error}", directory.display()));
        }
        _ => {}
    }
    for (file, value) in &group.limits {
        // Not created if missing: the kernel creates these files for the controllers that the parent delegates.
        let written = std::fs::OpenOptions::new().write(true).open(directory.join(file));
        written.and_then(|mut open| open.write_all(value.as_bytes())).map_err(|error| {
            let why = not_passed_on.get(file).map_or("", String::as_str);
            format!("cannot set {file} of {} to {value}: {error}{why}", directory.display())
        })?;
    }
    std::fs::write(directory.join("cgroup.procs"), "0")
        .map_err(step(&format!("join the control group {}", directory.display())))
}

/// Explains why groups below `parent` lack this controller, if the author of the limit can change that.
fn why_not_passed_on(parent: &Path, controller: &str, error: &io::Error) -> String {
    let at = parent.display();
    if error.raw_os_error() == Some(libc::EBUSY) {
        // A group can contain processes or delegate controllers, but the kernel does not allow both.
        format!(
            "; {at} contains processes, so the kernel does not pass its {controller} controller on: move them into a group below it"
        )
    } else {
        format!("; is its controller delegated to {at}? ({error})")
    }
}

fn limit_resources(wanted: &Privileges) -> Result<(), String> {
    if rustix::process::geteuid().is_root() {
        // A worker may then raise and lower its nice value again. A container's root may lack the right to allow that;
        // nothing else depends on it.
        let hard = getrlimit(Resource::Nice).maximum;
        let limit = Rlimit { current: Some(NICE_CEILING), maximum: hard.map(|hard| hard.max(NICE_CEILING)) };
        let _ = setrlimit(Resource::Nice, limit);
    }
    for limit in &wanted.limits {
        let resource = resource(&limit.name).ok_or_else(|| format!("unknown limit {}", limit.name))?;
        let wanted = Rlimit { current: limit.soft, maximum: limit.hard };
        setrlimit(resource, wanted).map_err(step(&format!("set the limit {}", shown(limit))))?;
    }
    Ok(())
}

fn shown(limit: &ResourceLimit) -> String {
    let amount = |amount: Option<u64>| amount.map_or_else(|| "unlimited".to_owned(), |amount| amount.to_string());
    format!("{} to {}:{}", limit.name, amount(limit.soft), amount(limit.hard))
}

fn resource(name: &str) -> Option<Resource> {
    Some(match name {
        "as" => Resource::As,
        "core" => Resource::Core,
        "cpu" => Resource::Cpu,
        "data" => Resource::Data,
        "fsize" => Resource::Fsize,
        "memlock" => Resource::Memlock,
        "nofile" => Resource::Nofile,
        "nproc" => Resource::Nproc,
        "stack" => Resource::Stack,
        _ => return None,
    })
}

/// Sets real, effective and saved ids at once, so that they cannot be restored. The process has one thread, so the
/// per-thread system calls suffice.
fn become_user(user: &Credentials) -> Result<(), String> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let what = format!("become user {} with group {}", user.uid, user.gid);
    let groups: Vec<Gid> = user.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    let changed = || -> rustix::io::Result<()> {
        // Without the right to change groups: nothing to do if they are already as requested.
        if !has_groups(&groups) {
            rustix::thread::set_thread_groups(&groups)?;
        }
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)
    };
    changed().map_err(step(&what))?;
    // A kernel or an outer sandbox that reports success without changing anything would leave PHP with root's rights.
    let is = rustix::process::geteuid() == uid && rustix::process::getegid() == gid && has_groups(&groups);
    let may_return = !uid.is_root() && rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_ok();
    if is && !may_return { Ok(()) } else { Err(format!("cannot {what}: the change is not permanent")) }
}

fn has_groups(wanted: &[Gid]) -> bool {
    let sorted = |groups: &[Gid]| {
        let mut groups: Vec<u32> = groups.iter().map(|group| group.as_raw()).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    };
    rustix::process::getgroups().is_ok_and(|have| sorted(&have) == sorted(wanted))
}

/// Parses the privileges in the command-line argument.
pub(crate) fn parse(text: &str) -> io::Result<Privileges> {
    Ok(serde_json::from_str(text)?)
}
