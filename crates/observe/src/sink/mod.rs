//! Where log lines end: a standard stream or a file (`file`), journald (`journald`), a syslog daemon (`syslog`). Only the thread
//! of a log's queue writes to one (`queue`): any write here may hang for as long as the disk, the reader of a pipe or a daemon
//! likes.

mod file;
mod journald;
mod syslog;

pub(crate) use file::FileSink;

use howdah_config::LogService;
use journald::Journald;
use std::io;
use syslog::Syslog;

/// Lines that could not be written.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) lines: u64,
    pub(crate) error: io::Error,
}

impl Lost {
    /// All of these lines.
    fn all(lines: &[u8], error: io::Error) -> Self {
        Self { lines: lines.iter().filter(|byte| **byte == b'\n').count() as u64, error }
    }
}

/// A place for whole lines; for a service they are those that `record` writes.
#[derive(Debug)]
pub(crate) enum Sink {
    File(FileSink),
    Journald(Journald),
    Syslog(Syslog),
}

impl Sink {
    /// A service, to which this log has its own name.
    ///
    /// # Errors
    /// When a local daemon cannot be reached. A remote one may come later.
    pub(crate) fn service(service: &LogService, name: &'static str) -> io::Result<Self> {
        let opened = match service {
            LogService::Journald(path) => Journald::open(path, name).map(Self::Journald),
            other => Syslog::open(other, name).map(Self::Syslog),
        };
        opened.map_err(|error| {
            let message = format!("cannot reach the log service {service}: {error}; is it running?");
            io::Error::new(error.kind(), message)
        })
    }

    /// Finds the way to a server elsewhere, before there is anything to write. Whether that worked is seen then.
    pub(crate) fn begin(&mut self) {
        if let Self::Syslog(syslog) = self {
            syslog.begin();
        }
    }

    pub(crate) fn write(&mut self, lines: &[u8]) -> Result<(), Lost> {
        match self {
            Self::File(file) => file.write(lines),
            Self::Journald(journald) => each(lines, |record| journald.send(record)),
            Self::Syslog(syslog) => each(lines, |record| syslog.send(record)),
        }
    }

    /// Opens it anew. Keeps the old one on failure.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.reopen(),
            Self::Journald(journald) => journald.reopen(),
            Self::Syslog(syslog) => syslog.reopen(),
        }
    }
}

/// Sends one record after the other. What one of them meets does not keep the others.
fn each(lines: &[u8], mut send: impl FnMut(&crate::record::Record<'_>) -> io::Result<()>) -> Result<(), Lost> {
    let mut lost: Option<Lost> = None;
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let sent = match crate::record::Record::read(line) {
            Some(record) => send(&record),
            None => Err(io::ErrorKind::InvalidData.into()),
        };
        if let Err(error) = sent {
            let lines = lost.map_or(0, |lost| lost.lines) + 1;
            lost = Some(Lost { lines, error });
        }
    }
    lost.map_or(Ok(()), Err)
}
