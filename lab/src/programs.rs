//! Finds programs on this machine, and their versions.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Returns the first line of a program's version output.
pub fn version_line(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    let text = String::from_utf8_lossy(&text);
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// Returns the program with that name in `PATH` or in the directories for administrators.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/bin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

/// Returns the highest version of a file whose name differs only in its PHP version, such as `/usr/sbin/php-fpm8.2`.
pub fn newest_php(dir: &str, prefix: &str, suffix: &str) -> Option<(String, PathBuf)> {
    let mut found: Vec<(Vec<u32>, String, PathBuf)> = fs::read_dir(dir)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let version = name.strip_prefix(prefix)?.strip_suffix(suffix)?.to_owned();
            let numbers = version.split('.').map(str::parse).collect::<Result<Vec<u32>, _>>().ok()?;
            Some((numbers, version, entry.path()))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, version, path)| (version, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_php_is_chosen_by_number() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["php-fpm8.2", "php-fpm8.10", "php-fpm7.4", "php-fpm", "php-fpm8.x", "other8.9"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let (version, path) = newest_php(dir.path().to_str().unwrap(), "php-fpm", "").unwrap();
        assert_eq!(version, "8.10");
        assert!(path.ends_with("php-fpm8.10"));
        assert_eq!(newest_php("/nowhere", "php-fpm", ""), None);
    }
}
