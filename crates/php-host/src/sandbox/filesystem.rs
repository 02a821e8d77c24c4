//! Landlock: restricts a worker's files and TCP ports, and the processes that it can signal and trace.
//!
//! A rule applies to a file or directory itself, not to its name. If it is replaced, by a rename or a changed symbolic
//! link, the replacement is a different file. So each worker that the zygote forks creates its rules anew; workers
//! forked from a template keep those of the worker that booted. A layer that does not grant `Refer` makes every rename
//! between directories fail; each layer here grants it wherever something can be written.

use super::kernel::KernelSupport;
use super::profile::{Access, Entry, Profile};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};

/// The newest version whose rights are used. Later ones restrict Unix sockets by path and UDP ports, for which there
/// are no settings.
const NEWEST: ABI = ABI::V7;

fn rights(entry: &Entry, is_directory: bool) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let change = AccessFs::WriteFile | AccessFs::Truncate;
    // No devices, sockets, pipes or symbolic links: applications create files and directories.
    let make = AccessFs::MakeReg | AccessFs::MakeDir | AccessFs::RemoveFile | AccessFs::RemoveDir | AccessFs::Refer;
    let all = match entry.access {
        Access::Read => read,
        Access::ReadFiles => AccessFs::ReadFile.into(),
        Access::Append => change | AccessFs::ReadFile,
        Access::Write | Access::WriteCode => read | change | make,
        Access::Execute => read | AccessFs::Execute,
    };
    if is_directory { all } else { all & AccessFs::from_file(NEWEST) }
}

/// Restricts this process according to the profile.
pub(crate) fn restrict(profile: &Profile, means: &KernelSupport) -> Result<(), String> {
    if means.landlock == 0 {
        return Ok(());
    }
    let text = |error: &dyn std::fmt::Display| format!("Landlock: {error}");
    let handled = AccessFs::from_all(NEWEST);
    let mut ruleset = Ruleset::default()
        .handle_access(handled)
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(ABI::V4)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(ABI::V6)))
        .and_then(Ruleset::create)
        .map_err(|error| text(&error))?;
    for entry in &profile.entries {
        // Missing paths cannot be in a rule. They were reported when the profile was made.
        let (Ok(path), Ok(about)) = (PathFd::new(&entry.path), std::fs::metadata(&entry.path)) else { continue };
        let pinned = entry.path.starts_with("/proc/").then(|| rustix::io::fcntl_dupfd_cloexec(&path, 0));
        ruleset = ruleset
            .add_rule(PathBeneath::new(path, rights(entry, about.is_dir())))
            .map_err(|error| format!("Landlock: {}: {error}", entry.path.display()))?;
        if let Some(Ok(descriptor)) = pinned {
            // /proc creates its inodes anew unless they are held open, and the rule would refer to one that is gone. So
            // the descriptor stays open as long as the process lives.
            std::mem::forget(descriptor);
        }
    }
    let ports = [(&profile.connect, AccessNet::ConnectTcp), (&profile.bind, AccessNet::BindTcp)];
    for (ports, access) in ports {
        for &port in ports {
            ruleset = ruleset.add_rule(NetPort::new(port, access)).map_err(|error| text(&error))?;
        }
    }
    enforce(ruleset)
}

/// Separates this process from those with the same restrictions. The layer does not restrict files.
pub(crate) fn separate(means: &KernelSupport) -> Result<(), String> {
    if means.landlock < 6 {
        return Ok(());
    }
    let top = PathFd::new("/").map_err(|error| format!("Landlock: /: {error}"))?;
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::Refer)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(ABI::V6)))
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.add_rule(PathBeneath::new(top, AccessFs::Refer)))
        .map_err(|error| format!("Landlock: {error}"))?;
    enforce(ruleset)
}

fn enforce(ruleset: landlock::RulesetCreated) -> Result<(), String> {
    let status = ruleset.restrict_self().map_err(|error| format!("Landlock: {error}"))?;
    // Features that this kernel lacks were reported when the pool started; check only that something is enforced.
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("Landlock: the kernel enforces none of the rules".to_owned()),
        _ => Ok(()),
    }
}
