//! PHP's JIT as a condition of a case, the same for every system.
//!
//! The JIT's buffer must be set before PHP starts, which is too early for settings in PHP-FPM's pools and Apache's
//! `php_admin_value`. Every SAPI reads the directories of `PHP_INI_SCAN_DIR` when it starts; an empty first entry keeps
//! the usual ones.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Suffix of the name of a case with the JIT.
pub const SUFFIX: &str = "-jit";

pub const SETTINGS: [&str; 2] = ["opcache.jit=tracing", "opcache.jit_buffer_size=64M"];

/// Description of these settings in reports.
pub const WORDS: &str = "JIT: tracing, buffer of 64 MiB";

const DIRECTORY: &str = "jit";

/// Writes the settings to a directory of the system's private directory.
pub fn prepare(dir: &Path) -> Result<()> {
    let dir = dir.join(DIRECTORY);
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let lines: String = SETTINGS.iter().map(|setting| format!("{setting}\n")).collect();
    // Sorts after all files of a distribution or PHP's image.
    fs::write(dir.join("99-jit.ini"), lines).context("cannot write the settings of the JIT")
}

/// Returns the environment that makes PHP read them.
pub fn environment(dir: &Path) -> Vec<(String, String)> {
    vec![("PHP_INI_SCAN_DIR".to_owned(), format!(":{}", dir.join(DIRECTORY).display()))]
}

/// Returns the name of the same case without the JIT.
pub fn plain(id: &str) -> Option<&str> {
    id.strip_suffix(SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn php_reads_the_settings_next_to_its_own() {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path()).unwrap();
        let asked = |environment: Vec<(String, String)>| {
            let output = std::process::Command::new("php").arg("--ini").envs(environment).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let (before, after) = (asked(Vec::new()), asked(environment(dir.path())));
        assert!(after.contains("99-jit.ini"), "{after}");
        let files = |text: &str| text.matches(".ini").count();
        assert!(files(&after) > files(&before), "{before}\n{after}");
    }

    #[test]
    fn cases_with_the_jit_have_a_twin_without() {
        let ids: Vec<String> = crate::cases::catalogue::all().into_iter().map(|case| case.id).collect();
        for case in crate::cases::catalogue::all() {
            assert_eq!(case.jit, plain(&case.id).is_some(), "{}", case.id);
            assert!(plain(&case.id).is_none_or(|plain| ids.iter().any(|id| id == plain)), "{}", case.id);
        }
    }
}
