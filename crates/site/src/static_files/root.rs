//! The document root as a descriptor, and the only way from a path to an open file.
//!
//! Swapping a directory for a link between a check and the opening has no effect. A path is opened relative to the
//! root's descriptor, and the kernel enforces the policy during the walk (`openat2`). On systems without `openat2`, the
//! real path of an `O_PATH` descriptor is checked; the file that is then opened must be the same one.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use howdah_config::Symlinks;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, openat, openat2, statat};
use rustix::io::Errno;

use super::Miss;
use super::links::Links;
use super::real_path::{DELETED, real_path};
use crate::withheld::Withheld;

/// `O_NONBLOCK`: opening a FIFO must not wait for a writer. It has no effect on regular files.
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Set once the kernel or a seccomp filter has rejected the system call `openat2` itself.
static NO_OPENAT2: AtomicBool = AtomicBool::new(false);

/// An open document root.
#[derive(Debug)]
pub(super) struct Root {
    directory: OwnedFd,
    /// The resolved path of the directory, for links with absolute targets.
    real: PathBuf,
    identity: (u64, u64),
    links: Arc<Links>,
    withheld: Arc<Withheld>,
}

impl Root {
    pub(super) fn open(path: &Path, links: Arc<Links>, withheld: Arc<Withheld>) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&directory)?;
        let real = real_path(directory.as_fd()).map_or_else(|_| path.canonicalize(), Ok)?;
        Ok(Self { directory, real, identity: identity(&stat), links, withheld })
    }

    /// `true` if `path` still leads to this directory (a deployment may have moved a link).
    pub(super) fn is_at(&self, path: &Path) -> bool {
        statat(CWD, path, AtFlags::empty()).is_ok_and(|stat| identity(&stat) == self.identity)
    }

    /// Opens the file at `path` (relative, without `..`) for reading, if the policy allows it.
    pub(super) fn open_file(&self, path: &Path) -> Result<OwnedFd, Miss> {
        if self.is_withheld(path) {
            return Err(Miss::Hidden);
        }
        // Few paths contain a link. This call is right under every policy, and the file it opens has the requested
        // name.
        match self.walk(path, READ, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS) {
            Ok(file) => return Ok(file),
            Err(Errno::LOOP) if self.links.policy() == Symlinks::Never => return Err(Miss::Hidden),
            Err(Errno::LOOP) => {}
            Err(Errno::NOSYS) => return self.open_and_judge(path),
            Err(error) => return Err(error.into()),
        }
        let file = match self.links.policy() {
            Symlinks::Always => openat(&self.directory, path, READ, Mode::empty())?,
            _ => self.open_inside(path)?,
        };
        // The path contains a link, so the real name must be checked too.
        match real_path(file.as_fd()) {
            Ok(real) if !self.is_withheld(&real) => Ok(file),
            _ => Err(Miss::Hidden),
        }
    }

    /// Follows links to targets below the root, or outside if the policy allows it.
    fn open_inside(&self, path: &Path) -> Result<OwnedFd, Miss> {
        match self.walk(path, READ, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
            Err(Errno::XDEV) => {}
            other => return other.map_err(Miss::from),
        }
        // `RESOLVE_BENEATH` rejects every absolute target. Find the real path without opening the file for reading,
        // then open that path from the root without any links.
        let target = openat(&self.directory, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let real = real_path(target.as_fd()).map_err(|_| Miss::Hidden)?;
        let Ok(inside) = real.strip_prefix(&self.real) else {
            if !self.links.allow_outside(&self.real, path, &real) {
                return Err(Miss::Hidden);
            }
            let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            return Ok(openat2(CWD, &real, READ, Mode::empty(), resolve)?);
        };
        Ok(self.walk(inside, READ, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)?)
    }

    /// For systems without `openat2`: opens the path normally, then checks the real path of the descriptor.
    fn open_and_judge(&self, path: &Path) -> Result<OwnedFd, Miss> {
        let target = openat(&self.directory, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let real = real_path(target.as_fd()).map_err(|_| Miss::Hidden)?;
        if !self.links.allow(&self.real, path, &real) || self.is_withheld(&real) {
            return Err(Miss::Hidden);
        }
        // The file opened for reading must be the one that was checked.
        let file = openat(&self.directory, path, READ, Mode::empty())?;
        let (judged, opened) = (rustix::fs::fstat(&target)?, rustix::fs::fstat(&file)?);
        if identity(&judged) == identity(&opened) { Ok(file) } else { Err(Miss::NotFound) }
    }

    /// `true` if a file with this name is never sent.
    fn is_withheld(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        self.withheld.by_name(path.strip_suffix(DELETED).unwrap_or(path))
    }

    fn walk(&self, path: &Path, flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        if NO_OPENAT2.load(Ordering::Relaxed) {
            return Err(Errno::NOSYS);
        }
        // EAGAIN: a rename during the resolution of ".." prevented the kernel from checking that the path stays below
        // the root.
        for _ in 0..8 {
            match openat2(&self.directory, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOSYS | Errno::PERM) => {
                    NO_OPENAT2.store(true, Ordering::Relaxed);
                    return Err(Errno::NOSYS);
                }
                other => return other,
            }
        }
        Err(Errno::NOENT)
    }
}

