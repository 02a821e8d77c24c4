//! PHP-FPM's command-line flags, and the directories that relative paths start from.

use super::file::Section;
use std::path::PathBuf;

/// Default directories for relative paths: of pools, and of the server's own files.
pub(super) const PREFIX: &str = "/usr";
pub(super) const STATE: &str = "/var";

/// Flags of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) config: PathBuf,
    pub(crate) prefix: Option<PathBuf>,
    pub(crate) pid: Option<PathBuf>,
    /// PHP version in the program's name.
    pub(crate) version: Option<String>,
    pub(crate) php_ini: Option<PathBuf>,
    pub(crate) defined: Vec<(String, String)>,
    pub(crate) allow_root: bool,
    pub(crate) force_stderr: bool,
    /// `Some(true)` for the background, `Some(false)` for the foreground.
    pub(crate) daemonize: Option<bool>,
}

/// Directory that a pool's relative paths start from.
pub(super) fn prefix_of(section: &Section, given: &Arguments) -> PathBuf {
    let own = section.get("prefix").map(PathBuf::from);
    own.or_else(|| given.prefix.clone()).unwrap_or_else(|| PathBuf::from(PREFIX))
}
