//! A gate that holds a running script until the test releases it: a named pipe, so that no test has to sleep.
//!
//! In the script: `require 'gate.php'; gate('name');`. The call returns when the test releases the gate.

use crate::process::{PATIENCE, eventually};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(crate) const SCRIPT: &str = include_str!("php/gate.php");

/// The test's side of a gate.
#[derive(Debug)]
pub struct Gate {
    path: PathBuf,
}

/// A script that waits at a gate; dropping this releases it.
#[derive(Debug)]
pub struct Held {
    pipe: File,
}

impl Gate {
    pub(crate) fn new(directory: &Path, name: &str) -> Self {
        let path = directory.join(name);
        mknodat(
            CWD,
            &path,
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH,
            0,
        )
        .unwrap_or_else(|e| panic!("mkfifo {}: {e}", path.display()));
        Self { path }
    }

    fn try_open(&self) -> Option<File> {
        // Without a reader, opening for writing without blocking fails, so success means that a script has arrived.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        OpenOptions::new().write(true).custom_flags(nonblocking).open(&self.path).ok()
    }

    /// Returns the script that waits here now, if there is one. It stays held only if this is not called for the same
    /// script again.
    pub fn script_is_here(&self) -> Option<Held> {
        self.try_open().map(|pipe| Held { pipe })
    }

    /// Waits until a script has arrived and keeps it at the gate.
    pub fn wait(&self) -> Held {
        let mut pipe = None;
        let arrived = eventually(PATIENCE, || {
            pipe = self.try_open();
            pipe.is_some()
        });
        assert!(arrived, "no script arrived at the gate {}", self.path.display());
        Held { pipe: pipe.unwrap_or_else(|| unreachable!()) }
    }

    /// Waits until a script has arrived and releases it.
    pub fn release(&self) {
        self.wait().release();
    }
}

impl Held {
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The script may have been killed in the meantime.
        let _ = self.pipe.write_all(b"go\n");
    }
}
