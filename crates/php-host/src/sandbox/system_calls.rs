//! seccomp: system calls that a worker is refused.
//!
//! This is a list of refusals, not of permissions. PHP's extensions and their libraries use about two hundred and fifty
//! system calls, which vary between versions. Landlock controls the files, ports, signals and traces that a worker can
//! reach, by whatever call. The filters refuse calls that Landlock does not cover and that give more rights or reach
//! into the kernel.
//!
//! A refused call fails with EPERM and is logged (`refusals`). `clone3` fails with ENOSYS, because its flags lie in
//! memory that a filter cannot read; the C library then uses `clone`. Running programs fails silently with EACCES,
//! because the child of posix_spawn() has no signal handlers.

use super::kernel::KernelSupport;
use super::profile::Profile;
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};
use std::collections::BTreeMap;

pub(crate) type Program = BpfProgram;

/// Calls with the cases in which they match; no case means always.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// A group of calls, by its name in the settings.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    /// Refused unless `allow` names it.
    refused: bool,
    calls: &'static [c_long],
    cases: Option<fn(&mut Rules) -> Built>,
}

type Built = Result<(), seccompiler::BackendError>;

pub(crate) const GROUPS: &[Group] = &[
    Group {
        name: "trace",
        refused: true,
        calls: &[
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_process_madvise,
            libc::SYS_pidfd_getfd,
            libc::SYS_kcmp,
        ],
        cases: None,
    },
    Group {
        name: "mount",
        refused: true,
        calls: &[
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_chroot,
            libc::SYS_move_mount,
            libc::SYS_open_tree,
            libc::SYS_fsopen,
            libc::SYS_fsconfig,
            libc::SYS_fsmount,
            libc::SYS_fspick,
            libc::SYS_mount_setattr,
            libc::SYS_swapon,
            libc::SYS_swapoff,
        ],
        cases: None,
    },
    Group {
        name: "namespaces",
        refused: true,
        calls: &[libc::SYS_unshare, libc::SYS_setns],
        cases: Some(new_namespaces),
    },
    Group {
        name: "kernel",
        refused: true,
        calls: &[
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_kexec_load,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_delete_module,
            libc::SYS_reboot,
            libc::SYS_acct,
            libc::SYS_syslog,
            libc::SYS_quotactl,
            libc::SYS_userfaultfd,
            libc::SYS_vhangup,
            libc::SYS_open_by_handle_at,
            libc::SYS_fanotify_init,
            libc::SYS_kexec_file_load,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_iopl,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_ioperm,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_modify_ldt,
        ],
        cases: Some(other_personality),
    },
    Group {
        name: "keys",
        refused: true,
        calls: &[libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key],
        cases: None,
    },
    Group {
        name: "io_uring",
        refused: true,
        calls: &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register],
        cases: None,
    },
    Group { name: "raw_sockets", refused: true, calls: &[], cases: Some(other_sockets) },
    Group {
        name: "clock",
        refused: true,
        calls: &[
            libc::SYS_settimeofday,
            libc::SYS_clock_settime,
            libc::SYS_clock_adjtime,
            libc::SYS_adjtimex,
            libc::SYS_sethostname,
            libc::SYS_setdomainname,
        ],
        cases: None,
    },
    Group { name: "terminal", refused: true, calls: &[], cases: Some(terminal_input) },
    Group { name: "udp", refused: false, calls: &[], cases: Some(udp_sockets) },
    Group { name: "unix", refused: false, calls: &[], cases: Some(unix_sockets) },
    Group { name: "fork", refused: false, calls: FORKS, cases: Some(new_processes) },
];

#[cfg(target_arch = "x86_64")]
const FORKS: &[c_long] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const FORKS: &[c_long] = &[];

fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}

/// Adds a case in which a call matches: all its conditions hold.
fn case<const N: usize>(
    rules: &mut Rules,
    call: c_long,
    conditions: [Result<SeccompCondition, seccompiler::BackendError>; N],
) -> Built {
    let conditions = conditions.into_iter().collect::<Result<Vec<_>, _>>()?;
    rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
    Ok(())
}

