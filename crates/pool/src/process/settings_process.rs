//! Further programs for the launcher. It starts the server's own program with root's rights to read the settings again
//! and print the allowed programs. The server, which has given up these rights, chooses the time, and nothing else.

use crate::process::end::End;
use crate::process::program::Program;
use crate::process::root_program::RootProgram;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::process::{Child, Stdio};

/// Environment variable that makes `howdah` print the programs of its settings and exit.
pub const SETTLES: &str = "HOWDAH_SETTLES";
/// Maximum length of an error text, in bytes.
const MAX_MESSAGE_LEN: u64 = 4096;

/// The output of a process that reads the settings.
pub(crate) struct SettingsProcess(File);

impl SettingsProcess {
    /// Starts the process.
    ///
    /// # Errors
    /// The reason why the process could not be started.
    pub(crate) fn start(program: &RootProgram) -> Result<(Self, Child), String> {
        program.verify_only_root_can_replace()?;
        let begin = || -> io::Result<(Self, Child)> {
            // Not a pipe: the launcher reads it only once the process has ended.
            let output = File::from(memfd_create(c"programs", MemfdFlags::CLOEXEC)?);
            let mut command = program.command(File::open("/dev/null")?.into());
            for (name, _) in &program.env {
                command.env_remove(name);
            }
            let child = command.env(SETTLES, "1").stdout(Stdio::from(output.try_clone()?)).spawn()?;
            Ok((Self(output), child))
        };
        begin().map_err(|error| program.explain(&error))
    }

    /// Returns the programs, after the process ended with `end`.
    ///
    /// # Errors
    /// The process failed; its error text.
    pub(crate) fn programs(mut self, end: &End) -> Result<Vec<Program>, String> {
        let unreadable = |error: io::Error| format!("cannot read the programs of the settings: {error}");
        self.0.rewind().map_err(unreadable)?;
        if *end != End::Status(0) {
            let mut words = Vec::new();
            let _ = self.0.take(MAX_MESSAGE_LEN).read_to_end(&mut words);
            return Err(format!("{end}: {}", String::from_utf8_lossy(&words).trim_end()));
        }
        let read = |line: io::Result<String>| serde_json::from_str(&line?).map_err(io::Error::from);
        BufReader::new(self.0).lines().map(read).collect::<io::Result<_>>().map_err(unreadable)
    }
}

/// Prints programs in the form that the launcher reads.
///
/// # Errors
/// The programs cannot be written.
pub fn print(programs: &[Program], mut to: impl Write) -> io::Result<()> {
    for program in programs {
        serde_json::to_writer(&mut to, program)?;
        writeln!(to)?;
    }
    to.flush()
}
