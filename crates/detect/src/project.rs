//! Reads a project's files, with limits: they belong to the application, and must not be able to stall the server or
//! fill its memory.

use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a Composer file, in bytes; those of the largest applications have 2 MB.
const MAX_LIST_BYTES: u64 = 32 << 20;

/// Maximum number of bytes read from a source file: version constants are near its beginning.
const MAX_SOURCE_BYTES: u64 = 256 << 10;

/// Maximum length of a version, in bytes.
const MAX_VERSION_LEN: usize = 32;

/// A package that Composer has installed or that the project requires.
pub(crate) struct Package {
    name: String,
    /// Version, without the `v` that many begin with; `None` if there is only a `composer.json`.
    pub(crate) version: Option<String>,
}

/// A directory that may contain an application.
pub(crate) struct Project {
    dir: PathBuf,
    packages: Vec<Package>,
    is_locked: bool,
}

impl Project {
    /// Reads the Composer files in a directory. Files that are missing, too long or not JSON are ignored.
    pub(crate) fn at(dir: &Path) -> Self {
        let list = |name: &str| serde_json::from_slice::<Value>(&read(&dir.join(name), MAX_LIST_BYTES)?).ok();
        let locked = list("composer.lock").map(|list| installed(&list)).filter(|packages| !packages.is_empty());
        let is_locked = locked.is_some();
        let packages = locked.or_else(|| list("composer.json").map(|list| required(&list))).unwrap_or_default();
        Self { dir: dir.to_path_buf(), packages, is_locked }
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    pub(crate) fn packages(&self) -> impl Iterator<Item = &str> {
        self.packages.iter().map(|package| package.name.as_str())
    }

    /// The file that packages were read from.
    pub(crate) fn list_name(&self) -> &'static str {
        if self.is_locked { "composer.lock" } else { "composer.json" }
    }

    /// Path of a directory in the project; `.` is the project itself.
    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        if name == "." { self.dir.clone() } else { self.dir.join(name) }
    }

    /// Returns the version that follows a text in a file. `None` if the file does not have that text, `Some(None)` if
    /// no number follows on its line.
    pub(crate) fn number_after(&self, file: &str, text: &str) -> Option<Option<String>> {
        let bytes = read(&self.dir.join(file), MAX_SOURCE_BYTES)?;
        let source = String::from_utf8_lossy(&bytes);
        let (_, rest) = source.split_once(text)?;
        let line = rest.lines().next().unwrap_or_default();
        let number = line.trim_start_matches(|c: char| !c.is_ascii_digit());
        let of_version = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
        let end = number.find(|c| !of_version(c)).unwrap_or(number.len());
        let version = &number[..end];
        Some((1..=MAX_VERSION_LEN).contains(&version.len()).then(|| version.to_owned()))
    }
}

/// Packages in `composer.lock`, without those for development.
fn installed(list: &Value) -> Vec<Package> {
    let packages = list.get("packages").and_then(Value::as_array).into_iter().flatten();
    let package = |item: &Value| {
        let name = item.get("name")?.as_str()?.to_owned();
        let version = item.get("version").and_then(Value::as_str).map(|version| version.trim_start_matches('v'));
        // Versions are printed to terminals and written into files.
        let is_plain = |version: &&str| {
            version.len() <= MAX_VERSION_LEN
                && version.bytes().all(|b| b.is_ascii_alphanumeric() || b".-+_/".contains(&b))
        };
        Some(Package { name, version: version.filter(is_plain).map(str::to_owned) })
    };
    packages.filter_map(package).collect()
}

/// Packages required by `composer.json`.
fn required(list: &Value) -> Vec<Package> {
    let names = list.get("require").and_then(Value::as_object).into_iter().flat_map(serde_json::Map::keys);
    names.map(|name| Package { name: name.clone(), version: None }).collect()
}

/// Reads the first bytes of a regular file. `O_NONBLOCK`: opening a pipe of this name must not wait for a writer.
fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
