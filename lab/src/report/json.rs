//! `result.json`: rewritten after every run, so that no measurement is lost.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::record::{ResultSet, SCHEMA};

pub const FILE: &str = "result.json";

/// Writes the file by renaming, so that no reader ever sees half of it, even after a crash.
pub fn write(dir: &Path, results: &ResultSet) -> Result<()> {
    let temporary = dir.join(".result.json.new");
    let path = dir.join(FILE);
    let text = serde_json::to_string_pretty(results)? + "\n";
    fs::write(&temporary, text)
        .and_then(|()| fs::rename(&temporary, &path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Reads a result set from its file or its directory.
pub fn read(path: &Path) -> Result<(PathBuf, ResultSet)> {
    let file = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let results: ResultSet =
        serde_json::from_str(&text).with_context(|| format!("{} is not a result set of the lab", file.display()))?;
    if results.schema != SCHEMA {
        bail!("{} has layout {}, this lab reads layout {SCHEMA}", file.display(), results.schema);
    }
    let dir = file.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    Ok((dir, results))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::sample_results;

    #[test]
    fn written_settings_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let results = sample_results::results();
        write(dir.path(), &results).unwrap();
        let (found, again) = read(dir.path()).unwrap();
        assert_eq!(found, dir.path());
        assert_eq!(serde_json::to_value(&again).unwrap(), serde_json::to_value(&results).unwrap());
    }

    #[test]
    fn other_layouts_and_other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut results = sample_results::results();
        results.schema = 999;
        write(dir.path(), &results).unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("layout 999"));
        fs::write(dir.path().join(FILE), "{}").unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("not a result set"));
    }
}
