//! `howdah init --octane`: creates the link through which Laravel Octane starts this server instead of FrankenPHP
//! (`frankenphp`).
//!
//! Octane looks for a program `frankenphp` in PATH, then in the project, and otherwise downloads one into the project.
//! So the link is created in the project. An existing program is renamed only on request, and a program that Octane
//! would find first in PATH is reported.

use crate::output::{self, complain};
use crate::server::own_program;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const NAME: &str = "frankenphp";
/// New name of the existing program.
const BACKUP_NAME: &str = "frankenphp.before-howdah";

/// Creates the link in a project.
pub(crate) fn make(directory: &Path, replace: bool) -> Result<ExitCode> {
    let project =
        directory.canonicalize().with_context(|| format!("cannot open the directory {}", directory.display()))?;
    if !project.join("artisan").is_file() {
        bail!("there is no artisan in {}: name the Laravel project's directory", project.display());
    }
    let program = own_program::of_this_process().context("cannot determine the path of this program")?;
    let program = &*program.binary;
    let link = project.join(NAME);
    let mut said = String::new();
    match existing_file(&link, program)? {
        ExistingFile::Ours => said = format!("{} is already a link to this server\n", link.display()),
        ExistingFile::Nothing => put(program, &link)?,
        ExistingFile::Other if !replace => bail!(
            "{0} is another program (`octane:install` downloads one), which Octane would still start; `howdah init \
             --octane --replace` renames it to {BACKUP_NAME} and creates the link",
            link.display()
        ),
        ExistingFile::Other => {
            let kept = project.join(BACKUP_NAME);
            if kept.symlink_metadata().is_ok() {
                bail!("{} exists already and would be overwritten: move or remove it", kept.display());
            }
            fs::rename(&link, &kept).with_context(|| format!("cannot rename {}", link.display()))?;
            if let Err(error) = put(program, &link) {
                let _ = fs::rename(&kept, &link);
                return Err(error);
            }
            said = format!("the previous program is now {}\n", kept.display());
        }
    }
    if !said.contains("already") {
        said += &format!("{} is a link to {}\n", link.display(), program.display());
    }
    let other = first_in_path(program);
    if other.is_none() {
        said += "`php artisan octane:start --server=frankenphp` starts Howdah; nothing is downloaded for it\n";
    }
    output::print(said)?;
    if let Some(other) = other {
        complain(format_args!(
            "howdah: but Octane will start {}, as it searches PATH before the project: remove it, or start with \
             PATH=\"{}:$PATH\"",
            other.display(),
            project.display()
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The existing file with the link's name.
enum ExistingFile {
    /// No file, or a dangling link.
    Nothing,
    /// A link to this program.
    Ours,
    Other,
}

fn existing_file(path: &Path, program: &Path) -> Result<ExistingFile> {
    match path.canonicalize() {
        Ok(other) if program.canonicalize().is_ok_and(|program| program == other) => Ok(ExistingFile::Ours),
        Ok(_) => Ok(ExistingFile::Other),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(ExistingFile::Nothing),
        Err(error) => Err(error).with_context(|| format!("cannot inspect {}", path.display())),
    }
}

/// Creates the link atomically, replacing a dangling link.
fn put(program: &Path, link: &Path) -> Result<()> {
    let new = link.with_extension(format!("new-{}", std::process::id()));
    let made = std::os::unix::fs::symlink(program, &new).and_then(|()| fs::rename(&new, link));
    if made.is_err() {
        let _ = fs::remove_file(&new);
    }
    made.with_context(|| format!("cannot create the link {}", link.display()))
}

/// Returns the `frankenphp` that Octane would find in PATH, unless it is this program.
fn first_in_path(program: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let runs = |file: &PathBuf| file.metadata().is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0);
    let first = std::env::split_paths(&path).map(|directory| directory.join(NAME)).find(runs)?;
    (first.canonicalize().ok() != program.canonicalize().ok()).then_some(first)
}
