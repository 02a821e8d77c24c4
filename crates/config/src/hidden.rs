//! Paths that the systemd unit hides from this process, which runs in it.

use std::path::{Path, PathBuf};

/// Directories that `ProtectHome=` hides.
pub(crate) const HOMES: &[&str] = &["/home", "/root", "/run/user"];

/// The end of messages about them.
pub(crate) const REMEDY: &str = "install the drop-in home.conf (docs/guide/install.md, \"What the unit forbids\")";

/// The reason why a missing path may exist for other processes, as the end of a message; else empty.
pub(crate) fn reason(path: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    match hiding_mount(path, &mounts, std::env::var_os("INVOCATION_ID").is_some()) {
        Some(home) if HOMES.iter().any(|known| home == Path::new(known)) => {
            format!(": the systemd unit hides {} (ProtectHome=); {REMEDY}", home.display())
        }
        Some(place) => format!(": the systemd unit hides {} (InaccessiblePaths=)", place.display()),
        None => String::new(),
    }
}

/// The mount that systemd has put over a directory above this path. `mounts` has the format of `/proc/self/mountinfo`.
/// A home on a tmpfs counts only `in_unit`.
fn hiding_mount(path: &Path, mounts: &str, in_unit: bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(3);
        let (source, place) = (fields.next()?, Path::new(fields.next()?));
        let is_tmpfs = fields.skip_while(|field| *field != "-").nth(1) == Some("tmpfs");
        let is_empty_home = in_unit && is_tmpfs && HOMES.iter().any(|home| place == Path::new(home));
        let hides = source.contains("/systemd/inaccessible/") || is_empty_home;
        (hides && path.starts_with(place)).then(|| place.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_systemd_hide_paths_and_others_do_not() {
        let mounts = "\
            1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
            2 1 0:25 /systemd/inaccessible/dir /home ro shared:1 - tmpfs tmpfs rw\n\
            3 1 0:26 / /root ro - tmpfs tmpfs ro\n\
            4 1 0:25 /systemd/inaccessible/dir /opt/secret ro - tmpfs tmpfs rw\n";
        let by = |path, in_unit| hiding_mount(Path::new(path), mounts, in_unit);
        assert_eq!(by("/home/ann/app", false), Some("/home".into()));
        assert_eq!(by("/opt/secret/app", false), Some("/opt/secret".into()));
        assert_eq!(by("/root/app", true), Some("/root".into()));
        assert_eq!(by("/root/app", false), None, "a machine may have a tmpfs there");
        assert_eq!(by("/srv/app", true), None);
        assert_eq!(by("/homes/app", true), None);
    }
}
