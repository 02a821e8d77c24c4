//! Glob patterns of files, in the syntax of `watch`.
//!
//! `*` matches any text within one name, `**` as a whole name any number of directories, `{a,b}` either alternative. As
//! in a shell, a star does not match a leading dot, so `**` does not enter `.git`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use howdah_rules::pattern::Glob as Stars;

/// A pattern of absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    /// The alternatives from its braces, each split into path segments.
    alternatives: Vec<Vec<String>>,
}

/// Maximum number of alternatives of one pattern, over all its braces.
const MAX_ALTERNATIVES: usize = 1000;

impl Glob {
    /// Parses a pattern; relative patterns start at `dir`.
    ///
    /// # Errors
    /// The error in the pattern.
    pub fn new(pattern: &str, dir: &Path) -> Result<Self, String> {
        if pattern.is_empty() {
            return Err("is empty".to_owned());
        }
        let mut alternatives = Vec::new();
        for text in expand(pattern)? {
            let path = dir.join(&text);
            let mut names: Vec<String> = Vec::new();
            for part in path.to_string_lossy().split('/').filter(|part| !part.is_empty() && *part != ".") {
                match part {
                    // `..` is allowed only after plain names: the parent of a star depends on what the star matches.
                    ".." if names.last().is_none_or(|last| !is_plain(last)) => {
                        return Err("has `..` after a wildcard".to_owned());
                    }
                    ".." => drop(names.pop()),
                    name => names.push(name.to_owned()),
                }
            }
            alternatives.push(names);
        }
        Ok(Self { alternatives })
    }

    /// Adds the regular files that match. Unreadable directories are ignored.
    pub fn find(&self, found: &mut BTreeSet<PathBuf>) {
        for names in &self.alternatives {
            walk(PathBuf::from("/"), names, found);
        }
    }
}

fn is_plain(name: &str) -> bool {
    !name.contains('*')
}

fn walk(dir: PathBuf, names: &[String], found: &mut BTreeSet<PathBuf>) {
    let Some((name, rest)) = names.split_first() else { return };
    if name == "**" {
        // A final `**` matches all files below.
        if rest.is_empty() {
            walk(dir.clone(), &["*".to_owned()], found);
        } else {
            walk(dir.clone(), rest, found);
        }
        // Links to directories are not followed, because they may lead back up.
        for entry in entries(&dir).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            if fits("*", &entry.file_name().to_string_lossy()) {
                walk(entry.path(), names, found);
            }
        }
        return;
    }
    let take = |path: PathBuf, found: &mut BTreeSet<PathBuf>| {
        if !rest.is_empty() {
            walk(path, rest, found);
        } else if path.is_file() {
            found.insert(path);
        }
    };
    if is_plain(name) {
        take(dir.join(name), found);
        return;
    }
    for entry in entries(&dir) {
        if fits(name, &entry.file_name().to_string_lossy()) {
            take(entry.path(), found);
        }
    }
}

fn entries(dir: &Path) -> impl Iterator<Item = std::fs::DirEntry> + use<> {
    std::fs::read_dir(dir).into_iter().flatten().flatten()
}

/// `true` if a name matches the pattern of one segment.
fn fits(pattern: &str, name: &str) -> bool {
    let is_hidden = name.starts_with('.') && !pattern.starts_with('.');
    !is_hidden && Stars::new(pattern).matches(name.as_bytes())
}

/// Expands the braces of a pattern.
fn expand(pattern: &str) -> Result<BTreeSet<String>, String> {
    // Inner braces multiply the outer alternatives; a set removes duplicates.
    let mut done = BTreeSet::new();
    let mut left = vec![pattern.to_owned()];
    while let Some(text) = left.pop() {
        if done.len() + left.len() > MAX_ALTERNATIVES {
            return Err("has too many alternatives in braces".to_owned());
        }
        // The first closing brace and the last opening brace before it contain no other braces.
        let Some(close) = text.find('}') else {
            if text.contains('{') {
                return Err("has a { without its }".to_owned());
            }
            done.insert(text);
            continue;
        };
        let Some(open) = text[..close].rfind('{') else { return Err("has a } without its {".to_owned()) };
        for choice in text[open + 1..close].split(',') {
            left.push(format!("{}{choice}{}", &text[..open], &text[close + 1..]));
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, expected) in [
            ("*", "a", true),
            ("*", ".a", false),
            (".*", ".a", true),
            ("*.php", "a.php", true),
            ("*.php", "a.php~", false),
            ("*a*b", "xaxbxb", true),
            ("é*", "éx", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn braces_stand_for_each_choice() {
        let texts: Vec<_> = expand("a{.php,.{x,y}ml,}").unwrap().into_iter().collect();
        assert_eq!(texts, ["a", "a.php", "a.xml", "a.yml"]);
        assert!(expand("a{b").is_err() && expand("a}b").is_err());
        assert!(expand(&"{a,b}".repeat(30)).is_err());
    }

    #[test]
    fn files_are_found_below_the_patterns_directory() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["a.php", "src/b.php", "src/d/e/c.php", "src/d/x.txt", ".git/h.php", "src/.env"] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink("..", dir.path().join("src/up")).unwrap();
        let find = |pattern: &str| {
            let mut found = BTreeSet::new();
            Glob::new(pattern, dir.path()).unwrap().find(&mut found);
            let names = found.iter().map(|p| p.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(find("**/*.php"), "a.php src/b.php src/d/e/c.php");
        assert_eq!(find("src/*.php"), "src/b.php");
        assert_eq!(find("src/../*.{php,txt}"), "a.php");
        assert_eq!(find("src/**"), "src/b.php src/d/e/c.php src/d/x.txt");
        assert_eq!(find("src/.env"), "src/.env");
        assert_eq!(find("none/**/*"), "");
        assert!(Glob::new("src/*/../a", dir.path()).is_err());
        assert!(Glob::new("", dir.path()).is_err());
    }
}
