//! Restrictions that the running kernel supports. The parts of a sandbox came with different releases of Linux.

use std::ffi::{c_char, c_int};

/// The kernel's support for sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelSupport {
    /// Landlock's version; 0 without it.
    pub(crate) landlock: u32,
    /// Filters for system calls.
    pub(crate) seccomp: bool,
    /// Anonymous memory files can be marked as not executable (Linux 6.3).
    pub(crate) sealed_memory: bool,
}

/// The Landlock version that restricts something, a description of it, and the kernel release that introduced it.
const PARTS: &[(u32, &str, &str)] = &[
    (1, "files", "5.13, with `landlock` in the kernel's list of security modules"),
    (2, "renames between directories selectively: all of them fail", "5.19"),
    (3, "truncating files", "6.2"),
    (4, "TCP ports", "6.7"),
    (6, "signals to processes outside of the sandbox", "6.12"),
];

impl KernelSupport {
    pub(crate) fn of_this_kernel() -> Self {
        const VERSION: c_int = 1;
        let landlock =
            // SAFETY: with no attributes and this flag the kernel only returns its version.
            unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION) };
        let action: u32 = libc::SECCOMP_RET_TRAP;
        let seccomp =
            // SAFETY: asks whether the kernel supports an action; reads the four bytes.
            unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, std::ptr::from_ref(&action)) };
        Self { landlock: u32::try_from(landlock).unwrap_or(0), seccomp: seccomp == 0, sealed_memory: seals_memory() }
    }

    /// Descriptions of missing restrictions, with the kernel that has them.
    pub(crate) fn missing(&self) -> Vec<String> {
        let parts = PARTS.iter().filter(|(version, ..)| self.landlock < *version);
        let mut missing: Vec<String> = parts.map(|(_, what, since)| format!("{what} (Linux {since})")).collect();
        if !self.seccomp {
            missing.push("system calls (a kernel with seccomp filters)".to_owned());
        }
        missing
    }

    /// One line for the operator.
    pub(crate) fn describe(&self) -> String {
        let landlock = match self.landlock {
            0 => "no Landlock".to_owned(),
            version => format!("Landlock version {version}"),
        };
        let seccomp = if self.seccomp { "seccomp" } else { "no seccomp" };
        let missing = self.missing();
        if missing.is_empty() {
            format!("{landlock}, {seccomp}: the whole sandbox is enforced")
        } else {
            format!("{landlock}, {seccomp}; does not restrict {}", missing.join("; "))
        }
    }
}

fn seals_memory() -> bool {
    const MFD_NOEXEC_SEAL: u32 = 8;
    let name: *const c_char = c"howdah-probe".as_ptr();
    // SAFETY: creates a descriptor, which is closed at once.
    unsafe {
        let fd = libc::memfd_create(name, libc::MFD_CLOEXEC | MFD_NOEXEC_SEAL);
        fd >= 0 && libc::close(fd) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_restrictions_of_an_older_kernel_are_listed() {
        let means = |landlock, seccomp| KernelSupport { landlock, seccomp, sealed_memory: true };
        assert!(means(6, true).missing().is_empty());
        let debian_12 = means(2, true).missing();
        assert_eq!(debian_12.len(), 3, "{debian_12:?}");
        assert!(debian_12[1].starts_with("TCP ports (Linux 6.7"), "{debian_12:?}");
        assert_eq!(means(0, false).missing().len(), PARTS.len() + 1);
        assert!(means(0, false).describe().starts_with("no Landlock, no seccomp; does not restrict files"));
    }
}