fn new_namespaces(rules: &mut Rules) -> Built {
    let flags = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    flags.iter().try_for_each(|&flag| case(rules, libc::SYS_clone, [masked(0, flag as u64, flag as u64)]))
}

/// Reading the personality is harmless; changing it can disable protections of memory.
fn other_personality(rules: &mut Rules) -> Built {
    case(rules, libc::SYS_personality, [is_not(0, 0xffff_ffff), is_not(0, 0)])
}

const INTERNET: [u64; 2] = [libc::AF_INET as u64, libc::AF_INET6 as u64];
/// The bits of a socket's type without the flags.
const TYPE: u64 = 0xf;

/// Matches sockets other than TCP, UDP, Unix sockets and the netlink socket with which the C library lists this
/// machine's addresses. Landlock restricts only TCP, so no other protocol, and no other way to open a connection, may
/// achieve the same as TCP's connect().
fn other_sockets(rules: &mut Rules) -> Built {
    let (stream, datagram) = (libc::SOCK_STREAM as u64, libc::SOCK_DGRAM as u64);
    let (unix, netlink) = (libc::AF_UNIX as u64, libc::AF_NETLINK as u64);
    let [v4, v6] = INTERNET;
    case(rules, libc::SYS_socket, [is_not(0, unix), is_not(0, v4), is_not(0, v6), is_not(0, netlink)])?;
    case(rules, libc::SYS_socket, [is(0, netlink), is_not(2, libc::NETLINK_ROUTE as u64)])?;
    for family in INTERNET {
        for kind in (0..=TYPE).filter(|kind| *kind != stream && *kind != datagram) {
            case(rules, libc::SYS_socket, [is(0, family), masked(1, TYPE, kind)])?;
        }
        for (kind, protocol) in [(stream, libc::IPPROTO_TCP), (datagram, libc::IPPROTO_UDP)] {
            let conditions = [is(0, family), masked(1, TYPE, kind), is_not(2, 0), is_not(2, protocol as u64)];
            case(rules, libc::SYS_socket, conditions)?;
        }
    }
    let fast_open = libc::MSG_FASTOPEN as u64;
    for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        case(rules, call, [masked(flags, fast_open, fast_open)])?;
    }
    Ok(())
}

fn terminal_input(rules: &mut Rules) -> Built {
    const TIOCLINUX: u64 = 0x541c;
    case(rules, libc::SYS_ioctl, [is(1, libc::TIOCSTI)])?;
    case(rules, libc::SYS_ioctl, [is(1, TIOCLINUX)])
}

fn udp_sockets(rules: &mut Rules) -> Built {
    INTERNET.iter().try_for_each(|&family| {
        case(rules, libc::SYS_socket, [is(0, family), masked(1, TYPE, libc::SOCK_DGRAM as u64)])
    })
}

fn unix_sockets(rules: &mut Rules) -> Built {
    case(rules, libc::SYS_socket, [is(0, libc::AF_UNIX as u64)])
}

fn new_processes(rules: &mut Rules) -> Built {
    case(rules, libc::SYS_clone, [masked(0, libc::CLONE_THREAD as u64, 0)])
}

/// Adds a group's calls.
fn add(rules: &mut Rules, group: &Group) -> Result<(), String> {
    let fail = |error| format!("seccomp: {}: {error}", group.name);
    if let Some(cases) = group.cases {
        cases(rules).map_err(fail)?;
    }
    for call in group.calls {
        rules.insert(*call, Vec::new());
    }
    Ok(())
}

pub(crate) fn refused(profile: &Profile) -> Result<Vec<&'static Group>, String> {
    if let Some(name) = profile.allow.iter().chain(&profile.deny).find(|name| GROUPS.iter().all(|g| g.name != **name)) {
        return Err(format!("this howdah-php has no group of system calls \"{name}\""));
    }
    let named = |list: &[String], group: &Group| list.iter().any(|name| name == group.name);
    let refused = |group: &&Group| {
        // Connections need name resolution, so UDP is allowed together with them.
        let usual = group.refused || (group.name == "udp" && profile.connect.is_empty());
        named(&profile.deny, group) || (usual && !named(&profile.allow, group))
    };
    Ok(GROUPS.iter().filter(refused).collect())
}

