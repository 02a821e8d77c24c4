//! The file with the server's process ID, which a PHP-FPM configuration may name.

use anyhow::{Context, Result};
use std::path::PathBuf;

/// A PID file. Removed on drop, unless it names another process by then.
pub(crate) struct PidFile {
    pub(crate) path: PathBuf,
}

impl PidFile {
    /// Writes this process's ID, to a new file each time. A process that wrote an earlier one does not remove it.
    pub(crate) fn write(path: PathBuf) -> Result<Self> {
        let new = path.with_extension(format!("pid-{}", std::process::id()));
        let written = std::fs::write(&new, std::process::id().to_string());
        let written = written.and_then(|()| std::fs::rename(&new, &path));
        written.with_context(|| format!("cannot write the process id to {}", path.display()))?;
        Ok(Self { path })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let own = std::process::id().to_string();
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text.trim() == own) {
            // If only root may remove the file, the launcher does.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
