//! Log output to a standard stream, or to a file that can be reopened after rotation.

use super::LostLines;
use crate::log_file;
use howdah_config::MissingDirectory;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};

/// A stream or file for whole lines.
#[derive(Debug)]
pub(crate) struct FileSink {
    file: File,
    /// The last line was only written in part, for example because the disk was full.
    torn: bool,
    /// The path to reopen; `None` for standard streams.
    path: Option<PathBuf>,
}

impl FileSink {
    pub(crate) fn stdout() -> io::Result<Self> {
        Self::stream(io::stdout())
    }

    pub(crate) fn stderr() -> io::Result<Self> {
        Self::stream(io::stderr())
    }

    /// A standard stream with a separate descriptor: a write that hangs must not hold the lock that `eprintln!` takes.
    fn stream(stream: impl AsFd) -> io::Result<Self> {
        Ok(Self { file: File::from(stream.as_fd().try_clone_to_owned()?), torn: false, path: None })
    }

    /// A file, created if necessary and opened for appending.
    pub(crate) fn file(path: &Path) -> io::Result<Self> {
        Ok(Self { file: open(path)?, torn: false, path: Some(path.to_owned()) })
    }

    /// Writes whole lines, in one call if the system allows.
    pub(crate) fn write(&mut self, mut lines: &[u8]) -> Result<(), LostLines> {
        // Ends a torn line first, so that the next one does not continue it.
        if self.torn {
            self.put(&mut &b"\n"[..]).map_err(|error| LostLines::all(lines, error))?;
            self.torn = false;
        }
        let whole = lines.len();
        self.put(&mut lines).map_err(|error| {
            self.torn = lines.len() < whole && !lines.is_empty();
            LostLines::all(lines, error)
        })
    }

    /// Writes as much as possible; `lines` is then the unwritten rest.
    fn put(&mut self, lines: &mut &[u8]) -> io::Result<()> {
        while !lines.is_empty() {
            match self.file.write(lines) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => *lines = &lines[n..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The parent process may have left the stream in non-blocking mode.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], None)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reopens the file's path. Keeps the old file on failure.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        if let Some(path) = &self.path {
            self.file = open(path)?;
            self.torn = false;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    log_file::open(path).map_err(|error| {
        let why = MissingDirectory::of(path).map_or_else(|| error.to_string(), |missing| missing.to_string());
        io::Error::new(error.kind(), format!("cannot open the log {}: {why}", path.display()))
    })
}