/// The filters of a profile, ready to be applied.
pub(crate) struct Filters(Vec<Program>);

impl Filters {
    pub(crate) fn of(profile: &Profile, means: &KernelSupport) -> Result<Self, String> {
        let mut rules = Rules::new();
        for group in refused(profile)? {
            add(&mut rules, group)?;
        }
        let mut programs = Rules::new();
        programs.insert(libc::SYS_execveat, Vec::new());
        if !profile.runs_programs() {
            programs.insert(libc::SYS_execve, Vec::new());
        } else if means.sealed_memory {
            // A program in a memory file has no path that Landlock could check.
            const MFD_NOEXEC_SEAL: u64 = 8;
            case(&mut rules, libc::SYS_memfd_create, [masked(1, MFD_NOEXEC_SEAL, 0)])
                .map_err(|error| format!("seccomp: {error}"))?;
        }
        let clone3 = Rules::from([(libc::SYS_clone3, Vec::new())]);
        let mut refusals = compile(rules, SeccompAction::Trap)?;
        refuse_second_table(&mut refusals);
        Ok(Self(vec![
            refusals,
            compile(programs, SeccompAction::Errno(libc::EACCES as u32))?,
            compile(clone3, SeccompAction::Errno(libc::ENOSYS as u32))?,
        ]))
    }

    /// Applies the filters to this process irrevocably.
    pub(crate) fn apply(&self, means: &KernelSupport) -> Result<(), String> {
        if !means.seccomp {
            return Ok(());
        }
        self.0
            .iter()
            .try_for_each(|program| seccompiler::apply_filter(program))
            .map_err(|error| format!("seccomp: {error}"))
    }
}

/// Compiles a filter. seccompiler makes calls from another architecture's table kill the process.
fn compile(rules: Rules, action: SeccompAction) -> Result<Program, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| format!("seccomp: {error}"))?;
    SeccompFilter::new(rules, SeccompAction::Allow, action, arch)
        .and_then(Program::try_from)
        .map_err(|error| format!("seccomp: {error}"))
}

/// x86-64 kernels may have a second table of system calls (x32) under the same architecture, with bit 30 set in its
/// numbers, which would bypass every rule. All its calls fail as unimplemented, as on most kernels.
fn refuse_second_table(program: &mut Program) {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS; at offset 0 lies the number
    const JUMP_IF_NOT_LESS: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let no_such_call = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    let first = [step(LOAD, 0, 0, 0), step(JUMP_IF_NOT_LESS, 0, 1, 0x4000_0000), step(RETURN, 0, 0, no_such_call)];
    // Jumps are relative, so the following instructions stay unchanged.
    program.splice(0..0, first);
}

/// Calls about which the learning process is notified.
const LEARNT: &[c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_truncate,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_renameat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
];

/// The filter of a learning worker: the kernel notifies the learner of calls with paths and ports, and of calls that
/// the profile would refuse. Also returns the groups of the latter.
pub(crate) fn watched(profile: &Profile) -> Result<(Program, Vec<&'static Group>), String> {
    let groups = refused(profile)?;
    let mut rules = Rules::new();
    for group in &groups {
        add(&mut rules, group)?;
    }
    rules.extend(LEARNT.iter().map(|call| (*call, Vec::new())));
    // seccompiler does not support this action; another one that is otherwise unused stands in for it.
    let mut program = compile(rules, SeccompAction::Trace(0))?;
    for step in program.iter_mut().filter(|step| step.code == 0x06 && step.k == libc::SECCOMP_RET_TRACE) {
        step.k = libc::SECCOMP_RET_USER_NOTIF;
    }
    Ok((program, groups))
}

