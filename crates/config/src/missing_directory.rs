//! Error about a file that cannot be created because its directory is missing.

use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingDirectory(PathBuf);

impl MissingDirectory {
    /// The directory of this file or socket; a plain name is in the current directory.
    ///
    /// # Errors
    /// The directory is missing.
    pub fn check(file: &Path) -> Result<&Path, Self> {
        let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if directory.is_dir() { Ok(directory) } else { Err(Self(directory.to_owned())) }
    }

    /// The directory of this file or socket, if it is missing.
    pub fn of(file: &Path) -> Option<Self> {
        Self::check(file).err()
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for MissingDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no directory {}: create it", self.0.display())
    }
}
