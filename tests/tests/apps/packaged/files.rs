//! Contents of the packages: every file below a root, and every refusal in their configuration for Apache.

use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A directive that refuses something.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// `FILE:LINE`, for messages.
    pub(crate) place: String,
    /// The directory that it applies to.
    pub(crate) directory: PathBuf,
    pub(crate) kind: Kind,
}

#[derive(Debug, PartialEq, Clone, Copy)]
pub(crate) enum Kind {
    /// No file below the directory is served.
    Everything,
    /// Scripts below it do not run.
    Scripts,
    /// Refuses some requests by a pattern or a method; the application's list names them.
    Some,
}

/// Maximum number of files per directory: refusals depend on directories and names.
const OF_EACH: usize = 6;

/// Files below a directory, including those behind links, as relative paths: for each directory some of each kind.
pub(crate) fn below(root: &Path) -> Vec<String> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    walk(root, "", &mut seen, &mut found);
    found.sort();
    found
}

fn walk(directory: &Path, prefix: &str, seen: &mut BTreeSet<PathBuf>, found: &mut Vec<String>) {
    let Ok(real) = directory.canonicalize() else { return };
    if !seen.insert(real) {
        return;
    }
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut entries: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    entries.sort();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            walk(&path, &format!("{prefix}/{name}"), seen, found);
        } else if path.is_file() {
            let kind =
                kinds.entry(path.extension().map_or_else(|| name.clone(), |e| e.to_string_lossy().into())).or_insert(0);
            *kind += 1;
            if *kind > OF_EACH && !name.contains("howdah-test") {
                continue;
            }
            found.push(format!("{prefix}/{name}"));
        }
    }
}

/// Refusals in a configuration file, and in each `.htaccess` below a root.
pub(crate) fn refusals(configuration: &Path, root: &Path) -> Vec<Refusal> {
    let mut found = of_file(configuration, None);
    for file in below(root).iter().filter(|file| file.ends_with("/.htaccess")) {
        let path = root.join(&file[1..]);
        found.extend(of_file(&path, path.parent()));
    }
    found
}

fn of_file(file: &Path, directory: Option<&Path>) -> Vec<Refusal> {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let opening = Regex::new(r#"(?i)^<Directory\s+"?([^">]+)"?>"#).unwrap();
    let conditional = Regex::new(r"(?i)^<(If\w+)\s+(.*)>").unwrap();
    let everything = Regex::new(r"(?i)^(Require all denied|Deny from all)").unwrap();
    let some = Regex::new(r"(?i)^RewriteRule\s.*\[(.*,)?F\b").unwrap();
    let scripts = Regex::new(r"(?i)^php_(admin_)?flag\s+engine\s+off").unwrap();
    let (mut here, mut off, mut inside, mut found) = (directory.map(Path::to_owned), 0_usize, 0_usize, Vec::new());
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if let Some(captures) = opening.captures(line) {
            here = captures.get(1).map(|m| PathBuf::from(m.as_str().trim_end_matches('/')));
        }
        let begins = conditional.captures(line).filter(|_| off == 0);
        if let Some(captures) = begins {
            let condition = captures.get(2).map_or("", |m| m.as_str());
            // Directives for Apache before 2.4 are not active; the module of PHP 7 stands for that of PHP.
            off = usize::from(
                condition.starts_with("!mod_authz_core")
                    || condition.starts_with("!version")
                    || condition.starts_with('<'),
            );
        } else if off > 0 && conditional.is_match(line) {
            off += 1;
        } else if off > 0 && line.to_ascii_lowercase().starts_with("</if") {
            off -= 1;
        }
        if line.to_ascii_lowercase().starts_with("<limitexcept") || line.to_ascii_lowercase().starts_with("<files") {
            inside += 1;
        } else if line.to_ascii_lowercase().starts_with("</limitexcept")
            || line.to_ascii_lowercase().starts_with("</files")
        {
            inside -= 1;
        }
        let kind = match () {
            () if off > 0 => continue,
            () if everything.is_match(line) && inside > 0 => Kind::Some,
            () if everything.is_match(line) => Kind::Everything,
            () if some.is_match(line) => Kind::Some,
            () if scripts.is_match(line) => Kind::Scripts,
            () => continue,
        };
        let place = format!("{}:{}", file.display(), number + 1);
        let directory = here.clone().unwrap_or_else(|| panic!("{place}: outside of a directory"));
        found.push(Refusal { place, directory, kind });
    }
    found
}
