//! Checks which users can read a file, by the permissions of the file and of every directory on its path.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of symbolic links that are followed, as in Linux.
const MAX_LINKS: usize = 40;

/// A user with its groups, or a user without any ownership.
#[derive(Debug, Clone, Copy)]
pub struct FileUser<'a> {
    /// `None` for a user that owns nothing and is in no group.
    pub uid: Option<u32>,
    /// The user's groups.
    pub groups: &'a [u32],
}

impl FileUser<'_> {
    /// A user that has only the permissions that every user has.
    pub const OTHERS: Self = Self { uid: None, groups: &[] };

    /// Returns `true` if the user can read the file. Access control lists are not considered.
    pub fn can_read(&self, path: &Path) -> bool {
        self.may(path, 0o4)
    }

    /// Returns `true` if the user has one of the permissions in `bits` for the file, and can reach the file.
    pub fn may(&self, path: &Path, bits: u32) -> bool {
        self.uid == Some(0)
            || std::fs::metadata(path).is_ok_and(|meta| self.permissions(&meta) & bits != 0)
                && directories(path).is_ok_and(|all| all.iter().all(|directory| self.can_enter(directory)))
    }

    fn can_enter(&self, directory: &Path) -> bool {
        std::fs::metadata(directory).is_ok_and(|meta| self.permissions(&meta) & 0o1 != 0)
    }

    fn permissions(&self, meta: &Metadata) -> u32 {
        let shift = match self.uid {
            Some(uid) if uid == meta.uid() => 6,
            _ if self.groups.contains(&meta.gid()) => 3,
            _ => 0,
        };
        meta.mode() >> shift & 0o7
    }
}

/// The directories that are searched to reach a file: those of its path, of each symbolic link at the path's end, and
/// of the final target.
fn directories(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    let mut add = |path: &Path| all.extend(path.ancestors().skip(1).map(Path::to_owned));
    let mut path = std::path::absolute(path)?;
    add(&path);
    for _ in 0..MAX_LINKS {
        let Ok(target) = std::fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
        add(&path);
    }
    add(&std::fs::canonicalize(&path)?);
    Ok(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_behind_a_closed_directory_cannot_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let set = |name: &str, mode: u32| {
            std::fs::set_permissions(dir.path().join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let (archive, live) = (dir.path().join("archive"), dir.path().join("live"));
        std::fs::create_dir(&archive).unwrap();
        std::fs::create_dir(&live).unwrap();
        std::fs::write(archive.join("key1.pem"), "").unwrap();
        std::os::unix::fs::symlink("../archive/key1.pem", live.join("key.pem")).unwrap();
        let key = live.join("key.pem");
        let owner = std::fs::metadata(&archive).unwrap();
        let (own, groups) = (owner.uid(), [owner.gid()]);
        let group = FileUser { uid: Some(own + 1), groups: &groups };
        for (top, archive, live, file, readers) in [
            (0o755, 0o755, 0o755, 0o644, [true, true]),
            (0o755, 0o755, 0o755, 0o640, [true, false]),
            (0o755, 0o700, 0o755, 0o644, [false, false]),
            (0o755, 0o755, 0o700, 0o644, [false, false]),
            (0o755, 0o710, 0o755, 0o644, [true, false]),
            (0o700, 0o755, 0o755, 0o644, [false, false]),
        ] {
            set("", top);
            set("archive", archive);
            set("live", live);
            set("archive/key1.pem", file);
            let seen = [group, FileUser::OTHERS].map(|reader| reader.can_read(&key));
            assert_eq!(seen, readers, "{top:o} {archive:o} {live:o} {file:o}");
            assert!(FileUser { uid: Some(own), groups: &[] }.can_read(&key));
        }
    }
}
