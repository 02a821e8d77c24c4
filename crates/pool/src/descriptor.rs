//! Waiting for descriptors in the runtime: the one place of this crate with `unsafe`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A shared descriptor whose number cannot change while it is registered: no code can replace the descriptor inside.
#[derive(Debug, Clone)]
pub(crate) struct SharedFd(Arc<OwnedFd>);

impl AsRawFd for SharedFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl SharedFd {
    pub(crate) fn get(&self) -> &OwnedFd {
        &self.0
    }
}

/// Registers a descriptor for reading with the current runtime.
pub(crate) fn watch(fd: Arc<OwnedFd>) -> io::Result<AsyncFd<SharedFd>> {
    register(fd, Interest::READABLE)
}

/// Registers a descriptor for reading and writing.
pub(crate) fn watch_both(fd: Arc<OwnedFd>) -> io::Result<AsyncFd<SharedFd>> {
    register(fd, Interest::READABLE | Interest::WRITABLE)
}

fn register(fd: Arc<OwnedFd>, interest: Interest) -> io::Result<AsyncFd<SharedFd>> {
    // SAFETY: `SharedFd` owns a share of the open descriptor and always reports the same number, so the descriptor
    // stays open and unchanged until the registration is dropped together with it.
    unsafe { AsyncFd::register_with_interest(SharedFd(fd), interest) }.map_err(Into::into)
}
