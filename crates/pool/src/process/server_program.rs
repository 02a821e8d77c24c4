//! The server's own program, as an upgrade starts it anew.
//!
//! It is found anew by the name that it was called by, with the arguments that it was started with. A server that has given up
//! root's rights lets the launcher start it, as the new server needs them for as long as the old one did. What may be started is
//! settled before the rights are given up, and the launcher makes sure that nobody but root can put another program there.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A variable that says to a server that its standard input leads to the one whose place it takes.
pub const TAKES_OVER: &str = "HOWDAH_TAKES_OVER";

/// What systemd says to a process about descriptors that only that process has.
pub(crate) const OF_ONE_PROCESS: &[&str] = &["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "LISTEN_PIDFDID"];

/// What the server itself is run as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerProgram {
    /// The file, by the name that it was called by: that may be a link, which leads somewhere else after an installation.
    binary: PathBuf,
    /// The name that it was called by.
    name: OsString,
    arguments: Vec<OsString>,
}

impl ServerProgram {
    /// What this process was started as. Asked for at the start, as relative names mean something then.
    ///
    /// # Errors
    /// The system does not say which program this is.
    pub fn of_this_process() -> io::Result<Self> {
        let running = std::env::current_exe()?;
        let mut arguments = std::env::args_os();
        let name = arguments.next().unwrap_or_default();
        let is_running =
            |path: &PathBuf| identity(path).is_some() && identity(path) == identity(Path::new("/proc/self/exe"));
        let called = if Path::new(&name).components().count() > 1 {
            std::path::absolute(&name).ok()
        } else {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).map(|directory| directory.join(&name)).find(is_running)
        };
        let binary = called.filter(is_running).unwrap_or(running);
        Ok(Self { binary, name, arguments: arguments.collect() })
    }

    #[cfg(test)]
    pub(crate) fn with_binary(&self, binary: PathBuf) -> Self {
        Self { binary, ..self.clone() }
    }

    /// The file that would be started.
    #[must_use]
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// The command; `socket` leads to the server whose place it takes.
    pub(crate) fn command(&self, socket: OwnedFd) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg0(&self.name).args(&self.arguments).env(TAKES_OVER, "1").stdin(Stdio::from(socket)).process_group(0);
        for name in OF_ONE_PROCESS {
            command.env_remove(name);
        }
        command
    }

    /// Why it could not be started, for the operator.
    pub(crate) fn explain(&self, error: &io::Error) -> String {
        format!("cannot start {}: {error}", self.binary.display())
    }

    /// Makes sure that nobody but root can put another program in its place.
    pub(crate) fn is_roots_alone(&self) -> Result<(), String> {
        let real = self.binary.canonicalize().map_err(|error| self.explain(&error))?;
        let writable = |path: &Path| match std::fs::metadata(path) {
            Ok(found) => found.uid() != 0 || found.mode() & 0o022 != 0,
            Err(_) => true,
        };
        let all = self.binary.ancestors().skip(1).chain(real.ancestors());
        match all.into_iter().find(|path| writable(path)) {
            None => Ok(()),
            Some(path) => Err(format!(
                "{} can be changed by others than root, and what stands there would be started as root; install howdah \
                 where only root can write, or restart the server",
                path.display()
            )),
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_others_can_replace_is_not_started_as_root() {
        let place = tempfile::tempdir().unwrap();
        let binary = place.path().join("howdah");
        std::fs::write(&binary, "").unwrap();
        let program = ServerProgram { binary, name: "howdah".into(), arguments: Vec::new() };
        // The directory for temporary files is everybody's.
        let why = program.is_roots_alone().unwrap_err();
        assert!(why.contains("can be changed by others than root"), "{why}");
        let missing = program.with_binary(place.path().join("missing"));
        assert!(missing.is_roots_alone().unwrap_err().contains("cannot start"));
    }

    #[test]
    fn this_process_is_found_by_its_name() {
        let program = ServerProgram::of_this_process().unwrap();
        assert!(program.binary().is_absolute());
        assert_eq!(identity(program.binary()), identity(Path::new("/proc/self/exe")));
    }
}
