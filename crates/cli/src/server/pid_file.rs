//! The file with the number of the server's process, which a configuration of PHP-FPM may name.

use anyhow::{Context, Result};
use std::path::PathBuf;

/// Such a file. It goes with the server, unless another process is in it by then.
pub(crate) struct PidFile {
    pub(crate) path: PathBuf,
}

impl PidFile {
    /// Writes this process's number. The file is a new one each time: who has written an earlier one leaves it alone.
    pub(crate) fn write(path: PathBuf) -> Result<Self> {
        let new = path.with_extension(format!("pid-{}", std::process::id()));
        let written = std::fs::write(&new, std::process::id().to_string());
        let written = written.and_then(|()| std::fs::rename(&new, &path));
        written.with_context(|| format!("cannot write the process number to {}", path.display()))?;
        Ok(Self { path })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let own = std::process::id().to_string();
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text.trim() == own) {
            // Where only root may remove it, the launcher does.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
