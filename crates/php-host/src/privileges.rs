//! Drops privileges before PHP starts, in the one order that works. Workers and the template are forked from the zygote
//! afterwards and inherit all of it.
//!
//! 0. a separate process group, without a terminal: Ctrl-C is for the server alone, or running requests die, and
//!    scripts neither read what is typed nor type themselves. It stays in the server's session: the kernel shares
//!    processors out between sessions (`sched_autogroup`, sched(7)), and a server in another one than its workers takes
//!    the processor from them at each response (a fifth of the requests of a short script). So the kernel lets scripts
//!    of other users send the server SIGCONT (kill(2)), which does nothing to a process that runs;
//! 1. not dumpable: from here on no process of the same user reads this one's memory or takes its descriptors;
//! 2. limits, which only root may widen;
//! 3. the control group, which may be root's;
//! 4. umask;
//! 5. supplementary groups, group, user: each needs the rights that the next one ends;
//! 6. `no_new_privs`, after which no program gives rights back;
//! 7. (a sandbox belongs here: it may forbid what comes before, and needs 6;)
//! 8. dumpable again where the settings say so: changing the user has reset it.

use howdah_transport::privileges::{ControlGroup, Credentials, Privileges, ResourceLimit};
use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Gid, Resource, Rlimit, Uid, getrlimit, set_dumpable_behavior, setrlimit};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// Ceiling of the nice value by which root lets it be lowered again: down to 0 (setrlimit(2), `RLIMIT_NICE`).
const NICE_CEILING: u64 = 20;

/// Takes all steps. The error says which one failed; the process must not go on then.
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
    // It fails only for the leader of a session, whose group is its own already.
    let _ = rustix::process::setpgid(None, None);
    // No terminal: nothing to leave. Of a process that leads no session, TIOCNOTTY takes the terminal from it alone
    // (ioctl_tty(2)).
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

/// Makes the control group where it is missing, limits it, and moves this process there; what it forks follows.
fn join(group: &ControlGroup) -> Result<(), String> {
    let directory = Path::new(&group.directory);
    let parent = directory.parent().unwrap_or(directory);
    let mut not_passed_on = BTreeMap::new();
    for (file, _) in &group.limits {
        // The limit's file is there if this works or was done before; if not, writing it says why.
        let controller = file.split('.').next().unwrap_or_default();
        if let Err(error) = std::fs::write(parent.join("cgroup.subtree_control"), format!("+{controller}")) {
            not_passed_on.insert(file, why_not_passed_on(parent, controller, &error));
        }
    }
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(format!("cannot make the control group {}: {error}", directory.display()));
        }
        _ => {}
    }
    for (file, value) in &group.limits {
        // Not made where it is missing: the kernel makes these files, for the controllers that the parent passes on.
        let written = std::fs::OpenOptions::new().write(true).open(directory.join(file));
        written.and_then(|mut open| open.write_all(value.as_bytes())).map_err(|error| {
            let why = not_passed_on.get(file).map_or("", String::as_str);
            format!("cannot set {file} of {} to {value}: {error}{why}", directory.display())
        })?;
    }
    std::fs::write(directory.join("cgroup.procs"), "0")
        .map_err(step(&format!("join the control group {}", directory.display())))
}

/// The reason why groups below `parent` lack this controller, as far as the author of the limit can change it.
fn why_not_passed_on(parent: &Path, controller: &str, error: &io::Error) -> String {
    let at = parent.display();
    if error.raw_os_error() == Some(libc::EBUSY) {
        // The kernel lets processes share a group, or its controllers be passed on, but not both.
        format!(
            "; {at} has processes itself, so the {controller} controller cannot be passed on: the server needs a group below it too"
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
        let resource = resource(&limit.name).ok_or_else(|| format!("there is no limit {}", limit.name))?;
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

/// Real, effective and saved ids at once, so that there is no way back. The process has one thread, so the system calls
/// for a thread do.
fn become_user(user: &Credentials) -> Result<(), String> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let what = format!("become user {} with group {}", user.uid, user.gid);
    let groups: Vec<Gid> = user.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    let changed = || -> rustix::io::Result<()> {
        // Without the right to change groups: nothing to do if they are what was asked for.
        if !has_groups(&groups) {
            rustix::thread::set_thread_groups(&groups)?;
        }
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)
    };
    changed().map_err(step(&what))?;
    // A kernel or a sandbox around us that says yes and does nothing would leave PHP with root's rights.
    let is = rustix::process::geteuid() == uid && rustix::process::getegid() == gid && has_groups(&groups);
    let may_return = !uid.is_root() && rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_ok();
    if is && !may_return { Ok(()) } else { Err(format!("cannot {what}: it had no lasting effect")) }
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

/// The privileges in an argument's text.
pub(crate) fn parse(text: &str) -> io::Result<Privileges> {
    Ok(serde_json::from_str(text)?)
}
