//! Where log lines end: a standard stream, or a file that can be reopened after it was rotated away.

use crate::log_file;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A place for whole lines.
#[derive(Debug)]
pub(crate) enum Sink {
    Stdout,
    Stderr,
    File(PathBuf, Mutex<Arc<File>>),
}

impl Sink {
    /// A file, made if need be and written at its end.
    pub(crate) fn file(path: &Path) -> io::Result<Self> {
        Ok(Self::File(path.to_owned(), Mutex::new(Arc::new(open(path)?))))
    }

    /// Writes whole lines in one go where the system allows.
    pub(crate) fn write(&self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut stream = io::stdout().lock();
                stream.write_all(lines)?;
                stream.flush()
            }
            Self::Stderr => io::stderr().lock().write_all(lines),
            Self::File(_, file) => {
                // Not under the lock: a write that hangs must not keep `reopen` waiting.
                let file = Arc::clone(&file.lock().unwrap_or_else(PoisonError::into_inner));
                (&*file).write_all(lines)
            }
        }
    }

    /// Opens the file's path anew; the old file is closed when its last write ends. Keeps the old one on failure.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        if let Self::File(path, file) = self {
            let fresh = Arc::new(open(path)?);
            *file.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    let file = log_file::open(path);
    file.map_err(|error| io::Error::new(error.kind(), format!("cannot open the log {}: {error}", path.display())))
}
