//! The state directory: keys, accounts and certificates that the server has created or obtained. Only its owner can
//! access it. Each file is either complete or absent. Servers that share the directory take a lock before they change
//! something.

use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Maximum size of a file: a certificate with its chain and key has some kilobytes, so a much larger file is not ours.
const MAX_FILE: u64 = 1 << 20;

/// A directory that belongs to the server. All paths passed to methods are relative to it.
#[derive(Debug, Clone)]
pub struct StateDir {
    top: PathBuf,
}

/// A lock that is released when it is dropped, or when the process ends.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "holds the lock until it is closed")] File);

impl StateDir {
    /// Opens the directory, or creates it. Revokes access for other users.
    ///
    /// # Errors
    /// The directory cannot be created, or belongs to another user.
    pub fn open(top: &Path) -> io::Result<Self> {
        make(top)?;
        let meta = std::fs::metadata(top)?;
        let own = rustix::process::geteuid().as_raw();
        if meta.uid() != own {
            let why = format!("{} belongs to user {}, not to {own}, the server's user", top.display(), meta.uid());
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        if meta.mode() & 0o077 != 0 {
            std::fs::set_permissions(top, Permissions::from_mode(0o700))?;
        }
        Ok(Self { top: top.to_owned() })
    }

    /// Opens a subdirectory, or creates it.
    ///
    /// # Errors
    /// The subdirectory cannot be created.
    pub fn below(&self, path: &str) -> io::Result<Self> {
        let top = self.top.join(path);
        make(&top)?;
        Ok(Self { top })
    }

    /// Path of a file.
    pub fn path(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    /// A file's content; `None` if it does not exist.
    ///
    /// # Errors
    /// The file cannot be read, or is larger than any file that the server writes.
    pub fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(self.path(path)) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut content = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut content)?;
        if content.len() as u64 > MAX_FILE {
            return Err(io::Error::new(ErrorKind::InvalidData, format!("{} is too large", self.path(path).display())));
        }
        Ok(Some(content))
    }

    /// Modification time of a file; `None` if it does not exist.
    pub fn written(&self, path: &str) -> Option<SystemTime> {
        std::fs::metadata(self.path(path)).ok()?.modified().ok()
    }

    /// Writes a file, replacing the existing one. A concurrent reader gets the old one or the new one; after a crash it
    /// is one of the two as well.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &str, content: &[u8]) -> io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let target = self.path(path);
        let parent = target.parent().unwrap_or(&self.top);
        make(parent)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = parent.join(format!(".new-{}-{number}-{}", std::process::id(), fastrand::u32(..)));
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(content)?;
            file.sync_all()?;
            std::fs::rename(&temporary, &target)?;
            // The name must survive a crash too. File systems that cannot sync directories return an error, which is
            // ignored.
            let _ = File::open(parent).and_then(|dir| dir.sync_all());
            Ok(())
        })();
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    /// Removes a file if it exists.
    pub fn remove(&self, path: &str) {
        let _ = std::fs::remove_file(self.path(path));
    }

    /// Takes a lock (flock(2)) if it is free. It works between processes, and on NFS between machines; the kernel
    /// releases it when the process ends.
    ///
    /// # Errors
    /// The lock's file cannot be opened.
    pub fn try_lock(&self, path: &str) -> io::Result<Option<Lock>> {
        let file = self.lock_file(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock(file))),
            Err(error) if error == rustix::io::Errno::WOULDBLOCK => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a lock and waits for its holder: only for short work.
    ///
    /// # Errors
    /// The lock's file cannot be opened.
    pub fn lock(&self, path: &str) -> io::Result<Lock> {
        let file = self.lock_file(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Lock(file))
    }

    fn lock_file(&self, path: &str) -> io::Result<File> {
        let path = self.path(path);
        make(path.parent().unwrap_or(&self.top))?;
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
    }

    /// Names of the subdirectories.
    pub fn directories(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.top).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        directories.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

/// `true` if the path does not exist, also because its parent is not a directory.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn make(path: &Path) -> io::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| io::Error::new(error.kind(), format!("cannot create {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_can_read_what_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("a/state")).unwrap();
        state.write("x/key.pem", b"one").unwrap();
        state.write("x/key.pem", b"two").unwrap();
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(state.read("x/key.pem").unwrap().unwrap(), b"two");
        assert_eq!(mode(state.path("x/key.pem")), 0o600);
        assert_eq!(mode(state.path("x")), 0o700);
        assert_eq!(mode(state.path("")), 0o700);
        assert_eq!(std::fs::read_dir(state.path("x")).unwrap().count(), 1, "a temporary file stayed");
        assert_eq!(state.read("y/none").unwrap(), None);
    }

    #[test]
    fn a_directory_that_others_can_enter_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        StateDir::open(dir.path()).unwrap();
        assert_eq!(std::fs::metadata(dir.path()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_lock_is_for_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let held = state.try_lock("l").unwrap().unwrap();
        assert!(state.try_lock("l").unwrap().is_none());
        drop(held);
        assert!(state.try_lock("l").unwrap().is_some());
    }

    #[test]
    fn a_file_that_is_far_too_large_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        File::create(dir.path().join("big")).unwrap().set_len(MAX_FILE + 1).unwrap();
        assert!(state.read("big").is_err());
    }
}
