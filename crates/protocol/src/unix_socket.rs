//! Files of Unix sockets: bound so that only the owner can connect, then opened to the users in the settings.

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Access to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnixAccess {
    /// Permissions of the file.
    pub mode: u32,
    /// Its owner; `None`: the process that binds it.
    pub uid: Option<u32>,
    /// Its group; `None`: the binder's.
    pub gid: Option<u32>,
}

impl Default for UnixAccess {
    fn default() -> Self {
        Self { mode: 0o660, uid: None, gid: None }
    }
}

/// Binds a socket whose file only its owner can access from the start. Does not listen yet.
///
/// # Errors
/// The system's error.
pub fn bind_private(path: &Path) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // bind(2) creates the file with the socket's mode, less the umask. Setting the mode first avoids a race, and avoids
    // changing the umask, which is process-wide.
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(0o600))?;
    socket.bind(&SockAddr::unix(path)?)?;
    Ok(socket)
}

/// Sets owner and permissions of a socket's file. Refuses a file that is not a socket, in case the path was replaced.
///
/// # Errors
/// The system's error: only root can change a file's owner.
pub fn open_up(path: &Path, access: UnixAccess) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::Socket {
        return Err(io::Error::other("the socket's file was replaced"));
    }
    if access.uid.is_some() || access.gid.is_some() {
        let (uid, gid) = (access.uid.map(Uid::from_raw), access.gid.map(Gid::from_raw));
        let given = rustix::fs::chownat(&file, "", uid, gid, AtFlags::EMPTY_PATH);
        given.map_err(|error| {
            io::Error::new(io::Error::from(error).kind(), format!("cannot change the owner of the socket: {error}"))
        })?;
    }
    let permissions = std::fs::Permissions::from_mode(access.mode);
    std::fs::set_permissions(format!("/proc/self/fd/{}", file.as_raw_fd()), permissions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_socket_is_private_until_its_mode_is_set() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let mode = || std::fs::metadata(&path).unwrap().mode() & 0o777;
        let _socket = bind_private(&path).unwrap();
        assert_eq!(mode(), 0o600);
        open_up(&path, UnixAccess::default()).unwrap();
        assert_eq!(mode(), 0o660);
        open_up(&path, UnixAccess { mode: 0o666, ..UnixAccess::default() }).unwrap();
        assert_eq!(mode(), 0o666);
    }

    #[test]
    fn a_file_at_a_sockets_path_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (path, precious) = (dir.path().join("s"), dir.path().join("precious"));
        std::fs::write(&precious, "x").unwrap();
        std::fs::set_permissions(&precious, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        assert!(open_up(&path, UnixAccess::default()).is_err());
        assert!(open_up(&precious, UnixAccess::default()).is_err());
        assert_eq!(std::fs::metadata(&precious).unwrap().mode() & 0o777, 0o600);
    }
}
