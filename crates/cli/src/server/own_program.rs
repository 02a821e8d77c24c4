//! The server's own program, which an upgrade starts again: found by the name it was called by, with its original
//! arguments.

use howdah_pool::process::root_program::RootProgram;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Environment variable that marks a successor: its standard input is the connection to the predecessor.
pub(crate) const TAKES_OVER: &str = "HOWDAH_TAKES_OVER";

/// Variables of systemd about descriptors, valid for one process only.
const PROCESS_VARIABLES: &[&str] = &["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "LISTEN_PIDFDID"];

/// Returns the program of this process. Must be called at the start, while relative paths still lead to the same files.
///
/// # Errors
/// The system does not report this process's program.
pub(crate) fn of_this_process() -> io::Result<RootProgram> {
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
    Ok(RootProgram {
        binary: called.filter(is_running).unwrap_or(running),
        name,
        arguments: arguments.collect(),
        env: vec![(TAKES_OVER.to_owned(), "1".to_owned())],
        without: PROCESS_VARIABLES.iter().map(ToString::to_string).collect(),
    })
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_by_its_name() {
        let program = of_this_process().unwrap();
        assert!(program.binary.is_absolute());
        assert_eq!(identity(&program.binary), identity(Path::new("/proc/self/exe")));
    }
}
