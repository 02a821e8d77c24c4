//! Finds and reads `howdah.toml`.

use crate::cli::ServeFlags;
use crate::file::File;
use crate::origin::{ConfigError, ConfigErrors};
use crate::source::{Environment, absolute};
use std::path::{Path, PathBuf};

/// Name of the default settings file.
pub(crate) const FILE_NAME: &str = "howdah.toml";

/// Names of settings files and applications: a directory with one of them is the intended one.
const OWN: &[&str] = &[FILE_NAME, "composer.json", "index.php", "index.html", "public"];

/// The packaged settings, for a command that inspects settings if none are named and the current directory contains
/// neither settings nor an application.
pub fn installed_settings(flags: &ServeFlags, environment: &Environment) -> Option<PathBuf> {
    let is_named = flags.config.is_some() || flags.values.contains_key("root");
    if is_named || OWN.iter().any(|name| environment.current_dir.join(name).exists()) {
        return None;
    }
    environment.settings_dir.as_ref().map(|dir| dir.join(FILE_NAME)).filter(|file| file.exists())
}

/// Reads the named `howdah.toml`, or the one in the current directory if there is one.
pub(crate) fn read_file(named: Option<&Path>, environment: &Environment) -> Result<Option<File>, ConfigErrors> {
    let shown = named.map_or_else(|| PathBuf::from(FILE_NAME), Path::to_path_buf);
    let full = absolute(&environment.current_dir, &shown);
    let content = match std::fs::read(&full) {
        Ok(content) => content,
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let message = format!("cannot read {}: {error}", shown.display());
            return Err(ConfigErrors(vec![ConfigError { origin: None, setting: String::new(), message }]));
        }
    };
    File::parse(shown, &full, content, false).map(Some).map_err(ConfigErrors)
}
