//! Setup of every process that the zygote forks: it must end with the zygote, without running its exit handlers.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// Has the kernel end this process when the zygote ends.
pub(crate) fn die_with(zygote: Pid) {
    // In this order: if the parent died before this call, no signal would ever come, so it is checked afterwards.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid() != Some(zygote) {
        exit(0);
    }
}

/// Ends the process without running the zygote's exit handlers, which belong to the zygote.
pub(crate) fn exit(status: i32) -> ! {
    // SAFETY: _exit takes any value and does not return.
    unsafe { libc::_exit(status) }
}
