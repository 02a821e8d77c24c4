//! A program that the launcher may start as root, requested by a server that is no longer root.
//!
//! It is settled before the server gives up its rights, and only root can replace it.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program and its environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootProgram {
    /// Path of the executable. It may be a link, whose target changes with an installation.
    pub binary: PathBuf,
    /// Its `argv[0]`.
    pub name: OsString,
    pub arguments: Vec<OsString>,
    /// Variables that are set for this program only, not for other processes.
    pub env: Vec<(String, String)>,
    /// Variables that are removed.
    pub without: Vec<String>,
}

impl RootProgram {
    /// The command, with `stdin` as its standard input.
    pub fn command(&self, stdin: OwnedFd) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg0(&self.name).args(&self.arguments).stdin(Stdio::from(stdin)).process_group(0);
        for name in &self.without {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Explains a failed start to the operator.
    pub fn explain(&self, error: &io::Error) -> String {
        format!("cannot start {}: {error}", self.binary.display())
    }

    /// Verifies that only root can replace it.
    pub(crate) fn verify_only_root_can_replace(&self) -> Result<(), String> {
        let real = self.binary.canonicalize().map_err(|error| self.explain(&error))?;
        let writable = |path: &Path| match std::fs::metadata(path) {
            Ok(found) => found.uid() != 0 || found.mode() & 0o022 != 0,
            Err(_) => true,
        };
        let all = self.binary.ancestors().skip(1).chain(real.ancestors());
        match all.into_iter().find(|path| writable(path)) {
            None => Ok(()),
            Some(path) => Err(format!(
                "users other than root can change {}, which the server would start as root: install howdah where only \
                 root can write, or restart the server",
                path.display()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_others_can_replace_is_not_started_as_root() {
        let place = tempfile::tempdir().unwrap();
        let binary = place.path().join("howdah");
        std::fs::write(&binary, "").unwrap();
        let program = |binary| RootProgram {
            binary,
            name: "howdah".into(),
            arguments: Vec::new(),
            env: Vec::new(),
            without: Vec::new(),
        };
        // Every user can write to the directory for temporary files.
        let why = program(binary).verify_only_root_can_replace().unwrap_err();
        assert!(why.contains("users other than root can change"), "{why}");
        let missing = program(place.path().join("missing"));
        assert!(missing.verify_only_root_can_replace().unwrap_err().contains("cannot start"));
    }
}
