//! The selected tests of a binary, and the directory of the run's files.

use crate::arguments::Arguments;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `target/test-run/NAME` for the binary `target/debug/deps/NAME-HASH`.
pub(crate) fn directory(binary: &Path) -> PathBuf {
    let stem = binary.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = stem.rsplit_once('-').map_or(stem.as_str(), |(name, _)| name);
    let target = binary.ancestors().nth(3).unwrap_or(Path::new("."));
    target.join("test-run").join(name)
}

/// The selected tests, as the binary lists them, without those that are marked `#[ignore]`.
pub(crate) fn names(binary: &Path, arguments: &Arguments) -> io::Result<Vec<String>> {
    let ignored: BTreeSet<String> = list(binary, &["--ignored"])?.into_iter().collect();
    let names = list(binary, &[])?.into_iter();
    Ok(names.filter(|name| arguments.select(name) && !ignored.contains(name)).collect())
}

fn list(binary: &Path, more: &[&str]) -> io::Result<Vec<String>> {
    let arguments = ["--list", "--format", "terse"];
    let output = Command::new(binary).args(arguments).args(more).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{} --list: {}", binary.display(), output.status)));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    Ok(lines.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}