/// The group of a learning worker's call.
pub(crate) fn group_of(groups: &[&'static Group], call: c_long, arguments: &[u64; 6]) -> Option<&'static str> {
    let by_call = groups.iter().find(|group| group.calls.contains(&call));
    let by_case = || match call {
        libc::SYS_socket if INTERNET.contains(&arguments[0]) && arguments[1] & TYPE == libc::SOCK_DGRAM as u64 => "udp",
        libc::SYS_socket if arguments[0] == libc::AF_UNIX as u64 => "unix",
        libc::SYS_clone if arguments[0] & 0x7e02_0000 == 0 => "fork",
        libc::SYS_clone => "namespaces",
        libc::SYS_personality => "kernel",
        libc::SYS_ioctl => "terminal",
        _ => "raw_sockets",
    };
    by_call.map(|group| group.name).or_else(|| (!LEARNT.contains(&call)).then(by_case))
}

/// The name of a refused call, for the log.
pub(crate) fn name_of(call: c_long) -> &'static str {
    NAMES.iter().find(|(number, _)| *number == call).map_or("?", |(_, name)| name)
}

macro_rules! names {
    ($($call:ident $name:literal),* $(,)?) => { &[$((libc::$call, $name)),*] };
}

const NAMES: &[(c_long, &str)] = names![
    SYS_ptrace "ptrace",
    SYS_process_vm_readv "process_vm_readv",
    SYS_process_vm_writev "process_vm_writev",
    SYS_process_madvise "process_madvise",
    SYS_pidfd_getfd "pidfd_getfd",
    SYS_kcmp "kcmp",
    SYS_mount "mount",
    SYS_umount2 "umount2",
    SYS_pivot_root "pivot_root",
    SYS_chroot "chroot",
    SYS_move_mount "move_mount",
    SYS_open_tree "open_tree",
    SYS_fsopen "fsopen",
    SYS_fsconfig "fsconfig",
    SYS_fsmount "fsmount",
    SYS_fspick "fspick",
    SYS_mount_setattr "mount_setattr",
    SYS_swapon "swapon",
    SYS_swapoff "swapoff",
    SYS_unshare "unshare",
    SYS_setns "setns",
    SYS_clone "clone",
    SYS_bpf "bpf",
    SYS_perf_event_open "perf_event_open",
    SYS_userfaultfd "userfaultfd",
    SYS_open_by_handle_at "open_by_handle_at",
    SYS_personality "personality",
    SYS_syslog "syslog",
    SYS_keyctl "keyctl",
    SYS_add_key "add_key",
    SYS_request_key "request_key",
    SYS_io_uring_setup "io_uring_setup",
    SYS_socket "socket",
    SYS_sendto "sendto",
    SYS_sendmsg "sendmsg",
    SYS_sendmmsg "sendmmsg",
    SYS_ioctl "ioctl",
    SYS_memfd_create "memfd_create",
    SYS_clock_settime "clock_settime",
    SYS_settimeofday "settimeofday",
    SYS_sethostname "sethostname",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn names(profile: &Profile) -> Vec<&'static str> {
        refused(profile).unwrap().iter().map(|group| group.name).collect()
    }

    #[test]
    fn settings_change_the_refused_groups() {
        let mut profile = Profile::default();
        assert!(names(&profile).contains(&"trace") && names(&profile).contains(&"udp"));
        assert!(!names(&profile).contains(&"unix"));
        profile.connect = vec![3306];
        assert!(!names(&profile).contains(&"udp"), "names are resolved for connections");
        profile.deny = vec!["udp".to_owned(), "unix".to_owned(), "fork".to_owned()];
        profile.allow = vec!["trace".to_owned()];
        let names = names(&profile);
        assert!(names.contains(&"udp") && names.contains(&"unix") && names.contains(&"fork"), "{names:?}");
        assert!(!names.contains(&"trace"), "{names:?}");
        profile.allow = vec!["nonsense".to_owned()];
        assert!(refused(&profile).is_err());
    }

    #[test]
    fn every_group_makes_a_filter() {
        let all = || GROUPS.iter().map(|group| group.name.to_owned()).collect();
        let means = KernelSupport { landlock: 7, seccomp: true, sealed_memory: true };
        let strict = Profile { deny: all(), ..Profile::default() };
        let lax = Profile { allow: all(), ..Profile::default() };
        let (strict, lax) = (Filters::of(&strict, &means).unwrap(), Filters::of(&lax, &means).unwrap());
        assert!(strict.0[0].len() > lax.0[0].len());
        assert!(strict.0.iter().all(|program| program.len() < 4096), "the kernel takes no more");
        assert!(watched(&Profile { deny: all(), ..Profile::default() }).is_ok());
    }
}
