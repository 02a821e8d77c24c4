//! Destinations of log lines: a standard stream or a file (`file`), journald (`journald`), a syslog daemon (`syslog`).
//! Only the thread of a log's queue writes to a sink (`queue`), because a write may hang for as long as the disk, the
//! reader of a pipe or the daemon does.

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
pub(crate) struct LostLines {
    pub(crate) lines: u64,
    pub(crate) error: io::Error,
}

impl LostLines {
    /// All of these lines are lost.
    fn all(lines: &[u8], error: io::Error) -> Self {
        Self { lines: lines.iter().filter(|byte| **byte == b'\n').count() as u64, error }
    }
}

/// A destination for whole lines; a log service takes lines that `record` built.
#[derive(Debug)]
pub(crate) enum Sink {
    File(FileSink),
    Journald(Journald),
    Syslog(Syslog),
}

impl Sink {
    /// A log service; `name` is this log's name there.
    ///
    /// # Errors
    /// When a local daemon cannot be reached. A remote one may become reachable later.
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

    /// Connects to a remote server before there is anything to write. Errors are reported by the first write.
    pub(crate) fn begin(&mut self) {
        if let Self::Syslog(syslog) = self {
            syslog.begin();
        }
    }

    pub(crate) fn write(&mut self, lines: &[u8]) -> Result<(), LostLines> {
        match self {
            Self::File(file) => file.write(lines),
            Self::Journald(journald) => each(lines, |record| journald.send(record)),
            Self::Syslog(syslog) => each(lines, |record| syslog.send(record)),
        }
    }

    /// Reopens the sink. Keeps the old one on failure.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.reopen(),
            Self::Journald(journald) => journald.reopen(),
            Self::Syslog(syslog) => syslog.reopen(),
        }
    }
}

/// Sends each record separately: an error of one does not hold up the others.
fn each(lines: &[u8], mut send: impl FnMut(&crate::record::Record<'_>) -> io::Result<()>) -> Result<(), LostLines> {
    let mut lost: Option<LostLines> = None;
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let sent = match crate::record::Record::read(line) {
            Some(record) => send(&record),
            None => Err(io::ErrorKind::InvalidData.into()),
        };
        if let Err(error) = sent {
            let lines = lost.map_or(0, |lost| lost.lines) + 1;
            lost = Some(LostLines { lines, error });
        }
    }
    lost.map_or(Ok(()), Err)
}
