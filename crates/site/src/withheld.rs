//! Files that are never sent for any request: PHP source, including copies with the usual names of backups and
//! archives, and the server's own configuration.
//!
//! Names with PHP's extensions, in upper or lower case, are source (`is_source_name`). Names of the configuration and
//! its copies (`is_copy_of`), and those in `static.never_send`, are withheld too. Some files are withheld under any
//! name or link: `howdah.toml` and files of sites, `php.ini`, the scripts and boot files of pools, and the logs.
//! Rotated logs are recognized by their directory and name. Names are matched without the extension of a content
//! coding, so `x.php.gz` is treated as `x.php`.

use howdah_config::{AccessTarget, LogTarget, NamePattern, Settings, StaticSettings};
use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Default file name of the configuration.
const CONFIGURATION: &[u8] = b"howdah.toml";

/// Files and names that are never sent.
#[derive(Debug, Default)]
pub struct Withheld {
    names: Vec<NamePattern>,
    /// The file name of the configuration that was loaded.
    configuration: Option<Vec<u8>>,
    files: Arc<PrivateFiles>,
}

/// Files of the server that no site sends, under any name.
#[derive(Debug, Default)]
pub struct PrivateFiles {
    /// Files whose identity is checked each time, because an editor may replace them.
    files: Vec<PathBuf>,
    /// Further files by their real path only: with a thousand sites, checking each file would be too expensive.
    further: HashSet<PathBuf>,
    /// File names of logs by their directories. Rotated logs are withheld too: their names begin with the log's.
    logs: HashMap<PathBuf, Vec<Vec<u8>>>,
    /// Device and inode of each file when the settings were loaded. An editor may keep the old file under another name.
    at_start: HashSet<(u64, u64)>,
}

/// Maximum number of files whose identity is checked each time.
const MAX_EXAMINED: usize = 64;

impl PrivateFiles {
    /// Collects the private files of these settings.
    pub fn new(settings: &Settings) -> Self {
        let mut files: Vec<PathBuf> = settings.config_file.iter().cloned().collect();
        let mut logs = Vec::new();
        if let LogTarget::File(path) = &settings.log.error {
            logs.push(path.clone());
        }
        for pool in &settings.pools {
            if let Some(config) = &pool.php.config {
                files.extend([config.clone(), config.join("php.ini")]);
            }
            files.extend(pool.script.iter().chain(&pool.boot).cloned());
            if let LogTarget::File(path) = &pool.slow_log {
                logs.push(path.clone());
            }
        }
        files.extend(settings.site_files.iter().cloned());
        for log in [&settings.log].into_iter().chain(settings.sites.iter().map(|site| &site.log)) {
            if let AccessTarget::File(path) = &log.access {
                logs.push(path.clone());
            }
        }
        files.extend(logs.iter().cloned());
        let mut known = HashSet::new();
        files.retain(|path| known.insert(path.clone()));
        let at_start = files.iter().filter_map(|path| identity(path)).collect();
        let further = files.split_off(files.len().min(MAX_EXAMINED));
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let further = further.into_iter().map(real).collect();
        Self { files, further, logs: by_directory(&logs), at_start }
    }

    /// `true` if the file at this path is private. The path must be free of links.
    fn is_at(&self, path: &Path) -> bool {
        let any = !self.files.is_empty() && identity(path).is_some_and(|(device, inode)| self.is_file(device, inode));
        any || self.further.contains(path) || self.is_log(path)
    }

    fn is_log(&self, path: &Path) -> bool {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return false };
        let is_named = |logs: &Vec<Vec<u8>>| logs.iter().any(|log| name.as_bytes().starts_with(log));
        self.logs.get(directory).is_some_and(is_named)
    }

    fn is_file(&self, device: u64, inode: u64) -> bool {
        let wanted = (device, inode);
        self.at_start.contains(&wanted) || self.files.iter().any(|path| identity(path) == Some(wanted))
    }
}

impl Withheld {
    /// Withheld files of a site with these settings.
    pub fn new(settings: &Settings, site: &StaticSettings, files: Arc<PrivateFiles>) -> Self {
        let name = settings.config_file.as_deref().and_then(Path::file_name);
        Self {
            names: site.never_send.clone(),
            configuration: name.map(|name| name.as_bytes().to_ascii_lowercase()),
            files,
        }
    }

    /// `true` if a file with this path is withheld because of its name.
    pub fn by_name(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
        let plain = [&b".gz"[..], b".br", b".zst"].iter().find_map(|ending| {
            let at = name.len().checked_sub(ending.len())?;
            name[at..].eq_ignore_ascii_case(ending).then_some(&name[..at])
        });
        let name = plain.unwrap_or(name);
        is_source_name(name)
            || is_copy_of(CONFIGURATION, name)
            || self.configuration.as_ref().is_some_and(|configuration| is_copy_of(configuration, name))
            || NamePattern::any(&self.names, name)
    }

    /// `true` if the file at `path` is private, whatever its name is. The path must be free of links.
    pub fn is_at(&self, path: &Path) -> bool {
        self.files.is_at(path)
    }

    /// `true` if a file with this device and inode is withheld.
    pub fn is_file(&self, device: u64, inode: u64) -> bool {
        self.files.is_file(device, inode)
    }
}

fn by_directory(logs: &[PathBuf]) -> HashMap<PathBuf, Vec<Vec<u8>>> {
    let mut names: HashMap<PathBuf, Vec<Vec<u8>>> = HashMap::new();
    for log in logs {
        let (Some(directory), Some(name)) = (log.parent(), log.file_name()) else { continue };
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        names.entry(directory).or_default().push(name.as_bytes().to_vec());
    }
    names
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some((meta.dev(), meta.ino()))
}

/// `true` if `name` is `of`, or a typical copy of it: `.of.swp`, `#of#`, `of~`, `of.bak`, `of-2020`.
fn is_copy_of(of: &[u8], name: &[u8]) -> bool {
    let start = name.iter().position(|b| !matches!(b, b'.' | b'#' | b'~')).unwrap_or(0);
    // A configuration may itself be called `.something`.
    [name, &name[start..]].iter().any(|name| {
        name.len() >= of.len()
            && name[..of.len()].eq_ignore_ascii_case(of)
            && name.get(of.len()).is_none_or(|next| !next.is_ascii_alphanumeric())
    })
}

/// `true` if a file with this name may contain PHP source and is never sent: it has one of PHP's usual extensions, in
/// upper or lower case, possibly followed by dots, spaces and tildes that other systems and editors append.
pub(crate) fn is_source_name(path: &[u8]) -> bool {
    const ENDINGS: [&[u8]; 11] =
        [b"php", b"phtml", b"phar", b"php3", b"php4", b"php5", b"php7", b"php8", b"phps", b"pht", b"phpt"];
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
    let end =
        name.iter().rposition(|b| !matches!(b, b'.' | b' ' | b'~' | b'\t' | b'\r' | b'\n')).map_or(0, |at| at + 1);
    let ending = name[..end].rsplit(|&b| b == b'.').next().unwrap_or_default();
    ending.len() < end && ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known))
}

#[cfg(test)]
#[path = "withheld_tests.rs"]
mod tests;
