//! The document root as a descriptor, and the only way from a path to an open file.
//!
//! A path is never checked first and opened later. It is opened relative to the root's descriptor with the kernel
//! enforcing the policy while it walks (`openat2`), or, where that is missing, opened and then judged by where the
//! descriptor really leads, so swapping a directory for a link in between gains nothing.

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

/// `O_NONBLOCK`: opening a FIFO must not wait for a writer. It means nothing to regular files.
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Set once the kernel (or a seccomp filter) has refused `openat2` as such.
static NO_OPENAT2: AtomicBool = AtomicBool::new(false);

/// An open document root.
#[derive(Debug)]
pub(super) struct Root {
    directory: OwnedFd,
    /// Where the directory really is, for links with absolute targets.
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

    /// Opens what is at `path` (relative, without `..`) for reading, if the policy allows to go there.
    pub(super) fn open_file(&self, path: &Path) -> Result<OwnedFd, Miss> {
        if self.is_withheld(path) {
            return Err(Miss::Hidden);
        }
        // Nearly no path contains a link. This one call serves all policies, and what it opens has the name asked for.
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
        // A link's own name says nothing about the target's.
        match real_path(file.as_fd()) {
            Ok(real) if !self.is_withheld(&real) => Ok(file),
            _ => Err(Miss::Hidden),
        }
    }

    /// Follows links whose targets stay under the root, or lie where links may lead.
    fn open_inside(&self, path: &Path) -> Result<OwnedFd, Miss> {
        match self.walk(path, READ, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
            Err(Errno::XDEV) => {}
            other => return other.map_err(Miss::from),
        }
        // The kernel counts every absolute target as leaving. Find where it leads without opening it for reading, and
        // go there from the root with no link left on the way.
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

    /// For systems without `openat2`: open as the system does, then look where that led.
    fn open_and_judge(&self, path: &Path) -> Result<OwnedFd, Miss> {
        let target = openat(&self.directory, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let real = real_path(target.as_fd()).map_err(|_| Miss::Hidden)?;
        if !self.links.allow(&self.real, path, &real) || self.is_withheld(&real) {
            return Err(Miss::Hidden);
        }
        // The descriptor opened for reading must be the one that was judged.
        let file = openat(&self.directory, path, READ, Mode::empty())?;
        let (judged, opened) = (rustix::fs::fstat(&target)?, rustix::fs::fstat(&file)?);
        if identity(&judged) == identity(&opened) { Ok(file) } else { Err(Miss::NotFound) }
    }

    /// `true` if a file of this name is never sent.
    fn is_withheld(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        self.withheld.by_name(path.strip_suffix(DELETED).unwrap_or(path))
    }

    fn walk(&self, path: &Path, flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        if NO_OPENAT2.load(Ordering::Relaxed) {
            return Err(Errno::NOSYS);
        }
        // EAGAIN: something was renamed while the kernel resolved "..", so it could not tell whether that leaves.
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

/// `true` if `path` may be looked up: relative, made of names only, none of them hidden.
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
