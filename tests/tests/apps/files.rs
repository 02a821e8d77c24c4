//! Private copies of the packages' content, so that nothing on the machine is changed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Path of a package's file: below the directory that `scripts/unpack-apps.sh` filled, otherwise as installed.
pub(crate) fn packaged(path: &str) -> PathBuf {
    let top = std::env::var_os("HOWDAH_APPS").unwrap_or_else(|| "/".into());
    let path = Path::new(&top).join(path);
    assert!(path.exists(), "{} is missing: run `make test-apps`", path.display());
    path
}

/// Copies the content of a directory into another one. Symbolic links are replaced by their targets, because packages
/// link to files outside of the application; times and modes are kept.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
    let mut source = from.to_owned();
    source.push(".");
    make_directory(to);
    let output = Command::new("cp").args(["-rL", "--preserve=mode,timestamps"]).arg(source).arg(to).output();
    let output = output.unwrap_or_else(|e| panic!("cp: {e}"));
    // A link to a package that is only suggested may be dangling; everything else must exist.
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let serious = errors.lines().find(|line| !line.contains("cannot stat"));
    assert!(serious.is_none(), "cannot copy {} to {}: {errors}", from.display(), to.display());
}

pub(crate) fn make_directory(path: &Path) {
    std::fs::create_dir_all(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

pub(crate) fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}