/// `true` if `path` may be looked up: relative, without `.` and `..`, and without hidden names.
pub(super) fn is_visible(path: &Path, dotfiles: bool) -> bool {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.contains(&0) {
        return false;
    }
    path.components().enumerate().all(|(at, component)| match component {
        Component::Normal(name) => {
            dotfiles || !name.as_bytes().starts_with(b".") || (at == 0 && name == OsStr::new(".well-known"))
        }
        _ => false,
    })
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_config::StaticSettings;

    #[test]
    fn hidden_paths() {
        for (path, expected) in [
            ("a", true),
            ("a/b.txt", true),
            (".well-known/acme/x", true),
            ("a..b/...c", false),
            ("a/..b", false),
            (".env", false),
            ("a/.git/config", false),
            (".well-known/.secret", false),
            ("a/.well-known", false),
            ("", false),
            ("/etc/passwd", false),
            ("../x", false),
            ("a/../b", false),
            ("a\0b", false),
        ] {
            assert_eq!(is_visible(Path::new(path), false), expected, "{path:?}");
        }
        assert!(is_visible(Path::new(".env"), true));
        assert!(!is_visible(Path::new("../x"), true));
    }

    /// Links of every kind, judged in both ways.
    #[test]
    fn links() {
        let outer = tempfile::tempdir().unwrap();
        let base = outer.path().canonicalize().unwrap();
        let root = base.join("root");
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        std::fs::write(base.join("secret"), "secret").unwrap();
        std::fs::write(root.join("real/file"), "file").unwrap();
        std::fs::write(root.join("index.php"), "<?php").unwrap();
        let link = |name: &str, target: &Path| std::os::unix::fs::symlink(target, root.join(name)).unwrap();
        link("relative", Path::new("real/file"));
        link("absolute", &root.join("real/file"));
        link("directory", Path::new("real"));
        link("real/deep/up", Path::new("../file"));
        link("escape", Path::new("../secret"));
        link("escape_absolute", &base.join("secret"));
        link("escape_directory", Path::new(".."));
        link("source.txt", Path::new("index.php"));
        link("source_absolute.txt", &root.join("index.php"));
        link("magic", Path::new("/proc/self/root/etc/hostname"));
        link("loop", Path::new("loop"));
        link("dangling", Path::new("nowhere"));
        let inside = ["relative", "absolute", "directory/file", "real/deep/up"];
        let outside = ["escape", "escape_absolute", "escape_directory/secret", "magic"];
        let never = ["source.txt", "source_absolute.txt", "index.php", "loop", "dangling", "real/file/", "none"];

        for policy in [Symlinks::Inside, Symlinks::Always, Symlinks::Never] {
            let settings = StaticSettings { follow_symlinks: policy.into(), ..StaticSettings::default() };
            let root = Root::open(&root, Arc::new(Links::new(&settings, Vec::new())), Arc::default()).unwrap();
            let ways: [&dyn Fn(&Path) -> bool; 2] =
                [&|path| root.open_file(path).is_ok(), &|path| root.open_and_judge(path).is_ok()];
            for open in ways {
                assert!(open(Path::new("real/file")), "{policy:?}");
                for path in inside {
                    assert_eq!(open(Path::new(path)), policy != Symlinks::Never, "{policy:?} {path}");
                }
                for path in outside {
                    // The container may lack the file behind "magic"; what matters is that it is not reached.
                    let exists = statat(&root.directory, path, AtFlags::empty()).is_ok();
                    assert_eq!(open(Path::new(path)), policy == Symlinks::Always && exists, "{policy:?} {path}");
                }
                for path in never {
                    assert!(!open(Path::new(path)), "{policy:?} {path}");
                }
            }
        }
    }
}
