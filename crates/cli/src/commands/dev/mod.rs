//! `howdah dev`: `serve` with features for developers that must not be exposed to strangers.
//!
//! `dev` consists of settings (`settings`) and text (`banner`); the server implements the features. Error pages and
//! page reloads have no setting: `Settings::development` and `Settings::page_files` are set here and nowhere else.

mod addresses;
mod banner;
mod debugger;
pub(crate) mod mails;
mod settings;

use crate::commands::wrong;
use crate::server::reload::SettingsLoader;
use crate::server::serve;
use anyhow::Result;
use howdah_config::{Loaded, ServeFlags};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Settings for the project in this directory, which becomes the current directory.
pub(crate) fn load(directory: Option<&Path>, mut flags: ServeFlags) -> Result<(Loaded, SettingsLoader), ExitCode> {
    if let Some(config) = &flags.config {
        // The path is relative to the current directory, not to the project's.
        flags.config = Some(std::path::absolute(config).map_err(|error| wrong(format_args!("howdah: {error}")))?);
    }
    if let Some(directory) = directory {
        std::env::set_current_dir(directory)
            .map_err(|error| wrong(format_args!("howdah: cannot enter {}: {error}", directory.display())))?;
    }
    let project = std::env::current_dir().map_err(|error| wrong(format_args!("howdah: {error}")))?;
    let given = howdah_config::load(&flags).map_err(wrong)?;
    settings::complete(&mut flags, &given, &project);
    let reread = move || {
        let mut loaded = howdah_config::load(&flags).map_err(|errors| errors.to_string())?;
        addresses::check_local(&loaded.settings).map_err(|why| format!("howdah: {why}"))?;
        settings::develop(&mut loaded, &project).map_err(|why| format!("howdah: {why}"))?;
        Ok(loaded)
    };
    let loaded = reread().map_err(wrong)?;
    Ok((loaded, Arc::new(reread)))
}

/// State directories of servers on this machine, including `dev` started by root.
pub(crate) fn states() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state/howdah"));
    let of_system = std::fs::read_dir("/var/lib").into_iter().flatten().flatten();
    let named = of_system.filter(|entry| {
        let name = entry.file_name();
        name == "howdah" || name.to_str().is_some_and(|name| name.starts_with("howdah-"))
    });
    let mut found: Vec<PathBuf> = named.map(|entry| entry.path()).chain(home).collect();
    found.sort();
    found
}

/// Serves until stopped.
pub(crate) fn run(loaded: &Loaded, reread: SettingsLoader) -> Result<()> {
    banner::print(&loaded.settings);
    serve::run(loaded, reread, serve::InheritedListeners::default())
}
