//! Private copies of what the packages hold, so that nothing on the machine is changed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a file of a package is: below the directory that `scripts/unpack-apps.sh` filled, else where it is installed.
pub(crate) fn packaged(path: &str) -> PathBuf {
    let top = std::env::var_os("HOWDAH_APPS").unwrap_or_else(|| "/".into());
    let path = Path::new(&top).join(path);
    assert!(path.exists(), "{} is missing: run `make test-apps`", path.display());
    path
}

/// Copies the content of a directory into another one. Symbolic links become what they point to, because packages link
/// parts of a program to places outside of it; times and modes stay.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
    let mut source = from.to_owned();
    source.push(".");
    make_directory(to);
    let output = Command::new("cp").args(["-rL", "--preserve=mode,timestamps"]).arg(source).arg(to).output();
    let output = output.unwrap_or_else(|e| panic!("cp: {e}"));
    // A link to a package that the program only suggests leads nowhere; everything else must be there.
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let serious = errors.lines().find(|line| !line.contains("cannot stat"));
    assert!(serious.is_none(), "cannot copy {} to {}: {errors}", from.display(), to.display());
}

/// Makes a directory and those above it.
pub(crate) fn make_directory(path: &Path) {
    std::fs::create_dir_all(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Writes a text file.
pub(crate) fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}
